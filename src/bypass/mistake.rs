//! What is wrong with an expression, and where.

use std::fmt;

/// How much of an expression is shown around a mistake, in characters to either side.
const SHOWN_AROUND: usize = 50;

/// What is wrong with an expression, in words for its owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpressionError {
    /// Where, in characters from the first one, which is 1.
    pub column: usize,
    /// What is wrong: goes on after the column.
    pub message: String,
    /// What to do about it: an instruction without a full stop.
    pub fix: String,
    /// The expression's part around the mistake in one line, and a caret below the mistake in another.
    pub excerpt: String,
}

impl fmt::Display for ExpressionError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { column, message, fix, .. } = self;
        write!(formatter, "column {column}: {message}. Fix: {fix}.")
    }
}

impl std::error::Error for ExpressionError {}

impl ExpressionError {
    /// A mistake at some byte of an expression.
    pub(super) fn new(text: &str, at: usize, words: impl FnOnce() -> (String, String)) -> Self {
        let (message, fix) = words();
        let before = text.get(..at).unwrap_or(text).chars().count();
        Self { column: before + 1, message, fix, excerpt: excerpt(text, before) }
    }
}

/// Two lines: what is around a character, and a caret below it.
fn excerpt(text: &str, before: usize) -> String {
    let first = before.saturating_sub(SHOWN_AROUND);
    let shown: String = text
        .chars()
        .skip(first)
        .take(2 * SHOWN_AROUND)
        // A caret stands below one character: whatever is wider or does something becomes a space.
        .map(|character| if character.is_control() { ' ' } else { character })
        .collect();
    let (start, end) = (
        if first > 0 { "…" } else { "" },
        if text.chars().count() > first + 2 * SHOWN_AROUND { "…" } else { "" },
    );
    let indent = " ".repeat(before - first + start.chars().count());
    format!("{start}{shown}{end}\n{indent}^")
}
