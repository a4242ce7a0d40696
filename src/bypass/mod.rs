//! Which requests go past a room: bypass rules, expressions of its owner; and what starts no visit.
//!
//! The language is the one that owners know from Cloudflare's rules: `starts_with(http.request.uri.path, "/status") or
//! ip.src in {192.0.2.0/24}`. docs/bypass.md tells all of it.
//!
//! 1. `lexer` takes the next piece of the text; `parser` makes an [`Expression`] of them, or an [`ExpressionError`] that
//!    says where it stopped and what would help. Types are checked here, so that nothing is left to go wrong later.
//! 2. [`fields`] names what of a request can be asked for.
//! 3. [`Request`] is a request as rules see it; the rest of it is read only when a rule asks.
//! 4. [`is_bypassed`] decides by the rules, and [`concern`](crate::concern) by what kind of request it is.

mod evaluate;
mod expression;
pub mod fields;
mod lexer;
mod mistake;
mod network;
mod parser;
mod pattern;
mod request;

pub use expression::Expression;
pub use mistake::ExpressionError;
pub(crate) use request::extension;
pub use request::{Request, Source, is_search_engine};

use crate::url::path::{self, Reading};

/// The most rules a room may have.
pub const MAX_RULES: usize = 50;
/// The longest expression, in bytes.
pub const MAX_LENGTH: usize = 4096;
/// The most brackets and negations within one another.
pub const MAX_DEPTH: usize = 32;

/// One rule of a room.
#[derive(Debug, Clone, PartialEq)]
pub struct BypassRule {
    /// Which requests go past the room.
    pub expression: Expression,
    /// What its owner says of it; may be empty.
    pub description: String,
    /// Whether it holds.
    pub enabled: bool,
}

/// Whether a request goes past the room because of one of its rules.
pub fn is_bypassed(rules: &[BypassRule], request: &Request) -> bool {
    rules.iter().filter(|rule| rule.enabled).any(|rule| {
        is_so_in_each_reading(request.path, |path| rule.expression.matches(&Request { path, ..*request }))
    })
}

/// Whether something is so of a path, however an origin reads it.
///
/// Origins read some paths in different ways (`/sale;x.js`, `/%73ale`). Such a path is asked about twice, as it came and
/// as a browser would write what the room takes it for: else an odd spelling would lead around the room. A path that
/// hides `..`, or a slash in parameters, has no such reading, and nothing is so of it.
pub(crate) fn is_so_in_each_reading(path: &str, is_so: impl Fn(&str) -> bool) -> bool {
    if !is_so(path) || path::hides_separator(path.as_bytes()) {
        return false;
    }
    let Reading::Plain(plain) = path::read(path.as_bytes()) else { return false };
    let mut spelled = path::as_browsers_write(&plain);
    if path.ends_with('/') && !spelled.ends_with('/') {
        spelled.push('/');
    }
    spelled == path || is_so(&spelled)
}
