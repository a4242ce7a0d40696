//! Bypass rules: what an expression means, what is refused and where, and that no text does harm.

use std::collections::BTreeMap;

use anteroom::bypass::fields::Fact;
use anteroom::bypass::{
    BypassRule, Expression, MAX_DEPTH, MAX_LENGTH, Request, Source, is_bypassed, is_search_engine,
};
use anteroom::concern::{Concern, concern};
use anteroom::config::parse_room;
use proptest::prelude::*;
use serde_json::json;

/// A request as a test writes it.
#[derive(Debug, Clone, Default)]
struct Sent {
    http: bool,
    host: &'static str,
    path: String,
    query: Option<String>,
    headers: BTreeMap<String, String>,
    told: Vec<(Fact, &'static str)>,
}

impl Source for Sent {
    fn header(&self, name: &str) -> Option<String> {
        self.headers.get(name).cloned()
    }

    fn told(&self, fact: Fact) -> Option<String> {
        self.told.iter().find(|(known, _)| *known == fact).map(|(_, text)| (*text).to_owned())
    }
}

impl Sent {
    fn request(&self) -> Request<'_> {
        Request {
            https: !self.http,
            host: self.host,
            path: &self.path,
            query: self.query.as_deref(),
            source: self,
        }
    }
}

/// A request of a shop's visitor.
fn visitor() -> Sent {
    let headers = [
        ("cf-connecting-ip", "192.0.2.77"),
        ("user-agent", "Mozilla/5.0 (X11; Linux)"),
        ("referer", "https://search.example/"),
        ("cookie", "theme=dark; cart=17; cart=18"),
        ("x-team", "Blue"),
        ("accept", "text/html, application/json"),
    ];
    Sent {
        http: false,
        host: "shop.example.com:8443",
        path: "/sale/Shoes.HTML".to_owned(),
        query: Some("color=red%20wine&size=42&size=43&empty".to_owned()),
        headers: headers.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
        told: vec![
            (Fact::Method, "GET"),
            (Fact::Country, "NL"),
            (Fact::Continent, "EU"),
            (Fact::Network, "64500"),
        ],
    }
}

fn parsed(text: &str) -> Expression {
    Expression::parse(text).unwrap_or_else(|error| panic!("{text}\n{error}\n{}", error.excerpt))
}

fn matches(text: &str, sent: &Sent) -> bool {
    parsed(text).matches(&sent.request())
}

#[test]
fn every_field_operator_and_function_means_what_owners_know() {
    let visitor = visitor();
    let yes = [
        r#"http.host eq "shop.example.com""#,
        r#"http.request.uri == "/sale/Shoes.HTML?color=red%20wine&size=42&size=43&empty""#,
        r#"http.request.uri.path eq "/sale/Shoes.HTML""#,
        r#"http.request.uri.path.extension eq "html""#,
        r#"http.request.uri.query contains "size=42&""#,
        r#"http.request.full_uri wildcard "HTTPS://*.example.com/*/shoes.html?*""#,
        r#"http.request.method in {"GET" "HEAD"}"#,
        r#"http.user_agent contains "Linux""#,
        r#"http.referer ne """#,
        r#"http.cookie contains "cart=17""#,
        r#"http.x_forwarded_for eq """#,
        r#"http.request.headers["X-Team"] eq "Blue""#,
        r#"http.request.headers["x-team"][0] eq "Blue""#,
        r#"http.request.cookies["cart"][1] eq "18""#,
        r#"http.request.uri.args["size"][1] == "43""#,
        r#"http.request.uri.args["empty"] eq """#,
        r#"url_decode(http.request.uri.args["color"]) eq "red wine""#,
        r#"ip.src.country eq "NL" and ip.geoip.country in {"BE" "NL"}"#,
        r#"ip.geoip.continent eq "EU" and ip.src.continent == "EU""#,
        "ip.geoip.asnum in {13335 64496..64511} and ip.src.asnum >= 64500 and ip.src.asnum lt 64501",
        "ip.src eq 192.0.2.77 and ip.src != 192.0.2.78",
        "ip.src in {2001:db8::/32 192.0.2.0/24}",
        "ip.src in {192.0.2.70..192.0.2.77}",
        "not ip.src in {192.0.2.78/31 10.0.0.0/8 ::/0}",
        "ssl and ssl eq true and not ssl == false and ssl ne false",
        "not cf.client.bot",
        r#"cf.verified_bot_category eq """#,
        r#"starts_with(http.request.uri.path, "/sale/")"#,
        r#"ends_with(lower(http.request.uri.path), ".html")"#,
        r#"upper(http.request.headers["x-team"]) eq "BLUE""#,
        r#"len(http.request.method) eq 3 and len("") lt 1"#,
        r#"http.request.uri.path matches "^/sale/[A-Z][a-z]+\.HTML$""#,
        r##"http.request.uri.path ~ r#"\.(HTML|"x")$"#"##,
        r#"http.request.uri.path strict wildcard "/sale/*.HTML""#,
        r#"not http.request.uri.path strict wildcard "/sale/*.html""#,
        r#"any(http.request.uri.args["size"][*] == "43")"#,
        r#"any(lower(http.request.headers["accept"][*])[*] contains "json")"#,
        r#"not all(http.request.uri.args["size"][*] eq "42")"#,
        r#"all(http.request.cookies["cart"][*] matches "^1[78]$" and len(http.request.cookies["cart"][*]) eq 2)"#,
        // What is not there is empty; nothing of none is so, and all of none are.
        r#"not any(http.request.cookies["none"][*] eq "")"#,
        r#"all(http.request.cookies["none"][*] eq "x")"#,
        "http.host\n\tne\r\n \"x\"",
        r#"http.request.uri.path gt "/sale" and http.request.uri.path le "/sale/Shoes.HTML""#,
    ];
    for text in yes {
        assert!(matches(text, &visitor), "{text}");
    }
    let bot = Sent { told: vec![(Fact::VerifiedBot, "true")], http: true, ..visitor.clone() };
    assert!(matches("cf.client.bot and not ssl", &bot));
    let named = Sent { told: vec![(Fact::BotCategory, "Page Preview")], ..visitor };
    assert!(matches(r#"cf.client.bot and cf.verified_bot_category == "Page Preview""#, &named));
}

#[test]
fn operators_bind_not_then_and_then_xor_then_or() {
    // What is written, and how it is understood.
    let table = [
        ("ssl or ssl and ssl", "ssl or (ssl and ssl)"),
        ("ssl xor ssl or ssl", "(ssl xor ssl) or ssl"),
        ("ssl ^^ ssl && ssl || ssl", "(ssl xor (ssl and ssl)) or ssl"),
        ("not ssl and ssl", "not ssl and ssl"),
        ("not (ssl and ssl) xor !ssl", "not (ssl and ssl) xor not ssl"),
        ("!!ssl", "not not ssl"),
        ("ssl and (ssl or ssl) and ssl", "ssl and (ssl or ssl) and ssl"),
        ("((ssl))", "ssl"),
        (r#"not http.host eq "a" and ssl"#, r#"not http.host eq "a" and ssl"#),
        ("ip.geoip.country==\"NL\"", "ip.src.country eq \"NL\""),
        ("ip.src in {10.0.0.0/8   ::1 1.2.3.4..1.2.3.9}", "ip.src in {10.0.0.0/8 ::1 1.2.3.4..1.2.3.9}"),
        (r#"http.host matches "a\.\"b""#, r##"http.host matches r#"a\."b"#"##),
        ("ssl ne true", "not ssl"),
    ];
    for (text, understood) in table {
        assert_eq!(parsed(text).to_string(), understood, "{text}");
        assert_eq!(parsed(understood), parsed(text), "{text}");
    }
}

#[test]
fn every_mistake_names_its_column_and_a_fix() {
    let deep = format!("{}ssl{}", "(".repeat(MAX_DEPTH + 1), ")".repeat(MAX_DEPTH + 1));
    let long = format!("http.host eq \"{}\"", "a".repeat(MAX_LENGTH));
    // expression, column, a part of the message, a part of the fix
    let table: &[(&str, usize, &str, &str)] = &[
        ("", 1, "missing at the end", "add one"),
        ("ssl and", 8, "missing at the end", "remove the operator"),
        ("and ssl", 1, "a field or a function", "begin with"),
        ("http.hots eq \"x\"", 1, "http.hots is not a field", "did you mean http.host?"),
        ("ssl or start_with(http.host, \"x\")", 8, "is not a field or function", "starts_with?"),
        ("cf.bot_management.score lt 30", 1, "not a field", "cf.client.bot"),
        ("http.host = \"x\"", 11, "an operator must come here", "write == or eq"),
        ("http.host equals \"x\"", 11, "an operator", "compare"),
        ("http.host contain \"x\"", 11, "an operator", "did you mean contains?"),
        ("http.host \"x\"", 11, "an operator", "compare"),
        ("ip.src contains \"1\"", 8, "eq, ne or in", "did you mean contains?"),
        ("ssl contains \"1\"", 5, "and, or, xor or the end", "join"),
        ("ssl = true", 5, "must come here", "write eq or =="),
        ("ssl eq 1", 8, "true or false", "compare it with true or false"),
        ("ssl AND ssl", 5, "must come here", "write and in small letters"),
        ("ssl & ssl", 5, "must come here", "write &&"),
        ("(ssl or ssl", 1, "not closed", "add )"),
        ("ssl)", 4, "must come here", "remove the bracket"),
        ("http.host eq shop", 14, "must be text in quotes", "write \"shop\""),
        ("http.host eq 'shop'", 14, "' is no quote", "between \" and \""),
        ("http.host eq \u{201c}shop\u{201d}", 14, "\u{201c} is no quote", "between"),
        ("http.host eq \"shop", 14, "has no end", "write \" where"),
        ("http.host eq r#\"shop\"", 14, "has no end", "write \"# where"),
        ("http.host eq \"a\\d\"", 16, "no escape", "write \\\\"),
        ("http.host eq", 13, "a text is missing", "in quotes"),
        ("http.host in \"x\"", 14, "needs a set", "between { and }"),
        ("ip.src in $office", 11, "named lists", "between { and }"),
        ("http.host in {\"a\", \"b\"}", 18, "no commas", "a space"),
        ("http.host in {\"a\"", 14, "this set has no end", "add }"),
        ("http.host in {}", 14, "this set is empty", "at least one"),
        ("ip.src.asnum eq \"13335\"", 17, "a whole number", "without quotes"),
        ("ip.src.asnum in {9..5}", 21, "ends before it begins", "5..9"),
        ("ip.src.asnum in {99999999999999999999}", 18, "a whole number", "ranges"),
        ("ip.src eq \"192.0.2.1\"", 11, "an IP address", "without quotes"),
        ("ip.src in {192.0.2.0/33}", 12, "from 0 to 32", "192.0.2.0/24"),
        ("ip.src in {2001:db8::/129}", 12, "from 0 to 128", "2001:db8::/32"),
        ("ip.src in {192.0.2.7/24}", 12, "bits of its own", "192.0.2.0/24"),
        ("ip.src in {192.0.2.9..192.0.2.1}", 12, "the smaller one first", "192.0.2.1..192.0.2.9"),
        ("ip.src in {192.0.2.1..::1}", 12, "of one kind", "192.0.2.1..192.0.2.9"),
        ("ip.src eq 10.0.0.0/8", 11, "one address", "ip.src in"),
        ("ip.src eq 2001:db8::/32", 11, "one address", "ip.src in"),
        ("ip.src gt 10.0.0.1", 1, "no order", "range"),
        ("http.host matches \"(\"", 19, "not valid", "correct it"),
        ("http.host matches r\"(\\w{1000}){1000}\"", 19, "not valid", "correct it"),
        ("http.host strict \"x\"", 18, "strict wildcard", "compare"),
        ("http.request.headers eq \"x\"", 22, "needs a name", "[\"x-api-key\"]"),
        ("http.request.headers[x] eq \"x\"", 22, "needs a name", "[\"x-api-key\"]"),
        ("http.request.headers[\"x\" eq \"x\"", 26, "] is missing", "add it"),
        ("http.request.headers[\"x\"][*] eq \"x\"", 27, "[*] stands for several", "any(...)"),
        ("http.request.headers[\"x\"][y] eq \"x\"", 27, "a whole number", "[0] is the first"),
        ("any(ssl)", 1, "nothing with [*]", "any("),
        (
            "any(http.request.cookies[\"a\"][*] eq \"1\" or http.request.cookies[\"b\"][*] eq \"1\")",
            44,
            "other texts with [*]",
            "for each of them",
        ),
        ("any(any(http.request.cookies[\"a\"][*] eq \"1\"))", 5, "within one another", "one after another"),
        ("lower http.host eq \"x\"", 7, "in brackets", "lower(http.host)"),
        ("lower(ssl) eq \"x\"", 7, "a text is needed", "text"),
        ("starts_with(http.host)", 22, "two texts", "with a comma"),
        ("http.host eq \"caf\u{e9}\" und ssl", 21, "must come here", "join"),
        (&deep, MAX_DEPTH + 1, "number 33", "take brackets away"),
        (&long, 1, "there may be 4096", "several rules"),
    ];
    for (text, column, message, fix) in table {
        let error = Expression::parse(text).expect_err(text);
        assert_eq!(error.column, *column, "{text}: {error}");
        assert!(error.message.contains(message), "{text}: {error}");
        assert!(error.fix.contains(fix), "{text}: {error}");
        assert_eq!(error.excerpt.lines().count(), 2, "{text}");
    }
    let error = Expression::parse("http.hots eq \"x\"").unwrap_err();
    assert_eq!(error.excerpt, "http.hots eq \"x\"\n^");
    let far = format!("http.host eq \"{}\" or {}", "a".repeat(200), "é".repeat(60));
    let error = Expression::parse(&far).unwrap_err();
    let (shown, caret) = error.excerpt.split_once('\n').unwrap();
    let below = shown.chars().nth(caret.chars().count() - 1);
    assert_eq!((below, shown.starts_with('…'), shown.ends_with('…')), (Some('é'), true, true));
}

fn rules(expressions: &[&str]) -> Vec<BypassRule> {
    let rule =
        |text: &&str| BypassRule { expression: parsed(text), description: String::new(), enabled: true };
    expressions.iter().map(rule).collect()
}

fn path_bypasses(expression: &str, path: &str) -> bool {
    let sent = Sent { path: path.to_owned(), query: None, ..visitor() };
    is_bypassed(&rules(&[expression]), &sent.request())
}

#[test]
fn one_enabled_rule_is_enough() {
    let sent = visitor();
    assert!(!is_bypassed(&[], &sent.request()));
    let mut rules = rules(&["http.host eq \"x\"", "ip.src in {192.0.2.0/24}"]);
    assert!(is_bypassed(&rules, &sent.request()));
    rules[1].enabled = false;
    assert!(!is_bypassed(&rules, &sent.request()));
}

#[test]
fn odd_spellings_do_not_lead_around_a_room() {
    let script = r#"ends_with(http.request.uri.path, ".js")"#;
    let open = r#"starts_with(http.request.uri.path, "/open/")"#;
    let not_sale = r#"not starts_with(http.request.uri.path, "/sale")"#;
    assert!(path_bypasses(script, "/app.js") && path_bypasses(open, "/open/x"));
    assert!(path_bypasses(not_sale, "/x"));
    // Origins may take each of these for /sale or what is below it.
    for path in [
        "/sale;x.js",
        "/sale/x%3f.js",
        "/sale%00.js",
        "/sale%23.js",
        "/sale/;/x;.js",
        "/sale;a%2fb.js",
        "/sale%2fx;y%5cz.js",
    ] {
        assert!(!path_bypasses(script, path), "{path}");
    }
    for path in ["/%73ale", "//sale", "/%2573ale/x", "/sale;y", "/x/..%2fsale", "/\\sale"] {
        assert!(!path_bypasses(not_sale, path), "{path}");
    }
    for path in
        ["/open/..%2fsale", "/open/..;/sale", "/open/%252e%252e/sale", "/open/..;/sale/..%2f..%2fopen/"]
    {
        assert!(!path_bypasses(open, path), "{path}");
        assert!(!path_bypasses("ssl", path), "{path}");
    }
    // What browsers encode has one reading, and an office may come with a session in the path.
    assert!(path_bypasses(r#"http.request.uri.path eq "/caf%C3%A9%20x/""#, "/caf%C3%A9%20x/"));
    assert!(path_bypasses("ip.src in {192.0.2.0/24}", "/sale;jsessionid=1"));
}

#[test]
fn search_engines_are_told_by_category_or_else_by_being_verified() {
    let told = |told: &[(Fact, &'static str)]| is_search_engine(&Sent { told: told.to_vec(), ..visitor() });
    assert!(told(&[(Fact::BotCategory, "Search Engine Crawler")]));
    assert!(told(&[(Fact::VerifiedBot, "true"), (Fact::BotCategory, "")]));
    assert!(!told(&[(Fact::VerifiedBot, "true"), (Fact::BotCategory, "AI Crawler")]));
    assert!(!told(&[(Fact::VerifiedBot, "false")]));
    assert!(!told(&[]));
}

#[test]
fn rules_are_texts_or_tables() {
    let room = |rules| {
        parse_room(
            "ROOM_SHOP",
            &json!({ "total_active_users": 10, "new_users_per_minute": 10, "bypass_rules": rules }),
        )
    };
    let given = room(json!(["ssl", { "expression": "not ssl", "description": "tests", "enabled": false }]));
    let rules = given.unwrap().bypass_rules;
    let told: Vec<_> = rules
        .iter()
        .map(|rule| (rule.expression.to_string(), rule.description.as_str(), rule.enabled))
        .collect();
    assert_eq!(told, [("ssl".to_owned(), "", true), ("not ssl".to_owned(), "tests", false)]);
    assert!(room(json!(vec!["ssl"; 50])).is_ok());

    // value, field, a part of the message, a part of the fix
    let table = [
        (json!("ssl"), "bypass_rules", "at most 50 rules", "bypass_rules = ["),
        (json!(vec!["ssl"; 51]), "bypass_rules", "at most 50 rules", "bypass_rules = ["),
        (json!(["ssl", 5]), "bypass_rules", "rule 2", "starts_with"),
        (json!(["ssl", "http.hots eq \"x\""]), "bypass_rules", "rule 2; column 1", "http.host"),
        (json!([{ "description": "x" }]), "bypass_rules.expression", "is required", "expression ="),
        (json!([{ "expression": true }]), "bypass_rules.expression", "text in quotes", "expression ="),
        (
            json!([{ "expression": "ssl", "enabled": "no" }]),
            "bypass_rules.enabled",
            "true or false",
            "enabled",
        ),
        (json!([{ "expression": "ssl", "action": "x" }]), "bypass_rules.action", "not a field", "remove"),
    ];
    for (value, field, message, fix) in table {
        let errors = room(value.clone()).unwrap_err();
        let [error] = errors.as_slice() else { panic!("{value}: {errors:?}") };
        assert_eq!(error.field, field, "{value}: {error}");
        assert!(error.message.contains(message), "{value}: {error}");
        assert!(error.fix.contains(fix), "{value}: {error}");
    }
    let errors = room(json!(["ssl", "not ssl or http.hots eq \"x\""])).unwrap_err();
    assert_eq!(errors[0].excerpt, "not ssl or http.hots eq \"x\"\n           ^");
}

#[test]
fn only_some_requests_start_a_visit() {
    let limits = json!({ "total_active_users": 10, "new_users_per_minute": 10 });
    let with = |more: serde_json::Value| {
        let mut table = limits.clone();
        table.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        parse_room("ROOM_SHOP", &table).unwrap()
    };
    let all = with(json!({}));
    let pages = with(json!({ "count": "navigations" }));
    let styles = with(json!({ "exempt_extensions": ["css", "mp4"] }));
    let sent = |method: &'static str, path: &str, headers: &[(&str, &str)]| Sent {
        path: path.to_owned(),
        query: None,
        headers: headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        told: vec![(Fact::Method, method)],
        ..visitor()
    };
    let fetched = |destination| sent("GET", "/", &[("sec-fetch-dest", destination), ("accept", "text/html")]);
    let elsewhere =
        |destination| sent("GET", "/", &[("sec-fetch-site", "cross-site"), ("sec-fetch-dest", destination)]);
    let html = ("accept", "application/xml;q=0.9, Text/HTML");
    let preflight = [("origin", "https://x.example"), ("access-control-request-method", "PUT")];
    let mut with_body = sent("OPTIONS", "/", &preflight);
    with_body.told.push((Fact::Body, "true"));
    let (room, origin, nobody) = (Concern::Room, Concern::Origin, Concern::Nobody);
    // A request, and whom it concerns: of a room that counts all, of one that counts pages, and of one with exempt
    // extensions.
    let table = [
        (fetched("document"), [room, room, room]),
        (fetched("iframe"), [room, room, room]),
        (fetched("object"), [room, room, room]),
        (fetched("empty"), [room, origin, room]),
        (fetched("image"), [room, origin, room]),
        (fetched("documents"), [room, origin, room]),
        (elsewhere("image"), [nobody, origin, nobody]),
        (elsewhere("font"), [nobody, origin, nobody]),
        (elsewhere("document"), [room, room, room]),
        (elsewhere("empty"), [room, origin, room]),
        (
            sent("GET", "/", &[("sec-fetch-site", "same-site"), ("sec-fetch-dest", "image")]),
            [room, origin, room],
        ),
        (
            sent("GET", "/x.css", &[("sec-fetch-site", "cross-site"), ("sec-fetch-dest", "style")]),
            [nobody, origin, origin],
        ),
        (sent("POST", "/", &[("sec-fetch-dest", "document")]), [room, room, room]),
        (sent("GET", "/", &[html]), [room, room, room]),
        (sent("HEAD", "/", &[html]), [room, room, room]),
        (sent("POST", "/", &[html]), [room, origin, room]),
        (sent("GET", "/", &[("accept", "*/*")]), [room, origin, room]),
        (sent("GET", "/a/main.CSS", &[html]), [room, room, origin]),
        (sent("POST", "/a.b/x.mp4", &[html]), [room, origin, origin]),
        (sent("GET", "/css", &[html]), [room, room, room]),
        (sent("GET", "/a.css/x", &[html]), [room, room, room]),
        (sent("GET", "/sale;x.css", &[html]), [room, room, room]),
        (sent("GET", "/sale/..%2fx.css", &[html]), [room, room, room]),
        (sent("OPTIONS", "/", &preflight), [origin, origin, origin]),
        (sent("OPTIONS", "/", &[preflight[0], preflight[1], ("cookie", "a=b")]), [room, origin, room]),
        (sent("OPTIONS", "/", &[preflight[0], preflight[1], ("authorization", "x")]), [room, origin, room]),
        (with_body, [room, origin, room]),
        (sent("OPTIONS", "/", &[html, preflight[0]]), [room, origin, room]),
        (sent("OPTIONS", "/", &preflight[1..]), [room, origin, room]),
        (sent("GET", "/", &[html, ("sec-purpose", "prefetch;prerender")]), [nobody, nobody, nobody]),
        (sent("GET", "/", &[("sec-fetch-dest", "empty"), ("purpose", "Prefetch")]), [nobody, nobody, nobody]),
        (sent("GET", "/x.css", &[html, ("sec-purpose", "prefetch")]), [nobody, nobody, origin]),
        (sent("GET", "/", &[html, ("purpose", "preview")]), [room, room, room]),
    ];
    let passthrough = with(json!({ "queueing_method": "passthrough" }));
    assert_eq!(concern(&passthrough, &elsewhere("image").request(), false), room, "everybody enters");
    for (sent, concerned) in &table {
        let found = [&all, &pages, &styles].map(|room| concern(room, &sent.request(), false));
        assert_eq!(found, *concerned, "{sent:?}");
        // The waiting page's own script is a matter of its room, whatever it looks like.
        assert_eq!(concern(&pages, &sent.request(), true), Concern::Room);
    }
    // field, refused value, a part of the fix
    let table = [
        ("count", json!("pages"), "count"),
        ("count", json!(1), "\"all\""),
        ("exempt_extensions", json!([".css"]), "without dots"),
        ("exempt_extensions", json!(["CSS"]), "\"css\""),
        ("exempt_extensions", json!(["a".repeat(17)]), "write them"),
        ("exempt_extensions", json!([""]), "write them"),
        ("exempt_extensions", json!("css"), "write them"),
        ("exempt_extensions", json!(vec!["css"; 51]), "write them"),
    ];
    for (field, value, fix) in table {
        let mut refused = limits.clone();
        refused[field] = value.clone();
        let errors = parse_room("ROOM_SHOP", &refused).unwrap_err();
        assert_eq!((errors.len(), errors[0].field.as_str()), (1, field), "{value}");
        assert!(errors[0].fix.contains(fix), "{}", errors[0]);
    }
}

/// A condition, put together apart from the parser: how it is written, and whether it is true of [`visitor`].
#[derive(Debug, Clone)]
struct Model {
    text: String,
    /// How tight its outermost operator binds, from 0 (`or`) to 3 (none or `not`).
    tightness: u8,
    is_true: bool,
}

fn leaf() -> impl Strategy<Value = Model> {
    let leaves = [
        ("ssl", true),
        ("cf.client.bot", false),
        ("ip.src in {192.0.2.0/24}", true),
        ("ip.src == 192.0.2.1", false),
        ("ip.src.asnum gt 64500", false),
        ("http.request.method eq \"GET\"", true),
        ("starts_with(http.request.uri.path,\"/sale\")", true),
        ("http.user_agent matches \"Win|Mac\"", false),
        ("any(http.request.uri.args[\"size\"][*] eq \"43\")", true),
        ("http.request.headers[\"x-team\"] in {\"Red\" \"Green\"}", false),
    ];
    (0..leaves.len()).prop_map(move |index| {
        let (text, is_true) = leaves[index];
        Model { text: text.to_owned(), tightness: 3, is_true }
    })
}

fn model() -> impl Strategy<Value = Model> {
    leaf().prop_recursive(5, 40, 4, |inner| {
        let not = (inner.clone(), any::<bool>()).prop_map(|(inner, signs)| {
            let text = bracketed(&inner, 3);
            let text = if signs { format!("!{text}") } else { format!("not {text}") };
            Model { text, tightness: 3, is_true: !inner.is_true }
        });
        let joined =
            (0..3_u8, prop::collection::vec(inner, 2..4), any::<bool>()).prop_map(|(kind, parts, signs)| {
                let (word, sign) = [("or", "||"), ("xor", "^^"), ("and", "&&")][usize::from(kind)];
                let texts: Vec<String> = parts.iter().map(|part| bracketed(part, kind + 1)).collect();
                let is_true = match kind {
                    0 => parts.iter().any(|part| part.is_true),
                    1 => parts.iter().filter(|part| part.is_true).count() % 2 == 1,
                    _ => parts.iter().all(|part| part.is_true),
                };
                let text = if signs { texts.join(sign) } else { texts.join(&format!(" {word} ")) };
                Model { text, tightness: kind, is_true }
            });
        prop_oneof![not, joined]
    })
}

/// With no more brackets than it needs.
fn bracketed(part: &Model, tightness: u8) -> String {
    if part.tightness < tightness { format!("({})", part.text) } else { part.text.clone() }
}

/// A valid expression with a few characters changed, taken away or added.
fn mutated() -> impl Strategy<Value = String> {
    let changes = prop::collection::vec((any::<prop::sample::Index>(), 0..3_u8, any::<char>()), 0..4);
    let pieces =
        prop::sample::select(vec!["(", ")", "\"", "{", "[", "*", "\\", "..", "not ", " and ", "/", "r#"]);
    (model(), changes, prop::option::of((any::<prop::sample::Index>(), pieces))).prop_map(
        |(model, changes, piece)| {
            let mut characters: Vec<char> = model.text.chars().collect();
            for (index, change, character) in changes {
                if characters.is_empty() {
                    break;
                }
                let at = index.index(characters.len());
                match change {
                    0 => characters[at] = character,
                    1 => drop(characters.remove(at)),
                    _ => characters.insert(at, character),
                }
            }
            if let Some((index, piece)) = piece {
                let at = index.index(characters.len() + 1);
                characters.splice(at..at, piece.chars());
            }
            characters.into_iter().collect()
        },
    )
}

/// Parses and asks, for nothing but to see that it ends well; what is valid is printed and parsed again.
fn try_all(text: &str) -> Result<(), TestCaseError> {
    match Expression::parse(text) {
        Ok(expression) => {
            let sent = visitor();
            let answer = expression.matches(&sent.request());
            let again = Expression::parse(&expression.to_string())
                .map_err(|error| TestCaseError::fail(format!("{expression}: {error}")))?;
            prop_assert_eq!(&again, &expression);
            prop_assert_eq!(again.matches(&sent.request()), answer);
        }
        Err(error) => {
            prop_assert!(error.column <= text.chars().count() + 1, "{}", error);
            prop_assert!(!error.message.is_empty() && !error.fix.is_empty());
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn conditions_are_as_true_as_put_together_by_hand(model in model()) {
        prop_assert_eq!(parsed(&model.text).matches(&visitor().request()), model.is_true, "{}", model.text);
        try_all(&model.text)?;
    }

    #[test]
    fn no_text_does_harm(text in any::<String>()) {
        try_all(&text)?;
    }

    #[test]
    fn no_change_of_a_valid_expression_does_harm(text in mutated()) {
        try_all(&text)?;
    }

    #[test]
    fn no_request_does_harm(
        path in any::<String>(),
        query in any::<String>(),
        value in any::<String>(),
        expression in model(),
    ) {
        let headers = ["cf-connecting-ip", "user-agent", "cookie", "x-team"]
            .map(|name| (name.to_owned(), value.clone()))
            .into();
        let sent = Sent { path, query: Some(query), headers, told: vec![], ..visitor() };
        is_bypassed(&rules(&[&expression.text]), &sent.request());
    }

    /// Wildcards, against a regular expression made of the same pattern.
    #[test]
    fn wildcards_are_regular_expressions(pattern in "[ab*]{0,8}", text in "[abAB]{0,12}") {
        let regex = format!("^(?i:{})$", pattern.replace('*', ".*"));
        let sent = Sent { path: text.clone(), ..visitor() };
        let (wild, regex) = (
            matches(&format!("http.request.uri.path wildcard \"{pattern}\""), &sent),
            matches(&format!("http.request.uri.path matches \"{regex}\""), &sent),
        );
        prop_assert_eq!(wild, regex, "{} {}", pattern, text);
    }
}
