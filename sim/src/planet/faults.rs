//! What goes wrong, and what an operator does.

use std::rc::Rc;

use anteroom::protocol::Request;
use anteroom::protocol::messages::{OperatorAsk, VERSION};

use super::network::Caller;
use super::objects::{ANYWHERE, GLOBAL, counter_of, data_center_of};
use super::{Event, Planet};
use crate::measure::IN_FORCE_MS;
use crate::scenario::Broken;

/// Retry interval of an operator whose order was not carried out, in milliseconds.
const TRY_AGAIN_MS: u64 = 1_000;
/// Time after which an operator takes an order for lost, in milliseconds.
const ORDER_TIMEOUT_MS: u64 = 2_000;
/// Time that a new version takes to be everywhere, in milliseconds.
const DEPLOY_MS: u64 = 5_000;

impl Planet {
    pub(super) fn fault(&mut self, index: usize) {
        let fault = &self.scenario.faults[index];
        let until = self.now() + (fault.lasts * 1_000.0) as u64;
        let (overlaps, forgets) = ((fault.overlaps * 1_000.0) as u64, fault.forgets);
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
            Broken::Clock => {
                let jumps = fault.jumps_ms;
                self.colos[usize::from(colo)].skew += jumps;
                for station in [counter_of(colo), data_center_of(colo)] {
                    self.stations[usize::from(station)].skew += jumps;
                }
                return;
            }
            Broken::Deploy => return self.deploy(),
        };
        if until > self.now() {
            self.stations[usize::from(station)].out_until = until;
            // What waits longer than a refresh for this object is not known to wait.
            let tells = matches!(fault.what, Broken::Global | Broken::DataCenter);
            if tells && until - self.now() >= self.room.refresh_ms() {
                self.measure.unheard(until);
            }
            return;
        }
        if forgets {
            self.forget_stored(station);
        }
        if overlaps > 0 {
            self.overlap(station, overlaps);
        } else {
            self.restart(station);
        }
    }

    fn deploy(&mut self) {
        let now = self.now();
        self.deploys_old = self.setup.begins_old && !self.deploys_old;
        for station in 0..self.objects() {
            let at = now + self.chance.u64(0..DEPLOY_MS);
            self.clockwork.at(at, Event::Restart(station));
        }
        for colo in 0..self.colos.len() as u16 {
            let at = now + self.chance.u64(0..DEPLOY_MS);
            self.clockwork.at(at, Event::NewIsolates(colo));
        }
    }

    /// How often any object restarts for no reason, and how often one more Counter does, per hour.
    fn mishaps_per_hour(&self) -> (f64, f64) {
        let (objects, counters) = (f64::from(self.objects()), self.colos.len() as f64);
        (objects * self.setup.restarts_per_hour, counters * self.setup.counter_restarts_per_hour)
    }

    pub(super) fn plan_mishap(&mut self) {
        let (any, counters) = self.mishaps_per_hour();
        if any + counters > 0.0 {
            let gap = -(1.0 - self.chance.f64()).ln() * 3_600_000.0 / (any + counters);
            self.clockwork.at(self.now() + gap as u64, Event::Mishap);
        }
    }

    /// Some object restarts.
    pub(super) fn mishap(&mut self) {
        let (any, counters) = self.mishaps_per_hour();
        let station = if self.chance.f64() * (any + counters) < any {
            self.chance.u16(0..self.objects())
        } else {
            counter_of(self.chance.u16(0..self.colos.len() as u16))
        };
        self.restart(station);
        self.plan_mishap();
    }

    /// An operator wants to change the room. What comes meanwhile waits until this order was carried out.
    pub(super) fn steer(&mut self, index: usize) {
        self.orders.push_back(index);
        if self.orders.len() == 1 {
            self.order();
        }
    }

    /// The operator gives the next order, or the same once more.
    pub(super) fn order(&mut self) {
        let Some(index) = self.orders.front() else { return };
        let now = self.now();
        let steer = &self.scenario.steering[*index];
        let asked =
            OperatorAsk { v: VERSION, by: "operator".to_owned(), query: String::new(), body: steer.body() };
        let before = self.steering.clone();
        // The scenario was checked.
        let done = self.steering.obey(&self.room, &steer.order(), "operator", now);
        self.ordered = Some((now + ORDER_TIMEOUT_MS, before));
        if done.is_ok_and(|log| !log.is_empty()) {
            self.steered();
        }
        self.call(Caller::Operator, GLOBAL, Request::GlobalSteer(Box::new(asked)), ORDER_TIMEOUT_MS);
    }

    /// Whether the operator still waits for what was to be answered by then.
    pub(super) fn operator_waits(&self, until: u64) -> bool {
        self.ordered.as_ref().is_some_and(|(patient_until, _)| *patient_until == until)
    }

    /// What was not carried out is ordered again, and in force from then on.
    pub(super) fn operator_hears(&mut self, is_carried_out: bool) {
        // What comes too late says nothing of the order that was given since.
        let Some((_, before)) = self.ordered.take() else { return };
        if is_carried_out {
            self.orders.pop_front();
            self.order();
            return;
        }
        self.steering = before;
        self.steered();
        self.clockwork.at(self.now() + TRY_AGAIN_MS, Event::Order);
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
