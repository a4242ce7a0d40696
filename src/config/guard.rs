//! The field `origin_guard` of a room.

use std::ops::RangeInclusive;

use serde_json::Value;

use super::table::Table;
use crate::room::{GuardSettings, GuardStrategy, OriginGuard, WhenFull};

/// Every field of `origin_guard`.
const GUARD_FIELDS: [&str; 7] = ["strategy", "min", "max", "at_once", "timeout", "hold_ms", "admitted"];
/// Requests of one worker at the origin; a worker has no more connections, and more memory than these need.
const WINDOW: RangeInclusive<u32> = 1..=10_000;

impl Table<'_> {
    pub(super) fn origin_guard(&mut self) -> Option<OriginGuard> {
        let field = "origin_guard";
        match self.get(field)? {
            Value::Object(fields) => Some(self.within("origin_guard.", Some(fields), Self::guard_fields)),
            other => {
                let fix = "write origin_guard = { strategy = \"position\", max = 200 }, or remove it";
                self.refuse(field, other, "must be a table", fix);
                None
            }
        }
    }

    fn guard_fields(&mut self) -> OriginGuard {
        self.unknown(&GUARD_FIELDS);
        let settings = GuardSettings {
            strategy: self.pick("strategy", GuardStrategy::NAMES, GuardStrategy::ALL),
            min: self.whole("min", WINDOW, Some(2)),
            max: self.whole("max", WINDOW, Some(1_000)),
            at_once: self.get("at_once").is_some().then(|| self.whole("at_once", WINDOW, Some(1))),
            timeout_ms: u64::from(self.whole("timeout", 1..=100, Some(10))) * 1_000,
            hold_ms: u64::from(self.whole("hold_ms", 0..=10_000, Some(1_000))),
        };
        if settings.min > settings.max {
            let message = format!("is more than max, {}", settings.max);
            self.refuse("min", &Value::from(settings.min), message, "set min to at most max");
        }
        if settings.strategy == GuardStrategy::NewestFirst && settings.at_once.is_none() {
            let message = "is required with strategy = \"newest_first\", which has no window";
            let fix =
                "add it: how many requests of one worker the origin serves at once, for example at_once = 4";
            self.refuse_shown("at_once", "(not set)".to_owned(), message.to_owned(), fix);
        }
        let admitted = self.pick("admitted", WhenFull::NAMES, WhenFull::ALL);
        OriginGuard { settings, admitted }
    }
}
