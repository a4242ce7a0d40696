//! One spelling for every path, so that nobody walks around a room.
//!
//! The same page can be asked for in many spellings: `/sale`, `//sale`, `/%73ale`, `/x/../sale`, `/x/..%2fsale`,
//! `/sale;v=1`. Which of them an origin takes for the same page differs: some decode `%2f`, some drop what follows
//! a `;`, some decode twice. [`normalise`] therefore reads a path in the widest way: everything that any origin
//! could decode, split or drop is decoded, split and dropped. Rooms have plain paths (the parser sees to it), so
//! a path that some origin reads as below a room is below it in the widest reading too. One case is left: `..`
//! segments that only some origins see (`/x/..%2fsale`). Each origin goes up from a different place, so there is
//! no single reading. No honest client writes such a path; [`Reading::Tangled`] keeps its words, and every room
//! that can be spelled with them, in their order, may be the one it leads to.
//!
//! Work is linear in the length of the path, and a path that is already plain is not copied.

use std::borrow::Cow;

/// How a request's path reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reading<'a> {
    /// Every origin goes to the same place, or to less than it. The path is normalised.
    Plain(Cow<'a, [u8]>),
    /// It climbs with `..` segments that only some origins see.
    Tangled(Tangle),
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
    let decoded = decode(path);
    if decoded.split(|byte| is_separator(*byte) || is_cut(*byte)).any(|word| word == b"..") {
        Reading::Tangled(Tangle { decoded })
    } else {
        Reading::Plain(Cow::Owned(resolve(&decoded)))
    }
}

/// The one spelling of a path: it starts with `/`, ends without one (but `/` itself), and has no empty segments, no
/// dot segments, no percent-encoding, no backslashes and no `;parameters`. Idempotent. The bytes may be any, not
/// only UTF-8; a path that is plain already is borrowed.
pub fn normalise(path: &[u8]) -> Cow<'_, [u8]> {
    match plain(path) {
        Some(plain) => Cow::Borrowed(plain),
        None => Cow::Owned(resolve(&decode(path))),
    }
}

/// Whether a normalised path is `room` or below it, by whole segments: `/sale` has `/sale/x` below it, not `/sales`.
pub fn is_below(path: &[u8], room: &[u8]) -> bool {
    room == b"/" || path.strip_prefix(room).is_some_and(|rest| matches!(rest.first(), None | Some(b'/')))
}

impl Tangle {
    /// The words, in their order, without empty ones and dots.
    pub fn words(&self) -> Vec<&[u8]> {
        self.decoded
            .split(|byte| is_separator(*byte) || is_cut(*byte))
            .filter(|word| !matches!(*word, b"" | b"." | b".."))
            .collect()
    }
}

/// Whether a room's path can be spelled with some of these words in their order. `..` only ever takes segments
/// away, so this holds for every room that any origin could find in the path. `any_case`: the words may be in capitals
/// and small letters, and the room's path is [`folded`].
pub fn can_spell(words: &[&[u8]], room: &[u8], any_case: bool) -> bool {
    let is_same = |word: &[u8], part: &[u8]| {
        word == part || any_case && folded(&String::from_utf8_lossy(word)).as_bytes() == part
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
        return start.eq_ignore_ascii_case(room.as_bytes()) && matches!(rest.first(), None | Some(b'/'));
    }
    // What follows the first bytes that are no text is no text of a room either.
    let text = path.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    let mut letters = text.chars().flat_map(fold);
    if !room.chars().all(|letter| letters.next() == Some(letter)) {
        return false;
    }
    match letters.next() {
        None => text.len() == path.len(),
        Some(next) => next == '/',
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
    let inside = path.strip_prefix(b"/")?;
    if inside.is_empty() {
        return Some(path);
    }
    if path.iter().any(|byte| *byte == b'%' || *byte == b'\\' || is_cut(*byte)) {
        return None;
    }
    let trimmed = inside.strip_suffix(b"/").unwrap_or(inside);
    if trimmed.split(|byte| *byte == b'/').any(|segment| matches!(segment, b"" | b"." | b"..")) {
        return None;
    }
    Some(path.strip_suffix(b"/").unwrap_or(path))
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

/// Appends a byte and decodes as long as the end reads `%XX`, so that `%2573` becomes `%73` becomes `s`. Escapes
/// cannot overlap, so this leaves nothing decodable behind; every step shortens the text, so the work is linear.
fn push_decoded(decoded: &mut Vec<u8>, byte: u8) {
    decoded.push(byte);
    while let [.., b'%', high, low] = decoded.as_slice()
        && let (Some(high), Some(low)) = (hex(*high), hex(*low))
    {
        decoded.truncate(decoded.len() - 3);
        decoded.push(high << 4 | low);
    }
}

/// Splits a decoded path, drops what an origin could drop, resolves dot segments and joins the rest.
fn resolve(decoded: &[u8]) -> Vec<u8> {
    let end = decoded.iter().position(|byte| matches!(byte, b'?' | b'#' | 0)).unwrap_or(decoded.len());
    let mut segments: Vec<&[u8]> = Vec::new();
    for segment in decoded.get(..end).unwrap_or(decoded).split(|byte| is_separator(*byte)) {
        match segment.split(|byte| *byte == b';').next().unwrap_or(segment) {
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

/// What ends a segment's name or the path for some origins: parameters, an encoded query or fragment, a NUL.
fn is_cut(byte: u8) -> bool {
    matches!(byte, b';' | b'?' | b'#' | 0)
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
        for path in ["/", "/sale", "/sale/", "/a.b/..c/...", "/caf\u{e9}"] {
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
