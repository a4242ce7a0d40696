//! The host and the path that a room covers.

use serde_json::Value;

use super::table::Table;
use crate::text::shown_text;
use crate::url::path::{self, Reading};

/// The longest host name, in bytes.
const HOST_MAX: usize = 253;
/// The longest part of a host name between two dots, in bytes.
const HOST_LABEL_MAX: usize = 63;
/// The longest path, in bytes.
const PATH_MAX: usize = 1024;
/// Nothing else may be served below this path: it holds Anteroom's own pages on every covered host.
const OWN_PATH: &[u8] = b"/__anteroom";
/// What origins disagree about when it is encoded in a path.
const ENCODED: [&str; 7] = ["%2f", "%5c", "%3b", "%3f", "%23", "%25", "%00"];

impl Table<'_> {
    pub(super) fn host(&mut self) -> Option<String> {
        let given = self.text("host", "shop.example.com")?;
        let host = given.strip_suffix('.').unwrap_or(given).to_ascii_lowercase();
        let bare = host.split_once("://").map_or(host.as_str(), |(_, rest)| rest);
        let bare = bare.split(['/', '?', '#', ':']).next().unwrap_or(bare).to_owned();
        let set_to = |host: &str| format!("write host = \"{}\"", shown_text(host));
        let label = |part: &str| (1..=HOST_LABEL_MAX).contains(&part.len());
        let (message, fix) = if host.is_empty() {
            ("must not be empty".to_owned(), "leave host out to cover every host".to_owned())
        } else if host.contains("://") {
            ("must be a host name without a scheme".to_owned(), set_to(&bare))
        } else if host.contains('*') {
            let fix = "write one room per host, or leave host out to cover every host";
            ("must be one host, wildcards are not available".to_owned(), fix.to_owned())
        } else if host.contains(['/', '?', '#']) {
            (
                "must be a host name without a path".to_owned(),
                format!("{}, and what follows as path", set_to(&bare)),
            )
        } else if host.contains(':') {
            ("must be a host name without a port: a room covers every port".to_owned(), set_to(&bare))
        } else if host.len() > HOST_MAX {
            let message = format!("must be at most {HOST_MAX} bytes long, it has {}", host.len());
            (message, "write the host as the visitor's browser shows it".to_owned())
        } else if !host.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
        {
            let message = "must be letters, digits, \"-\" and \".\"".to_owned();
            (message, "write an international name in its xn-- form, without spaces".to_owned())
        } else if !host.split('.').all(label) {
            let message = format!("must have 1 to {HOST_LABEL_MAX} characters between two dots");
            (message, "write the host as the visitor's browser shows it".to_owned())
        } else {
            return Some(host);
        };
        self.refuse("host", &Value::from(given), message, &fix);
        None
    }

    pub(super) fn path(&mut self) -> String {
        const ROOT: &str = "/";
        let Some(given) = self.text("path", "/sale") else { return ROOT.to_owned() };
        let lower = given.to_ascii_lowercase();
        let encoded = || ENCODED.iter().filter_map(|escape| lower.find(escape)).min();
        let right = || format!("write path = \"{}\"", shown_text(&valid_path(given, encoded())));
        let (message, fix) = if given.contains("://") {
            let fix = "write what follows the host, and the host as host";
            ("must be a path without scheme and host".to_owned(), fix.to_owned())
        } else if !given.starts_with('/') {
            ("must start with \"/\"".to_owned(), right())
        } else if given.len() > PATH_MAX {
            let message = format!("must be at most {PATH_MAX} bytes long, it has {}", given.len());
            (message, "cover a shorter path: a room covers everything below its path".to_owned())
        } else if given.contains('*') {
            ("must not have a wildcard: a room covers everything below its path".to_owned(), right())
        } else if given.contains('?') {
            ("must not have a query: a room covers its path with every query".to_owned(), right())
        } else if given.contains('#') {
            ("must not have a fragment: browsers do not send it".to_owned(), right())
        } else if given.contains(';') {
            ("must not have parameters: a room covers its path with all of them".to_owned(), right())
        } else if given.contains('\\') {
            ("must part its segments by \"/\"".to_owned(), right())
        } else if encoded().is_some() {
            let message =
                "must not have an encoded / \\ ; ? # % or NUL: origins disagree about them".to_owned();
            (message, "cover the path above it".to_owned())
        } else {
            let path = match path::read(given.as_bytes()) {
                Reading::Plain(path) => String::from_utf8(path.into_owned()).ok(),
                Reading::Tangled(_) => None,
            };
            match path {
                Some(path) if path::is_below(path.as_bytes(), OWN_PATH) => {
                    let message = "must not be below /__anteroom: these pages are Anteroom's own".to_owned();
                    (message, "cover a path of the origin".to_owned())
                }
                Some(path) if !path.contains(char::is_control) => return path,
                _ => {
                    let message = "must be UTF-8 text without control characters".to_owned();
                    (message, "write the path as the browser's address bar shows it".to_owned())
                }
            }
        };
        self.refuse("path", &Value::from(given), message, &fix);
        ROOT.to_owned()
    }
}

/// The longest path that begins as this one and may be a room's. `encoded`: where the first of [`ENCODED`] is.
fn valid_path(given: &str, encoded: Option<usize>) -> String {
    let end = given.find(['*', '?', '#', ';']).unwrap_or(given.len());
    let above =
        |at: usize| given.get(..at).and_then(|start| start.rsplit_once('/')).map_or("", |(above, _)| above);
    let kept = match encoded.filter(|at| *at < end) {
        Some(at) => above(at),
        None => given.get(..end).unwrap_or_default(),
    };
    let slashed = format!("/{}", kept.replace('\\', "/"));
    match String::from_utf8(path::normalise(slashed.as_bytes()).into_owned()) {
        // What was encoded is not now, and would be taken for a wildcard.
        Ok(path)
            if !path::is_below(path.as_bytes(), OWN_PATH)
                && !path.contains(char::is_control)
                && !path.contains(['*', '?', '#', ';', '\\']) =>
        {
            path
        }
        _ => "/".to_owned(),
    }
}
