//! Who may see the rooms and who may steer them, decided before anything is answered below `/__anteroom/`.
//!
//! 1. [`Operators`] are the named tokens of the deployment, each with a [`Role`].
//! 2. [`Session`] is what a browser gets for a token: a sealed cookie that ends with the token, or after 12 hours.
//! 3. [`ENDPOINTS`] says what there is, and what it needs. [`admit`] lets a request in, or says why not.
//!
//! [`metrics`] writes what rooms do for Prometheus.

mod access;
pub mod metrics;
mod session;
mod tokens;

pub use access::{
    Admitted, ENDPOINTS, Endpoint, Knock, Needs, Refusal, Target, admit, by_secret, is_from_elsewhere, known,
};
pub use session::{SESSION_COOKIE, SESSION_MS, Session, session_cookie};
pub use tokens::{ADMIN, MAX_OPERATORS, MIN_TOKEN, Operator, Operators, Role};
