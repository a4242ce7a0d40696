//! Addresses: what the room reads, against what parsers of URLs and origins make of the same request.

/// Whatever some origin takes for a covered path is covered.
///
/// The first line of the input says how an origin reads, a letter for each step; the second line is the path that is asked
/// for.
pub mod paths {
    use std::sync::LazyLock;

    use anteroom::bypass::fields::Fact;
    use anteroom::bypass::{BypassRule, Expression, Request, Source, is_bypassed};
    use anteroom::config::{Coverage, Rooms};
    use anteroom::ticket::set_cookie;
    use anteroom::url::path::{Reading, as_browsers_write, normalise, read};
    use serde_json::json;
    use url::Url;

    const HOST: &str = "shop.example.com";

    static EXACT: LazyLock<Rooms> = LazyLock::new(|| rooms(false));
    static ANY_CASE: LazyLock<Rooms> = LazyLock::new(|| rooms(true));
    static NOT_SALE: LazyLock<BypassRule> =
        LazyLock::new(|| rule("not starts_with(http.request.uri.path, \"/sale\")"));
    static SCRIPTS: LazyLock<BypassRule> =
        LazyLock::new(|| rule("ends_with(http.request.uri.path, \".js\")"));

    fn rule(expression: &str) -> BypassRule {
        let expression = Expression::parse(expression).unwrap();
        BypassRule { expression, description: String::new(), enabled: true }
    }

    /// A room for `/sale` within one for all, and one beside it.
    fn rooms(any_case: bool) -> Rooms {
        let room = |path| {
            json!({
                "path": path, "path_case_insensitive": any_case,
                "total_active_users": 10, "new_users_per_minute": 10,
            })
        };
        let vars = [("ROOM_ALL", "/"), ("ROOM_OPEN", "/open"), ("ROOM_SALE", "/sale")];
        let (rooms, errors) =
            Rooms::from_vars(vars.into_iter().map(|(name, path)| (name.to_owned(), room(path))));
        assert_eq!(errors, []);
        rooms
    }

    struct NothingElse;

    impl Source for NothingElse {
        fn header(&self, _: &str) -> Option<String> {
            None
        }

        fn told(&self, _: Fact) -> Option<String> {
            None
        }
    }

    pub fn run(input: &[u8]) {
        let Some((steps, asked)) = crate::lines(input) else { return };
        if !asked.starts_with('/') {
            return;
        }
        // Clients and the platform go by the URL standard before anybody sees the path.
        let Ok(url) = Url::parse(&format!("https://{HOST}{asked}")) else { return };
        let path = url.path();

        let plain = normalise(path.as_bytes());
        assert_eq!(normalise(&plain), plain, "{path}");
        if let Reading::Plain(plain) = read(path.as_bytes()) {
            let written = as_browsers_write(&plain);
            assert_eq!(read(written.as_bytes()), Reading::Plain(plain.clone()), "{written} for {path}");
        }
        // What the parser drops is no difference between readers. And it does not climb out of a drive (`C:`) anywhere.
        if !asked.contains(|letter: char| letter.is_control() || letter == ':') && asked.trim_end() == asked {
            assert_eq!(EXACT.find(HOST, asked), EXACT.find(HOST, path), "{asked} is {path}");
        }
        for room in EXACT.iter() {
            let cookie = set_cookie(room, path, "x", 60, true);
            let attributes = cookie.split(';').count();
            assert!(attributes == 6 && !cookie.contains(char::is_control), "{cookie} for {path}");
        }

        let rooms = if steps.contains('c') { &*ANY_CASE } else { &*EXACT };
        let taken = as_origin_reads(path, steps);
        if is_sale(&taken) {
            let covers = match rooms.find(HOST, path) {
                Coverage::Covered(room) => room.name == "sale",
                Coverage::Contradictory(_) => true,
                Coverage::Uncovered => false,
            };
            assert!(covers, "an origin that reads {steps} takes {path} for /sale");
            // These are the owner's own matter in a rule.
            if !steps.contains(['c', 'f', 'x']) {
                let request = Request { https: true, host: HOST, path, query: None, source: &NothingElse };
                let goes_past = |rule| is_bypassed(std::slice::from_ref(rule), &request);
                assert!(!goes_past(&*NOT_SALE), "an origin that reads {steps} takes {path} for /sale");
                let is_script = taken.ends_with(b".js");
                assert!(
                    is_script || !goes_past(&*SCRIPTS),
                    "an origin that reads {steps} takes {path} for no script"
                );
            }
        }
    }

    fn is_sale(path: &[u8]) -> bool {
        path.strip_prefix(b"/sale").is_some_and(|rest| matches!(rest, [] | [b'/', ..]))
    }

    /// What an origin makes of a path.
    fn as_origin_reads(path: &str, steps: &str) -> Vec<u8> {
        steps.bytes().take(8).fold(path.as_bytes().to_vec(), |path, step| match step {
            b'd' => decoded(&path),
            b'u' => decoded_by_letters(&path),
            b'b' => path.iter().map(|byte| if *byte == b'\\' { b'/' } else { *byte }).collect(),
            b'0' => up_to(&path, b"\0"),
            b'?' => up_to(&path, b"?#"),
            b'n' => up_to(&path, b"\r\n"),
            // Java's servers.
            b';' => each_segment(&path, |segment| up_to(segment, b";")),
            // Windows names files without these.
            b'w' => each_segment(&path, |segment| {
                let stream = segment.windows(3).position(|letters| letters == b"::$");
                let name = &segment[..stream.unwrap_or(segment.len())];
                let kept = name.iter().rposition(|byte| !b". ".contains(byte)).map_or(0, |last| last + 1);
                name[..kept].to_vec()
            }),
            b't' => each_segment(&path, |segment| segment.trim_ascii_end().to_vec()),
            b'm' => joined(path.split(|byte| *byte == b'/').filter(|segment| !segment.is_empty())),
            b'.' => climbed(&path),
            // PHP's front controllers.
            b'f' => path.strip_prefix(b"/index.php").unwrap_or(&path).to_vec(),
            // Frameworks that take an extension for a format.
            b'x' => match path.iter().rposition(|byte| matches!(byte, b'.' | b'/')) {
                Some(dot) if path[dot] == b'.' => path[..dot].to_vec(),
                _ => path,
            },
            b'c' => path.to_ascii_lowercase(),
            _ => path,
        })
    }

    fn each_segment(path: &[u8], name: impl Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
        path.split(|byte| *byte == b'/').map(name).collect::<Vec<_>>().join(&b'/')
    }

    fn up_to(text: &[u8], ends: &[u8]) -> Vec<u8> {
        text.iter().copied().take_while(|byte| !ends.contains(byte)).collect()
    }

    fn joined<'a>(segments: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
        segments.flat_map(|segment| [b"/", segment].concat()).collect()
    }

    /// Without `.` and `..`, as RFC 3986 has it.
    fn climbed(path: &[u8]) -> Vec<u8> {
        let mut kept: Vec<&[u8]> = Vec::new();
        for segment in path.split(|byte| *byte == b'/').skip(1) {
            match segment {
                b"." => {}
                b".." => drop(kept.pop()),
                segment => kept.push(segment),
            }
        }
        joined(kept.into_iter())
    }

    fn hex(digits: &[u8]) -> Option<u32> {
        let is_hex = digits.iter().all(u8::is_ascii_hexdigit);
        u32::from_str_radix(std::str::from_utf8(digits).ok().filter(|_| is_hex)?, 16).ok()
    }

    /// `%41` is `A`, once.
    fn decoded(path: &[u8]) -> Vec<u8> {
        unescaped(path, &[b"%"], 2, |code| Some(vec![code as u8]))
    }

    /// `%u0041` is `A`, as IIS has it.
    fn decoded_by_letters(path: &[u8]) -> Vec<u8> {
        unescaped(path, &[b"%u", b"%U"], 4, |code| Some(char::from_u32(code)?.to_string().into_bytes()))
    }

    fn unescaped(
        mut path: &[u8],
        marks: &[&[u8]],
        digits: usize,
        meant: fn(u32) -> Option<Vec<u8>>,
    ) -> Vec<u8> {
        let mut read = Vec::new();
        while let Some((first, after)) = path.split_first() {
            let behind_mark = marks.iter().find_map(|mark| path.strip_prefix(*mark));
            let escape = behind_mark.and_then(|rest| rest.split_at_checked(digits));
            if let Some((bytes, rest)) = escape.and_then(|(code, rest)| Some((meant(hex(code)?)?, rest))) {
                read.extend(bytes);
                path = rest;
            } else {
                read.push(*first);
                path = after;
            }
        }
        read
    }

    pub fn seeds() -> Vec<Vec<u8>> {
        crate::paragraphs(include_str!("../seeds/paths.txt"))
    }
}

/// A URL that is read is written in one way, and leads where the URL standard says.
pub mod urls {
    use anteroom::url;

    pub fn run(input: &[u8]) {
        let Ok(text) = std::str::from_utf8(input) else { return };
        let Some(read) = url::Url::read(text) else { return };
        let written = read.to_string();
        assert_eq!(url::Url::read(&written).as_ref(), Some(&read), "{text}");
        // Names that are numbers are addresses to the standard, and numbers that are none are nothing.
        let Ok(standard) = ::url::Url::parse(text) else { return };
        assert_eq!(standard.scheme() == "https", read.secure, "{text}");
        assert_eq!(standard.port_or_known_default(), Some(read.port), "{text}");
        assert!(standard.username().is_empty() && standard.fragment().is_none(), "{text}");
        if let Some(::url::Host::Domain(host)) = standard.host() {
            assert_eq!(host, read.host, "{text}");
        }
    }

    pub fn seeds() -> Vec<Vec<u8>> {
        let mut seeds = crate::paragraphs(include_str!("../seeds/urls.txt"));
        // The longest there is, which lacks the slash that is written.
        seeds.push(format!("HTTP://a?{}", "x".repeat(2_048 - 9)).into_bytes());
        seeds
    }
}

/// Whatever visitors send as a subscription, only a push service of the list is ever called.
pub mod subscriptions {
    use std::sync::LazyLock;

    use anteroom::push::{Services, Subscription};
    use serde_json::json;
    use url::Url;

    static SERVICES: LazyLock<Services> =
        LazyLock::new(|| Services::parse("*.push.example.net").expect("a host name"));

    pub fn run(input: &[u8]) {
        let Ok(endpoint) = std::str::from_utf8(input) else { return };
        let keys = json!({ "p256dh": format!("BA{}", "A".repeat(85)), "auth": "A".repeat(22) });
        let body = json!({ "endpoint": endpoint, "keys": keys }).to_string();
        let Some(read) = Subscription::parse(body.as_bytes(), &SERVICES) else { return };
        let standard = Url::parse(&read.endpoint).expect("the platform can call it");
        let host = standard.host_str().unwrap_or_default();
        let ends =
            [".push.services.mozilla.com", ".push.apple.com", ".notify.windows.com", ".push.example.net"];
        assert!(host == "fcm.googleapis.com" || ends.iter().any(|end| host.ends_with(end)), "{endpoint}");
        assert_eq!((standard.scheme(), standard.port()), ("https", None), "{endpoint}");
        assert!(standard.username().is_empty() && standard.password().is_none(), "{endpoint}");
    }

    pub fn seeds() -> Vec<Vec<u8>> {
        crate::paragraphs(include_str!("../seeds/subscriptions.txt"))
    }
}
