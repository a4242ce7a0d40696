//! What a worker does after a response.

use super::{REPORT_DEADLINE_MS, Worker, WorkerContext, WorkerEffect, WorkerInput};
use crate::admission::{Clocked, PACE_MS, Whom};
use crate::history::Count;
use crate::machines::Call;
use crate::protocol::messages::{ReserveSessions, VERSION, WorkerReport, colo_object};
use crate::protocol::{Answer, Request};

/// How often one request tries to report: every second, while the platform lets it go on.
const REPORT_TRIES: u32 = 25;
/// The shortest time between two reports of one task, in milliseconds.
const LEAST_WAIT_MS: u64 = 50;
/// How often slots are asked for, for sessions renewed in their last moment, until the pool answers.
const RESERVE_TRIES: u32 = 3;

/// Something that goes on after a response. See [the module](super).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Task {
    work: Work,
    tries: u32,
    /// Since when its request is here, by the worker's clock.
    began: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    /// Reports after some milliseconds, and again until everything noted meanwhile has been reported.
    Report { wait: u64 },
    /// Reserves slots at the pool for sessions renewed in their last moment. `sent`: how many the call names.
    Reserve { sent: usize },
    /// Asks the data center for updates.
    Refresh,
    /// Tells the Counter that visitors wait without asking it.
    GiveBack,
}

impl Task {
    pub(super) fn report(wait: u64, began: u64) -> Self {
        Self { work: Work::Report { wait }, tries: 0, began }
    }

    pub(super) fn reserve() -> Self {
        Self { work: Work::Reserve { sent: 0 }, tries: 0, began: 0 }
    }

    pub(super) fn refresh(began: u64) -> Self {
        Self { work: Work::Refresh, tries: 0, began }
    }

    pub(super) fn give_back() -> Self {
        Self { work: Work::GiveBack, tries: 0, began: 0 }
    }

    /// Handles an input and adds effects.
    pub fn handle(
        &mut self,
        worker: &mut Worker,
        context: &mut WorkerContext<'_>,
        input: WorkerInput,
        effects: &mut Vec<WorkerEffect>,
    ) {
        let now = context.now;
        match (self.work, input) {
            (Work::Report { wait }, WorkerInput::Begin) if wait > 0 => {
                effects.push(WorkerEffect::Sleep { until: now + wait });
            }
            (Work::Report { .. }, WorkerInput::Begin | WorkerInput::Time) => {
                self.send_report(worker, context, effects);
            }
            (Work::Report { .. }, WorkerInput::Answered { answer, .. }) => {
                if let Some(Answer::DataCenterReport(answer)) = answer {
                    worker.outbox.answered(&answer);
                    if let Some(mut key) = answer.state {
                        let news = std::mem::take(&mut key.ended);
                        worker.refuse(&news.sessions, now);
                        worker.heard = news.heard;
                        worker.learn(Clocked { key: key.clone(), received_at: now }, now);
                        effects.push(WorkerEffect::WriteCache(Box::new(key)));
                    }
                } else {
                    worker.outbox.failed();
                }
                self.go_on_reporting(worker, LEAST_WAIT_MS, now, effects);
            }
            (Work::Reserve { sent }, WorkerInput::Answered { answer: Some(_), .. }) => {
                worker.reservations.drain(..sent.min(worker.reservations.len()));
                self.tries = 0;
                effects.push(WorkerEffect::Sleep { until: now + PACE_MS });
            }
            (Work::Reserve { .. }, _) => self.send_reservations(worker, now, effects),
            (Work::GiveBack, WorkerInput::Begin) => {
                effects.push(worker.take_call(0, Whom::Counter, &[], now));
            }
            // What it says of its level it said before it gave back.
            (Work::GiveBack, _) => effects.push(WorkerEffect::End),
            (Work::Refresh, WorkerInput::Begin) => {
                effects.push(worker.state_call(0, REPORT_DEADLINE_MS, now));
            }
            (Work::Refresh, WorkerInput::Answered { answer, .. }) => {
                let answered = worker.learn_answer(answer, now, effects);
                worker.controller.end_refresh(answered, now);
                // What was noted for later is due now, if an operator has begun to look.
                self.go_on_reporting(worker, 0, now, effects);
            }
            _ => {}
        }
    }

    fn send_report(
        &mut self,
        worker: &mut Worker,
        context: &mut WorkerContext<'_>,
        effects: &mut Vec<WorkerEffect>,
    ) {
        let time = worker.time(context.now);
        // Else an earlier report has taken it all along. A failed one is repeated by this request for as long as it may
        // live, then by the next visitor's.
        let is_mine = worker.outbox.is_due(time) && !worker.outbox.is_taken_over(self.began);
        if self.tries >= REPORT_TRIES || !is_mine {
            effects.push(WorkerEffect::End);
            return;
        }
        self.tries += 1;
        let workers = worker.controller.state().map_or(1, |state| state.key.colo_workers);
        let (origin, heard) = (context.origin.report(workers), worker.heard);
        let judged = origin.as_ref().and_then(|_| context.origin.judged());
        let report = WorkerReport { origin, heard, judged, ..worker.outbox.report(time) };
        effects.push(WorkerEffect::Call(Call {
            number: 0,
            name: colo_object(&worker.deployed.name, &worker.colo),
            request: Request::DataCenterReport(Box::new(report)),
            deadline_ms: REPORT_DEADLINE_MS,
        }));
    }

    fn go_on_reporting(
        &mut self,
        worker: &mut Worker,
        least_wait: u64,
        now: u64,
        effects: &mut Vec<WorkerEffect>,
    ) {
        let time = worker.time(now);
        if let Some(wait) = worker.outbox.announce(self.began, time) {
            self.work = Work::Report { wait };
            effects.push(WorkerEffect::Sleep { until: now + wait.max(least_wait) });
        } else {
            effects.push(WorkerEffect::End);
        }
    }

    fn send_reservations(&mut self, worker: &mut Worker, now: u64, effects: &mut Vec<WorkerEffect>) {
        if self.tries >= RESERVE_TRIES {
            worker.reservations.clear();
        }
        if worker.reservations.is_empty() {
            worker.reserving_until = 0;
            effects.push(WorkerEffect::End);
            return;
        }
        let ids = worker.reservations.clone();
        self.work = Work::Reserve { sent: ids.len() };
        self.tries += 1;
        worker.reserving_until = now + worker.deadline_ms + PACE_MS;
        worker.outbox.count(Count::AnywhereCalls);
        effects.push(WorkerEffect::Call(Call {
            number: u64::from(self.tries),
            name: worker.deployed.name.clone(),
            request: Request::AnywhereReserve(Box::new(ReserveSessions {
                v: VERSION,
                sessions: ids.len() as u32,
                ids,
            })),
            deadline_ms: worker.deadline_ms,
        }));
    }
}
