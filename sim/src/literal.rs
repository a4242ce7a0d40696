//! The 2023 article's counters as its text reads, to show what the two repairs of `counters` are worth.
//!
//! The slots of a minute are `min(total_active_users − active users, new_users_per_minute)`, divided by the traffic of a
//! settled minute. A counter starts every minute at 0 and goes up with every ask, also with one that is refused. So whoever
//! was let in this minute is taken off twice, as an active user and by the counter, and refused asks use numbers up. How it
//! reads, not what anybody runs: the article says neither how `new_users_per_minute` is counted nor who goes first.
//! Here nobody may ask while as many users are ahead as there are slots.
//!
//! For the simulator only: no room can be set to it.

use anteroom::admission::{AdmissionController, NumberAsk, Outcome, Step, Whom, minute_of};
use anteroom::machines::{Context, Effect, Input, ObjectMachine};
use anteroom::protocol::messages::{Given, Taken, VERSION};
use anteroom::protocol::{Answer, Request};
use anteroom::room::Room;
use anteroom::ticket::Standing;

/// Counts the asks of a minute: a colo's Counter, or Anywhere.
#[derive(Debug, Clone, Copy, Default)]
pub struct Attempts {
    minute: u32,
    asks: i64,
}

impl Attempts {
    /// Answers an ask with the counter's value, and counts it, whatever comes of it.
    pub fn take(&mut self, slots: i64, now: u64) -> Outcome {
        let minute = minute_of(now);
        if minute != self.minute {
            *self = Self { minute, asks: 0 };
        }
        let number = self.asks;
        self.asks += 1;
        if number < slots {
            Outcome::Given { minute, number: number as u64 }
        } else {
            // The worker compares numbers itself and remembers no refusal.
            Outcome::Refused { minute, limit: slots, wait_ms: 0 }
        }
    }
}

impl ObjectMachine for Attempts {
    fn handle(&mut self, context: &Context<'_>, input: Input, effects: &mut Vec<Effect>) {
        let Input::Asked { from, request } = input else { return };
        let now = context.now;
        let mut taken = |asks: &[NumberAsk], slots: fn(&NumberAsk) -> i64| {
            let outcomes = asks.iter().map(|ask| self.take(slots(ask), now)).collect();
            Box::new(Taken { v: VERSION, outcomes, ..Taken::default() })
        };
        let answer = match request {
            Request::CounterTake(asked) => Answer::CounterTake(taken(&asked.asks, |ask| ask.owned)),
            Request::AnywhereTake(asked) => Answer::AnywhereTake(taken(&asked.asks, |ask| ask.limit)),
            Request::CounterGiven(_) => {
                let (minute, none) = (minute_of(now), Some(0));
                let given = Given { v: VERSION, minute, given: none, previous: none, assumed: 0 };
                Answer::CounterGiven(Box::new(given))
            }
            _ => return,
        };
        effects.push(Effect::Reply { to: from, answer });
    }

    fn next_timer(&self) -> Option<u64> {
        None
    }
}

/// The first step for a request. An ask carries the colo's slots in `owned` and Anywhere's in `limit`.
pub fn judge(
    controller: &mut AdmissionController,
    room: &Room,
    standing: &Standing,
    id: u64,
    now: u64,
) -> Step {
    let state = controller.state().map(|state| (&state.key, state.global_time(now)));
    let minute = minute_of(now);
    let waiting_in = match standing {
        Standing::Active(_) => return Step::Pass,
        Standing::Waiting(ticket) => Some(ticket.bucket),
        Standing::New => None,
    };
    let (whole, rate) = (i64::from(room.total_active_users), i64::from(room.new_users_per_minute));
    let (colo, anywhere) = match state {
        None => (0, whole.min(rate)),
        Some((key, time)) => {
            let slots = (whole - key.active_at(time)).clamp(0, rate);
            let ahead = waiting_in.map_or_else(|| key.waiting_users(), |bucket| key.ahead_of(bucket));
            if ahead >= slots {
                return Step::Wait;
            }
            key.split_by_traffic(slots)
        }
    };
    let bucket = waiting_in.unwrap_or(minute);
    let waits = waiting_in.is_some();
    let ask = NumberAsk { id, bucket, waits, minute, limit: anywhere, owned: colo };
    Step::Ask(if colo > 0 { Whom::Counter } else { Whom::Anywhere }, ask)
}
