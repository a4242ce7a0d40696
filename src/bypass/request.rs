//! A request as rules see it.

use std::borrow::Cow;
use std::net::IpAddr;

use super::fields::{Fact, Map, TextField};
use crate::url::bare_host;

/// Where the visitor's address stands.
const ADDRESS_HEADER: &str = "cf-connecting-ip";
/// What the platform calls the crawlers of search engines.
const SEARCH_ENGINE: &str = "Search Engine Crawler";
/// How many texts of one name are looked at.
const MAX_OF_ONE_NAME: usize = 64;

/// What a rule may ask for and nobody needs otherwise; read only then.
pub trait Source {
    /// A header, by its name in lower case. Several of one name are one text, with `, ` between them.
    fn header(&self, name: &str) -> Option<String>;
    /// What the platform knows; `None`: nothing.
    fn told(&self, fact: Fact) -> Option<String>;
}

/// A request.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// Whether it came over HTTPS.
    pub https: bool,
    /// The host, in lower case; a port is ignored.
    pub host: &'a str,
    /// The path, as it came.
    pub path: &'a str,
    /// What follows the path's `?`; `None` where there is none.
    pub query: Option<&'a str>,
    /// All else.
    pub source: &'a dyn Source,
}

impl Request<'_> {
    pub(super) fn text(&self, field: TextField) -> Cow<'_, str> {
        let owned = |text: Option<String>| Cow::Owned(text.unwrap_or_default());
        match field {
            TextField::Host => Cow::Borrowed(bare_host(self.host)),
            TextField::Path => Cow::Borrowed(self.path),
            TextField::Extension => Cow::Owned(extension(self.path).to_ascii_lowercase()),
            TextField::Query => Cow::Borrowed(self.query.unwrap_or_default()),
            TextField::Uri => Cow::Owned(self.uri()),
            TextField::FullUri => {
                let scheme = if self.https { "https" } else { "http" };
                Cow::Owned([scheme, "://", bare_host(self.host), &self.uri()].concat())
            }
            TextField::Header(name) => owned(self.source.header(name)),
            TextField::Told(fact) => owned(self.source.told(fact)),
        }
    }

    fn uri(&self) -> String {
        match self.query {
            None => self.path.to_owned(),
            Some(query) => [self.path, "?", query].concat(),
        }
    }

    /// The number of the visitor's network; 0 where it is not known.
    pub(super) fn network_number(&self) -> u64 {
        self.source.told(Fact::Network).and_then(|number| number.parse().ok()).unwrap_or_default()
    }

    /// The visitor's address.
    pub(super) fn address(&self) -> Option<IpAddr> {
        let address: IpAddr = self.source.header(ADDRESS_HEADER)?.trim().parse().ok()?;
        Some(address.to_canonical())
    }

    pub(super) fn is_verified_bot(&self) -> bool {
        category(self.source).is_some() || is_verified(self.source)
    }

    /// Calls with each text of this name, in their order, until one answers `false`.
    pub(super) fn each(&self, map: Map, name: &str, mut next: impl FnMut(&str) -> bool) {
        let pairs = |text: &str, between: char, next: &mut dyn FnMut(&str) -> bool| {
            text.split(between)
                .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
                .map(|(key, value)| (key.trim_ascii(), value.trim_ascii()))
                .filter(|(key, _)| *key == name)
                .take(MAX_OF_ONE_NAME)
                .all(|(_, value)| next(value));
        };
        match map {
            Map::Headers => {
                if let Some(text) = self.source.header(name) {
                    next(&text);
                }
            }
            Map::Cookies => pairs(&self.source.header("cookie").unwrap_or_default(), ';', &mut next),
            Map::Arguments => pairs(self.query.unwrap_or_default(), '&', &mut next),
        }
    }

    /// The text of this name at an index; empty where there is none.
    pub(super) fn item(&self, map: Map, name: &str, index: usize) -> String {
        let mut item = String::new();
        let mut at = 0;
        self.each(map, name, |text| {
            if at == index {
                item.push_str(text);
            }
            at += 1;
            at <= index
        });
        item
    }
}

/// Whether it is the verified crawler of a search engine. Where the platform does not say what kind of bot it is, each
/// verified bot is taken for one.
pub fn is_search_engine(source: &dyn Source) -> bool {
    category(source).map_or_else(|| is_verified(source), |category| category == SEARCH_ENGINE)
}

/// What kind of verified bot it is, where the platform says so.
fn category(source: &dyn Source) -> Option<String> {
    source.told(Fact::BotCategory).filter(|category| !category.is_empty())
}

fn is_verified(source: &dyn Source) -> bool {
    source.told(Fact::VerifiedBot).is_some_and(|told| told == "true")
}

/// What follows the last dot of a path's last segment.
pub(crate) fn extension(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.rsplit_once('.').map_or("", |(_, extension)| extension)
}
