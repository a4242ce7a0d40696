//! Marks of rehearsals: who can write one, and for how long it is good.

use anteroom::rehearsal::{HEADER, LONGEST_SECONDS, Mark, Mistake};
use proptest::prelude::*;
use sha2::{Digest, Sha256};

const TOKEN: &str = "the-token-of-the-tests";
const UNTIL: u64 = 1_800_000_600;
/// Made by another program: `printf anteroom-rehearsal:v1.friday.1800000600 | openssl dgst -sha256 -binary -mac HMAC -macopt
/// hexkey:$(printf the-token-of-the-tests | sha256sum | cut -c1-64) | basenc --base64url`.
const MARK: &str = "v1.friday.1800000600._Vv9d1HRz0xMu_57zTXBzpA7BSG37bqcMYT2tu92pXY";

fn read(value: &str, tokens: &[&str], now_seconds: u64) -> Result<(String, u64), Mistake> {
    let keys: Vec<[u8; 32]> = tokens.iter().map(|token| Sha256::digest(token).into()).collect();
    let mark = Mark::read(value, keys.iter(), now_seconds * 1_000)?;
    Ok((mark.name.to_owned(), mark.until))
}

#[test]
fn a_mark_of_any_token_that_may_steer_is_good_until_its_time() {
    assert_eq!(HEADER, "anteroom-rehearsal");
    let good = Ok(("friday".to_owned(), UNTIL * 1_000));
    assert_eq!(read(MARK, &[TOKEN], UNTIL - 1), good);
    assert_eq!(read(MARK, &["another-token-of-ours", TOKEN], UNTIL - LONGEST_SECONDS), good);
    assert_eq!(read(MARK, &[TOKEN], UNTIL), Err(Mistake::Over));
    assert_eq!(read(MARK, &[TOKEN], UNTIL - LONGEST_SECONDS - 1), Err(Mistake::TooLong));
}

#[test]
fn nobody_marks_without_a_token() {
    for tokens in [&[][..], &[""], &["another-token-of-ours"], &["the-token-of-the-test"]] {
        assert_eq!(read(MARK, tokens, UNTIL - 1), Err(Mistake::Unknown), "{tokens:?}");
    }
}

#[test]
fn what_is_not_written_as_a_mark_is_none() {
    let signature = MARK.rsplit('.').next().unwrap();
    let long = "a".repeat(33);
    for value in [
        "",
        ".",
        "...",
        "v1",
        "v1.friday",
        &format!("v2.friday.{UNTIL}.{signature}"),
        &format!("v1..{UNTIL}.{signature}"),
        &format!("v1.fri day.{UNTIL}.{signature}"),
        &format!("v1.fri.day.{UNTIL}.{signature}"),
        &format!("v1.{long}.{UNTIL}.{signature}"),
        &format!("v1.friday.-{UNTIL}.{signature}"),
        &format!("v1.friday.+{UNTIL}.{signature}"),
        &format!("v1.friday.99999999999999999999.{signature}"),
        &format!("v1.friday..{signature}"),
        &format!("{MARK}="),
        &format!(" {MARK}"),
    ] {
        assert_eq!(read(value, &[TOKEN], UNTIL - 1), Err(Mistake::Unreadable), "{value:?}");
    }
}

proptest! {
    /// One changed character anywhere makes it no mark: neither another name, nor a later end, nor another signature.
    #[test]
    fn a_changed_mark_is_none(place in 0..MARK.len(), letter in "[ -~]") {
        let changed = format!("{}{letter}{}", &MARK[..place], &MARK[place + 1..]);
        prop_assume!(changed != MARK);
        prop_assert!(read(&changed, &[TOKEN], UNTIL - 1).is_err());
    }

    #[test]
    fn nothing_that_can_be_sent_is_a_mark_by_chance(value in ".*") {
        prop_assert!(read(&value, &[TOKEN], UNTIL - 1).is_err());
    }
}
