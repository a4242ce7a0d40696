//! `GLOBAL`: the room as all colos see it. Routes: `POST /push`, `POST /state`,
//! `POST /origin-health`, `POST /origin`, and for operators `POST /look`, `POST /steer`, `POST /audit`, `POST /news`,
//! `POST /history`, `POST /totals` and the WebSocket `/live`. Its one alarm serves several jobs: `Job`.

mod alarm;
mod deliveries;
mod history;
mod live;
mod steering;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use worker::{
    DurableObject, Env, ListOptions, Request, Response, Result, State, WebSocket, WebSocketIncomingMessage,
    durable_object,
};

use super::{Home, load, no_such_route, store, stored_value};
use crate::admission::{StateKey, minute_of};
use crate::counts::{self, GlobalMeta, OriginMemory};
use crate::edge::calls::{answer, message};
use crate::edge::clock::now;
use crate::edge::platform::log_error;
use crate::edge::settings::Settings;
use crate::history::{HISTORY, HistoryAsk, TOTALS};
use crate::notifications::Observation;
use crate::protocol::messages::{
    AUDIT, ColoReport, LIVE, LOOK, NEWS, ORIGIN, ORIGIN_HEALTH, OperatorAnswer, OperatorAsk, OriginHealth,
    PUSH, STATE, STEER, StateAnswer, StateRequest, UNWATCHED, VERSION,
};
use crate::steering::Overrides;
use alarm::{Alarm, Job};
use deliveries::Newsroom;
use history::History;

/// The storage key of what is not a colo's report.
const META: &str = "meta";
/// The storage key of what is known of the origin.
const ORIGIN_KEY: &str = "origin";
/// Storage keys of the colos' reports begin so.
const COLO: &str = "colo/";
/// A job that has failed is tried again after so long, in milliseconds.
const AGAIN_MS: u64 = 5_000;
/// Reports are stored so long after they came, in milliseconds: live colos send newer ones before that is needed.
const STORE_MS: u64 = 5_000;

/// Keeps every colo's last report and answers with what they say together.
#[durable_object]
pub struct Global {
    state: State,
    env: Env,
    memory: Rc<RefCell<Option<counts::Global>>>,
    alarm: Rc<Alarm>,
    newsroom: Rc<Newsroom>,
    /// When an operator last asked for the status.
    looked_at: Cell<u64>,
    /// When the status was last sent to those who look.
    sent_at: Cell<u64>,
    history: History,
}

/// A panic in one event leaves at most one report half merged; the colo's next one takes its place.
impl std::panic::RefUnwindSafe for Global {}

impl DurableObject for Global {
    fn new(state: State, env: Env) -> Self {
        let memory = Rc::new(RefCell::new(None));
        let alarm = Rc::new(Alarm::default());
        let (loaded, storage) = (Rc::clone(&memory), state.storage());
        let pending = Rc::clone(&alarm);
        let history = History::new(&state);
        let last = history.last();
        let newsroom = Newsroom::restore(&state, &env, &alarm);
        let home = Home::of(&state, &env);
        if home.as_ref().is_ok_and(|home| home.deployed().is_some_and(|room| !room.events.is_empty())) {
            // What the alarm was set for is forgotten: it may have been one of them.
            alarm.plan(Job::Notify, 0);
        }
        let _init = state.block_concurrency_while(async move {
            pending.recall(&storage).await?;
            let steering = steering::load(&storage).await?;
            let meta: Option<GlobalMeta> = load(&storage, META).await?;
            let stored = storage.list_with_options(ListOptions::new().prefix(COLO)).await?;
            let mut reports: Vec<ColoReport> = Vec::new();
            stored.for_each(&mut |report, _| reports.extend(stored_value::<ColoReport>(&report)));
            let origin: Option<OriginMemory> = load(&storage, ORIGIN_KEY).await?;
            if let Ok(home) = home {
                let room = home.deployed().map(|room| room.steered(&steering.overrides()));
                let time = now();
                let room = room.as_ref().map_or(&home.room, |room| room.at(time).0);
                let mut global = counts::Global::restore(room, meta, reports, time);
                global.recall_history(last);
                if let Some(at) = global.next_record(room, time) {
                    pending.plan(Job::Record, at);
                }
                global.recall(origin.unwrap_or_default());
                global.recall_steering(steering);
                *loaded.borrow_mut() = Some(global);
            }
            if pending.has_plans() {
                pending.set(now(), &storage).await?;
            }
            Ok(())
        });
        live::answer_pings(&state);
        let (looked_at, sent_at) = (Cell::new(0), Cell::new(0));
        Self { state, env, memory, alarm, newsroom, looked_at, sent_at, history }
    }

    async fn fetch(&self, mut request: Request) -> Result<Response> {
        match request.path().as_str() {
            PUSH => {
                let report: ColoReport = message(&mut request).await?;
                let home = self.home()?;
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
                self.changed(time).await?;
                self.answer(&home, Some(&colo), minute_of(time), 0).await
            }
            STATE => {
                let asked: StateRequest = message(&mut request).await?;
                let home = self.home()?;
                let colo = Some(asked.colo.as_str()).filter(|colo| !colo.is_empty());
                if let Some(memory) = self.memory.borrow_mut().as_mut() {
                    if let Some(given) = asked.given {
                        memory.anywhere_gave(given);
                    }
                    if let Some(colo) = colo {
                        memory.answered(colo, now());
                    }
                }
                self.answer(&home, colo, asked.minute, asked.leases).await
            }
            ORIGIN_HEALTH => {
                let told: OriginHealth = message(&mut request).await?;
                let home = self.home()?;
                let news = self
                    .memory
                    .borrow_mut()
                    .as_mut()
                    .is_some_and(|memory| memory.origin_health(&home.room, &told, now()));
                if news {
                    self.store_origin().await?;
                    self.changed(now()).await?;
                    self.look_for_news(&home, now()).await?;
                }
                answer(&())
            }
            ORIGIN => {
                let home = self.home()?;
                let memory = self.memory.borrow();
                let Some(memory) = memory.as_ref() else { return Response::error("not ready", 503) };
                answer(&memory.origin_status(&home.room, now()))
            }
            LOOK => {
                let asked: OperatorAsk = message(&mut request).await?;
                if asked.query != UNWATCHED {
                    self.look_at(now()).await?;
                }
                operator_answer(200, self.status_text(now()))
            }
            STEER => {
                let asked: OperatorAsk = message(&mut request).await?;
                self.steer(&asked).await
            }
            AUDIT => {
                let asked: OperatorAsk = message(&mut request).await?;
                self.audit(&asked)
            }
            HISTORY => {
                let asked: HistoryAsk = message(&mut request).await?;
                self.show_history(&asked)
            }
            TOTALS => self.show_totals(),
            NEWS => {
                let asked: OperatorAsk = message(&mut request).await?;
                let (status, body) = self.newsroom.show(&asked.query)?;
                operator_answer(status, body)
            }
            LIVE => self.join(&request).await,
            path => no_such_route(path),
        }
    }

    async fn websocket_message(&self, socket: WebSocket, _message: WebSocketIncomingMessage) -> Result<()> {
        // There is nothing to say here; pings are answered by the platform.
        socket.close(Some(1003), Some("only pings are understood"))
    }

    async fn websocket_close(
        &self,
        _socket: WebSocket,
        _code: usize,
        _reason: String,
        _was_clean: bool,
    ) -> Result<()> {
        self.is_watched(now());
        Ok(())
    }

    async fn websocket_error(&self, _socket: WebSocket, _error: worker::Error) -> Result<()> {
        Ok(())
    }

    async fn alarm(&self) -> Result<Response> {
        let time = now();
        self.alarm.rang();
        for job in Job::ALL {
            if !self.alarm.is_due(job, time) {
                continue;
            }
            let next = match job {
                Job::Spread => self.spread_again().await,
                Job::Live => Ok(self.send_status(time)),
                Job::Store => self.store_reports().await,
                Job::Record => self.record().await,
                Job::Notify => self.look_without_reports(time).await,
                Job::Deliver => self.deliver(time),
            };
            match next {
                Ok(Some(next)) => self.alarm.plan(job, next),
                Ok(None) => {}
                // One job's failure must not hold up the others.
                Err(error) => {
                    log_error(&format!("alarm: {error}"));
                    self.alarm.plan(job, time + AGAIN_MS);
                }
            }
        }
        if let Some(next) = self.next_record() {
            self.alarm.plan(Job::Record, next);
        }
        self.alarm.set(now(), &self.state.storage()).await?;
        Response::empty()
    }
}

impl Global {
    /// The room as operators have it.
    fn home(&self) -> Result<Home> {
        let memory = self.memory.borrow();
        let overrides = memory.as_ref().map_or(Overrides::none(), counts::Global::overrides);
        Home::steered(&self.state, &self.env, overrides)
    }

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
        let Ok(home) = self.home() else { return Ok(None) };
        let due = self.newsroom.due_without_reports();
        if time < due {
            return Ok(Some(due));
        }
        self.look_for_news(&home, time).await?;
        Ok(self.newsroom.look_again_at())
    }

    /// Looks for news now.
    async fn look_for_news(&self, home: &Home, time: u64) -> Result<()> {
        let key = self
            .memory
            .borrow_mut()
            .as_mut()
            .map(|memory| memory.state(&home.room, None, minute_of(time), time));
        if let Some(key) = key {
            self.find_news(home, &key, time).await?;
        }
        Ok(())
    }

    /// Looks for news in a state that has just been made.
    async fn find_news(&self, home: &Home, key: &StateKey, time: u64) -> Result<()> {
        let known = self.memory.borrow().as_ref().map(|memory| {
            let overrides = memory.overrides();
            let room = home.deployed().map(|room| room.steered(overrides));
            (memory.origin_observation(&home.room), room, u64::from(overrides.version))
        });
        let Some((origin, Some(with_events), version)) = known else { return Ok(()) };
        let mut look = Observation::of(&home.room, with_events.at(time).1, key, origin, time);
        look.steering = version;
        if let Some(change) = home.changes_at {
            // An event is told though nobody is there.
            self.alarm.plan(Job::Notify, change);
        }
        let news = self.newsroom.look(look).await?;
        self.tell_news(&news, time)
    }

    /// Sends what is due. Nothing waits for those who get it.
    fn deliver(&self, time: u64) -> Result<Option<u64>> {
        for webhook in self.newsroom.due(time)? {
            self.state.wait_until(Rc::clone(&self.newsroom).send_to(webhook));
        }
        self.newsroom.next_attempt()
    }

    /// The room as operators see it, as JSON.
    fn status_text(&self, time: u64) -> String {
        let settings = Settings::of(&self.env);
        let deployed = self.state.id().name().and_then(|name: String| settings.rooms.get(&name).cloned());
        let mut memory = self.memory.borrow_mut();
        let (Some(deployed), Some(memory)) = (deployed, memory.as_mut()) else { return "null".to_owned() };
        serde_json::to_string(&memory.status(&deployed, time)).unwrap_or_default()
    }

    async fn store_origin(&self) -> Result<()> {
        let origin = self.memory.borrow_mut().as_mut().and_then(counts::Global::origin_to_store);
        if let Some(origin) = origin {
            store(&self.state.storage(), ORIGIN_KEY, &origin).await?;
        }
        Ok(())
    }

    /// Once a minute: who owns which number must outlive this instance before anyone hears of it.
    async fn store_meta(&self) -> Result<()> {
        let meta = self.memory.borrow().as_ref().and_then(counts::Global::meta_to_store);
        if let Some(meta) = meta {
            store(&self.state.storage(), META, &meta).await?;
            if let Some(memory) = self.memory.borrow_mut().as_mut() {
                memory.meta_stored();
            }
        }
        Ok(())
    }

    /// The state key for a colo, or for Anywhere and operators. `leases`: Anywhere was called so often.
    async fn answer(&self, home: &Home, colo: Option<&str>, minute: u32, leases: u64) -> Result<Response> {
        let time = now();
        self.is_watched(time);
        let key = self.memory.borrow_mut().as_mut().map(|memory| {
            memory.called(leases, time);
            memory.state(&home.room, colo, minute, time)
        });
        let Some(key) = key else { return Response::error("not ready", 503) };
        self.store_meta().await?;
        if self.newsroom.is_due(time) {
            self.find_news(home, &key, time).await?;
        }
        answer(&StateAnswer { v: VERSION, state: Some(key) })
    }
}

/// What an operator is told.
fn operator_answer(status: u16, body: String) -> Result<Response> {
    answer(&OperatorAnswer { v: VERSION, status, body })
}
