//! Which requests of a room start a visit: the fields `count` and `exempt_extensions`.

use serde_json::Value;

use super::table::Table;

const MAX_EXTENSIONS: usize = 50;
const MAX_LENGTH: usize = 16;
const EXTENSIONS: &str = "exempt_extensions";

impl Table<'_> {
    /// Extensions of paths, in lower case and without dot.
    pub(super) fn exempt_extensions(&mut self) -> Vec<String> {
        let Some(value) = self.get(EXTENSIONS) else { return Vec::new() };
        let is_extension = |text: &str| {
            (1..=MAX_LENGTH).contains(&text.len())
                && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        };
        let read = |one: &Value| one.as_str().filter(|text| is_extension(text)).map(str::to_owned);
        let all = value.as_array().filter(|all| all.len() <= MAX_EXTENSIONS);
        if let Some(extensions) = all.and_then(|all| all.iter().map(read).collect()) {
            return extensions;
        }
        self.refuse_as(EXTENSIONS, value, || {
            (
                format!(
                    "must be a list of at most {MAX_EXTENSIONS} extensions of 1 to {MAX_LENGTH} small letters and digits"
                ),
                format!("write them without dots, for example {EXTENSIONS} = [\"css\", \"js\", \"woff2\"]"),
            )
        });
        Vec::new()
    }
}
