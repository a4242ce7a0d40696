//! Runs the target that the variable `ANTEROOM_FUZZ` names under libFuzzer. `ANTEROOM_FUZZ_SEEDS` is a directory for its
//! seeds, `ANTEROOM_FUZZ_SLOWEST` one for the inputs that took longer for their size than all before them.
#![no_main]
#![allow(unsafe_code, reason = "libFuzzer is not Rust")]

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anteroom_fuzz::{TARGETS, Target};
use libfuzzer_sys::fuzz_target;

static CHOSEN: OnceLock<Target> = OnceLock::new();

fn choose() {
    let name = std::env::var("ANTEROOM_FUZZ").expect("ANTEROOM_FUZZ names a target");
    let target = TARGETS.iter().find(|target| target.name == name).expect("there is such a target");
    if let Ok(directory) = std::env::var("ANTEROOM_FUZZ_SEEDS") {
        for (number, seed) in (target.seeds)().into_iter().enumerate() {
            std::fs::write(format!("{directory}/seed-{number}"), seed)
                .expect("the directory can be written to");
        }
    }
    CHOSEN.set(*target).expect("it is chosen once");
}

/// The longest time so far, in nanoseconds for a KiB.
static SLOWEST: AtomicU64 = AtomicU64::new(0);

#[allow(clippy::disallowed_methods, reason = "nothing depends on the time")]
fn run(target: &Target, input: &[u8]) {
    let time = || {
        let since = Instant::now();
        (target.run)(input);
        since.elapsed().as_nanos() as u64 * 1_024 / input.len().max(1_024) as u64
    };
    // Others may have had the processor meanwhile: the least of several counts.
    let slowest = SLOWEST.load(Ordering::Relaxed);
    if time() > slowest {
        let least = (0..8).map(|_| time()).min().unwrap_or_default();
        if least > slowest {
            SLOWEST.store(least, Ordering::Relaxed);
            if let Ok(directory) = std::env::var("ANTEROOM_FUZZ_SLOWEST") {
                std::fs::write(format!("{directory}/{least:012}"), input)
                    .expect("the directory can be written to");
            }
        }
    }
}

fuzz_target!(init: choose(), |input: &[u8]| {
    if let Some(target) = CHOSEN.get() {
        run(target, input);
    }
});
