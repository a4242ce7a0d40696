//! Pages that visitors ask for, on their way to the simulated origin and back.

use anteroom::origin::Passage;
use anteroom::protocol::messages::OriginStatus;
use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::origin::{Origin, OriginAnswer, Setup};

/// Points of the series are so far apart, in milliseconds.
const POINT_MS: u64 = 5_000;

/// A page on its way.
#[derive(Debug, Clone, Copy)]
pub struct Page {
    /// Who wants it.
    pub visitor: u32,
    /// By way of which colo.
    pub colo: u16,
    /// By way of which worker.
    pub worker: u16,
    /// What the worker's guard knows it by.
    pub passage: Passage,
    /// When it was sent to the origin, or stood in line for it.
    pub at: u64,
}

/// What passed to the origin in a part of the time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Point {
    /// The end of it, in seconds.
    pub second: u64,
    /// Requests sent.
    pub asked: u64,
    /// Pages that came while somebody waited for them.
    pub served: u64,
    /// Errors, refusals of the origin, broken connections.
    pub failed: u64,
    /// Requests for which nobody waited long enough.
    pub late: u64,
    /// Work that the origin did for nobody.
    pub wasted: u64,
    /// Requests that the guard did not send.
    pub refused: u64,
    /// Requests at the origin at the end of it.
    pub at_origin: u64,
    /// Active users at the end of it.
    pub active: u64,
    /// The limits in force at the end of it, as Global knows them.
    pub total_active_users: u32,
    /// See `total_active_users`.
    pub new_users_per_minute: u32,
    /// Whether new users wait because the origin is unhealthy.
    pub held: bool,
}

/// What passed to the origin in all.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Passed {
    /// Every five seconds.
    pub points: Vec<Point>,
    /// The most requests that were at the origin at once.
    pub most_at_origin: u64,
}

impl Passed {
    /// What happened between two seconds, added up; limits and the like are those of the last point.
    pub fn between(&self, from: u64, until: u64) -> Point {
        let mut sum = Point::default();
        for point in self.points.iter().filter(|point| point.second > from && point.second <= until) {
            sum = Point {
                asked: sum.asked + point.asked,
                served: sum.served + point.served,
                failed: sum.failed + point.failed,
                late: sum.late + point.late,
                wasted: sum.wasted + point.wasted,
                refused: sum.refused + point.refused,
                ..*point
            };
        }
        sum
    }
}

/// The origin and who waits for it.
#[derive(Debug)]
pub struct Pages {
    origin: Origin,
    next: u64,
    sent: FxHashMap<u64, Page>,
    line: FxHashMap<u64, Page>,
    /// When the planet will look for answers next.
    planned: Option<u64>,
    /// What happens now.
    pub point: Point,
    passed: Passed,
}

impl Pages {
    /// An idle origin.
    pub fn new(setup: &Setup, seed: u64) -> Self {
        Self {
            origin: Origin::new(setup.clone(), seed),
            next: 0,
            sent: FxHashMap::default(),
            line: FxHashMap::default(),
            planned: None,
            point: Point::default(),
            passed: Passed::default(),
        }
    }

    /// Sends a request. Times are in milliseconds since the beginning.
    pub fn send(&mut self, page: Page, now: u64) -> u64 {
        self.next += 1;
        self.sent.insert(self.next, page);
        self.origin.arrive(self.next, now);
        self.point.asked += 1;
        self.passed.most_at_origin = self.passed.most_at_origin.max(self.origin.in_flight() as u64);
        self.next
    }

    /// Whether the origin answers anybody well.
    pub fn is_up(&self, now: u64) -> bool {
        self.origin.is_up(now)
    }

    /// Keeps a request that stands in line.
    pub fn take(&mut self, page: Page) -> u64 {
        self.next += 1;
        self.line.insert(self.next, page);
        self.next
    }

    /// A request that stands in line.
    pub fn in_line(&self, number: u64) -> Option<Page> {
        self.line.get(&number).copied()
    }

    /// A request stands in line no more.
    pub fn leave(&mut self, number: u64) {
        self.line.remove(&number);
    }

    /// When to look for answers, unless that is planned already.
    pub fn due(&mut self, now: u64) -> Option<u64> {
        let due = self.origin.due()?.max(now);
        if self.planned.is_some_and(|planned| planned <= due) {
            return None;
        }
        self.planned = Some(due);
        Some(due)
    }

    /// The answers that are there, with whom they are for.
    pub fn answers(&mut self, now: u64) -> Vec<(Page, OriginAnswer)> {
        let mut came = Vec::new();
        if self.planned != Some(now) {
            // An earlier look has been planned since.
            return came;
        }
        self.planned = None;
        for (number, answer) in self.origin.answers(now) {
            let Some(page) = self.sent.remove(&number) else {
                self.point.wasted += 1;
                continue;
            };
            if answer == OriginAnswer::Served {
                self.point.served += 1;
            } else {
                self.point.failed += 1;
            }
            came.push((page, answer));
        }
        came
    }

    /// Nobody waits for an answer any longer, if it has not come.
    pub fn give_up(&mut self, number: u64) -> Option<Page> {
        let page = self.sent.remove(&number)?;
        self.point.late += 1;
        Some(page)
    }

    /// Whether the next point is due.
    pub fn is_due(&self, now: u64) -> bool {
        now / 1_000 >= self.passed.points.last().map_or(0, |point| point.second) + POINT_MS / 1_000
    }

    /// Ends a point.
    pub fn sample(&mut self, now: u64, status: &OriginStatus, active: u64) {
        let point = Point {
            second: now / 1_000,
            at_origin: self.origin.in_flight() as u64,
            active,
            total_active_users: status.limits.total_active_users,
            new_users_per_minute: status.limits.new_users_per_minute,
            held: status.held,
            ..std::mem::take(&mut self.point)
        };
        self.passed.points.push(point);
    }

    /// What passed.
    pub fn finish(self) -> Passed {
        self.passed
    }
}
