//! Requests on their way to the origin, of all rooms of this isolate.
//!
//! `entry.js` goes to the origin itself. It gets a number for each request of a visitor who may go, and gives it back
//! with what came of it.

use std::cell::RefCell;

use super::clock::now;
use super::settings::Settings;
use crate::origin::{Arrival, OriginMonitor, Passage, Reply, Turn};
use crate::room::Room;

/// A number holds the room in its last three digits.
const ROOMS: f64 = 1_000.0;

thread_local! {
    static MONITORS: RefCell<Vec<(String, OriginMonitor)>> = const { RefCell::new(Vec::new()) };
}

/// A request on its way, as `entry.js` sees it.
#[derive(Debug, Clone, Copy)]
pub struct Number(f64);

impl Number {
    /// The plain number; below zero when the request has a timeout.
    pub fn value(self) -> f64 {
        self.0
    }

    fn room(self) -> usize {
        (self.0.abs() % ROOMS) as usize
    }

    fn passage(self) -> Passage {
        Passage::from_number((self.0.abs() / ROOMS).floor())
    }
}

impl From<f64> for Number {
    fn from(number: f64) -> Self {
        Self(number)
    }
}

/// What becomes of a request of a visitor who may go to the origin.
pub enum Way {
    /// It goes now.
    Open(Number),
    /// It stands in line: ask with [`turn`].
    InLine(Number),
    /// The origin has too much to do.
    Closed,
}

/// A request of a visitor who is in arrives. `ticket`: the ticket's id.
pub fn arrive(room: &Room, ticket: u64) -> Way {
    with(room, |place, monitor| {
        let beyond = room.observes(ticket);
        let in_time = monitor.timeout_ms().is_some() && !beyond;
        let number = |passage: Passage| {
            let number = passage.number() * ROOMS + place as f64;
            Number(if in_time { -number } else { number })
        };
        match monitor.arrive(ticket, beyond, now()) {
            Arrival::Go(passage) => Way::Open(number(passage)),
            Arrival::InLine(passage) => Way::InLine(number(passage)),
            Arrival::Refused => Way::Closed,
        }
    })
}

/// The settings have changed, as rooms are made at run time: all that is sent goes by them from now on.
pub fn redeploy(settings: &Settings) {
    MONITORS.with_borrow_mut(|monitors| {
        for (name, monitor) in monitors {
            if let Some(room) = settings.rooms.get(name) {
                monitor.follow(room);
            }
        }
    });
}

/// Works with what this worker knows of a room's origin.
pub fn with_monitor<T>(room: &Room, work: impl FnOnce(&mut OriginMonitor) -> T) -> T {
    with(room, |_, monitor| work(monitor))
}

/// In how many milliseconds a request in line asks for its turn again.
pub fn ask_after_ms(number: Number) -> u64 {
    of(number, |monitor| monitor.ask_after_ms(number.passage())).unwrap_or_default()
}

/// What a request in line does now.
pub fn turn(number: Number) -> Turn {
    of(number, |monitor| monitor.turn(number.passage(), now())).unwrap_or(Turn::Dropped)
}

/// After how many milliseconds without a first byte a request is given up; 0: never.
pub fn patience_ms(number: Number) -> f64 {
    of(number, |monitor| monitor.timeout_ms()).flatten().unwrap_or(0) as f64
}

/// A request came back. Returns the room's name when it must be reported soon.
pub fn came_back(number: Number, reply: Reply, took_ms: u64) -> Option<String> {
    MONITORS.with_borrow_mut(|monitors| {
        let (room, monitor) = monitors.get_mut(number.room())?;
        monitor.came_back(number.passage(), reply, took_ms, now()).then(|| room.clone())
    })
}

fn with<T>(room: &Room, work: impl FnOnce(usize, &mut OriginMonitor) -> T) -> T {
    MONITORS.with_borrow_mut(|monitors| {
        if let Some((place, (_, monitor))) =
            monitors.iter_mut().enumerate().find(|(_, (name, _))| *name == room.name)
        {
            return work(place, monitor);
        }
        let mut monitor = OriginMonitor::new(room);
        let done = work(monitors.len(), &mut monitor);
        monitors.push((room.name.clone(), monitor));
        done
    })
}

fn of<T>(number: Number, work: impl FnOnce(&mut OriginMonitor) -> T) -> Option<T> {
    MONITORS.with_borrow_mut(|monitors| monitors.get_mut(number.room()).map(|(_, monitor)| work(monitor)))
}
