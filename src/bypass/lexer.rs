//! The next piece of an expression. What it is depends on where it stands: an address and a number are read when one is
//! wanted.

use super::mistake::ExpressionError;

/// A place in an expression's text.
pub(super) struct Lexer<'a> {
    pub text: &'a str,
    /// In bytes; always between two characters.
    pub at: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    pub(super) fn skip_space(&mut self) {
        self.at = self.text.len() - self.rest().trim_ascii_start().len();
    }

    /// A mistake at the current place.
    pub(super) fn mistake(&self, words: impl FnOnce() -> (String, String)) -> ExpressionError {
        self.mistake_at(self.at, words)
    }

    pub(super) fn mistake_at(&self, at: usize, words: impl FnOnce() -> (String, String)) -> ExpressionError {
        ExpressionError::new(self.text, at, words)
    }

    /// Whether a sign comes next; it is then taken.
    pub(super) fn takes(&mut self, sign: &str) -> bool {
        self.skip_space();
        let comes = self.rest().starts_with(sign);
        if comes {
            self.at += sign.len();
        }
        comes
    }

    /// The word that comes next, without taking it; empty where none does.
    pub(super) fn word(&mut self) -> &'a str {
        self.skip_space();
        self.run(|character| character.is_ascii_alphanumeric() || matches!(character, '_' | '.'))
    }

    /// Whether this word comes next, as a whole; it is then taken.
    pub(super) fn takes_word(&mut self, word: &str) -> bool {
        let comes = self.word() == word;
        if comes {
            self.at += word.len();
        }
        comes
    }

    /// What comes next up to a space or anything that parts values, without taking it.
    pub(super) fn bare(&mut self) -> &'a str {
        self.skip_space();
        self.run(|character| !character.is_whitespace() && !"{}()\"',;&|".contains(character))
    }

    /// What comes next of the characters that addresses, blocks and ranges are made of, without taking it.
    pub(super) fn network(&mut self) -> &'a str {
        self.skip_space();
        self.run(|character| character.is_ascii_hexdigit() || ":./".contains(character))
    }

    fn run(&self, belongs: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|character| !belongs(character)).unwrap_or(rest.len());
        rest.get(..end).unwrap_or_default()
    }

    /// A text in quotes: `"a \"b\""`, or without escapes `r"a\b"` and `r#"a"b"#`. `keeps_escapes`: of escapes, only
    /// that of a quote is one; the others belong to the text, a regular expression.
    pub(super) fn quoted(&mut self, keeps_escapes: bool) -> Result<Option<String>, ExpressionError> {
        self.skip_space();
        let start = self.at;
        let unterminated = |lexer: &Self, end: &str| {
            let end = end.to_owned();
            lexer.mistake_at(start, || {
                ("this text has no end".to_owned(), format!("write {end} where the text ends"))
            })
        };
        if let Some(after) = self.rest().strip_prefix('r') {
            let hashes = after.len() - after.trim_start_matches('#').len();
            let end = format!("\"{}", "#".repeat(hashes));
            if let Some(inside) = after.get(hashes..).and_then(|after| after.strip_prefix('"')) {
                let length = inside.find(&end).ok_or_else(|| unterminated(self, &end))?;
                self.at = start + 1 + hashes + 1 + length + end.len();
                return Ok(inside.get(..length).map(str::to_owned));
            }
        }
        let Some(inside) = self.rest().strip_prefix('"') else { return Ok(None) };
        let mut text = String::new();
        let mut characters = inside.char_indices();
        while let Some((at, character)) = characters.next() {
            match character {
                '"' => {
                    self.at = start + 1 + at + 1;
                    return Ok(Some(text));
                }
                '\\' => match characters.next() {
                    Some((_, '"')) => text.push('"'),
                    Some((_, other)) if keeps_escapes => text.extend(['\\', other]),
                    Some((_, '\\')) => text.push('\\'),
                    _ => {
                        return Err(self.mistake_at(start + 1 + at, || {
                            (
                                "this is no escape: there are \\\" and \\\\".to_owned(),
                                "write \\\\ for a backslash, or r\"...\" for a text without escapes"
                                    .to_owned(),
                            )
                        }));
                    }
                },
                other => text.push(other),
            }
        }
        Err(unterminated(self, "\""))
    }
}
