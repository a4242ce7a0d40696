//! What bypass rules ask for, read from the platform when they do.

use js_sys::Reflect;
use wasm_bindgen::JsValue;

use super::gate::{Request, parts};
use super::settings::Settings;
use crate::bypass::fields::Fact;
use crate::bypass::{self, Source};
use crate::concern::{self, Concern};
use crate::room::Room;

/// Whether a request goes past a room: by a rule, or as a search engine's crawler.
pub fn is_bypassed(settings: &Settings, room: &Room, request: &Request) -> bool {
    let source = Platform(&request.inner);
    if settings.crawlers_bypass && bypass::is_search_engine(&source) {
        return true;
    }
    bypass::is_bypassed(&room.bypass_rules, &seen(request, &source))
}

/// Whom a request of a visitor who is not in concerns.
pub fn concern(room: &Room, request: &Request) -> Concern {
    concern::concern(room, &seen(request, &Platform(&request.inner)), request.asks_for_status)
}

/// Whether somebody gets to see the answer as a page, or by the waiting page's script.
pub fn is_seen(request: &Request) -> bool {
    request.asks_for_status || concern::is_page(&seen(request, &Platform(&request.inner)))
}

/// A request as rules see it.
fn seen<'a>(request: &'a Request, source: &'a Platform) -> bypass::Request<'a> {
    let (https, host, path) = parts(&request.url);
    let sent = request.url.split('#').next().unwrap_or_default();
    let query = sent.split_once('?').map(|(_, query)| query);
    bypass::Request { https, host, path, query, source }
}

struct Platform<'a>(&'a web_sys::Request);

impl Source for Platform<'_> {
    fn header(&self, name: &str) -> Option<String> {
        // A name that no header can have is refused by the platform.
        self.0.headers().get(name).ok().flatten()
    }

    fn told(&self, fact: Fact) -> Option<String> {
        let of = |place: &JsValue, name: &str| {
            place.is_object().then(|| Reflect::get(place, &JsValue::from_str(name)).ok()).flatten()
        };
        let cf = of(self.0, "cf").unwrap_or(JsValue::UNDEFINED);
        match fact {
            Fact::Method => Some(self.0.method()),
            // The platform makes a body of an announced nothing too.
            Fact::Body => {
                self.0.body().filter(|_| self.header("content-length").as_deref() != Some("0"))?;
                Some("true".to_owned())
            }
            Fact::Country => of(&cf, "country")?.as_string(),
            Fact::Continent => of(&cf, "continent")?.as_string(),
            Fact::Network => of(&cf, "asn")?.as_f64().map(|number| (number as u64).to_string()),
            Fact::BotCategory => of(&cf, "verifiedBotCategory")?.as_string(),
            Fact::VerifiedBot => {
                let told = of(&of(&cf, "botManagement")?, "verifiedBot")?.as_bool()?;
                Some(told.to_string())
            }
        }
    }
}
