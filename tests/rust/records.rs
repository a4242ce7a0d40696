//! Stored records: what 0.1.0 has stored is read, what is written 0.1.0 reads, and what newer code has stored is left alone.

use std::collections::BTreeMap;
use std::rc::Rc;

use anteroom::admission::{SavedLedger, SavedPool};
use anteroom::config::Room;
use anteroom::counts::{ColoReport, GlobalMeta, OriginMemory, SavedDataCenter};
use anteroom::health::ProbeResult;
use anteroom::health::agree::Agreement;
use anteroom::health::analytics::Sum;
use anteroom::history::{Minute, Record as HistoryRecord};
use anteroom::machines::{Anywhere, Context, Counter, DataCenter, Effect, Input, ObjectMachine, Stored};
use anteroom::notifications::Detector;
use anteroom::protocol::messages::{Take, VERSION, WorkerReport};
use anteroom::protocol::records::{self, Found, Frame, MARK, Record, RecordError, Step};
use anteroom::protocol::{Answer, Request};
use anteroom::wire::{WireError, decode, encode};
use serde::{Deserialize, Serialize};

use crate::articles::room;

/// What 0.1.0 stored, by the record's name.
fn stored_by_0_1_0() -> BTreeMap<&'static str, Vec<u8>> {
    let lines = include_str!("golden/records-0.1.0.txt").lines().filter(|line| !line.starts_with('#'));
    let records = lines.map(|line| {
        let (name, digits) = line.split_once(' ').unwrap();
        let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
        (name, (0..digits.len()).step_by(2).map(byte).collect())
    });
    records.collect()
}

/// Reads what 0.1.0 stored. What is written of it begins with the same bytes: what newer code adds is nothing yet.
fn is_kept<T: Record>() {
    let (name, bytes) = (T::NAME, &stored_by_0_1_0()[T::NAME]);
    let record: T = records::read(bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
    let written = records::write(&record).unwrap();
    let skipped = usize::from(T::FRAME == Frame::FirstByte);
    assert_eq!(written[skipped..bytes.len()], bytes[skipped..], "{name}");
    assert!(written[bytes.len()..].iter().all(|byte| *byte == 0), "{name}: what is added is not there yet");
    if T::FRAME == Frame::FirstByte {
        assert_eq!(written[0], T::VERSION, "{name}");
    }
}

#[test]
fn what_0_1_0_has_stored_is_read_and_what_is_written_0_1_0_reads() {
    is_kept::<SavedLedger>();
    is_kept::<SavedPool>();
    is_kept::<SavedDataCenter>();
    is_kept::<GlobalMeta>();
    is_kept::<ColoReport>();
    is_kept::<OriginMemory>();
    is_kept::<Detector>();
    is_kept::<HistoryRecord>();
    is_kept::<Minute>();
    is_kept::<Agreement>();
    is_kept::<Sum>();
    is_kept::<ProbeResult>();
    is_kept::<Vec<ProbeResult>>();
}

/// A ledger as a later version may have it: the minute in another unit, and each minute before with its own count.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct LaterLedger {
    v: u8,
    since: u64,
    given: Vec<Option<u64>>,
    name: String,
}

impl Record for LaterLedger {
    const NAME: &'static str = "ledger";
    const FRAME: Frame = Frame::FirstByte;
    const STEPS: &'static [Step] = &[
        |first| {
            let first: SavedLedger = decode(first)?;
            encode(&(2_u8, u64::from(first.minute) * 60_000, first.given, first.previous))
        },
        |second| {
            let (_, since, given, previous): (u8, u64, Option<u64>, Option<u64>) = decode(second)?;
            encode(&LaterLedger { v: 3, since, given: vec![given, previous], name: "ledger".to_owned() })
        },
    ];
}

/// The results that are not told yet as a later version may have them: with the observer who keeps them.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct LaterUntold {
    observer: u8,
    results: Vec<ProbeResult>,
}

impl Record for LaterUntold {
    const NAME: &'static str = "untold";
    const FRAME: Frame = Frame::Marked;
    const STEPS: &'static [Step] = &[|first| {
        let results: Vec<ProbeResult> = decode(first)?;
        let observer = results.first().map(|result| result.observer).ok_or(WireError)?;
        encode(&LaterUntold { observer, results })
    }];
}

#[test]
fn an_older_version_is_migrated_step_by_step() {
    let stored = stored_by_0_1_0();
    let later: LaterLedger = records::read(&stored["ledger"]).unwrap();
    let since = 28_000_000 * 60_000;
    let expected = LaterLedger { v: 3, since, given: vec![Some(4), Some(9)], name: "ledger".to_owned() };
    assert_eq!(later, expected);
    let second = encode(&(2_u8, since, Some(4_u64), Some(9_u64))).unwrap();
    assert_eq!(records::read::<LaterLedger>(&second).unwrap(), expected);
    assert_eq!(records::read::<LaterLedger>(&records::write(&later).unwrap()).unwrap(), expected);

    let later: LaterUntold = records::read(&stored["untold"]).unwrap();
    assert_eq!((later.observer, later.results.len()), (2, 2));
    let written = records::write(&later).unwrap();
    assert_eq!(written[..6], [&MARK[..], &[2]].concat());
    assert_eq!(records::read::<LaterUntold>(&written).unwrap(), later);
}

#[test]
fn what_newer_code_has_stored_is_refused() {
    let later: LaterLedger = records::read(&stored_by_0_1_0()["ledger"]).unwrap();
    let bytes = records::write(&later).unwrap();
    let refused = RecordError::Newer { record: "ledger", version: 3, known: 1 };
    assert_eq!(records::read::<SavedLedger>(&bytes), Err(refused));
    assert_eq!(records::problem("ledger", &bytes), Some(refused));
    let found = Found::<SavedLedger>::new(Some(&bytes[..]));
    assert!(!found.may_be_replaced() && found.record.is_none());

    let later: LaterUntold = records::read(&stored_by_0_1_0()["untold"]).unwrap();
    let bytes = records::write(&later).unwrap();
    let refused = RecordError::Newer { record: "untold", version: 2, known: 1 };
    assert_eq!(records::read::<Vec<ProbeResult>>(&bytes), Err(refused));
    // 0.1.0 does not know versions: to it, these bytes are no such record.
    assert!(decode::<Vec<ProbeResult>>(&bytes).is_err());

    let broken = Found::<ColoReport>::new(Some(&[1, 0xff]));
    assert_eq!(broken.error, Some(RecordError::Unreadable { record: "colo/" }));
    assert!(broken.may_be_replaced(), "nobody can read it any more");
}

const NOW: u64 = 28_000_000 * 60_000 + 30_000;

/// A machine and what it is told.
struct Running<M> {
    machine: M,
    room: Rc<Room>,
    now: u64,
}

impl<M: ObjectMachine> Running<M> {
    fn tell(&mut self, input: Input) -> Vec<Effect> {
        let context = Context { room: &self.room, colo: "AMS", deadline_ms: 300, now: self.now };
        let mut effects = Vec::new();
        self.machine.handle(&context, input, &mut effects);
        effects
    }

    /// What it does until nothing is planned any more, for a minute at the most.
    fn run(&mut self, input: Input) -> Vec<Effect> {
        let mut effects = self.tell(input);
        let end = self.now + 60_000;
        while let Some(due) = self.machine.next_timer().filter(|due| *due < end) {
            self.now = due.max(self.now);
            effects.extend(self.tell(Input::Timer));
        }
        effects
    }
}

fn stores(effects: &[Effect]) -> usize {
    effects.iter().filter(|effect| matches!(effect, Effect::Store { .. } | Effect::Delete { .. })).count()
}

#[test]
fn what_newer_code_has_stored_is_never_overwritten_and_no_limit_is_broken_by_it() {
    use anteroom::admission::{NumberAsk, Outcome};
    use anteroom::room::SlotStrategy;

    let newer = |key: &str| -> Stored {
        let bytes = &stored_by_0_1_0()[key];
        Stored::from([(key.to_owned(), [&[9], &bytes[1..]].concat())])
    };
    let numbers = Rc::new(Room { slot_strategy: SlotStrategy::Counters, ..room(100, 50, 1) });
    let ask = NumberAsk { id: 7, bucket: 28_000_000, waits: false, minute: 28_000_000, limit: 50, owned: 50 };
    let take = || Take::new(vec![ask], anteroom::steering::Overrides::default());
    let asked = || Input::Asked { from: 1, request: Request::CounterTake(Box::new(take())) };
    let mut counter =
        Running { machine: Counter::restore(&newer("ledger"), 7, NOW), room: Rc::clone(&numbers), now: NOW };
    let effects = counter.run(asked());
    assert_eq!(stores(&effects), 0);
    let Some(Effect::Reply { answer: Answer::CounterTake(taken), .. }) = effects.first() else {
        panic!("{effects:?}")
    };
    assert!(matches!(taken.outcomes[..], [Outcome::Refused { .. }]), "all may have been given: {taken:?}");
    // The same where the record is readable: a number is given, and written down.
    let mut counter =
        Running { machine: Counter::restore(&Stored::new(), 7, NOW), room: Rc::clone(&numbers), now: NOW };
    let effects = counter.run(asked());
    assert!(stores(&effects) > 0);

    let permits = Rc::new(room(100, 50, 1));
    for (key, room) in [("pool", &permits), ("ledger", &numbers)] {
        let mut anywhere =
            Running { machine: Anywhere::restore(room, &newer(key), NOW), room: Rc::clone(room), now: NOW };
        let asked = Input::Asked { from: 1, request: Request::AnywhereTake(Box::new(take())) };
        let mut effects = anywhere.run(asked);
        let Some(Effect::Call(call)) = effects.first() else { panic!("{effects:?}") };
        let mut global = anteroom::counts::Global::restore(room, None, Vec::new(), NOW);
        let state = Some(global.state(room, None, 28_000_000, NOW));
        let state = anteroom::protocol::messages::StateAnswer { v: VERSION, state };
        let answer = Some(Answer::GlobalState(Box::new(state)));
        let answered = Input::Answered { call: call.number, answer };
        anywhere.now = NOW + 10;
        effects.extend(anywhere.run(answered));
        assert_eq!(stores(&effects), 0, "{key}");
        for effect in &effects {
            if let Effect::Reply { answer: Answer::AnywhereTake(taken), .. } = effect {
                assert!(!matches!(taken.outcomes[..], [Outcome::Given { .. }]), "{key}: {taken:?}");
            }
        }
    }

    let mut data_center = Running {
        machine: DataCenter::restore(&permits, "AMS", &newer("data_center"), 7, NOW),
        room: permits,
        now: NOW,
    };
    let report = WorkerReport {
        v: VERSION,
        worker: 9,
        first: 1,
        check_ins: vec![anteroom::counts::CheckIn::Wait {
            id: 1,
            bucket: 28_000_000,
            from: None,
            at: NOW.into(),
        }],
        ..WorkerReport::default()
    };
    let asked = Input::Asked { from: 1, request: Request::DataCenterReport(Box::new(report)) };
    let mut effects = data_center.tell(asked);
    effects.extend(data_center.tell(Input::Alarm));
    assert_eq!(stores(&effects), 0);
    let durable = effects.iter().find_map(|effect| match effect {
        Effect::Reply { answer: Answer::DataCenterReport(answer), .. } => {
            Some((answer.applied, answer.durable))
        }
        _ => None,
    });
    assert_eq!(durable, Some((1, 0)), "the worker must keep what is not in storage");
}

#[test]
fn tables_of_older_code_are_migrated_and_those_of_newer_code_used_as_long_as_that_is_sound() {
    use anteroom::protocol::schema::{Migration, NewerTables, Schema, SchemaStep};

    const FIRST: SchemaStep = SchemaStep {
        statements: &["CREATE TABLE IF NOT EXISTS seen (at INTEGER)"],
        older_code_goes_on: false,
    };
    const ADDS: SchemaStep = SchemaStep {
        statements: &["ALTER TABLE seen ADD COLUMN by TEXT NOT NULL DEFAULT ''"],
        older_code_goes_on: true,
    };
    const BREAKS: SchemaStep =
        SchemaStep { statements: &["ALTER TABLE seen RENAME TO looks"], older_code_goes_on: false };
    let first = Schema { name: "seen", steps: &[FIRST] };
    let second = Schema { name: "seen", steps: &[FIRST, ADDS] };
    let third = Schema { name: "seen", steps: &[FIRST, ADDS, BREAKS] };

    // 0.1.0 has noted nothing; the first step leaves its tables as they are.
    let all = Migration {
        statements: vec![FIRST.statements[0], ADDS.statements[0], BREAKS.statements[0]],
        version: 3,
        needs: 3,
    };
    assert_eq!(third.migration(None), Ok(Some(all)));
    let one = Migration { statements: vec![ADDS.statements[0]], version: 2, needs: 1 };
    assert_eq!(second.migration(Some((1, 1))), Ok(Some(one)));
    assert_eq!(second.migration(Some((2, 1))), Ok(None));
    // After a rollback.
    assert_eq!(first.migration(Some((2, 1))), Ok(None), "a column more does not matter");
    let refused = Err(NewerTables { name: "seen", needs: 3 });
    assert_eq!((first.migration(Some((3, 3))), second.migration(Some((3, 3)))), (refused.clone(), refused));
}
