//! The ticket's cookie in the request's and the answer's headers.

use crate::room::{Room, SameSite, Secure};

/// How much of a `Cookie` header is looked at, in bytes.
const MAX_HEADER_LENGTH: usize = 64 * 1024;
/// How many cookies of one name are candidates.
const MAX_CANDIDATES: usize = 4;

/// The values that a `Cookie` header holds under a name (which is case-sensitive), in their order and without quotes
/// around them. Browsers send one for every path that the name was set for, the longest path first; the caller tries
/// each. At most the first 4 that are not empty, from the first 64 KiB of the header.
///
/// Cookies are parted by `;`, and by `,`: that is what joined headers look like, and a sealed ticket has none.
pub fn find_cookie<'a>(header: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    pairs(header.get(..header.floor_char_boundary(MAX_HEADER_LENGTH)).unwrap_or_default())
        .filter_map(move |pair| {
            let rest = pair.trim_ascii_start().strip_prefix(name)?;
            Some(unquoted(rest.trim_ascii_start().strip_prefix('=')?.trim_ascii()))
        })
        .filter(|value| !value.is_empty())
        .take(MAX_CANDIDATES)
}

/// What stands between `;` and `,`. By bytes: it is done for every request, and the site's own cookies may be long.
fn pairs(header: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(header);
    std::iter::from_fn(move || {
        let text = rest?;
        let end = text.bytes().position(|byte| matches!(byte, b';' | b','));
        rest = end.and_then(|end| text.get(end + 1..));
        text.get(..end.unwrap_or(text.len()))
    })
}

fn unquoted(value: &str) -> &str {
    value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap_or(value)
}

/// The value of a `Set-Cookie` header for a sealed ticket: `HttpOnly`, limited to the room's path as `asked`, the request's
/// path, spells it, with `SameSite`, `Secure` and `Partitioned` as the room says. `https`: the request came over HTTPS.
/// `SameSite=None` is always `Secure`, because browsers drop it otherwise. An empty value with an age of 0 takes the ticket
/// away.
pub fn set_cookie(room: &Room, asked: &str, value: &str, max_age_seconds: u64, https: bool) -> String {
    let same_site = match room.cookie_attributes.samesite {
        SameSite::Auto | SameSite::Lax => "Lax",
        SameSite::None => "None",
        SameSite::Strict => "Strict",
    };
    let is_secure = match room.cookie_attributes.secure {
        _ if room.cookie_attributes.samesite == SameSite::None => true,
        Secure::Auto => https,
        Secure::Always => true,
        Secure::Never => false,
    };
    let domain = if room.cookie_domain.is_empty() { "" } else { "; Domain=" };
    format!(
        "{}={value}; Path={}{domain}{}; Max-Age={max_age_seconds}; HttpOnly; SameSite={same_site}{}{}",
        room.cookie_name(),
        room.cookie_path_at(asked),
        room.cookie_domain,
        if is_secure { "; Secure" } else { "" },
        if room.cookie_attributes.partitioned { "; Partitioned" } else { "" },
    )
}
