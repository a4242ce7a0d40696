//! How soon a new visitor could be in, whatever the algorithm: what the planet itself takes.
//!
//! A permit is given by whoever holds it, and two may not give the same one. So a visitor waits at least for one call:
//!
//! - To the own colo's object, if a permit can lie there. An object that has lost its memory must start, and then record
//!   what it gives before it answers: if it did not and ended, its successor would read the same record and give the
//!   permit once more.
//! - To the room's objects, for the first visitor of a colo, where nobody knows whether an operator has closed the room; and
//!   for whoever passes somebody older, since who that is only they know. Who comes while the first call of a colo is under
//!   way waits for the rest of it.
//! - To the region's object or the room's, whichever is nearer, with fewer free slots than colos, for those colos that are left
//!   without. Fewest visitors are, if the busiest ones have a permit each.
//!
//! A call is a message there and one back. Nobody knows which of them will be fast, so what such calls take counts as chance has
//! it: an algorithm could do better only if it sent each of them several times. Queues behind others and what has just been used
//! up are not counted: so it is a bound, not a plan.

use serde::Serialize;

use crate::planet::geography::{Ways, calls_longer_than, median_call_ms};

/// Longer than this a new visitor should not wait, and in a flash crowd of many colos, in milliseconds.
pub const SOON_MS: [u64; 2] = [80, 150];

#[derive(Debug, Default, Clone, Copy)]
struct Colo {
    /// One way to the room's objects, in microseconds.
    to_room: u64,
    /// A call to those or the region's takes so long at least, in milliseconds.
    shared_ms: u64,
    /// How many colos have more visitors.
    busier: i64,
    /// How many of those are farther from all objects that serve several colos than each of [`SOON_MS`].
    busier_and_far: [i64; 2],
    /// The last call to the colo's Counter: how long its way there took, and the whole, in milliseconds.
    there_ms: u64,
    call_ms: u64,
    /// When the first request of a visitor came.
    first_at: Option<u64>,
}

/// New visitors who waited longer than each of [`SOON_MS`].
#[derive(Debug, Default, Clone, Copy, PartialEq, Serialize)]
pub struct Slow {
    /// How many did.
    pub all: u64,
    /// How many have to, as chance has it.
    pub bound: f64,
}

impl Slow {
    /// Those who waited so long and had not to.
    pub fn avoidable(&self) -> f64 {
        (self.all as f64 - self.bound).max(0.0)
    }
}

/// What is known of the planet, and what of its visitors.
#[derive(Debug, Default)]
pub struct Bounds {
    colos: Vec<Colo>,
    /// New visitors who waited longer than each of [`SOON_MS`].
    pub slow: [Slow; 2],
}

impl Bounds {
    /// Colos, the busiest first. Where visitors may come from only every second of them, fewer are busier.
    pub fn of(ways: &[Ways], every_second: bool) -> Self {
        let busier = |index: usize, far: &dyn Fn(u64) -> bool| {
            let before = ways[..index].iter().filter(|ways| far(ways.least_shared_ms())).count() as i64;
            if every_second { before / 2 } else { before }
        };
        let colos = ways.iter().enumerate().map(|(index, ways)| Colo {
            to_room: ways.to_room,
            shared_ms: ways.least_shared_ms(),
            busier: busier(index, &|_| true),
            busier_and_far: SOON_MS.map(|soon| busier(index, &|ms| ms > soon)),
            ..Colo::default()
        });
        Self { colos: colos.collect(), slow: Default::default() }
    }

    /// How many colos there are: with more free slots than that none is left without.
    pub fn colos(&self) -> i64 {
        self.colos.len() as i64
    }

    /// A message from a worker to the colo's Counter takes so long, in milliseconds. The colo must be one of the planet's.
    pub fn own_way(&mut self, colo: u16, milliseconds: u64) {
        self.colos[usize::from(colo)].there_ms = milliseconds;
    }

    /// It finds an object that has just started: what that, or its first record, takes besides, in milliseconds.
    /// A region's object is no colo's own, and does not count.
    pub fn own_start(&mut self, colo: u16, milliseconds: u64) {
        if let Some(colo) = self.colos.get_mut(usize::from(colo)) {
            colo.there_ms += milliseconds;
        }
    }

    /// The answer's way back takes so long, in milliseconds.
    pub fn own_way_back(&mut self, colo: u16, milliseconds: u64) {
        let colo = &mut self.colos[usize::from(colo)];
        colo.call_ms = colo.there_ms + milliseconds;
    }

    /// A visitor's request comes to a colo, which must be one of the planet's, at `now`.
    pub fn came(&mut self, now: u64, colo: u16) {
        self.colos[usize::from(colo)].first_at.get_or_insert(now);
    }

    /// A visitor of a colo enters at `now` and has not been queued, `latency` milliseconds after the request, and passes somebody
    /// older or not. So many slots were free then for those who are not older. Returns how long it takes at least, in milliseconds, by
    /// the median of the calls that it takes; nothing: no worker of the colo has called its Counter yet.
    pub fn entered(&mut self, now: u64, colo: u16, latency: u64, passes: bool, free: i64) -> Option<u64> {
        let colo = self.colos.get_mut(usize::from(colo))?;
        let came_at = now - latency;
        // The colo's first call began so long before.
        let since_first = came_at.saturating_sub(colo.first_at.unwrap_or(came_at));
        let since = if passes { 0 } else { since_first };
        for (index, soon) in SOON_MS.into_iter().enumerate() {
            let is_slow = latency > soon;
            let is_bound = is_slow
                && (colo.call_ms > soon || colo.shared_ms > soon && colo.busier_and_far[index] >= free);
            let slow = &mut self.slow[index];
            slow.all += u64::from(is_slow);
            slow.bound += if is_bound { 1.0 } else { calls_longer_than(soon + since, colo.to_room) };
        }
        let room_ms = median_call_ms(colo.to_room).saturating_sub(since);
        let shared_ms = if colo.busier >= free { colo.shared_ms } else { 0 };
        (colo.call_ms > 0).then_some(colo.call_ms.max(room_ms).max(shared_ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANY: i64 = 1_000;

    /// So far from the room's objects, and from those of the region, in milliseconds there and back.
    fn far(room_ms: u64, region_ms: u64) -> Ways {
        Ways {
            to_objects: 2_500,
            from_objects: 500 * room_ms,
            to_room: 500 * room_ms,
            region: "oc",
            to_region: 500 * region_ms,
            objects_to_region: 500 * region_ms,
        }
    }

    /// Three colos, of which the second is near the room's objects, and no region is nearer. A call to an own object takes 12 ms.
    fn planet() -> Bounds {
        let mut bounds = Bounds::of(&[far(125, 125), far(50, 50), far(250, 250)], false);
        for colo in 0..3 {
            bounds.own_way(colo, 6);
            bounds.own_way_back(colo, 6);
        }
        bounds
    }

    fn bound(bounds: &Bounds) -> [u64; 2] {
        bounds.slow.map(|slow| slow.bound.round() as u64)
    }

    #[test]
    fn a_permit_may_lie_in_the_colo_of_all_but_the_first_visitor() {
        let mut bounds = planet();
        let call = median_call_ms(125_000 / 2);
        bounds.came(1_000, 0);
        assert_eq!(bounds.entered(1_120, 0, 120, false, MANY), Some(call));
        assert_eq!(
            bounds.entered(1_130, 0, 120, false, MANY),
            Some(call - 10),
            "the first answer is on its way"
        );
        assert_eq!(bounds.entered(9_000, 0, 90, false, MANY), Some(12));
        assert_eq!(bounds.slow[0].all, 3);
        assert_eq!(bound(&bounds), [2, 0]);
        bounds.came(2_000, 1);
        assert_eq!(bounds.entered(2_090, 1, 90, false, MANY), Some(median_call_ms(25_000)));
        assert_eq!(bound(&bounds), [2, 0], "the room's objects are near enough");
        assert!((bounds.slow[0].avoidable() - 2.0).abs() < 0.1, "{:?}", bounds.slow[0]);
        assert_eq!(bounds.slow[1], Slow { all: 0, ..bounds.slow[1] });
    }

    #[test]
    fn whoever_needs_a_call_waits_as_long_as_calls_take() {
        let mut bounds = Bounds::of(&[far(140, 140)], false);
        for visitor in 0..1_000 {
            bounds.entered(10_000 * visitor + 1_000, 0, 140, true, MANY);
        }
        let late = (1_000.0 * calls_longer_than(150, 70_000)).round() as u64;
        assert!((400..700).contains(&late), "{late}");
        assert_eq!(bound(&bounds), [1_000, late], "even where each of them was faster");
        assert_eq!(bounds.slow.map(|slow| slow.all), [1_000, 0]);
        assert!(bounds.slow[1].avoidable() < f64::EPSILON);
    }

    #[test]
    fn fewer_slots_than_colos_leave_those_with_the_fewest_visitors_without() {
        let mut bounds = planet();
        for colo in 0..3 {
            bounds.came(1_000, colo);
        }
        let mut least = |colo, free: i64| bounds.entered(9_000, colo, 300, false, free);
        assert_eq!([least(0, 1), least(1, 1), least(2, 1)], [Some(12), Some(40), Some(200)]);
        assert_eq!([least(1, 2), least(2, 2)], [Some(12), Some(200)]);
        assert_eq!(least(2, 3), Some(12));
        // One of two far colos can have the only permit.
        assert_eq!((bounds.slow[0].all, bound(&bounds)[0]), (6, 1));
    }

    #[test]
    fn what_does_not_lie_in_the_colo_may_lie_in_its_region() {
        let mut bounds = Bounds::of(&[far(125, 38)], false);
        bounds.own_way(0, 6);
        bounds.own_way_back(0, 6);
        bounds.came(910, 0);
        let call = median_call_ms(125_000 / 2);
        assert_eq!(
            bounds.entered(1_000, 0, 90, false, MANY),
            Some(call),
            "an operator may have closed the room"
        );
        assert_eq!(bounds.entered(9_000, 0, 90, false, 0), Some(30));
        assert_eq!((bounds.slow[0].all, bound(&bounds)[0]), (2, 1));
    }

    #[test]
    fn who_passes_somebody_older_needs_the_rooms_objects_which_know_who_is_next() {
        let mut bounds = planet();
        bounds.came(1_000, 2);
        assert_eq!(bounds.entered(9_000, 2, 300, true, MANY), Some(median_call_ms(125_000)));
        assert_eq!(bound(&bounds), [1, 1]);
    }

    #[test]
    fn an_object_that_starts_must_read_and_write_before_it_answers() {
        let mut bounds = planet();
        bounds.came(1_000, 0);
        bounds.own_way(0, 6);
        bounds.own_start(0, 5);
        bounds.own_start(0, 3);
        bounds.own_way_back(0, 6);
        assert_eq!(bounds.entered(9_000, 0, 20, false, MANY), Some(20));
    }
}
