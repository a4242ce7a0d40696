//! The envelope of every answer.

use serde_json::{Map, Value, json};

/// What is wrong, as a number: clients show it, and none goes by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// The body is no JSON, or not of the right type.
    Body = 1001,
    /// A field's value.
    Value = 1002,
    /// It is somebody else's already: a name, a route, a time.
    Taken = 1003,
    /// A deploy describes it.
    Deployed = 1004,
    /// There are too many.
    Bound = 1005,
    /// There is no such room, event or rule.
    Unknown = 1006,
    /// The body is too long.
    Long = 1007,
    /// The configuration cannot be reached.
    Away = 1008,
    /// The method.
    Method = 1009,
    /// There is no such endpoint.
    Route = 7003,
    /// Who asks.
    Caller = 10000,
    /// How often.
    Rate = 10100,
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    /// Its number.
    pub code: Code,
    /// In words.
    pub message: String,
    /// Which field, as a JSON pointer; empty: none.
    pub pointer: String,
}

impl Problem {
    /// What is wrong with no field in particular.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), pointer: String::new() }
    }

    /// What is wrong with a page.
    pub fn page(mistake: &str) -> Self {
        Self::at(Code::Value, "/custom_page_html", format!("custom_page_html {mistake}"))
    }

    /// What is wrong with a field.
    pub(super) fn at(code: Code, pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), pointer: pointer.into() }
    }
}

/// An answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// The status code.
    pub status: u16,
    /// The body, JSON.
    pub body: String,
    /// After how many seconds it may be otherwise; 0: nobody knows.
    pub again_seconds: u32,
}

/// Why a request is not answered as its sender wants.
#[derive(Debug)]
pub(super) struct Refused {
    pub status: u16,
    pub problems: Vec<Problem>,
}

impl Refused {
    pub fn new(status: u16, code: Code, message: impl Into<String>) -> Self {
        Self { status, problems: vec![Problem::new(code, message)] }
    }
}

impl From<Vec<Problem>> for Refused {
    fn from(problems: Vec<Problem>) -> Self {
        Self { status: 400, problems }
    }
}

impl From<Problem> for Refused {
    fn from(problem: Problem) -> Self {
        vec![problem].into()
    }
}

impl Reply {
    /// What was asked for.
    pub(super) fn of(result: &Value) -> Self {
        let body = json!({ "success": true, "errors": [], "messages": [], "result": result });
        Self { status: 200, body: body.to_string(), again_seconds: 0 }
    }

    /// A page of a list.
    pub(super) fn page(all: Vec<Value>, page: u64, per_page: u64) -> Self {
        let total = all.len() as u64;
        let skipped = page.saturating_sub(1).saturating_mul(per_page);
        let shown: Vec<Value> =
            all.into_iter().skip(usize::try_from(skipped).unwrap_or(usize::MAX)).take(per_page as usize).collect();
        let info = json!({
            "page": page, "per_page": per_page, "count": shown.len(), "total_count": total,
            "total_pages": total.div_ceil(per_page.max(1)),
        });
        let body = json!({ "success": true, "errors": [], "messages": [], "result": shown, "result_info": info });
        Self { status: 200, body: body.to_string(), again_seconds: 0 }
    }

    /// What is wrong.
    pub fn refusal(status: u16, problems: &[Problem]) -> Self {
        let errors: Vec<Value> = problems
            .iter()
            .map(|Problem { code, message, pointer }| {
                let mut error = Map::new();
                error.insert("code".to_owned(), Value::from(*code as u32));
                error.insert("message".to_owned(), Value::from(message.as_str()));
                if !pointer.is_empty() {
                    error.insert("source".to_owned(), json!({ "pointer": pointer }));
                }
                Value::Object(error)
            })
            .collect();
        let body = json!({ "success": false, "errors": errors, "messages": [], "result": null });
        Self { status, body: body.to_string(), again_seconds: 0 }
    }
}
