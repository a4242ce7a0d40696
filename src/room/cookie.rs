//! The ticket cookie, as the room's owner has it.

use super::choices::choices;
use crate::url::path::push_encoded;

/// Attributes of the ticket cookie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CookieAttributes {
    /// The `SameSite` attribute.
    pub samesite: SameSite,
    /// The `Secure` attribute.
    pub secure: Secure,
    /// The `Partitioned` attribute (CHIPS): inside pages of other sites each of them has a ticket of its own. With
    /// `SameSite=None` only, and then unless it is switched off.
    pub partitioned: bool,
}

choices! {
    /// `SameSite` of the ticket cookie.
    SameSite {
        /// `Lax`.
        Auto = "auto",
        /// `Lax`.
        Lax = "lax",
        /// `None`; the cookie is then always `Secure`.
        None = "none",
        /// `Strict`.
        Strict = "strict",
    }
}

choices! {
    /// `Secure` of the ticket cookie.
    Secure {
        /// On requests that came over HTTPS.
        Auto = "auto",
        /// Always.
        Always = "always",
        /// Never.
        Never = "never",
    }
}

/// Browsers ignore a cookie's attribute that is longer (RFC 6265bis, section 5.6), in bytes.
const MAX_PATH_LENGTH: usize = 1024;
/// The cookie's `Path` for a room's path.
///
/// Browsers compare it byte for byte with the path of a request as they encode it, so it has to be spelled as
/// they spell it (URL standard, path percent-encode set). Where the spelling is not certain, or cannot stand in an
/// attribute (`;` is never encoded in a URL, but ends an attribute), the path ends above that segment: a cookie that
/// is sent too often does no harm, since it opens for its own room only; one that is not sent loses the place.
/// `any_case`: requests may spell it in capitals and small letters, so it ends above the first segment with letters.
pub(super) fn cookie_path(path: &str, any_case: bool) -> String {
    let mut written = String::with_capacity(path.len());
    for segment in path.split('/').filter(|segment| !segment.is_empty()) {
        let whole_segments = written.len();
        written.push('/');
        let has_case = |byte: u8| byte.is_ascii_alphabetic() || !byte.is_ascii();
        let is_certain = !(any_case && segment.bytes().any(has_case))
            && segment.bytes().all(|byte| push_as_browsers_do(&mut written, byte));
        if !is_certain || written.len() > MAX_PATH_LENGTH {
            written.truncate(whole_segments);
            break;
        }
    }
    if written.is_empty() {
        written.push('/');
    }
    written
}

/// That `Path` as a request's path spells it (`/sale.json`, `/index.php/sale`): elsewhere browsers would not send the
/// cookie back to it. `None`: as ever.
pub(super) fn spelled<'a>(path: &str, asked: &'a str) -> Option<&'a str> {
    let end = asked.find(path)? + path.len();
    let rest = asked.get(end..)?;
    let spelled = asked.get(..end + rest.find('/').unwrap_or(rest.len()))?;
    (path != "/" && !spelled.contains(';') && spelled.len() <= MAX_PATH_LENGTH).then_some(spelled)
}

/// Appends a byte of a decoded path as browsers write it into a URL; `false` when they do not agree on it.
fn push_as_browsers_do(written: &mut String, byte: u8) -> bool {
    match byte {
        // `^` is new in the encode set, the others are left alone by some and encoded by some; a `%` that encodes
        // nothing is sent as it is or as `%25`, depending on who wrote the link.
        b';' | b'%' | b'^' | b'|' | b'\'' | b'[' | b']' | b'\\' => return false,
        _ => push_encoded(written, byte),
    }
    true
}
