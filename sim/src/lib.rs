//! The planet in a box: how exactly a room keeps its limits, measured with the code that runs in production.
//!
//! - [`scenario`]: what a user writes down: a room, its visitors, a planet, faults.
//! - [`planet`]: lets it happen in virtual time, event by event. It holds no rule of its own: visits, workers, Counter,
//!   Anywhere, `DataCenter` and Global are the machines that the Worker and the objects run.
//! - [`literal`]: the 2023 article's counters without our repairs, to compare with.
//! - [`measure`]: what it was like for the visitors and for the origin.
//! - [`bounds`]: how soon a new visitor could be in, whatever the algorithm.
//! - [`estimates`]: how wrong the waits were that they saw, and how wrong any would have been.
//! - [`campaign`]: worlds drawn at random, what is promised in each of them, and the smallest that breaks a promise.
//! - [`table`]: figures of many runs, the worst seed of each, and whether they reach the goals.
//! - [`report`]: the same as JSON, and as a page with charts.
//! - [`replay`]: a history recorded in the real runtime, through the same core a second time.
//! - [`origin`]: an origin that gets slower with load and breaks down; [`pages`]: what visitors ask of it.
//! - [`guarded`]: a flood of clients in front of it, with `origin_guard` and without; [`guarded_report`]: its figures;
//!   [`literal_guard`]: the article's limiter as it reads, to compare with.
//! - [`history`]: a recorded day of a room, as the arrivals of a plan.
//! - [`v0_1_0`]: what the version before says and stores.
//! - [`plan`]: what a day will be like for an owner's room, and what would make it better; [`plan_command`]: as a command.
//! - [`price`]: what the platform bills for a run.
//! - [`configured`]: rooms that are made at run time, on their way to the data centers.

pub mod bounds;
pub mod campaign;
pub mod clockwork;
pub mod configured;
pub mod estimates;
pub mod guarded;
pub mod guarded_report;
pub mod history;
pub mod literal;
pub mod literal_guard;
pub mod measure;
pub mod origin;
pub mod pages;
pub mod plan;
pub mod plan_command;
pub mod planet;
pub mod price;
pub mod replay;
pub mod report;
pub mod scenario;
pub mod table;
pub mod v0_1_0;
