//! The fields about Turnstile: a room has all of them or none.

use serde_json::Value;

use super::table::Table;
use crate::room::{Turnstile, TurnstileAction, TurnstileMode};

/// The longest site key, in bytes.
const SITEKEY_MAX: usize = 100;

impl Table<'_> {
    pub(super) fn turnstile(&mut self) -> Option<Turnstile> {
        let mode = self.choice(
            "turnstile_mode",
            ("invisible", Some(TurnstileMode::Invisible)),
            &[
                ("off", None),
                ("visible_non_interactive", Some(TurnstileMode::VisibleNonInteractive)),
                ("visible_managed", Some(TurnstileMode::VisibleManaged)),
            ],
        );
        let action = self.pick("turnstile_action", TurnstileAction::NAMES, TurnstileAction::ALL);
        let field = "turnstile_sitekey";
        let Some(sitekey) = self.text(field, "0x4AAAAAAA...") else {
            let is_wrong = self.errors.iter().any(|error| error.field.starts_with("turnstile_"));
            let mut fields = ["turnstile_mode", "turnstile_action"].into_iter().filter(|_| !is_wrong);
            let named = fields.find(|of| self.get(of).is_some());
            if let Some(named) = named.filter(|_| mode.is_some() && self.get(field).is_none()) {
                let value = self.get(named).cloned().unwrap_or_default();
                let fix = "add turnstile_sitekey, the site key of your Turnstile widget, or remove this";
                self.refuse(named, &value, "needs turnstile_sitekey", fix);
            }
            return None;
        };
        let is_key = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
        if !(1..=SITEKEY_MAX).contains(&sitekey.len()) || !sitekey.bytes().all(is_key) {
            let message = format!("must be 1 to {SITEKEY_MAX} letters, digits, \"_\", \"-\" or \".\"");
            self.refuse(field, &Value::from(sitekey), message, "copy the site key of your Turnstile widget");
        }
        Some(Turnstile { mode: mode?, action, sitekey: sitekey.to_owned() })
    }
}
