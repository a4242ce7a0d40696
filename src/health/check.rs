//! Checks of our own, ready to use, and the request that a probe sends.

use litemap::LiteMap;
use serde_json::Value;

pub use super::parse::parse_check;
use crate::config::{ConfigError, Part};
pub use crate::url::Url;

/// The most checks a deployment may have. The page shows all of them, and the coordinator takes in the results of all
/// their observers.
pub const MAX_CHECKS: usize = 32;
/// How many observers look at the origin from each region.
pub const OBSERVERS: u8 = 3;
/// A body is searched for the expected text in its first bytes only, as the platform's checks do.
pub const SEARCHED_BODY: usize = 10_240;

/// Where observers can be.
#[derive(Debug, PartialEq, Eq)]
pub struct Region {
    /// As the platform's health checks call it.
    pub name: &'static str,
    /// The platform's location hint for objects that is nearest to it. Some regions share one.
    pub hint: &'static str,
    /// In words.
    pub title: &'static str,
}

/// Every region.
pub static REGIONS: [Region; 13] = [
    Region { name: "WNAM", hint: "wnam", title: "Western North America" },
    Region { name: "ENAM", hint: "enam", title: "Eastern North America" },
    Region { name: "WEU", hint: "weur", title: "Western Europe" },
    Region { name: "EEU", hint: "eeur", title: "Eastern Europe" },
    Region { name: "NSAM", hint: "sam", title: "Northern South America" },
    Region { name: "SSAM", hint: "sam", title: "Southern South America" },
    Region { name: "OC", hint: "oc", title: "Oceania" },
    Region { name: "ME", hint: "me", title: "Middle East" },
    Region { name: "NAF", hint: "afr", title: "Northern Africa" },
    Region { name: "SAF", hint: "afr", title: "Southern Africa" },
    Region { name: "IN", hint: "apac", title: "India" },
    Region { name: "SEAS", hint: "apac", title: "South East Asia" },
    Region { name: "NEAS", hint: "apac", title: "North East Asia" },
];
impl Region {
    /// The region of this name, whatever its case.
    pub fn named(name: &str) -> Option<&'static Self> {
        REGIONS.iter().find(|region| region.name.eq_ignore_ascii_case(name))
    }
}

/// A check that is valid, with every default filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// What follows `CHECK_` in its var's name, in lower case.
    pub name: String,
    /// What is looked at.
    pub target: Target,
    /// Seconds from one probe of an observer to its next, 5 to 3,600.
    pub interval: u32,
    /// Seconds that a probe may take, 1 to 10, less than the interval.
    pub timeout: u32,
    /// How often a probe is repeated at once when it took too long, 0 to 5.
    pub retries: u32,
    /// How many probes of an observer in a row must fail before it says that the origin is unhealthy.
    pub consecutive_fails: u32,
    /// How many must succeed before it says that the origin is healthy.
    pub consecutive_successes: u32,
    /// What an HTTP answer must be.
    pub http: HttpRules,
    /// Where the observers are; at least one, none twice.
    pub regions: Vec<&'static Region>,
    /// Nothing is probed.
    pub suspended: bool,
    /// What its owner says about it; may be empty.
    pub description: String,
}

/// What a check looks at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// An HTTP server's answer.
    Http(Url),
    /// Whether a TCP connection comes about.
    Tcp {
        /// A name or an address, IPv6 in brackets.
        host: String,
        /// The port.
        port: u16,
    },
}

/// Of a check that speaks HTTP.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HttpRules {
    /// Ask with `HEAD` instead of `GET`.
    pub head: bool,
    /// Status codes (`200`) and classes of them (`2xx`) that are healthy.
    pub expected_codes: Vec<String>,
    /// Text that must be in the body, whatever its case; empty: none.
    pub expected_body: String,
    /// Go where an answer leads, instead of judging it.
    pub follow_redirects: bool,
    /// Headers that the request carries.
    pub headers: Vec<(String, String)>,
}

impl Check {
    /// The status codes that it expects, as they are shown; empty for a check that does not speak HTTP.
    pub fn expected_codes(&self) -> String {
        self.http.expected_codes.join(", ")
    }

    /// Whether a status code is one of the expected.
    pub fn expects(&self, code: u16) -> bool {
        let code = code.to_string();
        self.http.expected_codes.iter().any(|expected| {
            expected.len() == code.len()
                && expected.bytes().zip(code.bytes()).all(|(want, got)| want == b'x' || want == got)
        })
    }

    /// The interval in milliseconds.
    pub fn interval_ms(&self) -> u64 {
        u64::from(self.interval) * 1_000
    }

    /// What a probe may take, in milliseconds.
    pub fn timeout_ms(&self) -> u32 {
        self.timeout * 1_000
    }

    /// The longest time from one result of a live observer to its next, in milliseconds.
    pub fn longest_gap_ms(&self) -> u64 {
        self.interval_ms().max(u64::from((1 + self.retries) * self.timeout_ms()))
    }

    /// Whether a URL is on the server that it looks at.
    pub fn is_own(&self, url: &Url) -> bool {
        matches!(&self.target, Target::Http(own) if own.is_beside(url))
    }

    /// The headers that go to a URL: none of them go to another server that an answer leads to.
    fn headers(&self, url: &Url) -> impl Iterator<Item = &(String, String)> {
        let own = self.is_own(url);
        self.http.headers.iter().filter(move |_| own)
    }

    /// The HTTP request that an observer sends. `who` tells the origin's owner which observer it was.
    pub fn request(&self, url: &Url, who: &str) -> String {
        let method = if self.http.head { "HEAD" } else { "GET" };
        let mut request = format!("{method} {} HTTP/1.1\r\n", url.path);
        let mut add = |name: &str, value: &str| {
            for part in [name, ": ", value, "\r\n"] {
                request.push_str(part);
            }
        };
        let has = |wanted: &str| self.headers(url).any(|(name, _)| name.eq_ignore_ascii_case(wanted));
        if !has("host") {
            add("Host", &url.authority());
        }
        if !has("accept") {
            add("Accept", "*/*");
        }
        add("User-Agent", &format!("Anteroom-Health-Check/1 ({who})"));
        add("Accept-Encoding", "identity");
        add("Connection", "close");
        for (name, value) in self.headers(url) {
            add(name, value);
        }
        request.push_str("\r\n");
        request
    }
}

/// All checks of a deployment.
#[derive(Debug, Clone, Default)]
pub struct Checks {
    checks: Vec<Check>,
}

impl Checks {
    /// Builds the checks from all vars of the Worker; vars whose names do not start with `CHECK_` are passed over.
    ///
    /// A check with errors is left out and leaves the others unharmed. Of two with the same name the later one is an
    /// error; so is every one after the first [`MAX_CHECKS`]. The errors of all checks are returned too.
    pub fn from_vars(vars: impl Iterator<Item = (String, Value)>) -> (Self, Vec<ConfigError>) {
        let mut by_name: LiteMap<String, Value> = LiteMap::new();
        for (name, value) in vars.filter(|(name, _)| name.starts_with(Part::Check.var_prefix())) {
            by_name.insert(name, value);
        }
        let (mut all, mut errors) = (Self::default(), Vec::new());
        for (var_name, value) in by_name.iter() {
            match parse_check(var_name, value).and_then(|check| all.fitting(check)) {
                Ok(check) => all.checks.push(check),
                Err(found) => errors.extend(found),
            }
        }
        (all, errors)
    }

    fn fitting(&self, check: Check) -> Result<Check, Vec<ConfigError>> {
        let (message, fix) = if self.get(&check.name).is_some() {
            (
                "is the name of another check too: names are compared in lower case".to_owned(),
                "rename one of the two vars".to_owned(),
            )
        } else if self.checks.len() >= MAX_CHECKS {
            (
                format!("is one check too many: a deployment has at most {MAX_CHECKS}"),
                "remove a check".to_owned(),
            )
        } else {
            return Ok(check);
        };
        let value = format!("\"{}\"", check.name);
        Err(vec![ConfigError {
            part: Part::Check,
            name: check.name,
            field: "name".to_owned(),
            value,
            message,
            fix,
            excerpt: String::new(),
        }])
    }

    /// The check of this name (in lower case).
    pub fn get(&self, name: &str) -> Option<&Check> {
        self.checks.iter().find(|check| check.name == name)
    }

    /// The checks that are valid, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Check> {
        self.checks.iter()
    }

    /// How many are valid.
    pub fn len(&self) -> usize {
        self.checks.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.checks.is_empty()
    }
}
