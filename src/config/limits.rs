//! How many users, and how fast: numbers, or ranges that follow the origin. What belongs to one strategy is here too.

use std::ops::RangeInclusive;

use serde_json::Value;

use super::fields::{LIMIT_MAX, Place};
use super::table::Table;
use crate::room::{AdaptiveRange, Room, Share};

/// Every field of a limit that is a range.
const RANGE_FIELDS: [&str; 2] = ["min", "max"];
/// The limits.
const LIMITS: [&str; 2] = ["total_active_users", "new_users_per_minute"];
const SLOW_MS: RangeInclusive<u32> = 10..=60_000;
const CURVE_FACTOR: RangeInclusive<f64> = 0.1..=10.0;

impl Table<'_> {
    /// Whether the limits follow the origin.
    fn adapts(&self) -> bool {
        self.get("limits").and_then(Value::as_str) == Some("adaptive")
    }

    /// `limits`.
    pub(super) fn limits(&mut self, room: &mut Room) {
        let adapts = self.choice("limits", ("fixed", false), &[("adaptive", true)]);
        if !adapts {
            return;
        }
        room.adaptive.get_or_insert_default();
        let is_range = |field: &str| self.get(field).is_some_and(Value::is_object);
        if !LIMITS.into_iter().any(is_range) {
            let fix = "write a range, for example total_active_users = { min = 200, max = 1000 }";
            self.refuse("limits", &Value::from("adaptive"), "needs a range for at least one limit", fix);
        }
    }

    /// A limit: the least and the most are the same number, unless it is a range.
    pub(super) fn limit(
        &mut self,
        field: &str,
        prefix: &'static str,
        at: Place<u32>,
        least_of: fn(&mut AdaptiveRange) -> &mut u32,
        room: &mut Room,
    ) {
        let adapts = self.adapts();
        let (least, most) = match self.get(field) {
            Some(Value::Object(fields)) if adapts => self.within(prefix, Some(fields), Self::range),
            Some(value @ Value::Object(_)) => {
                let fix = format!("set limits to \"adaptive\", or write one number: {field} = 200");
                return self.refuse(field, value, "is a range, which is for limits = \"adaptive\"", &fix);
            }
            _ => {
                let limit = self.whole(field, 1..=LIMIT_MAX, None);
                (limit, limit)
            }
        };
        *(at.of_mut)(room) = most;
        if adapts {
            *least_of(room.adaptive.get_or_insert_default()) = least;
        }
    }

    /// The least and the most.
    fn range(&mut self) -> (u32, u32) {
        self.unknown(&RANGE_FIELDS);
        let least = self.whole("min", 1..=LIMIT_MAX, None);
        let most = self.whole("max", 1..=LIMIT_MAX, None);
        if least > most {
            self.refuse(
                "min",
                &Value::from(least),
                format!("is more than max, {most}"),
                "set min to at most max",
            );
        }
        (least.min(most), most)
    }

    /// `origin_slow_ms`.
    pub(super) fn origin_slow_ms(&mut self, room: &mut Room) {
        let field = "origin_slow_ms";
        let Some(value) = self.get(field) else { return };
        if !self.adapts() {
            let fix = "set limits to \"adaptive\", or remove origin_slow_ms";
            self.refuse(field, value, "is for limits = \"adaptive\" only", fix);
        }
        let slow_ms = self.whole(field, SLOW_MS, Some(1_000));
        if let Some(range) = &mut room.adaptive {
            range.slow_ms = Some(slow_ms);
        }
    }

    pub(super) fn curve_factor(&mut self) -> f64 {
        let default = 1.0;
        let Some(value) = self.get("curve_factor") else { return default };
        if let Some(number) = value.as_f64()
            && CURVE_FACTOR.contains(&number)
        {
            return number;
        }
        // Written out: putting fractions into words is a large piece of code, and the Worker needs it nowhere else.
        let fix = match value.as_f64() {
            Some(number) if number < *CURVE_FACTOR.start() => "set curve_factor to at least 0.1",
            Some(_) => "set curve_factor to at most 10",
            None => "write a number without quotes, for example curve_factor = 1.0",
        };
        self.refuse("curve_factor", value, "must be a number from 0.1 to 10", fix);
        default
    }

    /// A part of all visitors.
    pub(super) fn share(&mut self, field: &str) -> Share {
        let Some(value) = self.get(field) else { return Share::default() };
        value.as_f64().and_then(Share::new).unwrap_or_else(|| {
            let fix = format!("write a number without quotes, for example {field} = 0.05 for 5 %");
            self.refuse(field, value, "must be a number from 0 to 1", &fix);
            Share::default()
        })
    }
}
