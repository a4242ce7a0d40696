//! Every target on its seeds, and on what a few changes make of them: the same ones in each run.

use anteroom_fuzz::{TARGETS, Target};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::{RngSeed, TestRunner};

/// How many changed inputs each target gets.
const CASES: u32 = 20_000;
/// What parsers look out for.
const PIECES: [&str; 24] = [
    "\0",
    "\n",
    " ",
    "%",
    "%2f",
    "..",
    "/",
    "\\",
    ";",
    "\"",
    "{",
    "}",
    "[",
    "]",
    "*",
    "=",
    ",",
    "é",
    "\u{202e}",
    "0",
    "18446744073709551616",
    "null",
    "\u{7f}",
    "\r\n",
];

#[derive(Debug, Clone)]
enum Piece {
    Bytes(Vec<u8>),
    /// A part of the input itself.
    Copy(Index, usize),
}

/// What is put in the place of so many bytes.
type Edit = (Index, usize, Piece);

fn edit() -> impl Strategy<Value = Edit> {
    let piece = prop_oneof![
        vec(any::<u8>(), 0..4).prop_map(Piece::Bytes),
        select(&PIECES[..]).prop_map(|piece| Piece::Bytes(piece.into())),
        (any::<Index>(), 1..40_usize).prop_map(|(from, length)| Piece::Copy(from, length)),
    ];
    (any::<Index>(), 0..4_usize, piece)
}

fn changed(seed: &[u8], edits: &[Edit]) -> Vec<u8> {
    edits.iter().fold(seed.to_vec(), |mut input, (at, length, piece)| {
        let at = at.index(input.len() + 1);
        let end = (at + length).min(input.len());
        let put = match piece {
            Piece::Bytes(bytes) => bytes.clone(),
            Piece::Copy(from, length) => {
                let from = from.index(input.len() + 1);
                input[from..(from + length).min(input.len())].to_vec()
            }
        };
        input.splice(at..end, put);
        input
    })
}

fn try_out(target: &Target) {
    let seeds = (target.seeds)();
    for seed in &seeds {
        (target.run)(seed);
    }
    let config = ProptestConfig {
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: None,
        ..ProptestConfig::with_cases(CASES)
    };
    let inputs = (any::<Index>(), vec(edit(), 1..6));
    let tried = TestRunner::new(config).run(&inputs, |(seed, edits)| {
        (target.run)(&changed(&seeds[seed.index(seeds.len())], &edits));
        Ok(())
    });
    assert_eq!(tried.map_err(|error| error.to_string()), Ok(()), "{}", target.name);
}

/// `TARGETS` by name, so that each is a test of its own.
macro_rules! tests {
    ($($name:ident)+) => {$(
        #[test]
        fn $name() {
            let target = TARGETS.iter().find(|target| target.name == stringify!($name));
            try_out(target.expect("there is such a target"));
        }
    )+

        #[test]
        fn every_target_is_tried() {
            assert!(TARGETS.iter().map(|target| target.name).eq([$(stringify!($name)),+]));
        }
    };
}

tests! {
    sealed contents cookies facts paths urls subscriptions rooms expressions conditions messages records machines orders
    stored_orders queries access notices probes verdicts
}
