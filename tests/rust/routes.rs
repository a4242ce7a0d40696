//! Rooms with several routes, and rooms to which capitals and small letters are the same.

use anteroom::config::{ConfigError, Coverage, Room, Rooms, parse_room};
use anteroom::ticket::set_cookie;
use proptest::prelude::*;
use serde_json::{Value, json};

fn table(more: &Value) -> Value {
    let mut table = json!({ "total_active_users": 10, "new_users_per_minute": 10 });
    for (field, value) in more.as_object().unwrap() {
        table[field] = value.clone();
    }
    table
}

fn room(more: &Value) -> Room {
    parse_room("ROOM_SHOP", &table(more)).unwrap()
}

fn rooms(vars: &[(&str, Value)]) -> (Rooms, Vec<ConfigError>) {
    Rooms::from_vars(vars.iter().map(|(name, more)| ((*name).to_owned(), table(more))))
}

fn name(coverage: Coverage<'_>) -> &str {
    match coverage {
        Coverage::Uncovered => "-",
        Coverage::Covered(room) => &room.name,
        Coverage::Contradictory(_) => "?",
    }
}

/// A room on two hosts.
fn outlet() -> Value {
    json!({
        "host": "shop.example.com",
        "path": "/sale",
        "additional_routes": [{ "host": "Outlet.example.com." }, { "path": "/sale/../clearance/" }],
        "cookie_suffix": "sale",
        "cookie_attributes": { "domain": ".Example.com" },
    })
}

#[test]
fn all_routes_lead_to_one_room() {
    let (rooms, errors) = rooms(&[
        ("ROOM_SALE", outlet()),
        ("ROOM_ALL", json!({})),
        ("ROOM_OPEN", json!({ "host": "outlet.example.com", "path": "/open", "suspended": true })),
    ]);
    assert_eq!(errors, []);
    let table = [
        ("shop.example.com", "/sale/x", "sale"),
        ("shop.example.com", "/clearance", "sale"),
        ("shop.example.com", "/", "all"),
        ("outlet.example.com", "/", "sale"),
        ("OUTLET.example.com:8443", "/clearance", "sale"),
        ("outlet.example.com", "/open/x", "open"),
        ("other.example.com", "/sale", "all"),
        // Both readings lead to one room, or to two.
        ("shop.example.com", "/sale/..%2fclearance", "?"),
        ("outlet.example.com", "/x/..%2fy", "sale"),
        ("outlet.example.com", "/open/..%2fy", "?"),
    ];
    for (host, path, covering) in table {
        assert_eq!(name(rooms.find(host, path)), covering, "{host}{path}");
    }
}

#[test]
fn one_ticket_holds_on_all_routes() {
    let both = room(&outlet());
    let cookie = set_cookie(&both, "/", "x", 60, true);
    assert_eq!(
        cookie,
        "__anteroom_sale=x; Path=/; Domain=example.com; Max-Age=60; HttpOnly; SameSite=Lax; Secure"
    );
    let one_path = room(&json!({
        "host": "a.example.com",
        "path": "/sale",
        "additional_routes": [{ "host": "example.com", "path": "/sale" }],
        "cookie_suffix": "s",
        "cookie_attributes": { "domain": "example.com" },
    }));
    assert_eq!(one_path.cookie_path(), "/sale");
    // Without a host of its own a room covers every host, each with its own ticket.
    let every_host = room(&json!({ "additional_routes": [{ "path": "/a" }], "cookie_suffix": "s" }));
    assert_eq!((every_host.cookie_path().as_str(), every_host.cookie_domain.as_str()), ("/", ""));
}

#[test]
fn routes_that_do_not_fit_are_refused() {
    let with = |field: &str, value: Value| {
        let mut outlet = outlet();
        outlet[field] = value;
        outlet
    };
    let many = vec![json!({ "path": "/x" }); 21];
    // room, field, a part of the message, a part of the fix
    let table = [
        (with("additional_routes", json!({})), "additional_routes", "a list of at most 20", "write"),
        (with("additional_routes", json!(many)), "additional_routes", "a list of at most 20", "write"),
        (with("additional_routes", json!(["/x"])), "additional_routes", "tables", "write"),
        (
            with("additional_routes", json!([{ "host": "a b", "path": "/x" }])),
            "additional_routes.host",
            "letters, digits",
            "xn--",
        ),
        (
            with("additional_routes", json!([{ "path": "x" }])),
            "additional_routes.path",
            "must start",
            "path = \"/x\"",
        ),
        (
            with("additional_routes", json!([{ "paht": "/x" }])),
            "additional_routes.paht",
            "not a field",
            "did you mean path",
        ),
        (
            with("cookie_attributes", json!({})),
            "cookie_attributes.domain",
            "is required",
            "domain = \"example.com\"",
        ),
        (
            with("cookie_attributes", json!({ "domain": "com" })),
            "cookie_attributes.domain",
            "two labels",
            "example.com",
        ),
        (
            with("cookie_attributes", json!({ "domain": "shop.example.com" })),
            "cookie_attributes.domain",
            "outlet.example.com belongs to",
            "all hosts",
        ),
        (
            with("cookie_attributes", json!({ "domain": "ample.com" })),
            "cookie_attributes.domain",
            "shop.example.com belongs to",
            "all hosts",
        ),
        (
            with("cookie_attributes", json!({ "domain": 5 })),
            "cookie_attributes.domain",
            "text in quotes",
            "example.com",
        ),
        (
            json!({ "additional_routes": [{ "path": "/a" }] }),
            "additional_routes",
            "cookie_suffix",
            "\"shop\"",
        ),
        (
            json!({ "cookie_attributes": { "domain": "example.com" } }),
            "cookie_attributes.domain",
            "rooms with hosts",
            "name the host",
        ),
        (json!({ "path_case_insensitive": "yes" }), "path_case_insensitive", "true or false", "true"),
    ];
    for (refused, field, message, fix) in table {
        let errors = parse_room("ROOM_SHOP", &self::table(&refused)).expect_err(&refused.to_string());
        let found = errors
            .iter()
            .any(|error| error.field == field && error.message.contains(message) && error.fix.contains(fix));
        assert!(found, "{refused}: {errors:?}");
    }
}

#[test]
fn no_two_routes_are_the_same() {
    let (found, errors) = rooms(&[
        ("ROOM_A", outlet()),
        ("ROOM_B", json!({ "host": "outlet.example.com" })),
        (
            "ROOM_C",
            json!({
                "path": "/c",
                "additional_routes": [{ "host": "shop.example.com", "path": "/clearance" }],
                "cookie_suffix": "c",
            }),
        ),
        ("ROOM_D", json!({ "path": "/d", "additional_routes": [{ "path": "/d" }], "cookie_suffix": "d" })),
        ("ROOM_E", json!({ "path": "/caf%c3%89", "path_case_insensitive": true })),
        ("ROOM_F", json!({ "path": "/CAFé" })),
    ]);
    let told: Vec<_> = errors.iter().map(|error| (error.name.as_str(), error.field.as_str())).collect();
    let routes = "additional_routes.path";
    assert_eq!(told, [("b", "path"), ("c", routes), ("d", routes), ("f", "path")]);
    assert!(errors[2].message.contains("another route of this room"), "{}", errors[2]);
    assert_eq!(found.len(), 2);
}

#[test]
fn capitals_and_small_letters_may_be_the_same() {
    let (rooms, errors) = rooms(&[
        ("ROOM_ANY", json!({ "path": "/2026/Café", "path_case_insensitive": true })),
        ("ROOM_ONE", json!({ "path": "/Sale" })),
        ("ROOM_ALL", json!({ "host": "all.example", "path_case_insensitive": true })),
    ]);
    assert_eq!(errors, []);
    for path in ["/2026/café", "/2026/CAFÉ/x", "/2026/c%41F%C3%A9/", "/2026/x/../cafÉ", "//2026/CAFÉ;x"] {
        assert_eq!(name(rooms.find("x", path)), "any", "{path}");
    }
    for path in
        ["/2026/cafe", "/2026/cafés", "/2026/caf", "/2026", "/2026/caf%C3%89%FF", "/2026/caf%FF", "/sale"]
    {
        assert_eq!(name(rooms.find("x", path)), "-", "{path}");
    }
    assert_eq!(name(rooms.find("x", "/Sale")), "one");
    assert_eq!(name(rooms.find("x", "/2026/café.JSON")), "any");
    assert_eq!(name(rooms.find("x", "/2026/café.d/x")), "-");
    assert_eq!(name(rooms.find("x", "/2026/CAFÉ.d%2fx")), "any");
    assert_eq!(name(rooms.find("all.example", "/%FF")), "all");
    // A path that hides where it leads is covered in any case too.
    assert_eq!(name(rooms.find("x", "/x/..%2f2026%2fCAFÉ")), "any");
    // Browsers compare a cookie's path letter by letter.
    let paths = ["/2026/Café", "/Sale", "/1/2", "/"]
        .map(|path| room(&json!({ "path": path, "path_case_insensitive": true })).cookie_path());
    assert_eq!(paths, ["/2026", "/", "/1/2", "/"]);
}

proptest! {
    /// However the letters are written, the room is the same; and it covers what the exact room covers.
    #[test]
    fn no_spelling_in_capitals_leads_around_a_room(path in "(/[a-zß-öK%]{1,4}){1,3}", below in "(/[a-z]{1,3})?") {
        let (rooms, errors) =
            rooms(&[("ROOM_ANY", json!({ "path": path.replace('%', ""), "path_case_insensitive": true }))]);
        prop_assume!(errors.is_empty());
        let asked = format!("{}{below}", path.replace('%', ""));
        for spelling in [asked.clone(), asked.to_uppercase(), asked.to_lowercase()] {
            prop_assert_eq!(name(rooms.find("x", &spelling)), "any", "{}", spelling);
        }
    }
}
