//! What goes wrong, and what an operator does.

use std::rc::Rc;

use anteroom::protocol::Request;
use anteroom::protocol::messages::{OperatorAsk, VERSION};

use super::network::{Caller, Message};
use super::objects::{ANYWHERE, GLOBAL, counter_of, data_center_of};
use super::{Event, Planet};
use crate::scenario::Broken;

/// Time after which what an operator forbids is judged, in milliseconds: what was given before may be used for one second
/// more, and then it must be in force everywhere.
const IN_FORCE_MS: u64 = 2_000;
/// Retry interval of an operator whom nobody answers, in milliseconds.
const TRY_AGAIN_MS: u64 = 1_000;

impl Planet {
    pub(super) fn fault(&mut self, index: usize) {
        let fault = &self.scenario.faults[index];
        let until = self.now() + (fault.lasts * 1_000.0) as u64;
        let colo = (fault.colo % self.colos.len()) as u16;
        let station = match fault.what {
            Broken::Global => GLOBAL,
            Broken::Anywhere => ANYWHERE,
            Broken::Counter => counter_of(colo),
            Broken::DataCenter => data_center_of(colo),
            Broken::Colo => {
                self.colos[usize::from(colo)].dead = true;
                return;
            }
        };
        if fault.lasts > 0.0 {
            self.stations[usize::from(station)].out_until = until;
        } else {
            self.restart(station);
        }
    }

    /// An operator changes the room.
    pub(super) fn steer(&mut self, index: usize) {
        let now = self.now();
        if self.hangs(GLOBAL).is_some() {
            self.clockwork.at(now + TRY_AGAIN_MS, Event::Steer(index as u16));
            return;
        }
        let steer = &self.scenario.steering[index];
        let asked =
            OperatorAsk { v: VERSION, by: "operator".to_owned(), query: String::new(), body: steer.body() };
        let message =
            Message { from: Caller::Nobody, life: None, request: Request::GlobalSteer(Box::new(asked)) };
        // The scenario was checked.
        let done = self.steering.obey(&self.room, &steer.order(), "operator", now);
        let at = now + self.service_ms();
        self.clockwork.at(at, Event::Arrives { station: GLOBAL, message: Box::new(message) });
        if done.is_ok_and(|log| !log.is_empty()) {
            self.steered();
        }
    }

    fn steered(&mut self) {
        let now = self.now();
        let is = Rc::new(self.room.steered(&self.steering.overrides()));
        let was = std::mem::replace(&mut self.steered, Rc::clone(&is));
        let (before, limits) = (was.limits(), is.limits());
        let narrower = is.queue_all && !was.queue_all
            || was.suspended && !is.suspended
            || limits.total_active_users < before.total_active_users
            || limits.new_users_per_minute < before.new_users_per_minute;
        self.measure.steered(is.queue_all && !is.suspended, now);
        if narrower {
            self.clockwork.at(now + IN_FORCE_MS, Event::InForce);
        } else {
            self.in_force();
        }
    }

    /// By now the newest order counts.
    pub(super) fn in_force(&mut self) {
        let now = self.now();
        self.measure.room_is(self.steered.at(now).0, now);
    }
}
