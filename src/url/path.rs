//! One spelling for every path, so that nobody walks around a room.
//!
//! The same page can be asked for in many spellings: `/sale`, `//sale`, `/%73ale`, `/x/../sale`, `/x/..%2fsale`,
//! `/sale;v=1`, `/sale.`, `/%u0073ale`. Which of them an origin takes for the same page differs: some decode `%2f`, some
//! drop what follows a `;`, some decode twice, some name files by Windows' rules. [`normalise`] therefore reads a path in
//! the widest way: everything that any origin could decode, split or drop is decoded, split and dropped. Rooms have plain
//! paths (the parser sees to it), so a path that some origin reads as below a room is below it in the widest reading too.
//! Two cases are left: `..` segments that only some origins see (`/x/..%2fsale`), and control characters, at which some
//! origins begin or end the path (`/sale%0a`). Each origin starts from a different place, so there is no single reading.
//! No honest client writes such a path; [`Reading::Tangled`] keeps its words, and every room that can be spelled with
//! them, in their order, may be the one it leads to.
//!
//! Work is linear in the length of the path, and a path that is already plain is not copied.

use std::borrow::Cow;

/// How a request's path reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reading<'a> {
    /// Every origin goes to the same place, or to less than it. The path is normalised.
    Plain(Cow<'a, [u8]>),
    /// It climbs with `..` segments that only some origins see, or has control characters.
    Tangled(Tangle),
}

/// Whether an encoded slash or backslash stands in a segment's parameters. An origin that drops these before it decodes, or to
/// which a backslash is none, never sees what follows: to it `/sale;a%2fb.js` is `/sale`.
pub fn hides_separator(path: &[u8]) -> bool {
    path.split(|byte| *byte == b'/').any(|segment| {
        let mut decoded = Vec::new();
        for byte in segment {
            push_decoded(&mut decoded, *byte);
        }
        decoded.iter().skip_while(|byte| **byte != b';').any(|byte| is_separator(*byte))
    })
}

/// The words of a path that has no single reading, decoded, in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tangle {
    decoded: Vec<u8>,
}

/// Reads the path of a request. What follows a literal `?` or `#` is ignored.
pub fn read(path: &[u8]) -> Reading<'_> {
    if let Some(plain) = plain(path) {
        return Reading::Plain(Cow::Borrowed(plain));
    }
    let tangle = Tangle { decoded: decode(path) };
    let is_tangled = tangle.decoded.iter().any(|byte| *byte != 0 && byte.is_ascii_control())
        || tangle.all_words().any(|word| word == b"..");
    if is_tangled { Reading::Tangled(tangle) } else { Reading::Plain(Cow::Owned(resolve(&tangle.decoded))) }
}

/// The one spelling of a path: it starts with `/`, ends without one (but `/` itself), and has no empty segments, no
/// dot segments, no percent-encoding, no backslashes and no `;parameters`, and no segment ends in a dot or a space.
/// Idempotent. The bytes may be any, not only UTF-8; a path that is plain already is borrowed.
pub fn normalise(path: &[u8]) -> Cow<'_, [u8]> {
    match plain(path) {
        Some(plain) => Cow::Borrowed(plain),
        None => Cow::Owned(resolve(&decode(path))),
    }
}

/// Whether a normalised path is `room` or below it, by whole segments: `/sale` has `/sale/x` below it, not `/sales`. Some
/// origins take an extension for the format in which they answer: `/sale.json` is `/sale` too.
pub fn is_below(path: &[u8], room: &[u8]) -> bool {
    room == b"/" || path.strip_prefix(room).is_some_and(ends_room)
}

/// Whether a room's path ends where this follows.
fn ends_room(rest: &[u8]) -> bool {
    match rest.first() {
        None | Some(b'/') => true,
        Some(b'.') => !rest.contains(&b'/'),
        _ => false,
    }
}

/// Where the last segment begins of a path in its one spelling, by the slashes that came as such. A framework that looks
/// for an extension before it decodes takes encoded ones for a part of it: to it, `/sale.x%2fy` is `/sale`.
pub fn last_segment(path: &[u8]) -> usize {
    let end = path.iter().position(|byte| matches!(byte, b'?' | b'#')).unwrap_or(path.len());
    let path = without_end(path.get(..end).unwrap_or(path), b"/\\");
    let above = path.iter().rposition(|byte| is_separator(*byte)).and_then(|slash| path.get(..slash));
    match &*normalise(above.unwrap_or_default()) {
        b"/" => 0,
        above => above.len(),
    }
}

/// What a front controller, in any case, takes a normalised path for; `None`: it stands behind none. `/shop/index.php` takes
/// `/shop/index.php/sale` for `/shop/sale`.
pub fn behind<'a>(path: &'a [u8], controller: &str) -> Option<Cow<'a, [u8]>> {
    let (start, rest) = path.split_at_checked(controller.len())?;
    let is_behind = rest.first() == Some(&b'/') && start.eq_ignore_ascii_case(controller.as_bytes());
    is_behind.then(|| match controller.rsplit_once('/') {
        None | Some(("", _)) => Cow::Borrowed(rest),
        Some((folder, _)) => Cow::Owned([folder.as_bytes(), rest].concat()),
    })
}

impl Tangle {
    /// The words, in their order, without empty ones and dots.
    pub fn words(&self) -> Vec<&[u8]> {
        self.all_words().filter(|word| !matches!(*word, b"" | b"." | b"..")).collect()
    }

    fn all_words(&self) -> impl Iterator<Item = &[u8]> {
        self.decoded.split(|byte| is_separator(*byte) || is_cut(*byte)).map(name)
    }
}

/// Whether a room's path can be spelled with some of these words in their order. `..` only ever takes segments
/// away, so this holds for every room that any origin could find in the path. `any_case`: the words may be in capitals
/// and small letters, and the room's path is [`folded`].
pub fn can_spell(words: &[&[u8]], room: &[u8], any_case: bool) -> bool {
    let is_or_begins = |word: &[u8], part: &[u8]| word.strip_prefix(part).is_some_and(ends_room);
    let is_same = |word: &[u8], part: &[u8]| {
        is_or_begins(word, part)
            || any_case && is_or_begins(folded(&String::from_utf8_lossy(word)).as_bytes(), part)
    };
    let mut words = words.iter();
    room.split(|byte| *byte == b'/')
        .filter(|part| !part.is_empty())
        .all(|part| words.any(|word| is_same(word, part)))
}

/// A path in the one spelling that all spellings in capitals and small letters share.
pub fn folded(path: &str) -> String {
    path.chars().flat_map(fold).collect()
}

/// As [`is_below`], in capitals and small letters alike; the room's path is [`folded`].
pub fn is_below_in_any_case(path: &[u8], room: &str) -> bool {
    if room == "/" {
        return true;
    }
    if path.is_ascii() && room.is_ascii() {
        let (start, rest) = path.split_at_checked(room.len()).unwrap_or((path, b"x"));
        return start.eq_ignore_ascii_case(room.as_bytes()) && ends_room(rest);
    }
    // What follows the first bytes that are no text is no text of a room either.
    let text = path.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    let mut letters = text.chars().flat_map(fold);
    if !room.chars().all(|letter| letters.next() == Some(letter)) {
        return false;
    }
    match letters.next() {
        None => text.len() == path.len(),
        Some(next) => next == '/' || next == '.' && letters.all(|letter| letter != '/'),
    }
}

/// Through capitals to small letters: letters that share either are the same.
fn fold(letter: char) -> impl Iterator<Item = char> {
    letter.to_uppercase().flat_map(char::to_lowercase)
}

/// A normalised path as browsers write it into a URL, the other way round than [`normalise`]: `/caf%C3%A9`.
pub fn as_browsers_write(path: &[u8]) -> String {
    let mut written = String::with_capacity(path.len());
    for byte in path {
        push_encoded(&mut written, *byte);
    }
    written
}

/// Appends a byte of a decoded path, encoded where the URL standard says so (path percent-encode set), and a `%` always.
pub(crate) fn push_encoded(written: &mut String, byte: u8) {
    match byte {
        b' ' | b'"' | b'#' | b'%' | b'<' | b'>' | b'?' | b'`' | b'{' | b'}' | 0..=0x1f | 0x7f.. => {
            const HEX: [char; 16] =
                ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'A', 'B', 'C', 'D', 'E', 'F'];
            written.push('%');
            written.extend([byte >> 4, byte & 0xf].iter().filter_map(|digit| HEX.get(usize::from(*digit))));
        }
        _ => written.push(char::from(byte)),
    }
}

/// The path without its last slash if it is in its one spelling already.
fn plain(path: &[u8]) -> Option<&[u8]> {
    let is_odd = |pair: &[u8]| match pair {
        [_, b'%' | b'\\'] | [b'/' | b'.' | b' ', b'/'] | [b':', b'$'] => true,
        [_, byte] => is_cut(*byte),
        _ => false,
    };
    if path.first() != Some(&b'/') || path.windows(2).any(is_odd) {
        return None;
    }
    match path {
        [.., b'.' | b' '] => None,
        [inside @ .., b'/'] if !inside.is_empty() => Some(inside),
        _ => Some(path),
    }
}

/// Goes the way of the URL standard first, because clients and the platform do so before any origin sees the path:
/// dot segments (`%2e` is a dot too) are resolved while empty segments still count. Then decodes what is left until
/// nothing is left to decode.
fn decode(path: &[u8]) -> Vec<u8> {
    let end = path.iter().position(|byte| matches!(byte, b'?' | b'#')).unwrap_or(path.len());
    let path = path.get(..end).unwrap_or(path);
    let path = path.strip_prefix(b"/").or_else(|| path.strip_prefix(b"\\")).unwrap_or(path);
    let mut segments: Vec<&[u8]> = Vec::new();
    for segment in path.split(|byte| is_separator(*byte)) {
        match dots(segment) {
            Some(1) => {}
            Some(2) => {
                segments.pop();
            }
            _ => segments.push(segment),
        }
    }
    let mut decoded = Vec::with_capacity(path.len() + 1);
    for segment in segments {
        decoded.push(b'/');
        for byte in segment {
            push_decoded(&mut decoded, *byte);
        }
    }
    decoded
}

/// Appends a byte and decodes as long as the end reads `%XX` or `%uXXXX`, so that `%2573` becomes `%73` becomes `s`.
/// Escapes cannot overlap, so this leaves nothing decodable behind; every step shortens the text, so the work is linear.
fn push_decoded(decoded: &mut Vec<u8>, byte: u8) {
    decoded.push(byte);
    loop {
        if let [.., b'%', high, low] = decoded.as_slice()
            && let (Some(high), Some(low)) = (hex(*high), hex(*low))
        {
            decoded.truncate(decoded.len() - 3);
            decoded.push(high << 4 | low);
        } else if let [.., b'%', b'u' | b'U', a, b, c, d] = decoded.as_slice()
            && let Some(letter) = letter([*a, *b, *c, *d])
        {
            decoded.truncate(decoded.len() - 6);
            decoded.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
        } else {
            return;
        }
    }
}

/// The letter of this number; `None` for half a letter, as UTF-16 has them.
fn letter(digits: [u8; 4]) -> Option<char> {
    let code = digits.iter().try_fold(0, |code, digit| Some(code << 4 | u32::from(hex(*digit)?)))?;
    char::from_u32(code)
}

/// Splits a decoded path, drops what an origin could drop, resolves dot segments and joins the rest.
fn resolve(decoded: &[u8]) -> Vec<u8> {
    let end = decoded.iter().position(|byte| matches!(byte, b'?' | b'#' | 0)).unwrap_or(decoded.len());
    let mut segments: Vec<&[u8]> = Vec::new();
    for segment in decoded.get(..end).unwrap_or(decoded).split(|byte| is_separator(*byte)) {
        match name(segment) {
            b"" | b"." => {}
            b".." => {
                segments.pop();
            }
            name => segments.push(name),
        }
    }
    let mut resolved = Vec::with_capacity(end + 1);
    for segment in segments {
        resolved.push(b'/');
        resolved.extend_from_slice(segment);
    }
    if resolved.is_empty() {
        resolved.push(b'/');
    }
    resolved
}

/// What parts segments. Browsers and the platform turn a backslash into a slash.
fn is_separator(byte: u8) -> bool {
    matches!(byte, b'/' | b'\\')
}

/// What ends a segment's name or the path for some origins: parameters, an encoded query or fragment, a control character.
fn is_cut(byte: u8) -> bool {
    matches!(byte, b';' | b'?' | b'#') || byte.is_ascii_control()
}

/// What a segment names for the origin that drops most of it: no parameters, and by Windows' rules for files neither dots
/// and spaces at the end nor a stream (`::$DATA`). Nothing but dots is a name of its own.
fn name(segment: &[u8]) -> &[u8] {
    let segment = segment.split(|byte| is_cut(*byte)).next().unwrap_or(segment);
    let segment = match segment.windows(2).position(|pair| pair == b":$") {
        Some(stream) => without_end(segment.get(..stream).unwrap_or(segment), b":"),
        None => segment,
    };
    match without_end(segment, b". ") {
        b"" => without_end(segment, b" "),
        name => name,
    }
}

/// A text without the last of its bytes that are among these.
fn without_end<'a>(text: &'a [u8], dropped: &[u8]) -> &'a [u8] {
    let end = text.iter().rposition(|byte| !dropped.contains(byte)).map_or(0, |last| last + 1);
    text.get(..end).unwrap_or(text)
}

/// How many dots a segment of nothing but dots has, one or two, written as `.` or `%2e`.
fn dots(mut segment: &[u8]) -> Option<u8> {
    let mut count = 0;
    while !segment.is_empty() {
        segment = match segment {
            [b'.', rest @ ..] | [b'%', b'2', b'e' | b'E', rest @ ..] => rest,
            _ => return None,
        };
        count += 1;
        if count > 2 {
            return None;
        }
    }
    (count > 0).then_some(count)
}

/// What a hexadecimal digit stands for.
pub(crate) fn hex(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_path_is_borrowed() {
        for path in ["/", "/sale", "/sale/", "/a.b/..c/...d", "/caf\u{e9}", "/sale.json", "/index.php/x y"] {
            assert!(matches!(normalise(path.as_bytes()), Cow::Borrowed(_)), "{path}");
        }
    }

    #[test]
    fn decoding_goes_on_until_nothing_is_left() {
        assert_eq!(&*normalise(b"/%2573ale"), b"/sale");
        assert_eq!(&*normalise(b"/%25252573ale"), b"/sale");
        assert_eq!(&*normalise(b"/%%37%33ale"), b"/sale");
        assert_eq!(&*normalise(b"/100%/%zz"), b"/100%/%zz");
    }

    #[test]
    fn literal_dots_go_the_way_of_the_url_standard() {
        assert_eq!(&*normalise(b"/sale//../x"), b"/sale/x");
        assert_eq!(&*normalise(b"/../../sale"), b"/sale");
        assert_eq!(&*normalise(b"/a/.%2E/%2e/sale/."), b"/sale");
    }

    #[test]
    fn only_hidden_climbing_tangles() {
        assert!(matches!(read(b"/x/../sale"), Reading::Plain(_)));
        assert!(matches!(read(b"/a%2fb;c/d"), Reading::Plain(_)));
        for path in [&b"/x/..%2fsale"[..], b"/x/..;/sale", b"/x/%252e%252e/sale", b"/x%5c..%5csale"] {
            assert!(matches!(read(path), Reading::Tangled(_)), "{}", String::from_utf8_lossy(path));
        }
    }
}
