//! The waiting page's part of a room.

use serde_json::Value;

use super::parse::Table;
use crate::room::{LANGUAGES, PageSettings};

const NAME_MAX: usize = 64;
const MESSAGE_MAX: usize = 500;

impl Table<'_> {
    pub(super) fn page(&mut self) -> PageSettings {
        PageSettings {
            template: self.template(),
            language: self.language(),
            visitor_languages: self.flag_unless_off("visitor_languages"),
            exact_json: self.flag("json_response_enabled"),
            preferred_json: self.choice("json_response", ("auto", true), &[("off", false)]),
            message: self.message(),
            position: self.flag_unless_off("show_position"),
            wait: self.flag_unless_off("show_wait"),
            progress: self.flag_unless_off("show_progress"),
        }
    }

    /// `true` or `false`; `true` when it is not set.
    fn flag_unless_off(&mut self, field: &str) -> bool {
        self.get(field).is_none() || self.flag(field)
    }

    fn template(&mut self) -> String {
        let field = "custom_page_html";
        let Some(name) = self.text(field, "sale").filter(|name| !name.is_empty()) else {
            return String::new();
        };
        let fits = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
        if name.len() <= NAME_MAX && fits {
            return name.to_owned();
        }
        let message = format!("must be a name of 1 to {NAME_MAX} letters, digits, \"_\" or \"-\"");
        let fix = "put the template into static/pages/sale.html and write custom_page_html = \"sale\"";
        self.refuse(field, &Value::from(name), message, fix);
        String::new()
    }

    fn language(&mut self) -> &'static str {
        let (field, default) = ("default_template_language", "en-US");
        let Some(given) = self.text(field, default) else { return default };
        if let Some(language) = LANGUAGES.iter().find(|known| **known == given) {
            return language;
        }
        self.refuse_as(field, &Value::from(given), || {
            let primary = given.split(['-', '_']).next().unwrap_or(given).to_ascii_lowercase();
            let meant = LANGUAGES.iter().find(|known| known.split('-').next() == Some(primary.as_str()));
            let fix = match meant {
                Some(meant) => format!("write {field} = \"{meant}\""),
                None => format!("leave it out for \"{default}\""),
            };
            (format!("must be one of {}", LANGUAGES.join(", ")), fix)
        });
        default
    }

    pub(super) fn message(&mut self) -> String {
        let field = "message";
        let Some(message) = self.text(field, "Seats are left for all three evenings.") else {
            return String::new();
        };
        if message.chars().count() <= MESSAGE_MAX && !message.chars().any(char::is_control) {
            return message.to_owned();
        }
        let rule = format!("must be one line of at most {MESSAGE_MAX} characters");
        self.refuse(
            field,
            &Value::from(message),
            rule,
            "shorten it, or put what is longer into a custom page",
        );
        String::new()
    }
}
