//! The whole core, as its users see it.
#![allow(
    missing_docs,
    clippy::pedantic,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod answer;
mod articles;
mod bounds;
mod bypass;
mod checks;
mod config;
mod configuration;
mod ended;
mod events;
mod formats;
mod global;
mod guard;
mod health;
mod history;
mod layers;
mod limits;
mod made;
mod methods;
mod metrics;
mod moves;
mod news;
mod observe;
mod operator;
mod origin;
mod places;
mod push;
mod pushes;
mod records;
mod regions;
mod rehearsal;
mod rolling_deploy;
mod routes;
mod steering;
mod ticket;
mod turnstile;
mod unread;
mod window;
