//! The visitor's cookie, and what a waiting visitor is told.

use std::sync::LazyLock;

use anteroom::ticket::{Human, KeyRing, Standing, Terms, Ticket, find_cookie, standing};
use anteroom::time::minute_of;
use arbitrary::{Result, Unstructured};

const NEW_KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8";
const OLD_KEY: &str = "Hx4dHBsaGRgXFhUUExIREA8ODQwLCgkIBwYFBAMCAQA";
static NEW: LazyLock<KeyRing> = LazyLock::new(|| KeyRing::parse(NEW_KEY).unwrap());
static OLD: LazyLock<KeyRing> = LazyLock::new(|| KeyRing::parse(OLD_KEY).unwrap());
static BOTH: LazyLock<KeyRing> = LazyLock::new(|| KeyRing::parse(&format!("{NEW_KEY},{OLD_KEY}")).unwrap());

/// A cookie's value opens only if it is, letter by letter, one that was sealed.
pub mod sealed {
    use base64::Engine;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    use super::{BOTH, NEW, OLD, Ticket};

    /// Sealed by 0.1.0, in the older format that nobody seals any more.
    const OF_0_1_0: [&str; 2] = [
        "AaChoqOkpaanqKmqq-cZX2giQqlyjWQ3hhJ6wN_7Y78K_LdCbRfBwx5GUB3MiDpvlT2xYiQhe3tIHA",
        "AaChoqOkpaanqKmqq-YZX2giQqlyjWQ3hhJ6wN_7Y78K_LdCbJwOJoZ_WIiwVJd0YRRIBO8rfPC3pg",
    ];

    pub fn run(input: &[u8]) {
        let Ok(value) = std::str::from_utf8(input) else { return };
        let Some(ticket) = BOTH.open("shop", value) else { return };
        let bytes = URL_SAFE_NO_PAD.decode(value).unwrap();
        let is_sealed = match bytes.split_first_chunk::<13>() {
            Some(([2, nonce @ ..], _)) => {
                [&NEW, &OLD].iter().any(|ring| ring.seal("shop", &ticket, *nonce) == value)
            }
            _ => OF_0_1_0.contains(&value),
        };
        assert!(is_sealed, "{value} opens as {ticket:?}");
        assert_eq!(BOTH.open("shop2", value), None);
    }

    pub fn seeds() -> Vec<Vec<u8>> {
        let new = [&NEW, &OLD].map(|ring| ring.seal("shop", &Ticket::new(7, super::super::NOW), [9; 12]));
        OF_0_1_0.map(str::to_owned).into_iter().chain(new).map(String::into_bytes).collect()
    }
}

/// Whatever a ticket says: what is written is read, opens where it was sealed and nowhere else, and stands at no time that
/// is still to come.
pub mod contents {
    use super::{BOTH, Human, NEW, OLD, Result, Standing, Terms, Ticket, Unstructured, minute_of, standing};

    pub fn run(input: &[u8]) {
        if let Some(ticket) = input.get(..Ticket::LENGTH).and_then(Ticket::from_bytes) {
            assert_eq!(ticket.to_bytes(), input[..Ticket::LENGTH], "one ticket has one spelling");
        }
        let _ = try_all(&mut Unstructured::new(input));
    }

    fn try_all(u: &mut Unstructured) -> Result<()> {
        let now = u.int_in_range(0..=1 << 42)?;
        let ticket = Ticket {
            id: u.arbitrary()?,
            bucket: minute_of(now).wrapping_add_signed(u.int_in_range(-2_000..=50)?),
            accepted_at: u.arbitrary::<Option<i32>>()?.map(|ms| now.saturating_add_signed(ms.into())),
            last_check_in: now.saturating_add_signed(u.arbitrary::<i32>()?.into()),
            refresh_seconds: u.arbitrary()?,
            ahead_at_first: u.arbitrary()?,
            progress: u.arbitrary()?,
            human: *u.choose(&[Human::Unknown, Human::Passed, Human::Failed])?,
            uncounted: u.arbitrary()?,
            moves: u.arbitrary()?,
            subscribed: u.arbitrary()?,
        };
        let written = Ticket::from_bytes(&ticket.to_bytes()).expect("what is written is read");
        assert_eq!(Ticket::from_bytes(&written.to_bytes()), Some(written));

        let (ring, other) = if u.arbitrary()? { (&NEW, &OLD) } else { (&OLD, &NEW) };
        let (place, letter) = (u.arbitrary::<usize>()?, u.arbitrary::<u8>()? & 0x7f);
        let nonce = u.arbitrary()?;
        let room = u.arbitrary::<&str>()?;
        let value = ring.seal(room, &ticket, nonce);
        assert_eq!(BOTH.open(room, &value), Some(written));
        assert_eq!(other.open(room, &value), None);
        assert_eq!(BOTH.open(&*format!("{room}x"), &value), None);
        let mut changed = value.clone().into_bytes();
        let place = place % changed.len();
        changed[place] = letter;
        let changed = String::from_utf8(changed).unwrap();
        assert_eq!(BOTH.open(room, &changed).is_some(), changed == value, "{changed} was {value}");

        let minute = 60_000;
        let terms = Terms {
            session_ms: u.int_in_range(1..=30)? * minute,
            renews: u.arbitrary()?,
            longest_ms: if u.arbitrary()? { u64::MAX } else { u.int_in_range(1..=1_440)? * minute },
            confirm_ms: if written.uncounted { minute } else { u64::MAX },
            place_ms: u.int_in_range(10..=3_600)? * 1_000,
            refresh_ms: u.int_in_range(5..=300)? * 1_000,
        };
        let found = standing(Some(written), now, &terms);
        if let Standing::Active(taken) | Standing::Waiting(taken) = found {
            assert!(taken.last_check_in <= now && taken.bucket <= minute_of(now), "{taken:?} at {now}");
            assert!(taken.accepted_at.is_none_or(|at| at <= taken.last_check_in), "{taken:?}");
            assert!(now < terms.end(&taken), "{taken:?} at {now}");
            assert_eq!(standing(Ticket::from_bytes(&taken.to_bytes()), now, &terms), found);
        }
        Ok(())
    }

    pub fn seeds() -> Vec<Vec<u8>> {
        let admitted = Ticket::new(7, super::super::NOW).admitted(super::super::NOW + 1);
        [Ticket::new(7, super::super::NOW), admitted].map(|ticket| ticket.to_bytes().repeat(3)).to_vec()
    }
}

/// The cookies of a header are those that splitting it by hand finds.
pub mod cookies {
    use super::find_cookie;

    const NAME: &str = "__anteroom";

    pub fn run(input: &[u8]) {
        let Ok(header) = std::str::from_utf8(input) else { return };
        let found: Vec<&str> = find_cookie(header, NAME).collect();
        let pairs = header.split([';', ',']).filter_map(|pair| pair.split_once('='));
        let values = pairs.filter(|(name, _)| name.trim_ascii() == NAME).map(|(_, value)| {
            let value = value.trim_ascii();
            let is_quoted = value.len() >= 2 && value.starts_with('"') && value.ends_with('"');
            if is_quoted { &value[1..value.len() - 1] } else { value }
        });
        let by_hand: Vec<&str> = values.filter(|value| !value.is_empty()).take(4).collect();
        assert_eq!(found, by_hand, "{header:?}");
    }

    pub fn seeds() -> Vec<Vec<u8>> {
        super::super::paragraphs(include_str!("../seeds/cookies.txt"))
    }
}

/// What the page is told of a waiting visitor is JSON that says just that, whatever stands in texts, and a wait from the least
/// to the most. Words and templates are made of it in JavaScript.
pub mod facts {
    use anteroom::answer::{DrawFacts, Estimate, EventView, WaitingView, facts, progress};
    use anteroom::config::parse_room;
    use anteroom::room::Room;
    use arbitrary::{Result, Unstructured};
    use serde_json::{Value, json};

    /// About 30 years.
    const LONGEST_SECONDS: u64 = 1 << 30;

    thread_local! {
        static ROOM: Room = {
            let fields = json!({ "total_active_users": 1, "new_users_per_minute": 1 });
            parse_room("ROOM_SHOP", &fields).unwrap()
        };
    }

    pub fn run(input: &[u8]) {
        let _ = ROOM.with(|room| tell(&mut Unstructured::new(input), room.clone()));
    }

    fn tell(u: &mut Unstructured, mut room: Room) -> Result<()> {
        let (ahead, at_first, before): (u64, u64, u8) = u.arbitrary()?;
        let shown = progress(ahead, at_first, before);
        assert!(shown == 99 || (before..99).contains(&shown));
        let draw = DrawFacts {
            id: u.arbitrary()?,
            round: u.arbitrary()?,
            number: u.arbitrary()?,
            threshold: u.arbitrary()?,
        };
        let (name, turnstile): (&str, &str) = u.arbitrary()?;
        let event = EventView {
            name,
            prequeueing: u.arbitrary()?,
            seconds_to_start: u.arbitrary()?,
            seconds_to_end: u.arbitrary()?,
            shuffle: u.arbitrary()?,
        };
        room.page.message = u.arbitrary()?;
        let view = WaitingView {
            room: &room,
            asks_for_status: u.arbitrary()?,
            estimate: Estimate::Known { seconds: u.int_in_range(0..=LONGEST_SECONDS)? },
            people_ahead: u.arbitrary()?,
            progress: u.arbitrary()?,
            drawn: u.arbitrary()?,
            queue_all: u.arbitrary()?,
            held: u.arbitrary()?,
            event: u.arbitrary::<bool>()?.then_some(event),
            draw: u.arbitrary::<bool>()?.then_some(&draw),
            kept_seconds: u.arbitrary()?,
            refresh_seconds: u.arbitrary()?,
            now_ms: u.arbitrary()?,
            cookieless: u.arbitrary()?,
            infinite_queue: u.arbitrary()?,
            turnstile,
            bring_again: u.arbitrary()?,
            continue_link: u.arbitrary()?,
            push: "",
        };
        let told: Value = serde_json::from_str(&facts(&view, &[("set-cookie", name.to_owned())])).unwrap();
        assert_eq!((&told["message"], &told["turnstile"]), (&json!(room.page.message), &json!(turnstile)));
        assert_eq!(told["headers"], json!([["set-cookie", name]]));
        let seconds = ["waitSecondsLow", "waitSeconds", "waitSecondsHigh"].map(|name| told[name].as_u64());
        assert!(seconds.is_sorted() && seconds.iter().all(Option::is_some), "{seconds:?}");
        Ok(())
    }

    pub fn seeds() -> Vec<Vec<u8>> {
        let text = "</script>\"\\\u{2028}\0 {{{x}}} é";
        (0..8_u8).map(|number| text.bytes().map(|byte| byte ^ number).cycle().take(200).collect()).collect()
    }
}
