//! The checks that speak for a room's origin (`health_checks`).

use super::table::Table;

const CHECKS_MAX: usize = 10;
const CHECK_NAME_MAX: usize = 100;

impl Table<'_> {
    /// The names of the checks that speak for the room.
    pub(super) fn health_checks(&mut self) -> Vec<String> {
        let field = "health_checks";
        let Some(value) = self.get(field) else { return Vec::new() };
        let names: Option<Vec<String>> = value
            .as_array()
            .map(|names| names.iter().map(|name| name.as_str().map(str::to_owned)).collect())
            .unwrap_or_default();
        match names {
            Some(names)
                if names.len() <= CHECKS_MAX
                    && names.iter().all(|name| (1..=CHECK_NAME_MAX).contains(&name.len())) =>
            {
                names
            }
            _ => {
                let message = format!(
                    "must be a list of at most {CHECKS_MAX} names of checks, 1 to {CHECK_NAME_MAX} bytes each"
                );
                self.refuse(
                    field,
                    value,
                    message,
                    "write health_checks = [\"origin\"] for [vars.CHECK_ORIGIN]",
                );
                Vec::new()
            }
        }
    }
}
