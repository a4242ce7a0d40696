//! The waiting page's part of a room.

use serde_json::Value;

use super::table::Table;
use crate::room::LANGUAGES;

const NAME_MAX: usize = 64;

impl Table<'_> {
    /// `custom_page_html`.
    pub(super) fn template(&mut self) -> String {
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

    /// `default_template_language`.
    pub(super) fn language(&mut self) -> &'static str {
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
}
