//! Rooms made at run time: who keeps them, and the API by which Cloudflare's own clients make them.
//!
//! 1. The [`Book`] is the whole configuration: rooms, events, rules, settings, pages to look at. One object keeps it, and is
//!    the only writer.
//! 2. [`handle`] answers a request of the API from it. What a request changes comes out as another book and the rows to
//!    store; nothing is done before they are. All is checked by the table of fields that vars are checked by.
//! 3. A [`Document`] is what Workers and objects learn of it: rooms and events as vars would describe them.
//!
//! Texts, numbers and lists are kept as they were sent, and come back so: a client that compares what it reads with what it
//! wrote finds no difference.

mod book;
mod document;
mod endpoints;
mod entry;
mod fields;
mod rates;
mod reply;
mod written;

pub use book::{Book, Change};
pub use document::Document;
pub use endpoints::{Ask, Outcome, handle, status_of};
pub use entry::Entry;
pub use rates::Rates;
pub use reply::{Code, Problem, Reply};
pub use written::{Deployed, MADE_PAGE};
