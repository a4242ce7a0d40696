//! Bypass rules: which requests go past a room, by an expression of its owner.
//!
//! The language is the one that owners know from Cloudflare's rules: `starts_with(http.request.uri.path, "/status") or
//! ip.src in {192.0.2.0/24}`. docs/bypass.md tells all of it.
//!
//! 1. `lexer` takes the next piece of the text; `parser` makes an [`Expression`] of them, or an [`ExpressionError`] that
//!    says where it stopped and what would help. Types are checked here, so that nothing is left to go wrong later.
//! 2. [`fields`] names what of a request can be asked for.
//! 3. [`Request`] is a request as rules see it; the rest of it is read only when a rule asks.
//! 4. [`is_bypassed`] decides.

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
pub use request::{Request, Source, is_search_engine};

use crate::config::path::{self, Reading};

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
///
/// Origins read some paths in different ways (`/sale;x.js`, `/%73ale`). Such a request is asked about twice, with the
/// path as it came and as a browser would write the room's reading of it, and a rule has to hold for both: else an odd
/// spelling would lead around the room. A path that hides `..` has no such reading, and no rule holds for it.
pub fn is_bypassed(rules: &[BypassRule], request: &Request) -> bool {
    let mut rules = rules.iter().filter(|rule| rule.enabled).peekable();
    if rules.peek().is_none() {
        return false;
    }
    let Reading::Plain(plain) = path::read(request.path.as_bytes()) else { return false };
    let mut spelled = path::as_browsers_write(&plain);
    if request.path.ends_with('/') && !spelled.ends_with('/') {
        spelled.push('/');
    }
    let other = (spelled != request.path).then_some(Request { path: &spelled, ..*request });
    rules.any(|BypassRule { expression, .. }| {
        expression.holds(request) && other.as_ref().is_none_or(|other| expression.holds(other))
    })
}
