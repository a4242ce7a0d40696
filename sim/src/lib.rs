//! The planet in a box: how exactly a room keeps its limits, measured with the code that runs in production.
//!
//! - [`scenario`]: what a user writes down: a room, its visitors, a planet, faults.
//! - [`planet`]: lets it happen in virtual time, event by event. It holds no rule of its own: workers, Counter,
//!   Anywhere, `DataCenter` and Global are the core's.
//! - [`literal`]: the 2023 article's counters without our repairs, to compare with.
//! - [`origin`], [`pages`]: an origin with its limits and troubles, and the pages that are asked of it.
//! - [`measure`]: what it was like for the visitors and for the origin.
//! - [`table`]: figures of many runs, the worst seed of each, and whether they reach the goals.
//! - [`report`]: the same as JSON, and as a page with charts.
//! - [`replay`]: a history recorded in the real runtime, through the same core a second time.
//! - [`plan`]: what a day will be like for an owner's room, and what would make it better.

pub mod clockwork;
pub mod literal;
pub mod measure;
pub mod origin;
pub mod pages;
pub mod plan;
pub mod planet;
pub mod replay;
pub mod report;
pub mod scenario;
pub mod table;
