//! Pages on their way to the origin and back, where the scenario has one.

use anteroom::origin::{Arrival, Reply, Turn};

use super::visitors::{Attack, DAWDLES_MS, Place};
use super::{Event, Planet, START};
use crate::origin::OriginAnswer;
use crate::pages::Page;

impl Planet {
    /// A page is asked for at the origin; the next one follows when it has come.
    pub(super) fn page(&mut self, colo: u16, worker: u16, visitor: u32) {
        let (now, own) = (self.now(), self.local((colo, worker)));
        let Some(pages) = &mut self.pages else { return self.next_page(visitor) };
        self.visitors[visitor as usize].requests += 1;
        let origin = &mut self.colos[usize::from(colo)].workers[usize::from(worker)].origin;
        let page = |passage| Page { visitor, colo, worker, passage, at: now };
        match origin.arrive(visitor.into(), false, own) {
            Arrival::Go(passage) => match self.visitors[visitor as usize].attack {
                Some(Attack::Dawdles) if pages.is_up(now - START) => {
                    self.page_came(Page { at: now - DAWDLES_MS, ..page(passage) }, Reply::Status(200));
                }
                Some(Attack::Fails | Attack::Dawdles) => self.page_came(page(passage), Reply::Status(503)),
                _ => self.send_page(page(passage)),
            },
            Arrival::InLine(passage) => {
                let asks = now + origin.ask_after_ms(passage);
                let number = pages.take(page(passage));
                self.clockwork.at(asks, Event::Line(number));
            }
            Arrival::Refused => self.page_refused(visitor),
        }
    }

    fn send_page(&mut self, page: Page) {
        let now = self.now();
        let patience = (self.behaviour.page_patience_seconds * 1_000.0) as u64;
        let timeout =
            self.colos[usize::from(page.colo)].workers[usize::from(page.worker)].origin.timeout_ms();
        let Some(pages) = &mut self.pages else { return };
        let number = pages.send(Page { at: now, ..page }, now - START);
        let waits = timeout.map_or(patience, |timeout| timeout.min(patience));
        self.clockwork.at(now + waits, Event::PageLate(number));
        self.schedule_origin();
    }

    fn schedule_origin(&mut self) {
        let now = self.now();
        if let Some(due) = self.pages.as_mut().and_then(|pages| pages.due(now - START)) {
            self.clockwork.at(START + due, Event::Origin);
        }
    }

    pub(super) fn origin_answers(&mut self) {
        let now = self.now();
        let Some(pages) = &mut self.pages else { return };
        for (page, answer) in pages.answers(now - START) {
            let reply = match answer {
                OriginAnswer::Served => Reply::Status(200),
                OriginAnswer::Error => Reply::Status(500),
                OriginAnswer::Overloaded => Reply::Status(503),
                OriginAnswer::Unreachable => Reply::Unreachable,
            };
            self.page_came(page, reply);
        }
        self.schedule_origin();
    }

    fn page_came(&mut self, page: Page, reply: Reply) {
        let (now, own) = (self.now(), self.local((page.colo, page.worker)));
        let origin = &mut self.worker(page.colo, page.worker).origin;
        if origin.came_back(page.passage, reply, now - page.at, own) {
            self.with_worker((page.colo, page.worker), |worker, now, effects| {
                worker.note_trouble(now, effects);
            });
        }
        let here = &mut self.visitors[page.visitor as usize];
        here.requests -= 1;
        let asks_again = here.attack.and_then(Attack::asks_again_ms);
        if let Some(again) = asks_again.filter(|again| now + again < here.visit_until) {
            self.visit_at(page.visitor, now + again);
        } else if reply.is_trouble() {
            self.page_failed(page.visitor);
        } else {
            here.failed = 0;
            self.next_page(page.visitor);
        }
    }

    /// The visitor, or the worker's guard, does not wait any longer.
    pub(super) fn page_late(&mut self, number: u64) {
        let now = self.now();
        let Some(page) = self.pages.as_mut().and_then(|pages| pages.give_up(number)) else { return };
        let origin = &self.colos[usize::from(page.colo)].workers[usize::from(page.worker)].origin;
        if origin.timeout_ms().is_some_and(|timeout| now >= page.at + timeout) {
            self.page_came(page, Reply::TimedOut);
            return;
        }
        // Nobody tells the worker: the platform drops the request together with its visitor.
        self.visitors[page.visitor as usize].requests -= 1;
        self.page_failed(page.visitor);
    }

    fn page_refused(&mut self, visitor: u32) {
        let now = self.now();
        if let Some(pages) = &mut self.pages {
            pages.point.refused += 1;
        }
        self.visitors[visitor as usize].requests -= 1;
        // The page tries again by itself.
        let again = self.rng.u64(2_000..6_000);
        self.visit_at(visitor, now + again);
    }

    fn page_failed(&mut self, visitor: u32) {
        let now = self.now();
        let again = self.rng.u64(3_000..10_000);
        let here = &mut self.visitors[visitor as usize];
        here.failed = here.failed.saturating_add(1);
        if u32::from(here.failed) < self.behaviour.page_tries {
            self.visit_at(visitor, now + again);
        } else {
            here.place = Place::Gone;
            self.release(visitor);
        }
    }

    pub(super) fn line(&mut self, number: u64) {
        let now = self.now();
        let Some(page) = self.pages.as_mut().and_then(|pages| pages.in_line(number)) else { return };
        let own = self.local((page.colo, page.worker));
        let origin = &mut self.colos[usize::from(page.colo)].workers[usize::from(page.worker)].origin;
        match origin.turn(page.passage, own) {
            Turn::Later => {
                let asks = now + origin.ask_after_ms(page.passage).max(1);
                self.clockwork.at(asks, Event::Line(number));
            }
            turn => {
                if let Some(pages) = &mut self.pages {
                    pages.leave(number);
                }
                if turn == Turn::Go { self.send_page(page) } else { self.page_refused(page.visitor) }
            }
        }
    }

    pub(super) fn sample_origin(&mut self) {
        let (now, active) = (self.now(), self.measure.active());
        if self.pages.is_none() {
            return;
        }
        let room = self.steered.at(now).0;
        let status = self.global().map(|global| global.origin_status(room, now));
        if let (Some(pages), Some(status)) = (&mut self.pages, status) {
            self.measure.follows(status.limits);
            if pages.is_due(now - START) {
                pages.sample(now - START, &status, active);
            }
        }
    }
}
