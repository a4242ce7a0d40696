//! Which requests of visitors who are not in concern their room: what starts a visit, and what does not.

use crate::bypass::fields::Fact;
use crate::bypass::{Request, Source, extension, is_so_in_each_reading};
use crate::room::{Count, QueueingMethod, Room};

/// Destinations of requests that show a page to somebody (`Sec-Fetch-Dest`).
const PAGES: [&str; 5] = ["document", "iframe", "frame", "embed", "object"];
/// Destinations of requests for what pages consist of.
const PARTS: [&str; 8] = ["image", "style", "script", "font", "audio", "video", "track", "manifest"];
/// Headers by which a browser says that nobody has asked for a page yet.
const PURPOSES: [&str; 2] = ["sec-purpose", "purpose"];

/// Whom a request of a visitor who is not in concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Concern {
    /// The room: it lets the visitor in, or the visitor waits.
    Room,
    /// The origin alone: it goes there uncounted and without a ticket.
    Origin,
    /// Nobody yet: a browser loads a page in advance, or shows a page of another site that has an image from here, say. Told
    /// that it cannot, it asks again on a real visit.
    Nobody,
}

/// Whom a request concerns. `asks_for_status`: the waiting page's script sends it.
pub fn concern(room: &Room, request: &Request, asks_for_status: bool) -> Concern {
    let source = request.source;
    let method = source.told(Fact::Method).unwrap_or_default();
    if asks_for_status {
        Concern::Room
    } else if is_preflight(source, &method) || is_exempt(room, request) {
        Concern::Origin
    } else if is_in_advance(source) {
        Concern::Nobody
    } else if room.count == Count::All {
        let has_limits = room.queueing_method != QueueingMethod::Passthrough;
        if has_limits && is_part_of_another_site(source) { Concern::Nobody } else { Concern::Room }
    } else if is_page(request) {
        Concern::Room
    } else {
        Concern::Origin
    }
}

/// Whether a browser fetches a part of a page of another site: a newsletter's image, say. No visitor of this site has come, and
/// whoever means to could send such headers, so it must not lead to the origin either.
fn is_part_of_another_site(source: &dyn Source) -> bool {
    let told = |name| source.header(name).unwrap_or_default();
    told("sec-fetch-site").trim() == "cross-site" && PARTS.contains(&told("sec-fetch-dest").trim())
}

/// Whether a browser asks if it may send a request of a script: it takes no page for an answer. It sends neither a body nor
/// credentials with that; who does means something else.
fn is_preflight(source: &dyn Source, method: &str) -> bool {
    let has = |name| source.header(name).is_some();
    method == "OPTIONS"
        && has("access-control-request-method")
        && has("origin")
        && !has("cookie")
        && !has("authorization")
        && source.told(Fact::Body).is_none()
}

/// Whether the path ends in an extension that the owner exempts, in each of its readings.
fn is_exempt(room: &Room, request: &Request) -> bool {
    !room.exempt_extensions.is_empty()
        && is_so_in_each_reading(request.path, |path| {
            let ending = extension(path);
            room.exempt_extensions.iter().any(|exempt| exempt.eq_ignore_ascii_case(ending))
        })
}

fn is_in_advance(source: &dyn Source) -> bool {
    let is_told = |header: Option<String>| {
        header.is_some_and(|purpose| {
            let purpose = purpose.to_ascii_lowercase();
            purpose.contains("prefetch") || purpose.contains("prerender")
        })
    };
    PURPOSES.iter().any(|name| is_told(source.header(name)))
}

/// Whether somebody gets to see the answer as a page. Browsers say so; of those that do not, whoever takes HTML does.
pub fn is_page(request: &Request) -> bool {
    let source = request.source;
    if let Some(destination) = source.header("sec-fetch-dest") {
        return PAGES.contains(&destination.trim());
    }
    let accepts = source.header("accept").unwrap_or_default();
    matches!(source.told(Fact::Method).as_deref(), Some("GET" | "HEAD"))
        && accepts.to_ascii_lowercase().contains("text/html")
}
