//! Texts that stand for many: regular expressions and wildcards.

use regex_lite::{Regex, RegexBuilder};

/// What a compiled regular expression may take, in bytes. It bounds the time that matching takes for each byte of a text,
/// whatever a visitor sends.
const MAX_SIZE: usize = 64 * 1024;

/// A regular expression.
#[derive(Debug, Clone)]
pub(super) struct Pattern {
    pub(super) text: String,
    regex: Regex,
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Pattern {
    /// A pattern, or what is wrong with it.
    pub(super) fn new(text: String) -> Result<Self, regex_lite::Error> {
        let regex = RegexBuilder::new(&text).size_limit(MAX_SIZE).build()?;
        Ok(Self { text, regex })
    }

    /// Whether it is found anywhere in a text.
    pub(super) fn is_in(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }
}

/// Whether a whole text is as a pattern says, in which `*` stands for anything, `\*` for a star and `\\` for a
/// backslash. Looks at each place of the text at most once for each character between two stars.
pub(super) fn is_wild(pattern: &str, text: &str, has_case: bool) -> bool {
    let is_same = |one: u8, other: u8| {
        if has_case { one == other } else { one.eq_ignore_ascii_case(&other) }
    };
    let (mut pattern, mut text) = (pattern.as_bytes(), text.as_bytes());
    // Where to go on when what follows the last star does not fit here.
    let mut star: Option<(&[u8], &[u8])> = None;
    loop {
        let (wanted, after) = match pattern {
            [b'*', after @ ..] => {
                pattern = after;
                star = Some((after, text));
                continue;
            }
            [b'\\', escaped @ (b'*' | b'\\'), after @ ..] => (Some(*escaped), after),
            [letter, after @ ..] => (Some(*letter), after),
            [] => (None, pattern),
        };
        match (wanted, text) {
            (None, []) => return true,
            (Some(wanted), [letter, rest @ ..]) if is_same(wanted, *letter) => {
                pattern = after;
                text = rest;
            }
            _ => {
                let Some((after, [_, rest @ ..])) = star else { return false };
                pattern = after;
                text = rest;
                star = Some((after, rest));
            }
        }
    }
}
