//! `GLOBAL`: the room as all colos see it. Routes: `POST /push`, `POST /state`,
//! `POST /origin-health`, `POST /origin`, `POST /news`. Its one alarm serves several jobs: `Job`.

mod alarm;
mod deliveries;

use std::cell::RefCell;
use std::rc::Rc;

use worker::{DurableObject, Env, ListOptions, Request, Response, Result, State, durable_object};

use super::{Home, load, no_such_route, store, stored_value};
use crate::config::Phase;
use crate::edge::calls::{answer, message};
use crate::edge::clock::now;
use crate::edge::settings::Settings;
use crate::news::Look;
use crate::pipeline::messages::{
    ColoReport, NEWS, ORIGIN, ORIGIN_HEALTH, OriginHealth, PUSH, STATE, StateAnswer, StateRequest, VERSION,
};
use crate::pipeline::{self, GlobalMeta, OriginMemory};
use crate::queue::{StateKey, minute_of};
use alarm::{Alarm, Job};
use deliveries::Newsroom;

/// The storage key of what is not a colo's report.
const META: &str = "meta";
/// The storage key of what is known of the origin.
const ORIGIN_KEY: &str = "origin";
/// Storage keys of the colos' reports begin so.
const COLO: &str = "colo/";
/// Reports are stored so long after they came, in milliseconds: live colos send newer ones before that is needed.
const STORE_MS: u64 = 5_000;

/// Keeps every colo's last report and answers with what they say together.
#[durable_object(alarm)]
pub struct Global {
    state: State,
    env: Env,
    memory: Rc<RefCell<Option<pipeline::Global>>>,
    alarm: Rc<Alarm>,
    newsroom: Rc<Newsroom>,
}

/// A panic in one event leaves at most one report half merged; the colo's next one takes its place.
impl std::panic::RefUnwindSafe for Global {}

impl DurableObject for Global {
    fn new(state: State, env: Env) -> Self {
        let memory = Rc::new(RefCell::new(None));
        let alarm = Rc::new(Alarm::default());
        let (loaded, storage) = (Rc::clone(&memory), state.storage());
        let pending = Rc::clone(&alarm);
        let newsroom = Newsroom::restore(&state, &env, &alarm);
        let home = Home::of(&state, &env);
        let _init = state.block_concurrency_while(async move {
            pending.recall(&storage).await?;
            let meta: Option<GlobalMeta> = load(&storage, META).await?;
            let stored = storage.list_with_options(ListOptions::new().prefix(COLO)).await?;
            let mut reports: Vec<ColoReport> = Vec::new();
            stored.for_each(&mut |report, _| reports.extend(stored_value::<ColoReport>(&report)));
            let origin: Option<OriginMemory> = load(&storage, ORIGIN_KEY).await?;
            if let Ok(home) = home {
                let mut global = pipeline::Global::restore(&home.room, meta, reports, now());
                global.recall(origin.unwrap_or_default());
                *loaded.borrow_mut() = Some(global);
            }
            if pending.has_plans() {
                pending.set(now(), &storage).await?;
            }
            Ok(())
        });
        Self { state, env, memory, alarm, newsroom }
    }

    async fn fetch(&self, mut request: Request) -> Result<Response> {
        match request.path().as_str() {
            PUSH => {
                let report: ColoReport = message(&mut request).await?;
                let home = Home::of(&self.state, &self.env)?;
                let time = now();
                let colo = report.colo.clone();
                let taken = self
                    .memory
                    .borrow_mut()
                    .as_mut()
                    .is_some_and(|memory| memory.receive(&home.room, report, time));
                if !taken {
                    return Response::error("there is no room for another colo", 507);
                }
                self.alarm.wake(Job::Store, time + STORE_MS, time, &self.state.storage()).await?;
                self.answer(&home, Some(&colo), minute_of(time)).await
            }
            STATE => {
                let asked: StateRequest = message(&mut request).await?;
                let home = Home::of(&self.state, &self.env)?;
                if let (Some(given), Some(memory)) = (asked.given, self.memory.borrow_mut().as_mut()) {
                    memory.anywhere_gave(given);
                }
                self.answer(&home, None, asked.minute).await
            }
            ORIGIN_HEALTH => {
                let told: OriginHealth = message(&mut request).await?;
                let home = Home::of(&self.state, &self.env)?;
                let news = self
                    .memory
                    .borrow_mut()
                    .as_mut()
                    .is_some_and(|memory| memory.origin_health(&home.room, &told, now()));
                if news {
                    self.store_origin().await?;
                    self.look_for_news(&home).await?;
                }
                answer(&())
            }
            ORIGIN => {
                let home = Home::of(&self.state, &self.env)?;
                let memory = self.memory.borrow();
                let Some(memory) = memory.as_ref() else { return Response::error("not ready", 503) };
                answer(&memory.origin_status(&home.room, now()))
            }
            NEWS => {
                let wanted: String = message(&mut request).await?;
                answer(&self.newsroom.show(&wanted)?)
            }
            path => no_such_route(path),
        }
    }

    async fn alarm(&self) -> Result<Response> {
        let time = now();
        self.alarm.rang();
        for job in Job::ALL {
            if !self.alarm.is_due(job, time) {
                continue;
            }
            let next = match job {
                Job::Store => self.store_reports().await?,
                Job::News => self.look_without_reports(time).await?,
                Job::Deliver => self.deliver(time)?,
            };
            if let Some(next) = next {
                self.alarm.plan(job, next);
            }
        }
        self.alarm.set(now(), &self.state.storage()).await?;
        Response::empty()
    }
}

impl Global {
    /// Stores what the colos have reported since the last time. Nothing is left for later.
    async fn store_reports(&self) -> Result<Option<u64>> {
        let storage = self.state.storage();
        let (reports, deleted) = {
            let mut memory = self.memory.borrow_mut();
            let Some(memory) = memory.as_mut() else { return Ok(None) };
            (memory.reports_to_store(), memory.reports_to_delete())
        };
        for report in reports {
            store(&storage, &format!("{COLO}{}", report.colo), &report).await?;
            if let Some(memory) = self.memory.borrow_mut().as_mut() {
                memory.report_stored(&report.colo, report.sequence);
            }
        }
        self.store_origin().await?;
        for colo in deleted {
            storage.delete(&format!("{COLO}{colo}")).await?;
        }
        Ok(None)
    }

    /// Looks for news though nothing is reported: a queue that is forgotten is over too.
    async fn look_without_reports(&self, time: u64) -> Result<Option<u64>> {
        let Ok(home) = Home::of(&self.state, &self.env) else { return Ok(None) };
        if self.newsroom.is_due_without_reports(time) {
            self.look_for_news(&home).await?;
        }
        Ok(self.newsroom.look_again_at())
    }

    /// Looks for news now.
    async fn look_for_news(&self, home: &Home) -> Result<()> {
        let time = now();
        let key = self
            .memory
            .borrow_mut()
            .as_mut()
            .map(|memory| memory.state(&home.room, None, minute_of(time), time));
        if let Some(key) = key {
            self.look(home, &key, time).await?;
        }
        Ok(())
    }

    /// Looks for news in a state that has just been made.
    async fn look(&self, home: &Home, key: &StateKey, time: u64) -> Result<()> {
        let origin = self.memory.borrow().as_ref().map(|memory| memory.origin_news(&home.room));
        let settings = Settings::of(&self.env);
        let phase = settings.rooms.get(&home.room.name).map_or(Phase::None, |room| room.at(time).1);
        let look = Look::of(&home.room, phase, key, origin.unwrap_or_default(), time);
        self.newsroom.look(look).await?;
        Ok(())
    }

    /// Sends what is due. Nothing waits for those who get it.
    fn deliver(&self, time: u64) -> Result<Option<u64>> {
        for webhook in self.newsroom.due(time)? {
            self.state.wait_until(Rc::clone(&self.newsroom).send_to(webhook));
        }
        self.newsroom.next_attempt()
    }

    async fn store_origin(&self) -> Result<()> {
        let origin = self.memory.borrow_mut().as_mut().and_then(pipeline::Global::origin_to_store);
        if let Some(origin) = origin {
            store(&self.state.storage(), ORIGIN_KEY, &origin).await?;
        }
        Ok(())
    }

    /// The state key for a colo, or for Anywhere and operators.
    async fn answer(&self, home: &Home, colo: Option<&str>, minute: u32) -> Result<Response> {
        let time = now();
        let made = self
            .memory
            .borrow_mut()
            .as_mut()
            .map(|memory| (memory.state(&home.room, colo, minute, time), memory.meta_to_store()));
        let Some((key, meta)) = made else { return Response::error("not ready", 503) };
        if let Some(meta) = meta {
            // Once a minute: who owns which number must outlive this instance before anyone hears of it.
            store(&self.state.storage(), META, &meta).await?;
            if let Some(memory) = self.memory.borrow_mut().as_mut() {
                memory.meta_stored();
            }
        }
        if self.newsroom.is_due(time) {
            self.look(home, &key, time).await?;
        }
        answer(&StateAnswer { v: VERSION, state: Some(key) })
    }
}
