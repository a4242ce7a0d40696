//! The simulator, and what the room promises in its worlds. One program: so nothing is linked twice, and no test waits for another
//! file's slowest one.
#![allow(missing_docs, clippy::pedantic)]

mod articles;
mod attackers;
mod campaign;
mod cli;
mod configured;
mod events;
mod guard;
mod history;
mod limits;
mod measures;
mod observe;
mod origin;
mod recorded;
mod scenarios;
mod steering;
