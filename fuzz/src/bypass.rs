//! Bypass rules.

use anteroom::bypass::fields::Fact;
use anteroom::bypass::{Request, Source};

/// A request of which everything is known.
#[derive(Debug, Default)]
struct Sent {
    https: bool,
    host: String,
    path: String,
    query: Option<String>,
    cookies: String,
    team: Option<String>,
    user_agent: String,
    address: String,
    method: &'static str,
    country: &'static str,
    network: Option<u32>,
    verified: bool,
    category: &'static str,
}

impl Source for Sent {
    fn header(&self, name: &str) -> Option<String> {
        match name {
            "cf-connecting-ip" => Some(self.address.clone()),
            "cookie" => Some(self.cookies.clone()),
            "user-agent" => Some(self.user_agent.clone()),
            "x-team" => self.team.clone(),
            _ => None,
        }
    }

    fn told(&self, fact: Fact) -> Option<String> {
        match fact {
            Fact::Method => Some(self.method.to_owned()),
            Fact::Country => Some(self.country.to_owned()),
            Fact::Network => self.network.map(|number| number.to_string()),
            Fact::VerifiedBot => Some(self.verified.to_string()),
            Fact::BotCategory => Some(self.category.to_owned()),
            Fact::Continent | Fact::Body => None,
        }
    }
}

impl Sent {
    fn request(&self) -> Request<'_> {
        Request {
            https: self.https,
            host: &self.host,
            path: &self.path,
            query: self.query.as_deref(),
            source: self,
        }
    }
}

/// Whatever is written: it is refused with a place and a fix, or printed so that it reads the same again.
///
/// The first line of the input is the expression; the others are path, query, cookies, a header and an address.
pub mod expressions {
    use anteroom::bypass::{BypassRule, Expression, MAX_LENGTH, is_bypassed};

    use super::Sent;

    pub fn run(input: &[u8]) {
        let Some((text, rest)) = crate::lines(input) else { return };
        let expression = match Expression::parse(text) {
            Ok(expression) => expression,
            Err(error) => {
                assert!((1..=text.chars().count() + 1).contains(&error.column), "{text}: {error}");
                assert!(!error.message.is_empty() && !error.fix.is_empty(), "{text}: {error}");
                return;
            }
        };
        let mut lines = rest.lines().map(str::to_owned);
        let mut next = || lines.next().unwrap_or_default();
        let sent = Sent {
            path: next(),
            query: Some(next()),
            cookies: next(),
            team: Some(next()),
            address: next(),
            ..Sent::default()
        };
        let holds = expression.matches(&sent.request());
        // With all its brackets it may be longer than a rule may be.
        let printed = expression.to_string();
        if printed.len() <= MAX_LENGTH {
            let again =
                Expression::parse(&printed).unwrap_or_else(|error| panic!("{text} is {printed}: {error}"));
            assert_eq!(again, expression, "{text} is {printed}");
            assert_eq!(again.matches(&sent.request()), holds);
        }
        let rule = BypassRule { expression, description: String::new(), enabled: true };
        assert!(holds || !is_bypassed(&[rule], &sent.request()), "{text} does not hold and lets past");
    }

    pub fn seeds() -> Vec<Vec<u8>> {
        crate::paragraphs(include_str!("../seeds/expressions.txt"))
    }
}

/// A condition is as true as an evaluator says that is written apart from the room's: over strings, without parsing.
pub mod conditions {
    use std::net::IpAddr;

    use anteroom::bypass::Expression;
    use arbitrary::{Result, Unstructured};

    use super::Sent;

    /// A condition as it is written, and whether it is true.
    struct Condition {
        text: String,
        /// How tight its outermost operator binds, from 0 (`or`) to 3 (none or `not`).
        tightness: u8,
        is_true: bool,
    }

    /// A text as it is written, and what it is of the request.
    struct Text {
        written: String,
        is: String,
    }

    pub fn run(input: &[u8]) {
        let _ = try_one(&mut Unstructured::new(input));
    }

    fn try_one(u: &mut Unstructured) -> Result<()> {
        let sent = sent(u)?;
        let condition = condition(u, &sent, 5)?;
        let text = &condition.text;
        let expression = match Expression::parse(text) {
            Ok(expression) => expression,
            // The only thing that can be wrong: a regular expression or the whole is too large.
            Err(error) => {
                assert!(text.len() > 4_096, "{text}: {error}");
                return Ok(());
            }
        };
        assert_eq!(expression.matches(&sent.request()), condition.is_true, "{text} of {sent:?}");
        Ok(())
    }

    /// A short text of few letters, so that they often meet.
    fn letters(u: &mut Unstructured, of: &[&str], most: usize) -> Result<String> {
        let mut text = String::new();
        for _ in 0..u.int_in_range(0..=most)? {
            text.push_str(u.choose(of)?);
        }
        Ok(text)
    }

    const LETTERS: [&str; 11] = ["a", "b", "A", "/", ".", "é", "*", "\\", "\"", "%41", "+"];
    const PAIRS: [&str; 9] = ["a=", "b=", "=", "&", ";", " ", "x", "Y", "%20"];

    fn sent(u: &mut Unstructured) -> Result<Sent> {
        Ok(Sent {
            https: u.arbitrary()?,
            host: (*u.choose(&[
                "shop.example.com",
                "shop.example.com:8443",
                "shop.example.com.",
                "[::1]:80",
            ])?)
            .to_owned(),
            path: format!("/{}", letters(u, &LETTERS, 6)?),
            query: if u.arbitrary()? { Some(letters(u, &PAIRS, 12)?) } else { None },
            cookies: letters(u, &PAIRS, 12)?,
            team: if u.arbitrary()? { Some(letters(u, &LETTERS, 4)?) } else { None },
            user_agent: letters(u, &LETTERS, 4)?,
            address: (*u.choose(&[
                "192.0.2.1",
                "192.0.2.130",
                "2001:db8::1",
                "::ffff:192.0.2.7",
                "",
                "no",
            ])?)
            .to_owned(),
            method: u.choose(&["GET", "POST"])?,
            country: u.choose(&["NL", "BE"])?,
            network: if u.arbitrary()? { Some(u.int_in_range(0..=20)?) } else { None },
            verified: u.arbitrary()?,
            category: u.choose(&["", "Search Engine Crawler"])?,
        })
    }

    fn condition(u: &mut Unstructured, sent: &Sent, depth: u8) -> Result<Condition> {
        let kind = if depth == 0 || u.is_empty() { 5 } else { u.int_in_range(0..=7)? };
        if kind == 3 {
            let inner = condition(u, sent, depth - 1)?;
            let sign = if u.arbitrary()? { "!" } else { "not " };
            return Ok(Condition {
                text: format!("{sign}{}", within(&inner, 3)),
                tightness: 3,
                is_true: !inner.is_true,
            });
        }
        if kind < 3 {
            let parts = (0..u.int_in_range(2..=4)?).map(|_| condition(u, sent, depth - 1));
            let parts = parts.collect::<Result<Vec<_>>>()?;
            let word = if u.arbitrary()? {
                [" or ", " xor ", " and "][usize::from(kind)]
            } else {
                ["||", "^^", "&&"][usize::from(kind)]
            };
            let texts: Vec<String> = parts.iter().map(|part| within(part, kind + 1)).collect();
            let mut truths = parts.iter().map(|part| part.is_true);
            return Ok(Condition {
                text: texts.join(word),
                tightness: kind,
                is_true: match kind {
                    0 => truths.any(|is| is),
                    1 => truths.fold(false, |odd, is| odd ^ is),
                    _ => truths.all(|is| is),
                },
            });
        }
        if kind == 4 {
            let inner = condition(u, sent, depth - 1)?;
            let (word, wanted) = (u.choose(&["eq", "ne", "==", "!="])?, u.arbitrary::<bool>()?);
            let is_same = matches!(*word, "eq" | "==");
            return Ok(Condition {
                text: format!("({}) {word} {wanted}", inner.text),
                tightness: 3,
                is_true: (inner.is_true == wanted) == is_same,
            });
        }
        let (text, is_true) = leaf(u, sent)?;
        Ok(Condition { text, tightness: 3, is_true })
    }

    /// With no more brackets than it needs.
    fn within(part: &Condition, tightness: u8) -> String {
        if part.tightness < tightness { format!("({})", part.text) } else { part.text.clone() }
    }

    fn leaf(u: &mut Unstructured, sent: &Sent) -> Result<(String, bool)> {
        match u.int_in_range(0..=9)? {
            0 => Ok(("ssl".to_owned(), sent.https)),
            1 => Ok(("cf.client.bot".to_owned(), sent.verified || !sent.category.is_empty())),
            2 => address(u, sent),
            3 => number(u, sent),
            4 => several(u, sent),
            5 => {
                let (whole, part) = (text(u, sent, 2)?, text_or_written(u, sent)?);
                let (name, is_true) = if u.arbitrary()? {
                    ("starts_with", whole.is.starts_with(&part.is))
                } else {
                    ("ends_with", whole.is.ends_with(&part.is))
                };
                Ok((format!("{name}({},{})", whole.written, part.written), is_true))
            }
            _ => {
                let value = text(u, sent, 2)?;
                let (test, is_true) = test(u, &value.is)?;
                Ok((format!("{} {test}", value.written), is_true))
            }
        }
    }

    /// Addresses as they are written, and whether one is among them, by its bits.
    type Set<'a> = (&'a str, &'a dyn Fn(&str) -> bool);

    fn address(u: &mut Unstructured, sent: &Sent) -> Result<(String, bool)> {
        let address: Option<IpAddr> = sent.address.parse().ok();
        let address = address.map(|address| address.to_canonical());
        let sets: [Set; 5] = [
            ("192.0.2.0/25", &|bits| bits.len() == 32 && bits.starts_with("1100000000000000000000100")),
            ("192.0.2.1", &|bits| bits == "11000000000000000000001000000001"),
            ("2001:db8::/32", &|bits| {
                bits.len() == 128 && bits.starts_with("00100000000000010000110110111000")
            }),
            ("192.0.2.2..192.0.2.255", &|bits| {
                ("11000000000000000000001000000010"..="11000000000000000000001011111111").contains(&bits)
            }),
            ("0.0.0.0/0", &|bits| bits.len() == 32),
        ];
        let bits = match address {
            Some(IpAddr::V4(address)) => format!("{:032b}", address.to_bits()),
            Some(IpAddr::V6(address)) => format!("{:0128b}", address.to_bits()),
            None => String::new(),
        };
        let (first, second) = (u.choose(&sets)?, u.choose(&sets)?);
        let is_in = |(_, test): &Set| !bits.is_empty() && test(&bits);
        Ok(match u.int_in_range(0..=2)? {
            0 => ("ip.src eq 192.0.2.1".to_owned(), is_in(&sets[1])),
            1 => ("ip.src != 192.0.2.1".to_owned(), !is_in(&sets[1])),
            _ => (format!("ip.src in {{{} {}}}", first.0, second.0), is_in(first) || is_in(second)),
        })
    }

    fn number(u: &mut Unstructured, sent: &Sent) -> Result<(String, bool)> {
        let (written, is) = if u.arbitrary()? {
            (*u.choose(&["ip.src.asnum", "ip.geoip.asnum"])?, sent.network.unwrap_or(0))
        } else {
            let of = text(u, sent, 1)?;
            let (test, is_true) = number_test(u, of.is.len() as u32)?;
            return Ok((format!("len({}) {test}", of.written), is_true));
        };
        let (test, is_true) = number_test(u, is)?;
        Ok((format!("{written} {test}"), is_true))
    }

    fn number_test(u: &mut Unstructured, is: u32) -> Result<(String, bool)> {
        let (one, other): (u32, u32) = (u.int_in_range(0..=20)?, u.int_in_range(0..=5)?);
        if u.ratio(1, 3)? {
            let is_true = (one..=one + other).contains(&is) || is == other;
            return Ok((format!("in {{{one}..{} {other}}}", one + other), is_true));
        }
        let (word, is_true) = ordered(u, &is, &one)?;
        Ok((format!("{word} {one}"), is_true))
    }

    fn ordered<T: Ord>(u: &mut Unstructured, is: &T, wanted: &T) -> Result<(&'static str, bool)> {
        let sign = u.arbitrary::<bool>()?;
        Ok(match u.int_in_range(0..=5)? {
            0 => (if sign { "==" } else { "eq" }, is == wanted),
            1 => (if sign { "!=" } else { "ne" }, is != wanted),
            2 => (if sign { "<" } else { "lt" }, is < wanted),
            3 => (if sign { "<=" } else { "le" }, is <= wanted),
            4 => (if sign { ">" } else { "gt" }, is > wanted),
            _ => (if sign { ">=" } else { "ge" }, is >= wanted),
        })
    }

    /// `any` and `all` of the texts of one name.
    fn several(u: &mut Unstructured, sent: &Sent) -> Result<(String, bool)> {
        let (map, name) = (u.choose(&["args", "cookies"])?, u.choose(&["a", "b", "x", ""])?);
        let all = texts_of(sent, map, name);
        // The same test of each text: what is drawn for it does not depend on the text.
        let rest = u.peek_bytes(u.len()).unwrap_or_default();
        let truths = all.iter().map(|text| test(&mut Unstructured::new(rest), text));
        let truths = truths.map(|tried| tried.map(|(_, is_true)| is_true)).collect::<Result<Vec<_>>>()?;
        let (test, _) = test(u, "")?;
        let field = field_of(map);
        Ok(if u.arbitrary()? {
            (format!("any({field}[\"{name}\"][*] {test})"), truths.iter().any(|is| *is))
        } else {
            (format!("all({field}[\"{name}\"][*] {test})"), truths.iter().all(|is| *is))
        })
    }

    fn field_of(map: &str) -> String {
        if map == "args" { "http.request.uri.args".to_owned() } else { format!("http.request.{map}") }
    }

    /// The texts of a name: at most 64 are looked at.
    fn texts_of(sent: &Sent, map: &str, name: &str) -> Vec<String> {
        let (text, between) = match map {
            "args" => (sent.query.clone().unwrap_or_default(), '&'),
            _ => (sent.cookies.clone(), ';'),
        };
        let pairs = text.split(between).map(|pair| {
            let equals = pair.find('=').unwrap_or(pair.len());
            (pair[..equals].trim().to_owned(), pair[(equals + 1).min(pair.len())..].trim().to_owned())
        });
        pairs.filter(|(key, _)| key == name).map(|(_, value)| value).take(64).collect()
    }

    fn text_or_written(u: &mut Unstructured, sent: &Sent) -> Result<Text> {
        if u.arbitrary()? {
            return text(u, sent, 1);
        }
        let is = letters(u, &LETTERS, 3)?;
        Ok(Text { written: quoted(u, &is)?, is })
    }

    fn text(u: &mut Unstructured, sent: &Sent, depth: u8) -> Result<Text> {
        let kind = u.int_in_range(if depth == 0 { 3 } else { 0 }..=12)?;
        if kind < 3 {
            let inner = text(u, sent, depth - 1)?;
            let (name, is) = match kind {
                0 => ("lower", inner.is.chars().map(|letter| letter.to_ascii_lowercase()).collect()),
                1 => ("upper", inner.is.chars().map(|letter| letter.to_ascii_uppercase()).collect()),
                // Nothing else can be decoded of our letters.
                _ => ("url_decode", inner.is.replace('+', " ").replace("%41", "A").replace("%20", " ")),
            };
            return Ok(Text { written: format!("{name}({})", inner.written), is });
        }
        let host = sent.host.trim_end_matches(":8443").trim_end_matches(":80").trim_end_matches('.');
        let uri = [sent.path.clone(), sent.query.iter().flat_map(|query| ["?", query]).collect()].concat();
        let (written, is): (&str, String) = match kind {
            3 => ("http.host", host.to_owned()),
            4 => ("http.request.uri", uri),
            5 => ("http.request.uri.path", sent.path.clone()),
            6 => {
                let name: String = sent.path.chars().rev().take_while(|letter| *letter != '/').collect();
                let extension = name.contains('.').then(|| name.split('.').next().unwrap_or_default());
                let is = extension.unwrap_or_default().chars().rev().collect::<String>().to_ascii_lowercase();
                ("http.request.uri.path.extension", is)
            }
            7 => ("http.request.uri.query", sent.query.clone().unwrap_or_default()),
            8 => {
                let scheme = if sent.https { "https" } else { "http" };
                ("http.request.full_uri", format!("{scheme}://{host}{uri}"))
            }
            9 => ("http.user_agent", sent.user_agent.clone()),
            10 => ("http.request.headers[\"X-Team\"]", sent.team.clone().unwrap_or_default()),
            11 => (*u.choose(&["ip.src.country", "ip.geoip.country"])?, sent.country.to_owned()),
            _ => {
                let (map, name) = (u.choose(&["args", "cookies"])?, u.choose(&["a", "b", "x", ""])?);
                let index: usize = u.int_in_range(0..=2)?;
                let is = texts_of(sent, map, name).get(index).cloned().unwrap_or_default();
                let written = format!("{}[\"{name}\"][{index}]", field_of(map));
                return Ok(Text { written, is });
            }
        };
        Ok(Text { written: written.to_owned(), is })
    }

    fn quoted(u: &mut Unstructured, text: &str) -> Result<String> {
        Ok(if u.arbitrary()? {
            format!("r##\"{text}\"##")
        } else {
            format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
        })
    }

    fn test(u: &mut Unstructured, is: &str) -> Result<(String, bool)> {
        let wanted = letters(u, &LETTERS, 3)?;
        let kind = u.int_in_range(0..=5)?;
        Ok(match kind {
            0 => {
                let (word, is_true) = ordered(u, &is.as_bytes(), &wanted.as_bytes())?;
                (format!("{word} {}", quoted(u, &wanted)?), is_true)
            }
            1 => (format!("contains {}", quoted(u, &wanted)?), is.contains(&wanted)),
            2 => {
                let other = letters(u, &LETTERS, 3)?;
                let texts = [quoted(u, &wanted)?, quoted(u, &other)?].join(" ");
                (format!("in {{{texts}}}"), is == wanted || is == other)
            }
            3 => {
                let (pattern, pieces) = pattern(u)?;
                let found = is.char_indices().map(|(at, _)| at).chain([is.len()]);
                let is_true = found.into_iter().any(|at| begins(&is[at..], &pieces));
                let word = u.choose(&["matches", "~"])?;
                (format!("{word} \"{pattern}\""), is_true)
            }
            _ => {
                // A backslash stands before a star or a backslash, or for itself.
                let (word, is, pattern) = if kind == 4 {
                    ("strict wildcard", is.to_owned(), wanted.clone())
                } else {
                    ("wildcard", is.to_ascii_lowercase(), wanted.to_ascii_lowercase())
                };
                let is_true = is_like(&is.chars().collect::<Vec<_>>(), &pattern.chars().collect::<Vec<_>>());
                (format!("{word} {}", quoted(u, &wanted)?), is_true)
            }
        })
    }

    fn is_like(text: &[char], pattern: &[char]) -> bool {
        match pattern {
            [] => text.is_empty(),
            ['*', rest @ ..] => (0..=text.len()).any(|skipped| is_like(&text[skipped..], rest)),
            ['\\', letter @ ('*' | '\\'), rest @ ..] | [letter, rest @ ..] => {
                text.split_first().is_some_and(|(first, text)| first == letter && is_like(text, rest))
            }
        }
    }

    /// A piece of a regular expression: which letters, and whether any number of them.
    type Piece = (&'static [char], bool);

    fn pattern(u: &mut Unstructured) -> Result<(String, Vec<Piece>)> {
        const PIECES: [(&str, &[char]); 6] = [
            ("a", &['a']),
            ("[abA]", &['a', 'b', 'A']),
            ("/", &['/']),
            (r"\.", &['.']),
            ("é", &['é']),
            ("(?:b|/)", &['b', '/']),
        ];
        let (mut text, mut pieces) = (String::new(), Vec::new());
        for _ in 0..u.int_in_range(0..=4)? {
            let (written, letters) = *u.choose(&PIECES)?;
            let repeats = u.arbitrary()?;
            text.push_str(written);
            text.push_str(if repeats { "*" } else { "" });
            pieces.push((letters, repeats));
        }
        Ok((text, pieces))
    }

    fn begins(text: &str, pieces: &[Piece]) -> bool {
        let Some(((letters, repeats), rest)) = pieces.split_first() else { return true };
        let mut after = text.chars();
        let fits = after.next().is_some_and(|letter| letters.contains(&letter));
        if *repeats {
            begins(text, rest) || fits && begins(after.as_str(), pieces)
        } else {
            fits && begins(after.as_str(), rest)
        }
    }

    pub fn seeds() -> Vec<Vec<u8>> {
        // What is drawn of these numbers.
        let numbers = |seed: u32| {
            let mut state = seed;
            let mut next = || {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                state.to_be_bytes()[0]
            };
            (0..200).map(|_| next()).collect()
        };
        (0..40).map(numbers).collect()
    }
}
