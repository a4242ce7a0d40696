//! The fields about the ticket cookie, besides its domain.

use serde_json::Value;

use super::table::Table;
use crate::room::{Room, SameSite, Secure};

/// The longest suffix of the cookie's name, in bytes.
const SUFFIX_MAX: usize = 32;

impl Table<'_> {
    pub(super) fn cookie_suffix(&mut self) -> String {
        let Some(suffix) = self.text("cookie_suffix", "shop") else { return String::new() };
        let fits = suffix.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
        if (1..=SUFFIX_MAX).contains(&suffix.len()) && fits {
            return suffix.to_owned();
        }
        let kept: String = suffix
            .chars()
            .filter(|character| character.is_ascii_alphanumeric() || matches!(character, '_' | '-'))
            .take(SUFFIX_MAX)
            .collect();
        let fix = if kept.is_empty() {
            "leave it out for the cookie __anteroom, or write cookie_suffix = \"shop\"".to_owned()
        } else {
            format!("write cookie_suffix = \"{kept}\"")
        };
        let message = format!("must be 1 to {SUFFIX_MAX} letters, digits, \"_\" or \"-\"");
        self.refuse("cookie_suffix", &Value::from(suffix), message, &fix);
        String::new()
    }

    /// `partitioned`.
    pub(super) fn partitioned(&mut self, samesite: SameSite) -> bool {
        match self.get("partitioned") {
            None => samesite == SameSite::None,
            Some(_) => self.flag("partitioned"),
        }
    }

    /// Whether the attributes fit together.
    pub(super) fn judge_cookie(&mut self, room: &Room) {
        let attributes = &room.cookie_attributes;
        if attributes.samesite == SameSite::None && attributes.secure == Secure::Never {
            let message =
                "conflicts with samesite = \"none\": browsers drop such a cookie unless it is Secure";
            let fix = "set secure to \"auto\" or \"always\", or samesite to \"lax\"";
            self.refuse("secure", &Value::from("never"), message, fix);
        }
        if attributes.partitioned && attributes.samesite != SameSite::None {
            let message = "needs samesite = \"none\": it is for rooms inside pages of other sites";
            let fix = "set samesite to \"none\", or remove partitioned";
            self.refuse("partitioned", &Value::from(true), message, fix);
        }
    }
}
