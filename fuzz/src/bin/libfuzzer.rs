//! Runs the target that the variable `ANTEROOM_FUZZ` names under libFuzzer. `ANTEROOM_FUZZ_SEEDS` is a directory for its
//! seeds.
#![no_main]
#![allow(unsafe_code, reason = "libFuzzer is not Rust")]

use std::sync::OnceLock;

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

fuzz_target!(init: choose(), |input: &[u8]| {
    if let Some(target) = CHOSEN.get() {
        (target.run)(input);
    }
});
