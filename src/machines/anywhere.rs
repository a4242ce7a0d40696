//! `ANYWHERE`: the pool of permits (`leases`), or the numbers that no colo owns (`counters`).

use std::iter::repeat;

use litemap::LiteMap;

use super::write_behind::WriteBehind;
use super::{COLD_START_FACTOR, Call, Context, CurrentRoom, Effect, Input, NO_ROUTE, ObjectMachine, Stored};
use crate::admission::{
    self, NumberAsk, Outcome, Pool, RECALL_WAITS_MS, Renewal, SavedLedger, SavedPool, StateKey, minute_of,
};
use crate::protocol::messages::{Given, Lease, StateRequest, Taken, VERSION, colo_object};
use crate::protocol::{Answer, Request, records};
use crate::room::Room;
use crate::steering::Overrides;

/// Storage keys of what was given. A record of the other kind, from before a change of the strategy, is not read.
const POOL_KEY: &str = "pool";
/// See [`POOL_KEY`].
const LEDGER_KEY: &str = "ledger";
/// Timeout of a call to Global, in tenths of the time for which visitors' calls wait for Anywhere.
const GLOBAL_TENTHS: u64 = 8;
/// Backoff after a call that Global did not answer, in milliseconds.
const RENEW_AGAIN_MS: u64 = 200;
/// The most sessions that one message holds.
const MAX_SESSIONS: usize = 1_000;
const UNKNOWN: &str = "Global has not told the room's state";

/// What is given: permits or numbers.
#[derive(Debug)]
enum Giver {
    Permits(Box<Pool>),
    Numbers(Box<admission::Anywhere>),
}

impl Giver {
    fn renewal(&self, room: &Room, now: u64) -> Renewal {
        match self {
            Self::Permits(pool) => pool.renewal(now),
            Self::Numbers(anywhere) => anywhere.renewal(room, now),
        }
    }

    fn has_state(&self) -> bool {
        match self {
            Self::Permits(pool) => pool.has_state(),
            Self::Numbers(anywhere) => anywhere.has_state(),
        }
    }

    fn overrides(&self) -> &Overrides {
        match self {
            Self::Permits(pool) => pool.overrides(),
            Self::Numbers(anywhere) => anywhere.overrides(),
        }
    }

    fn renew(&mut self, key: StateKey, now: u64) {
        match self {
            Self::Permits(pool) => pool.renew(key, now),
            Self::Numbers(anywhere) => anywhere.renew(key, now),
        }
    }

    fn take(&mut self, room: &Room, asks: &[NumberAsk], now: u64) -> Option<Vec<Outcome>> {
        match self {
            // Only workers of 0.1.0 ask for permits themselves. They fall back, as where the pool does not answer.
            Self::Permits(_) => None,
            Self::Numbers(anywhere) => anywhere.take(room, asks, now),
        }
    }

    /// What Global learns of the numbers given.
    fn given(&mut self, now: u64) -> Option<Given> {
        match self {
            Self::Permits(_) => None,
            Self::Numbers(anywhere) => Some(Given::of(anywhere.ledger(now))),
        }
    }

    /// Writes what was given, if a write is due.
    fn store(&mut self, writes: &mut WriteBehind, now: u64) -> Option<Effect> {
        let (key, bytes, background) = match self {
            Self::Permits(pool) => {
                let due = writes.due(pool.changed_at(), pool.is_covered(), now)?;
                (POOL_KEY, records::write(&pool.save(due.settled)).ok()?, due.background)
            }
            Self::Numbers(anywhere) => {
                let ledger = anywhere.ledger(now);
                let due = writes.due(ledger.changed_at(), ledger.is_covered(), now)?;
                (LEDGER_KEY, records::write(&ledger.save(due.settled)).ok()?, due.background)
            }
        };
        Some(Effect::Store { key: key.to_owned(), bytes, background })
    }
}

/// A message that waits for the room's state.
#[derive(Debug)]
struct Waiting {
    from: u64,
    request: Request,
    give_up_at: u64,
}

/// A Counter's call that waits for permits that are called back.
#[derive(Debug)]
struct Recalling {
    from: u64,
    asked: Box<Lease>,
    give_up_at: u64,
}

/// Gives permits or numbers, by its own clock and the freshest state.
#[derive(Debug)]
pub struct Anywhere {
    giver: Giver,
    rooms: CurrentRoom,
    waiting: Vec<Waiting>,
    recalling: Vec<Recalling>,
    /// Colos whose permits are called back, by the call.
    recalls: LiteMap<u64, String>,
    /// The call that fetches the state, and how many calls of Counters it reports.
    renewing: Option<(u64, u64)>,
    renew_after: u64,
    calls: u64,
    /// How often Counters have called, as far as Global does not know.
    leases: u64,
    writes: WriteBehind,
    /// What is stored was not written by newer code.
    may_write: bool,
}

impl Anywhere {
    /// The pool at its start. After a breakdown it goes on with an over-estimate of what it gave.
    pub fn restore(room: &Room, stored: &Stored, now: u64) -> Self {
        let may_write;
        let giver = if room.slot_strategy.leases_permits() {
            let found = records::found(stored, POOL_KEY);
            may_write = found.may_be_replaced();
            let saved = found.record_or(|| SavedPool::lost(room.at(now).0, now));
            Giver::Permits(Box::new(Pool::restore(saved, now)))
        } else {
            let found = records::found(stored, LEDGER_KEY);
            may_write = found.may_be_replaced();
            let saved = found.record_or(|| SavedLedger::lost(now));
            Giver::Numbers(Box::new(admission::Anywhere::restore(saved, now)))
        };
        Self {
            giver,
            may_write,
            rooms: CurrentRoom::default(),
            waiting: Vec::new(),
            recalling: Vec::new(),
            recalls: LiteMap::new(),
            renewing: None,
            renew_after: 0,
            calls: 0,
            leases: 0,
            writes: WriteBehind::default(),
        }
    }

    fn global_deadline_ms(&self, context: &Context<'_>) -> u64 {
        let deadline = context.deadline_ms * GLOBAL_TENTHS / 10;
        if self.giver.has_state() { deadline } else { COLD_START_FACTOR * deadline }
    }

    /// Serves a message, as soon as the state is fresh enough for it.
    fn asked(&mut self, context: &Context<'_>, from: u64, request: Request, effects: &mut Vec<Effect>) {
        let now = context.now;
        if matches!(request, Request::AnywhereLease(_)) {
            self.leases += 1;
        }
        let whole = self.rooms.with(context.room, self.giver.overrides());
        match self.giver.renewal(whole.at(now).0, now) {
            Renewal::Fresh => {}
            Renewal::Background => self.renew(context, effects),
            Renewal::First => {
                self.renew(context, effects);
                if self.renewing.is_some() {
                    let give_up_at = now + self.global_deadline_ms(context);
                    self.waiting.push(Waiting { from, request, give_up_at });
                    return;
                }
            }
        }
        self.serve(context, from, &request, effects);
    }

    /// Asks Global for the room's state, unless that is under way.
    fn renew(&mut self, context: &Context<'_>, effects: &mut Vec<Effect>) {
        let now = context.now;
        if self.renewing.is_some() || now < self.renew_after {
            return;
        }
        let leases = std::mem::take(&mut self.leases);
        let given = self.giver.given(now);
        let asked = StateRequest { v: VERSION, minute: minute_of(now), given, colo: String::new(), leases };
        let request = Request::GlobalState(Box::new(asked));
        let deadline_ms = self.global_deadline_ms(context);
        let number = call(&mut self.calls, context.room.name.clone(), request, deadline_ms, effects);
        self.renewing = Some((number, leases));
    }

    fn renewed(&mut self, context: &Context<'_>, answer: Option<Answer>, effects: &mut Vec<Effect>) {
        let Some((_, leases)) = self.renewing.take() else { return };
        if let Some(Answer::GlobalState(answer)) = answer {
            if let Some(key) = answer.state {
                self.giver.renew(key, context.now);
            }
        } else {
            self.leases += leases;
            self.renew_after = context.now + RENEW_AGAIN_MS;
        }
        for Waiting { from, request, .. } in std::mem::take(&mut self.waiting) {
            self.serve(context, from, &request, effects);
        }
    }

    /// Answers by what is known now.
    fn serve(&mut self, context: &Context<'_>, from: u64, request: &Request, effects: &mut Vec<Effect>) {
        let now = context.now;
        let whole = self.rooms.with(context.room, self.giver.overrides());
        let room = whole.at(now).0;
        let answer = match (request, &mut self.giver) {
            (Request::AnywhereLease(asked), Giver::Permits(pool)) => {
                pool.changes_at(whole.next_change(now));
                if !pool.hear(room, &asked.colo, &asked.ask, now) {
                    let answer = Answer::AnywhereLease(Box::new(pool.nothing(&asked.ask, now)));
                    return effects.push(Effect::Reply { to: from, answer });
                }
                let (asked, give_up_at) = (asked.clone(), now + RECALL_WAITS_MS);
                return self.recalling.push(Recalling { from, asked, give_up_at });
            }
            (Request::AnywhereTake(asked), giver) => giver.take(room, &asked.asks, now).map(|outcomes| {
                let taken = Taken { v: VERSION, outcomes, ..Taken::default() };
                Answer::AnywhereTake(Box::new(taken))
            }),
            _ => None,
        };
        self.reply(from, answer, now, effects);
    }

    fn reply(&mut self, from: u64, answer: Option<Answer>, now: u64, effects: &mut Vec<Effect>) {
        if let Some(answer) = answer {
            self.writes.changed(now);
            effects.push(Effect::Reply { to: from, answer });
        } else {
            effects.push(Effect::Refuse { to: from, status: 503, reason: UNKNOWN });
        }
    }

    /// Gives what Counters ask for, unless more of it will be there in a moment: what lies in the stocks of others is called back.
    fn give(&mut self, context: &Context<'_>, effects: &mut Vec<Effect>) {
        let now = context.now;
        let whole = self.rooms.with(context.room, self.giver.overrides());
        let room = whole.at(now).0;
        for Recalling { from, asked, give_up_at } in std::mem::take(&mut self.recalling) {
            let Giver::Permits(pool) = &mut self.giver else { continue };
            if now < give_up_at && pool.lacks_only_stock(room, &asked.colo, &asked.ask, now) {
                // Once for each who asks, and again when all who were called have answered.
                if self.recalls.is_empty() || give_up_at == now + RECALL_WAITS_MS {
                    for colo in pool.recall(&asked.colo, now) {
                        let name = colo_object(&context.room.name, &colo);
                        let request = Request::CounterRecall(Box::new(()));
                        let number = call(&mut self.calls, name, request, RECALL_WAITS_MS, effects);
                        self.recalls.insert(number, colo);
                    }
                }
                if !self.recalls.is_empty() {
                    self.recalling.push(Recalling { from, asked, give_up_at });
                    continue;
                }
            }
            let leased = pool.give(room, &asked.colo, &asked.ask, now);
            self.reply(from, leased.map(|leased| Answer::AnywhereLease(Box::new(leased))), now, effects);
        }
    }

    /// Whoever has waited long enough is told what is known.
    fn give_up(&mut self, context: &Context<'_>, effects: &mut Vec<Effect>) {
        while self.waiting.first().is_some_and(|waiting| context.now >= waiting.give_up_at) {
            let Waiting { from, request, .. } = self.waiting.remove(0);
            self.serve(context, from, &request, effects);
        }
    }
}

fn call(calls: &mut u64, name: String, request: Request, deadline_ms: u64, effects: &mut Vec<Effect>) -> u64 {
    *calls += 1;
    effects.push(Effect::Call(Call { number: *calls, name, request, deadline_ms }));
    *calls
}

impl ObjectMachine for Anywhere {
    fn handle(&mut self, context: &Context<'_>, input: Input, effects: &mut Vec<Effect>) {
        let begin = effects.len();
        match input {
            Input::Asked { from, request: Request::AnywhereReserve(asked) } => {
                if let Giver::Permits(pool) = &mut self.giver {
                    let ids = asked.ids.iter().copied().map(Some).chain(repeat(None));
                    for id in ids.take(asked.sessions as usize).take(MAX_SESSIONS) {
                        pool.reserve_session(id, context.now);
                    }
                }
                effects.push(Effect::Reply { to: from, answer: Answer::AnywhereReserve(Box::new(())) });
            }
            Input::Asked {
                from,
                request: request @ (Request::AnywhereLease(_) | Request::AnywhereTake(_)),
            } => {
                self.asked(context, from, request, effects);
            }
            Input::Asked { from, .. } => {
                effects.push(Effect::Refuse { to: from, status: 404, reason: NO_ROUTE });
            }
            Input::Answered { call, answer } => {
                if self.renewing.is_some_and(|(number, _)| number == call) {
                    self.renewed(context, answer, effects);
                } else if let Some(colo) = self.recalls.remove(&call)
                    && let (Some(Answer::CounterRecall(returned)), Giver::Permits(pool)) =
                        (answer, &mut self.giver)
                {
                    pool.returned(&colo, &returned, context.now);
                }
            }
            Input::Timer | Input::Global(_) => {}
            Input::Alarm => effects.push(Effect::AlarmDone),
        }
        self.give_up(context, effects);
        self.give(context, effects);
        if let Some(store) = self.giver.store(&mut self.writes, context.now)
            && self.may_write
        {
            // Before the answers, which may have to wait for it.
            effects.insert(begin, store);
        }
    }

    fn next_timer(&self) -> Option<u64> {
        let give_up_at = self.waiting.first().map(|waiting| waiting.give_up_at);
        let recalled_by = self.recalling.iter().map(|recalling| recalling.give_up_at).min();
        [give_up_at, recalled_by, self.writes.next()].into_iter().flatten().min()
    }
}
