//! The field `bypass_rules` of a room.

use serde_json::Value;

use super::table::Table;
use crate::bypass::{BypassRule, Expression, MAX_RULES};

const FIELD: &str = "bypass_rules";
const RULE_FIELDS: [&str; 3] = ["expression", "description", "enabled"];
const EXAMPLE: &str = "starts_with(http.request.uri.path, \\\"/status\\\")";

impl<'a> Table<'a> {
    /// A list of expressions, or of tables with an expression.
    pub(super) fn bypass_rules(&mut self) -> Vec<BypassRule> {
        let Some(value) = self.get(FIELD) else { return Vec::new() };
        let Some(given) = value.as_array().filter(|given| given.len() <= MAX_RULES) else {
            self.refuse_as(FIELD, value, || {
                (
                    format!("must be a list of at most {MAX_RULES} rules"),
                    format!("write {FIELD} = [\"{EXAMPLE}\"]"),
                )
            });
            return Vec::new();
        };
        given.iter().enumerate().filter_map(|(index, rule)| self.bypass_rule(index + 1, rule)).collect()
    }

    /// The rule at a place of the list, counted from 1.
    fn bypass_rule(&mut self, place: usize, rule: &'a Value) -> Option<BypassRule> {
        let (expression, description, enabled) = match rule {
            Value::String(expression) => (expression.as_str(), String::new(), true),
            Value::Object(fields) => self.within("bypass_rules.", Some(fields), |rule| {
                rule.unknown(&RULE_FIELDS);
                let Some(expression) = rule.text("expression", EXAMPLE) else {
                    if rule.get("expression").is_none() {
                        let fix = format!("write {{ expression = \"{EXAMPLE}\" }}");
                        rule.refuse_shown(
                            "expression",
                            "(not set)".to_owned(),
                            "is required".to_owned(),
                            &fix,
                        );
                    }
                    return None;
                };
                let description = rule.text("description", "our office").unwrap_or_default().to_owned();
                let enabled = rule.get("enabled").is_none() || rule.flag("enabled");
                Some((expression, description, enabled))
            })?,
            other => {
                self.refuse_as(FIELD, other, || {
                    (
                        format!(
                            "is rule {place}, which must be an expression in quotes, or a table with one"
                        ),
                        format!("write \"{EXAMPLE}\""),
                    )
                });
                return None;
            }
        };
        match Expression::parse(expression) {
            Ok(expression) => Some(BypassRule { expression, description, enabled }),
            Err(error) => {
                self.refuse_as(FIELD, &Value::from(expression), || {
                    (format!("is rule {place}; column {}: {}", error.column, error.message), error.fix)
                });
                self.show_excerpt(error.excerpt);
                None
            }
        }
    }
}
