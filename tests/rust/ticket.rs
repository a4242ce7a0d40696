//! What a ticket is worth: it keeps its visitor's place and nobody else's, and whatever is not a ticket is nothing.

use anteroom::config::parse_room;
use anteroom::room::{CookieAttributes, Room, SameSite, Secure};
use anteroom::ticket::{
    AdmissionKey, CLOCK_SKEW_MS, Human, KeyError, KeyRing, MAX_KEYS, MAX_VALUE_LENGTH, MAX_WAIT_MINUTES,
    MIN_ADMISSION_KEY, Scope, Standing, Terms, Ticket, find_cookie, same_secret, set_cookie, standing,
};
use proptest::prelude::*;
use serde_json::json;

const SESSION_MS: u64 = 5 * 60_000;
const PLACE_MS: u64 = 50_000;
const TERMS: Terms = Terms {
    session_ms: SESSION_MS,
    renews: true,
    longest_ms: u64::MAX,
    confirm_ms: u64::MAX,
    place_ms: PLACE_MS,
    refresh_ms: 20_000,
};
/// 45.678 s into a minute.
const NOW: u64 = 1_700_000_045_678;
const MINUTE: u32 = (NOW / 60_000) as u32;

/// The bytes 0, 1, ... 31.
const KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const OTHER_KEY: &str = "Hx4dHBsaGRgXFhUUExIREA8ODQwLCgkIBwYFBAMCAQA=";
const NONCE: [u8; 12] = [0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9, 0xaa, 0xab];

fn ring() -> KeyRing {
    KeyRing::parse(KEY).unwrap()
}

fn waiting() -> Ticket {
    Ticket {
        refresh_seconds: 20,
        ahead_at_first: Some(1_234),
        progress: 57,
        ..Ticket { bucket: MINUTE - 1, ..Ticket::new(0x0123_4567_89ab_cdef, NOW) }
    }
}

fn active() -> Ticket {
    waiting().admitted(1_700_000_012_345).checked_in(NOW)
}

/// What a ticket of format 1 says.
fn of_format_1(ticket: Ticket) -> Ticket {
    Ticket {
        accepted_at: ticket.accepted_at,
        bucket: ticket.bucket,
        ..Ticket::new(ticket.id, ticket.last_check_in)
    }
}

fn judge(ticket: Ticket, now_ms: u64) -> Standing {
    standing(Some(ticket), now_ms, &TERMS)
}

fn any_ticket() -> impl Strategy<Value = Ticket> {
    let last_check_in = prop_oneof![0..=NOW * 2, 0..120_000_u64, Just(NOW)];
    let told = (
        any::<u16>(),
        prop::option::of(0..u32::MAX),
        0..=100_u8,
        any::<(bool, bool)>(),
        0..=Ticket::MOST_MOVES,
    );
    (any::<u64>(), last_check_in, any::<u32>(), prop::option::of(any::<u64>()), told, any_human()).prop_map(
        |(
            id,
            last_check_in,
            bucket,
            accepted_at,
            (refresh_seconds, ahead_at_first, progress, (uncounted, subscribed), moves),
            human,
        )| {
            Ticket {
                id,
                bucket: bucket % ((last_check_in / 60_000) as u32 + 1),
                accepted_at: accepted_at.map(|time| time % (last_check_in + 1)),
                last_check_in,
                refresh_seconds,
                ahead_at_first,
                progress,
                human,
                uncounted,
                moves,
                subscribed,
            }
        },
    )
}

fn any_human() -> impl Strategy<Value = Human> {
    prop_oneof![Just(Human::Unknown), Just(Human::Passed), Just(Human::Failed)]
}

mod contents {
    use super::*;

    proptest! {
        #[test]
        fn every_ticket_comes_back_as_it_was(ticket in any_ticket()) {
            prop_assert_eq!(Ticket::from_bytes(&ticket.to_bytes()), Some(ticket));
        }

        #[test]
        fn bytes_that_are_read_have_that_one_spelling(bytes: [u8; Ticket::LENGTH]) {
            if let Some(ticket) = Ticket::from_bytes(&bytes) {
                prop_assert_eq!(ticket.to_bytes(), bytes);
            }
        }

        #[test]
        fn no_bytes_panic(bytes: Vec<u8>) {
            let _ = Ticket::from_bytes(&bytes);
        }

        #[test]
        fn whatever_is_written_can_be_read(
            id: u64, bucket: u32, accepted_at in prop::option::of(any::<u64>()), last_check_in: u64,
            refresh_seconds: u16, ahead_at_first in prop::option::of(any::<u32>()), progress: u8, human in any_human(),
            uncounted: bool, subscribed: bool, moves: u8,
        ) {
            let ticket = Ticket {
                id, bucket, accepted_at, last_check_in, refresh_seconds, ahead_at_first, progress, human, uncounted,
                subscribed, moves,
            };
            let read = Ticket::from_bytes(&ticket.to_bytes()).unwrap();
            let nearest = Ticket {
                bucket: read.bucket,
                accepted_at: accepted_at.and(read.accepted_at),
                ahead_at_first: ahead_at_first.map(|ahead| ahead.min(u32::MAX - 1)),
                progress: progress.min(100),
                moves: moves.min(Ticket::MOST_MOVES),
                ..ticket
            };
            prop_assert_eq!(read, nearest);
            prop_assert_eq!(read.accepted_at.is_some(), accepted_at.is_some());
        }
    }

    #[test]
    fn other_lengths_are_refused() {
        let bytes = active().to_bytes();
        for length in 0..bytes.len() {
            assert_eq!(Ticket::from_bytes(&bytes[..length]), None, "{length} bytes");
        }
        assert_eq!(Ticket::from_bytes(&[&bytes[..], &[0]].concat()), None);
    }

    #[test]
    fn flags_that_contradict_each_other_are_refused() {
        let mut bytes = active().to_bytes();
        for flags in (0..=u8::MAX).filter(|flags| flags & 6 == 6) {
            bytes[0] = flags;
            assert_eq!(Ticket::from_bytes(&bytes), None, "flags {flags:08b}");
        }
    }

    #[test]
    fn an_admission_without_its_flag_is_refused() {
        let mut bytes = active().to_bytes();
        bytes[0] = 0;
        assert_eq!(Ticket::from_bytes(&bytes), None);
    }

    #[test]
    fn more_than_the_whole_way_is_refused() {
        let mut bytes = waiting().to_bytes();
        bytes[35] = 100;
        assert!(Ticket::from_bytes(&bytes).is_some());
        bytes[35] = 101;
        assert_eq!(Ticket::from_bytes(&bytes), None);
    }

    #[test]
    fn whoever_enters_keeps_what_still_matters() {
        let ticket = Ticket { human: Human::Passed, moves: 2, ..waiting() }.admitted(NOW + 1);
        let expected =
            Ticket { bucket: MINUTE - 1, human: Human::Passed, moves: 2, ..Ticket::new(ticket.id, NOW + 1) };
        assert_eq!(ticket, Ticket { accepted_at: Some(NOW + 1), ..expected });
    }

    #[test]
    fn a_bucket_after_the_last_check_in_is_refused() {
        let mut bytes = waiting().to_bytes();
        bytes[9..13].copy_from_slice(&MINUTE.to_be_bytes());
        assert!(Ticket::from_bytes(&bytes).is_some());
        bytes[9..13].copy_from_slice(&(MINUTE + 1).to_be_bytes());
        assert_eq!(Ticket::from_bytes(&bytes), None);
    }

    #[test]
    fn an_admission_after_the_last_check_in_is_refused() {
        let mut bytes = active().to_bytes();
        bytes[21..29].copy_from_slice(&NOW.to_be_bytes());
        assert!(Ticket::from_bytes(&bytes).is_some());
        bytes[21..29].copy_from_slice(&(NOW + 1).to_be_bytes());
        assert_eq!(Ticket::from_bytes(&bytes), None);
    }

    #[test]
    fn an_object_whose_clock_is_ahead_costs_nobody_the_admission() {
        let ticket = Ticket { bucket: MINUTE + 1, accepted_at: Some(NOW + 20_000), ..waiting() };
        let nearest = Ticket { bucket: MINUTE, accepted_at: Some(NOW), ..waiting() };
        assert_eq!(Ticket::from_bytes(&ticket.to_bytes()), Some(nearest));
    }
}

mod by_the_clock {
    use super::*;

    #[test]
    fn without_a_ticket_the_visitor_is_new() {
        assert_eq!(standing(None, NOW, &TERMS), Standing::New);
    }

    #[test]
    fn an_admitted_visitor_is_active_until_the_session_duration_has_passed() {
        assert_eq!(judge(active(), NOW), Standing::Active(active()));
        assert_eq!(judge(active(), NOW + SESSION_MS - 1), Standing::Active(active()));
        assert_eq!(judge(active(), NOW + SESSION_MS), Standing::New);
        assert_eq!(judge(active(), u64::MAX), Standing::New);
    }

    #[test]
    fn a_waiting_visitor_keeps_the_place_until_the_waiting_time_out() {
        assert_eq!(judge(waiting(), NOW), Standing::Waiting(waiting()));
        assert_eq!(judge(waiting(), NOW + PLACE_MS - 1), Standing::Waiting(waiting()));
        assert_eq!(judge(waiting(), NOW + PLACE_MS), Standing::New);
        assert_eq!(judge(waiting(), u64::MAX), Standing::New);
    }

    #[test]
    fn nobody_who_does_as_told_loses_the_place() {
        let told = |seconds| Ticket { refresh_seconds: seconds, ..waiting() };
        let kept = |terms: Terms, ticket| {
            let holds = |ms: &u64| standing(Some(ticket), NOW + ms, &terms) == Standing::Waiting(ticket);
            (0..1_000_000).step_by(500).take_while(holds).last().unwrap() + 500
        };
        for (seconds, place) in [(0, 50_000), (20, 50_000), (22, 55_000), (60, 150_000), (10, 50_000)] {
            assert_eq!(kept(TERMS, told(seconds)), place, "told to come back in {seconds} s");
        }
        assert_eq!(kept(Terms { place_ms: 300_000, ..TERMS }, told(60)), 300_000);
        assert_eq!(kept(Terms { place_ms: 10_000, ..TERMS }, told(0)), 50_000, "as told by older deploys");
    }

    #[test]
    fn a_session_that_is_not_renewed_ends_a_session_duration_after_the_admission() {
        let terms = Terms { renews: false, ..TERMS };
        let accepted_at = active().accepted_at.unwrap();
        let judge = |ticket, now| standing(Some(ticket), now, &terms);
        for ticket in [active().admitted(accepted_at), active()] {
            assert_eq!(judge(ticket, accepted_at + SESSION_MS - 1), Standing::Active(ticket));
            assert_eq!(judge(ticket, accepted_at + SESSION_MS), Standing::New, "whatever came meanwhile");
        }
        assert_eq!(judge(waiting(), NOW), Standing::Waiting(waiting()));
    }

    #[test]
    fn nobody_stays_for_longer_than_the_longest_session_by_coming_back_again_and_again() {
        let terms = Terms { longest_ms: 3 * SESSION_MS, ..TERMS };
        let accepted_at = active().accepted_at.unwrap();
        let end = accepted_at + 3 * SESSION_MS;
        let latest = active().checked_in(end - 1_000);
        assert_eq!(standing(Some(latest), end - 1, &terms), Standing::Active(latest));
        assert_eq!(standing(Some(latest), end, &terms), Standing::New);
        assert_eq!(terms.end(&latest), end, "nor does the cookie hold any longer");
        assert_eq!(standing(Some(waiting()), NOW, &terms), Standing::Waiting(waiting()));
    }

    #[test]
    fn whoever_has_not_gone_in_has_the_turn_for_the_time_that_the_owner_gives() {
        let var = json!({
            "path": "/", "total_active_users": 1, "new_users_per_minute": 1, "confirm_within_minutes": 2,
        });
        let room = parse_room("ROOM_SHOP", &var).unwrap();
        let let_in = waiting().admitted(NOW).confirmed(false);
        let read = Ticket::from_bytes(&let_in.to_bytes()).unwrap();
        assert!(read.is_unconfirmed() && !waiting().confirmed(false).is_unconfirmed());
        let end = NOW + 120_000;
        assert_eq!(standing(Some(read), end - 1, &room.terms()), Standing::Active(read));
        assert_eq!(standing(Some(read), end, &room.terms()), Standing::New);
        assert_eq!((room.has_missed_turn(&read, end - 1), room.has_missed_turn(&read, end)), (false, true));
        let gone_in = read.confirmed(true);
        assert_eq!(standing(Some(gone_in), end, &room.terms()), Standing::Active(gone_in));
        assert!(!room.has_missed_turn(&gone_in, u64::MAX));
        let switched_off = Room { confirm_within_minutes: 0, ..room };
        assert_eq!(standing(Some(read), end, &switched_off.terms()), Standing::Active(read));
        assert!(!switched_off.awaits(&read));
        let longer = json!({ "confirm_within_minutes": 2, "session_duration": 1 });
        let longer = [var.as_object(), longer.as_object()].into_iter().flatten().flatten();
        let longer = longer.map(|(name, value)| (name.clone(), value.clone())).collect();
        let errors = parse_room("ROOM_SHOP", &serde_json::Value::Object(longer)).unwrap_err();
        assert_eq!(errors[0].field, "confirm_within_minutes", "{errors:?}");
    }

    #[test]
    fn nobody_waits_for_more_than_a_day() {
        let a_day = Ticket { bucket: MINUTE - MAX_WAIT_MINUTES, ..waiting() };
        let longer = Ticket { bucket: a_day.bucket - 1, ..waiting() };
        assert_eq!(judge(a_day, NOW), Standing::Waiting(a_day));
        assert_eq!(judge(longer, NOW), Standing::New);
        let inside = Ticket { accepted_at: active().accepted_at, ..longer };
        assert_eq!(judge(inside, NOW), Standing::Active(inside), "whoever is in stays in");
    }

    #[test]
    fn the_near_future_is_now() {
        let ahead = Ticket { accepted_at: Some(NOW + 1), last_check_in: NOW + CLOCK_SKEW_MS, ..waiting() };
        let now = Ticket { accepted_at: Some(NOW), last_check_in: NOW, ..waiting() };
        assert_eq!(judge(ahead, NOW), Standing::Active(now));
    }

    #[test]
    fn the_far_future_is_nothing() {
        for ticket in [waiting(), active()] {
            let ahead = Ticket { last_check_in: NOW + CLOCK_SKEW_MS + 1, ..ticket };
            assert_eq!(judge(ahead, NOW), Standing::New);
            assert_eq!(judge(Ticket { last_check_in: u64::MAX, ..ticket }, NOW), Standing::New);
        }
    }

    #[test]
    fn a_slower_clock_just_before_the_minute_keeps_the_place() {
        let start_of_minute = u64::from(MINUTE) * 60_000;
        let came = Ticket { bucket: MINUTE, last_check_in: start_of_minute + 5, ..waiting() };
        let Standing::Waiting(seen) = judge(came, start_of_minute - 5) else { panic!("lost the place") };
        assert_eq!((seen.bucket, seen.last_check_in), (MINUTE - 1, start_of_minute - 5));
        assert_eq!(Ticket::from_bytes(&seen.to_bytes()), Some(seen));
    }

    #[test]
    fn a_ticket_that_cannot_be_is_none() {
        assert_eq!(judge(Ticket { bucket: MINUTE + 1, ..waiting() }, NOW), Standing::New);
        assert_eq!(judge(Ticket { accepted_at: Some(NOW + 1), ..waiting() }, NOW), Standing::New);
    }

    proptest! {
        #[test]
        fn every_visitor_stands_somewhere_and_in_the_past(
            ticket in any_ticket(), now: u64, near in -20_000..400_000_i64, session_ms: u64, longest_ms: u64,
            confirm_ms: u64, place_ms: u64, renews: bool,
        ) {
            let terms = Terms { session_ms, renews, longest_ms, confirm_ms, place_ms, refresh_ms: 20_000 };
            for now in [now, ticket.last_check_in.saturating_add_signed(near)] {
                match standing(Some(ticket), now, &terms) {
                    Standing::New => {}
                    Standing::Active(seen) => {
                        prop_assert!(ticket.accepted_at.is_some());
                        prop_assert!(seen.last_check_in <= now && seen.accepted_at <= Some(now));
                        prop_assert!(now - seen.last_check_in < session_ms);
                        prop_assert!(renews || now - seen.accepted_at.unwrap() < session_ms);
                        prop_assert!(now - seen.accepted_at.unwrap() < longest_ms);
                        prop_assert!(!seen.is_unconfirmed() || now - seen.accepted_at.unwrap() < confirm_ms);
                    }
                    Standing::Waiting(seen) => {
                        prop_assert_eq!(ticket.accepted_at, None);
                        prop_assert!(seen.last_check_in <= now && u64::from(seen.bucket) <= now / 60_000);
                        prop_assert!(now - seen.last_check_in < terms.kept_ms(&seen));
                    }
                }
            }
        }
    }
}

mod sealed {
    use super::*;

    #[test]
    fn tickets_of_older_deploys_still_open() {
        // Made with another implementation (OpenSSL). When this fails, a deploy throws every visitor out.
        let admitted = "AaChoqOkpaanqKmqq-cZX2giQqlyjWQ3hhJ6wN_7Y78K_LdCbRfBwx5GUB3MiDpvlT2xYiQhe3tIHA";
        let queued = "AaChoqOkpaanqKmqq-YZX2giQqlyjWQ3hhJ6wN_7Y78K_LdCbJwOJoZ_WIiwVJd0YRRIBO8rfPC3pg";
        for (ticket, value) in [(active(), admitted), (waiting(), queued)] {
            assert_eq!(ring().open("shop", value), Some(of_format_1(ticket)), "format 1");
        }
        let admitted =
            "AqChoqOkpaanqKmqq-MZX2giQqlyjWQ3hhJ6wN_7Y78K_LdCbRfBwx5Gq3X-LYm4_zYLWowNKEnRr3DCa5bscHc";
        let queued =
            "AqChoqOkpaanqKmqq-QZX2giQqlyjWQ3hhJ6wN_7Y78K_LdCbJwOJoZ_q2EB0nKVxgRbGYDiNMWjFhcfXHU8kk4";
        let bound = "AqChoqOkpaanqKmqq-YZX2giQqlyjWQ3hhJ6wN_7Y78K_LdCbJwOJoZ_q2EB0nKVxgdkZIxZhHGU_gzHj1JPFK4";
        let scope = Scope { room: "shop", binding: "192.0.2" };
        for (scope, ticket, value) in [
            ("shop".into(), Ticket { human: Human::Failed, ..active() }, admitted),
            ("shop".into(), Ticket { human: Human::Passed, ..waiting() }, queued),
            (scope, waiting(), bound),
        ] {
            assert_eq!(ring().seal(scope, &ticket, NONCE), value);
            assert_eq!(ring().open(scope, value), Some(ticket));
        }
    }

    #[test]
    fn every_sealed_ticket_has_87_bytes() {
        let largest = Ticket {
            bucket: MINUTE,
            accepted_at: Some(u64::MAX),
            refresh_seconds: u16::MAX,
            ahead_at_first: Some(u32::MAX),
            progress: u8::MAX,
            human: Human::Failed,
            ..Ticket::new(u64::MAX, u64::MAX / 2)
        };
        for ticket in [waiting(), active(), largest] {
            let value = ring().seal("shop", &ticket, [0xff; 12]);
            assert_eq!(value.len(), 87);
            assert!(value.len() <= MAX_VALUE_LENGTH);
            assert!(value.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'));
        }
    }

    #[test]
    fn a_change_of_any_byte_makes_it_nothing() {
        let ring = ring();
        let value = ring.seal("shop", &active(), NONCE);
        for position in 0..value.len() {
            for other in "AQgw09-_=. \u{0}~".chars() {
                let mut changed: Vec<char> = value.chars().collect();
                if changed[position] == other {
                    continue;
                }
                changed[position] = other;
                let changed: String = changed.into_iter().collect();
                assert_eq!(ring.open("shop", &changed), None, "byte {position} as {other:?}");
            }
        }
    }

    #[test]
    fn a_change_of_the_last_byte_that_decodes_alike_makes_it_nothing() {
        let ring = ring();
        let value = ring.seal("shop", &active(), NONCE);
        let kept = &value[..value.len() - 1];
        let opened = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
            .chars()
            .filter(|last| ring.open("shop", &format!("{kept}{last}")).is_some())
            .count();
        assert_eq!(opened, 1, "only the true one");
    }

    #[test]
    fn a_part_of_it_is_nothing() {
        let value = ring().seal("shop", &active(), NONCE);
        for length in 0..value.len() {
            assert_eq!(ring().open("shop", &value[..length]), None, "{length} bytes");
        }
        for added in ["A", "=", "==", " ", "AAAA", &value] {
            assert_eq!(ring().open("shop", &format!("{value}{added}")), None, "with {added:?} behind it");
            assert_eq!(ring().open("shop", &format!("{added}{value}")), None, "with {added:?} before it");
        }
    }

    #[test]
    fn it_is_nothing_in_another_room() {
        let value = ring().seal("shop", &active(), NONCE);
        for room in ["", "sho", "shop2", "Shop", "shop\0", "\u{1}shop", &"shop".repeat(100)] {
            assert_eq!(ring().open(room, &value), None, "{room:?}");
        }
    }

    #[test]
    fn rooms_with_names_of_any_length_keep_apart() {
        for length in [0, 1, 126, 127, 128, 129, 5_000] {
            let room = "r".repeat(length);
            let value = ring().seal(&room[..], &active(), NONCE);
            assert_eq!(ring().open(&room[..], &value), Some(active()), "{length} bytes");
            assert_eq!(ring().open(&"r".repeat(length + 1)[..], &value), None, "{length} bytes");
        }
    }

    #[test]
    fn what_is_bound_opens_for_nothing_else() {
        for length in [1, 121, 122, 123, 5_000] {
            let binding = "b".repeat(length);
            let scope = Scope { room: "shop", binding: &binding };
            let value = ring().seal(scope, &waiting(), NONCE);
            assert_eq!(ring().open(scope, &value), Some(waiting()), "{length} bytes");
            let longer = "b".repeat(length + 1);
            for (room, other) in [
                ("shop", ""),
                ("shop", &longer),
                ("shop", &binding[1..]),
                ("shopb", &binding[1..]),
                ("", &binding),
            ] {
                assert_eq!(
                    ring().open(Scope { room, binding: other }, &value),
                    None,
                    "{room} {length} bytes"
                );
            }
            assert_eq!(ring().open(&format!("shop{binding}")[..], &value), None);
        }
    }

    #[test]
    fn replayed_after_its_time_its_visitor_is_new() {
        let value = ring().seal("shop", &active(), NONCE);
        let opened = ring().open("shop", &value);
        assert_eq!(standing(opened, NOW + SESSION_MS - 1, &TERMS), Standing::Active(active()));
        assert_eq!(standing(opened, NOW + SESSION_MS, &TERMS), Standing::New);
    }

    #[test]
    fn a_retired_key_opens_until_it_is_removed() {
        let value = ring().seal("shop", &waiting(), NONCE);
        let rotated = KeyRing::parse(&format!("{OTHER_KEY},{KEY}")).unwrap();
        assert_eq!(rotated.open("shop", &value), Some(waiting()));
        let sealed_anew = rotated.seal("shop", &waiting(), NONCE);
        assert_ne!(sealed_anew, value);

        let removed = KeyRing::parse(OTHER_KEY).unwrap();
        assert_eq!(removed.open("shop", &sealed_anew), Some(waiting()), "the first key seals");
        assert_eq!(removed.open("shop", &value), None);
        let opened = removed.open("shop", &value);
        assert_eq!(standing(opened, NOW, &TERMS), Standing::New);
    }

    #[test]
    fn every_key_of_a_full_ring_opens() {
        let keys: Vec<String> =
            ('A'..).take(MAX_KEYS).map(|first| format!("{first}{}", "A".repeat(42))).collect();
        let ring = KeyRing::parse(&keys.join(",")).unwrap();
        for key in &keys {
            let value = KeyRing::parse(key).unwrap().seal("shop", &active(), NONCE);
            assert_eq!(ring.open("shop", &value), Some(active()));
        }
    }

    #[test]
    fn what_another_version_sealed_is_nothing() {
        // Authentic, made with another implementation: version 3; version 1 with a flag that does not exist; a body of
        // version 1 as version 2, and the other way round.
        let sealed = [
            "A6ChoqOkpaanqKmqq-cZX2giQqlyjWQ3hhJ6wN_7Y78K_LdCbRfBwx5Gq3X-LYm4_159gNC49SjSYpA7SoW8s7k",
            "AaChoqOkpaanqKmqq-UZX2giQqlyjWQ3hhJ6wN_7Y78K_LdCbRfBwx5GiyWqRUnJqM6b18Zprz5H9g",
            "AqChoqOkpaanqKmqq-cZX2giQqlyjWQ3hhJ6wN_7Y78K_LdCbRfBwx5G7vKlWKayJAOn9Yi5rX8v6A",
            "AaChoqOkpaanqKmqq-cZX2giQqlyjWQ3hhJ6wN_7Y78K_LdCbRfBwx5Gq3X-LYm4_1hG8epxFJJ6asUVSsz8IUc",
        ];
        for value in sealed {
            assert_eq!(ring().open("shop", value), None, "{value}");
        }
    }

    #[test]
    fn whether_a_push_message_is_due_and_how_often_a_place_has_moved_is_in_the_flags() {
        // Made with another implementation.
        let sealed =
            "AqChoqOkpaanqKmqq9cZX2giQqlyjWQ3hhJ6wN_7Y78K_LdCbRfBwx5Gq3X-LYm4_-2WpUQR3uZnD8Blx8FahYk";
        let ticket = ring().open("shop", sealed).unwrap();
        assert_eq!((ticket.subscribed, ticket.moves), (true, 1));
    }

    proptest! {
        #[test]
        fn every_ticket_opens_where_it_was_sealed(ticket in any_ticket(), nonce: [u8; 12], room in ".{0,40}") {
            let ring = ring();
            let room = &room[..];
            prop_assert_eq!(ring.open(room, &ring.seal(room, &ticket, nonce)), Some(ticket));
        }

        #[test]
        fn garbage_is_nothing(text in any::<String>(), letters in "[A-Za-z0-9_-]{0,210}", room in any::<String>()) {
            for value in [text, format!("AaCh{letters}"), format!("AqCh{letters}"), letters] {
                prop_assert_eq!(ring().open(&room[..], &value), None);
            }
        }

        #[test]
        fn garbage_of_the_right_length_is_nothing(
            old in "AQ[A-Za-z0-9_-]{75}[AQgw]", new in "Ag[A-Za-z0-9_-]{84}[AEIMQUYcgkosw048]",
        ) {
            prop_assert_eq!(ring().open("shop", &old), None);
            prop_assert_eq!(ring().open("shop", &new), None);
        }
    }

    #[test]
    fn a_huge_value_is_nothing() {
        assert_eq!(ring().open("shop", &"A".repeat(MAX_VALUE_LENGTH + 1)), None);
        assert_eq!(ring().open("shop", &"A".repeat(10_000_000)), None);
        assert_eq!(ring().open("shop", &"\u{1f39f}".repeat(49)), None);
    }
}

mod keys {
    use super::*;

    #[test]
    fn a_key_may_be_written_in_every_base64() {
        let bytes_ff = "_".repeat(42) + "8";
        let expected = KeyRing::parse(&bytes_ff).unwrap().seal("shop", &active(), NONCE);
        for spelling in [
            format!("{bytes_ff}="),
            "/".repeat(42) + "8",
            "/".repeat(42) + "8=",
            format!(" \t{bytes_ff}\r\n"),
        ] {
            assert_eq!(KeyRing::parse(&spelling).unwrap().seal("shop", &active(), NONCE), expected);
        }
        assert!(KeyRing::parse(&format!("  {KEY} ,\n {OTHER_KEY}\n")).is_ok());
    }

    #[test]
    fn errors_name_the_key_and_the_fix() {
        let short = "AAECAwQFBgcICQoLDA0ODw==";
        let make_one = "make one with `openssl rand -base64 32`";
        for (secret, error, message) in [
            (String::new(), KeyError::Missing, format!("COOKIE_KEYS has no key: {make_one}")),
            (" \n".to_owned(), KeyError::Missing, format!("COOKIE_KEYS has no key: {make_one}")),
            (
                [KEY; 9].join(","),
                KeyError::TooMany { keys: 9 },
                "COOKIE_KEYS has 9 keys, at most 8 are allowed: remove the last ones".to_owned(),
            ),
            (
                format!("{KEY},"),
                KeyError::Empty { key: 2 },
                format!("COOKIE_KEYS: key 2 is empty: remove the comma, or {make_one}"),
            ),
            (
                format!(",{KEY}"),
                KeyError::Empty { key: 1 },
                format!("COOKIE_KEYS: key 1 is empty: remove the comma, or {make_one}"),
            ),
            (
                format!("{KEY},{OTHER_KEY},not*a*key"),
                KeyError::NotBase64 { key: 3 },
                format!("COOKIE_KEYS: key 3 is not base64: copy it again as a whole, or {make_one}"),
            ),
            (
                format!("{} {}", &KEY[..20], &KEY[20..]),
                KeyError::NotBase64 { key: 1 },
                format!("COOKIE_KEYS: key 1 is not base64: copy it again as a whole, or {make_one}"),
            ),
            (
                format!("{KEY},{short}"),
                KeyError::WrongLength { key: 2, bits: 128 },
                format!("COOKIE_KEYS: key 2 has 128 bits instead of 256: {make_one}"),
            ),
            (
                "0f".repeat(32),
                KeyError::WrongLength { key: 1, bits: 384 },
                format!("COOKIE_KEYS: key 1 has 384 bits instead of 256: {make_one}"),
            ),
        ] {
            let found = KeyRing::parse(&secret).unwrap_err();
            assert_eq!(found, error);
            assert_eq!(found.to_string(), message);
        }
    }

    #[test]
    fn nothing_shows_a_key() {
        let ring = KeyRing::parse(&format!("{KEY},{OTHER_KEY}")).unwrap();
        assert_eq!(format!("{ring:?}"), "KeyRing(2 keys, not shown)");
        assert_eq!(format!("{ring:#?}"), "KeyRing(2 keys, not shown)");
    }

    proptest! {
        #[test]
        fn any_secret_is_read_or_refused_without_showing_it(secret in any::<String>(), letters in "[0-9+/x*]{12,80}") {
            let _ = KeyRing::parse(&secret);
            if let Err(error) = KeyRing::parse(&letters) {
                let shown = format!("{error} {error:?}");
                prop_assert!(!shown.contains(&letters));
            }
        }
    }
}

mod cookie_header {
    use super::*;

    fn found(header: &str) -> Vec<&str> {
        find_cookie(header, "__anteroom").collect()
    }

    #[test]
    fn the_values_of_the_name_are_found() {
        let cases: &[(&str, &[&str])] = &[
            ("", &[]),
            ("__anteroom=abc", &["abc"]),
            ("a=1; __anteroom=abc; b=2", &["abc"]),
            ("a=1;__anteroom=abc;b=2", &["abc"]),
            ("  __anteroom \t=  abc\t ;", &["abc"]),
            ("__anteroom=\"abc\"", &["abc"]),
            ("__anteroom=\"abc", &["\"abc"]),
            ("__anteroom=\"", &["\""]),
            ("__anteroom=a=b=", &["a=b="]),
            // Two header lines, joined; and joined by an odd proxy.
            ("a=1, __anteroom=abc", &["abc"]),
            ("__anteroom=abc,b=2", &["abc"]),
            ("a=1;\r\n__anteroom=abc", &["abc"]),
            // One name for several paths.
            ("__anteroom=deep; __anteroom=root", &["deep", "root"]),
            ("__anteroom=1; __anteroom=2; __anteroom=3; __anteroom=4; __anteroom=5", &["1", "2", "3", "4"]),
            // Empty ones take nobody's turn.
            ("__anteroom=; __anteroom=\"\"; __anteroom=; __anteroom; __anteroom=abc", &["abc"]),
            // Not the name.
            ("__anteroom_shop=abc", &[]),
            ("x__anteroom=abc", &[]),
            ("__Anteroom=abc", &[]),
            ("x=__anteroom=abc", &[]),
            ("\"__anteroom\"=abc", &[]),
            ("$Version=1; __anteroom=abc; $Path=/", &["abc"]),
            // Nothing between the separators.
            (";;;,,,===;;;__anteroom=abc;;=;", &["abc"]),
            ("\u{1f36a}=\u{1f36a}; __anteroom=\u{1f36a}", &["\u{1f36a}"]),
        ];
        for (header, values) in cases {
            assert_eq!(found(header), *values, "{header:?}");
        }
    }

    #[test]
    fn a_huge_header_is_not_read_to_its_end() {
        let filler = |length: usize| "x".repeat(length);
        assert_eq!(found(&format!("a={}; __anteroom=abc", filler(60_000))), ["abc"]);
        assert!(found(&format!("a={}; __anteroom=abc", filler(65_536))).is_empty());
        assert!(found(&";".repeat(1_000_000)).is_empty());
        // The limit may lie within a character.
        assert_eq!(found(&format!("__anteroom=abc; {}", "\u{1f36a}".repeat(30_000))), ["abc"]);
        assert_eq!(found(&format!("__anteroom=abc; a{}", "\u{1f36a}".repeat(30_000))), ["abc"]);
    }

    proptest! {
        #[test]
        fn no_header_panics(header in any::<String>(), name in any::<String>()) {
            prop_assert!(find_cookie(&header, &name).count() <= 4);
        }

        #[test]
        fn a_cookie_among_others_is_found(before in "([a-z]{1,5}=[a-z\"= ]{0,9}; ?){0,5}", after in "(; ?[a-z =\"]{0,9}){0,5}") {
            let header = format!("{before}__anteroom=abc{after}");
            prop_assert_eq!(found(&header), ["abc"]);
        }
    }
}

mod answer_header {
    use super::*;

    fn room(path: &str, samesite: SameSite, secure: Secure) -> Room {
        let limits = json!({ "total_active_users": 1000, "new_users_per_minute": 200 });
        let room = parse_room("ROOM_SHOP", &limits).unwrap();
        let cookie_attributes = CookieAttributes { samesite, secure, partitioned: false };
        Room { path: path.to_owned(), cookie_attributes, ..room }
    }

    #[test]
    fn every_combination_of_attributes() {
        let cases = [
            // (samesite, secure, over HTTP, over HTTPS)
            (SameSite::Auto, Secure::Auto, "SameSite=Lax", "SameSite=Lax; Secure"),
            (SameSite::Auto, Secure::Always, "SameSite=Lax; Secure", "SameSite=Lax; Secure"),
            (SameSite::Auto, Secure::Never, "SameSite=Lax", "SameSite=Lax"),
            (SameSite::Lax, Secure::Auto, "SameSite=Lax", "SameSite=Lax; Secure"),
            (SameSite::Lax, Secure::Always, "SameSite=Lax; Secure", "SameSite=Lax; Secure"),
            (SameSite::Lax, Secure::Never, "SameSite=Lax", "SameSite=Lax"),
            (SameSite::None, Secure::Auto, "SameSite=None; Secure", "SameSite=None; Secure"),
            (SameSite::None, Secure::Always, "SameSite=None; Secure", "SameSite=None; Secure"),
            (SameSite::None, Secure::Never, "SameSite=None; Secure", "SameSite=None; Secure"),
            (SameSite::Strict, Secure::Auto, "SameSite=Strict", "SameSite=Strict; Secure"),
            (SameSite::Strict, Secure::Always, "SameSite=Strict; Secure", "SameSite=Strict; Secure"),
            (SameSite::Strict, Secure::Never, "SameSite=Strict", "SameSite=Strict"),
        ];
        for (samesite, secure, over_http, over_https) in cases {
            let room = room("/sale", samesite, secure);
            for (https, attributes) in [(false, over_http), (true, over_https)] {
                assert_eq!(
                    set_cookie(&room, "/", "value", 300, https),
                    format!("__anteroom=value; Path=/sale; Max-Age=300; HttpOnly; {attributes}"),
                    "{samesite:?} {secure:?} https: {https}"
                );
            }
        }
    }

    #[test]
    fn a_room_inside_pages_of_other_sites_partitions_its_cookie() {
        let cookie = |attributes| {
            let fields = json!({ "total_active_users": 1, "new_users_per_minute": 1, "cookie_attributes": attributes });
            set_cookie(&parse_room("ROOM_SHOP", &fields).unwrap(), "/", "value", 300, true)
        };
        let start = "__anteroom=value; Path=/; Max-Age=300; HttpOnly; SameSite=";
        assert_eq!(cookie(json!({ "samesite": "none" })), format!("{start}None; Secure; Partitioned"));
        assert_eq!(
            cookie(json!({ "samesite": "none", "partitioned": false })),
            format!("{start}None; Secure")
        );
        assert_eq!(cookie(json!({})), format!("{start}Lax; Secure"));
    }

    #[test]
    fn the_suffix_is_part_of_the_name() {
        let room = Room { cookie_suffix: "shop".to_owned(), ..room("/", SameSite::Auto, Secure::Auto) };
        assert_eq!(
            set_cookie(&room, "/", "value", 0, true),
            "__anteroom_shop=value; Path=/; Max-Age=0; HttpOnly; SameSite=Lax; Secure"
        );
    }

    fn path_of(room_path: &str) -> String {
        let cookie = set_cookie(&room(room_path, SameSite::Auto, Secure::Auto), "/", "value", 300, true);
        let (_, rest) = cookie.split_once("; Path=").unwrap();
        let (path, rest) = rest.split_once(';').unwrap();
        assert_eq!(
            rest, " Max-Age=300; HttpOnly; SameSite=Lax; Secure",
            "nothing leaks out of {room_path:?}"
        );
        path.to_owned()
    }

    #[test]
    fn a_ticket_goes_back_to_the_spelling_that_was_asked_for() {
        let room = room("/sale", SameSite::Auto, Secure::Auto);
        for (asked, path) in [
            ("/sale", "/sale"),
            ("/sale/x.json", "/sale"),
            ("/sale.json", "/sale.json"),
            ("/index.php/sale/x", "/index.php/sale"),
            ("/sale;x=1", "/sale"),
            ("/%73ale", "/sale"),
        ] {
            assert_eq!(room.cookie_path_at(asked), path, "{asked}");
        }
    }

    #[test]
    fn the_path_is_spelled_as_browsers_spell_it() {
        let cases = [
            ("/", "/"),
            ("/sale", "/sale"),
            ("/a.b-c_d~e/f", "/a.b-c_d~e/f"),
            ("/$&+,=:@!*()", "/$&+,=:@!*()"),
            ("/caf\u{e9}/menu", "/caf%C3%A9/menu"),
            ("/\u{1f39f}", "/%F0%9F%8E%9F"),
            ("/big sale", "/big%20sale"),
            ("/\"a\"/<b>/`c`/{d}", "/%22a%22/%3Cb%3E/%60c%60/%7Bd%7D"),
            ("/what?/#1", "/what%3F/%231"),
            ("/a\r\nSet-Cookie: b=c", "/a%0D%0ASet-Cookie:%20b=c"),
            ("/\u{7f}\u{80}", "/%7F%C2%80"),
        ];
        for (room_path, path) in cases {
            assert_eq!(path_of(room_path), path, "{room_path:?}");
        }
    }

    #[test]
    fn where_the_spelling_is_not_certain_the_cookie_is_sent_for_more() {
        let cases = [
            ("/a;b", "/"),
            ("/shop/a;b/c", "/shop"),
            ("/shop; Domain=example.com", "/"),
            ("/shop/100%", "/shop"),
            ("/shop/it's/x", "/shop"),
            ("/shop/a^b", "/shop"),
            ("/shop/a|b", "/shop"),
            ("/shop/[a]", "/shop"),
            ("/shop/a\\b", "/shop"),
        ];
        for (room_path, path) in cases {
            assert_eq!(path_of(room_path), path, "{room_path:?}");
        }
    }

    #[test]
    fn a_path_too_long_for_browsers_ends_above() {
        let long = "x".repeat(1_019);
        assert_eq!(path_of(&format!("/abc/{long}")), format!("/abc/{long}"), "1024 bytes");
        assert_eq!(path_of(&format!("/abcd/{long}")), "/abcd");
        assert_eq!(path_of(&format!("/a/{}/b", "\u{e9}".repeat(200))), "/a");
    }

    proptest! {
        #[test]
        fn no_path_breaks_the_header(path in any::<String>()) {
            let path = path_of(&format!("/{path}"));
            prop_assert!(path.starts_with('/') && path.len() <= 1_024);
            prop_assert!(path.bytes().all(|byte| byte.is_ascii_graphic() && byte != b';'));
        }
    }
}

#[test]
fn only_the_whole_token_is_the_token() {
    assert!(same_secret("token", "token"));
    for given in ["", "t", "toke", "tokem", "Token", "token ", "tokentoken"] {
        assert!(!same_secret(given, "token"), "{given:?}");
    }
    assert!(!same_secret("", ""), "a token that is not set lets nobody in");
    assert!(!same_secret("token", ""));
}

#[test]
fn an_admission_is_signed_as_any_library_of_json_web_signatures_reads_it() {
    // Computed with another implementation: Python's hmac, base64 and json.
    let key = AdmissionKey::new("0123456789abcdef0123456789abcdef").unwrap();
    assert_eq!(
        key.sign("shop", 0x1234_5678, 1_700_000_045_678),
        "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.\
         eyJpc3MiOiJhbnRlcm9vbSIsImF1ZCI6InNob3AiLCJzdWIiOiIwMDAwMDAwMDEyMzQ1Njc4IiwiaWF0IjoxNzAwMDAwMDQ1LCJleHAiOjE3MDAwMDAxNjV9.\
         s0kXFyYdwpbfKKHpGpqoFeu5_kPHbjyAX_viB-glfvI"
    );
    assert!(AdmissionKey::new(&"k".repeat(MIN_ADMISSION_KEY - 1)).is_none(), "too short to be a secret");
}
