//! All that comes from outside, fuzzed: what visitors, owners, operators, origins and other objects send.
//!
//! Each [`Target`] is a function that panics where a promise is broken. `tests/smoke.rs` runs them all on their seeds and on
//! what a few changes make of them; `npm run fuzz` runs one after another under libFuzzer.

mod addresses;
mod bypass;
mod config;
mod objects;
mod operators;
mod origins;
mod tickets;

/// Something that is fuzzed.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Its name.
    pub name: &'static str,
    /// Panics where a promise is broken.
    pub run: fn(&[u8]),
    /// Inputs to begin with.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

macro_rules! targets {
    ($($module:ident: $($name:ident)+;)+) => {
        /// All targets.
        pub const TARGETS: &[Target] = &[$($(
            Target { name: stringify!($name), run: $module::$name::run, seeds: $module::$name::seeds },
        )+)+];
    };
}

targets! {
    tickets: sealed contents cookies facts;
    addresses: paths urls subscriptions;
    config: rooms;
    bypass: expressions conditions;
    objects: messages records machines;
    operators: orders stored_orders queries access;
    origins: notices probes verdicts;
}

/// Seeds as they stand in a file, with an empty line between two of them.
fn paragraphs(file: &str) -> Vec<Vec<u8>> {
    file.split("\n\n").map(|seed| seed.trim_end_matches('\n').as_bytes().to_vec()).collect()
}

/// The input as text and its first line apart from the others; `None`: it is no text.
fn lines(input: &[u8]) -> Option<(&str, &str)> {
    let text = std::str::from_utf8(input).ok()?;
    Some(text.split_once('\n').unwrap_or((text, "")))
}

/// The time at which all happens, in milliseconds since the epoch.
const NOW: u64 = 1_680_000_030_000;
