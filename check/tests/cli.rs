//! The check as its users run it.

#![allow(clippy::unwrap_used)] // Helpers of tests may stop a test.

use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering};

use anteroom::config::{FIELDS, WEBHOOK_FIELDS, parse_room};
use anteroom::operator::ENDPOINTS;
use serde_json::{Map, Value, json};

const OBJECTS: &str = r#"
[[durable_objects.bindings]]
name = "COUNTER"
class_name = "Counter"
[[durable_objects.bindings]]
name = "ANYWHERE"
class_name = "Anywhere"
[[durable_objects.bindings]]
name = "DATA_CENTER"
class_name = "DataCenter"
[[durable_objects.bindings]]
name = "GLOBAL"
class_name = "Global"
[[durable_objects.bindings]]
name = "HEALTH"
class_name = "Health"
[[durable_objects.bindings]]
name = "CONFIG"
class_name = "Config"
[[migrations]]
tag = "v1"
new_sqlite_classes = ["Counter", "Anywhere", "DataCenter", "Global"]
[[migrations]]
tag = "v2"
new_sqlite_classes = ["Health", "Config"]
"#;

const SHOP: &str = r#"
[vars]
ORIGIN = ""
[vars.ROOM_SHOP]
host = "shop.example.com"
path = "/sale"
total_active_users = 1000
new_users_per_minute = 200
"#;

/// Brings all of that room to the Worker.
const ROUTES: &str = "routes = [\"shop.example.com/*\"]\n";

/// A file of its own for one run, removed afterwards.
struct File(PathBuf);

impl File {
    fn new(text: &str) -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("wrangler-{}-{number}.toml", std::process::id());
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::write(&path, text).unwrap();
        Self(path)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_anteroom-check")).args(arguments).output().unwrap()
}

/// Exit status, standard output and standard error of a check of this text.
fn check(text: &str, more: &[&str]) -> (i32, String, String) {
    let file = File::new(text);
    let mut arguments = vec!["--config", file.0.to_str().unwrap()];
    arguments.extend(more);
    let output = run(&arguments);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[track_caller]
fn refused(text: &str, parts: &[&str]) {
    let (status, _, errors) = check(text, &[]);
    assert_eq!(status, 1, "{errors}");
    for part in parts {
        assert!(errors.contains(part), "{part:?} is not in:\n{errors}");
    }
}

#[track_caller]
fn warned(text: &str, part: &str) {
    let (status, out, errors) = check(text, &[]);
    assert_eq!((status, errors.as_str()), (0, ""), "{out}");
    assert!(
        out.lines().any(|line| line.starts_with("Warning: ") && line.contains(part)),
        "{part:?} is not in:\n{out}"
    );
}

#[test]
fn the_projects_own_configuration_passes() {
    let output = run(&["--config", concat!(env!("CARGO_MANIFEST_DIR"), "/../wrangler.toml")]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_valid_room_is_told_in_sentences() {
    let (status, out, errors) = check(&format!("{ROUTES}{SHOP}{OBJECTS}"), &[]);
    assert_eq!((status, errors.as_str()), (0, ""));
    for sentence in [
        "Room shop covers /sale and everything below it on shop.example.com.",
        "at most 200 new users in a minute, and has at most 1000 active users at once",
        "stays active for 5 minutes",
        "a page with status 200 that refreshes every 20 seconds",
        "(leases)",
        "on_error = \"admit\"",
        "the cookie __anteroom (Path=/sale, SameSite=Lax, Secure over HTTPS)",
        "A room with a path (shop) is as tight as the origin's router.",
        "an extension such as .json, and behind /index.php and /app.php.",
        "cover path = \"/\", or let the origin insist on the header Anteroom-Admitted",
        "the zone's own origin",
        "1 room is valid.",
    ] {
        assert!(out.contains(sentence), "{sentence:?} is not in:\n{out}");
    }
    assert!(!out.contains("Warning"), "{out}");
}

#[test]
fn what_waiting_visitors_see_is_told_and_a_missing_template_refused() {
    let with = |more: &str| format!("{}{OBJECTS}", SHOP.replace("path = \"/sale\"\n", more));
    let more = "default_template_language = \"de-DE\"\nvisitor_languages = false\nshow_wait = false\n\
                message = \"Bis gleich\"\n";
    let (status, out, errors) = check(&with(more), &[]);
    assert_eq!((status, errors.as_str()), (0, ""));
    for sentence in [
        "The page is Anteroom's own, in de-DE.",
        "Programs that prefer JSON get JSON instead.",
        "Visitors are not told how long it takes.",
        "Everybody who waits reads: Bis gleich",
    ] {
        assert!(out.contains(sentence), "{sentence:?} is not in:\n{out}");
    }
    refused(
        &with("custom_page_html = \"nowhere\"\n"),
        &["room shop: custom_page_html = \"nowhere\"", "there is no file static/pages/nowhere.html"],
    );
    let pages = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("static/pages");
    std::fs::create_dir_all(&pages).unwrap();
    std::fs::write(pages.join("here.html"), "{{waitTime}}").unwrap();
    let (status, out, errors) = check(&with("custom_page_html = \"here\"\n"), &[]);
    assert_eq!((status, errors.as_str()), (0, ""));
    assert!(out.contains("The page is made of static/pages/here"), "{out}");
}

#[test]
fn what_a_room_does_about_its_origin_is_told() {
    let more = "limits = \"adaptive\"\norigin_guard = { max = 50, timeout = 10 }\nhealth_checks = [\"origin\"]\n\
                on_unhealthy = \"hold\"\n";
    let shop = SHOP.replace(
        "total_active_users = 1000",
        &format!("{more}total_active_users = {{ min = 100, max = 1000 }}"),
    );
    let (status, out, errors) = check(&format!("{shop}{OBJECTS}"), &[]);
    assert_eq!((status, errors.as_str()), (0, ""));
    for sentence in [
        "down to 200 new users in a minute and 100 active users at once",
        "2 to 50 at once, as many as it answers in time, each given up after 10 seconds",
        "While the origin is unhealthy (origin) or fails nearly every request, nobody new enters",
    ] {
        assert!(out.contains(sentence), "{sentence:?} is not in:\n{out}");
    }
}

#[test]
fn what_goes_past_a_room_is_told_and_mistakes_are_pointed_at() {
    let with = |rules: &str| SHOP.replace("path = ", &format!("bypass_rules = {rules}\npath = "));
    let crawlers = "ORIGIN = \"\"\nSEARCH_ENGINE_CRAWLER_BYPASS = \"true\"";
    let shop = with("['ssl', { expression = 'not ssl', description = \"tests\", enabled = false }]");
    let (status, out, errors) = check(&format!("{}{OBJECTS}", shop.replace("ORIGIN = \"\"", crawlers)), &[]);
    assert_eq!((status, errors.as_str()), (0, ""));
    for sentence in [
        "go requests with ssl.",
        "go requests with not ssl (tests); this rule is off.",
        "Verified crawlers of search engines go past all rooms",
    ] {
        assert!(out.contains(sentence), "{sentence:?} is not in:\n{out}");
    }
    let at = ["column 9: http.hots is not a field", "\n    ssl and http.hots eq 1\n            ^\n"];
    refused(&with("['ssl and http.hots eq 1']"), &at);
    let fronts = SHOP.replace("ORIGIN = \"\"", "FRONT_CONTROLLERS = [\"/app.php\", \"index.php\"]");
    refused(&fronts, &["vars.FRONT_CONTROLLERS = [", "at most 10 plain paths", "or [] for none"]);
    let whole_host = SHOP.replace("/sale", "/");
    assert!(!check(&format!("{whole_host}{OBJECTS}"), &[]).1.contains("router"));
    let crawlers = SHOP.replace("ORIGIN = \"\"", "SEARCH_ENGINE_CRAWLER_BYPASS = true");
    refused(&crawlers, &["vars.SEARCH_ENGINE_CRAWLER_BYPASS = true: must be", "with quotes"]);
}

#[test]
fn all_routes_of_a_room_are_told() {
    let more = "cookie_suffix = \"sale\"\npath_case_insensitive = true\n\
                additional_routes = [{ host = \"outlet.example.com\", path = \"/\" }]\n";
    let domain = "cookie_attributes = { domain = \"example.com\" }\n";
    let shop = SHOP.replace("path = ", &format!("{more}{domain}path = "));
    let (status, out, errors) = check(&format!("{shop}{OBJECTS}"), &[]);
    assert_eq!((status, errors.as_str()), (0, ""));
    for sentence in [
        "covers /sale and everything below it on shop.example.com, and every path on outlet.example.com.",
        "capitals and in small letters are the same",
        "the cookie __anteroom_sale (Path=/, Domain=example.com, SameSite=Lax",
    ] {
        assert!(out.contains(sentence), "{sentence:?} is not in:\n{out}");
    }
    let anywhere = shop.replace("host = \"shop.example.com\"\n", "").replace(domain, "");
    let (_, out, _) = check(&format!("{anywhere}{OBJECTS}"), &[]);
    assert!(out.contains("on another host its visitor is new"), "{out}");
}

#[test]
fn errors_of_rooms_go_to_the_standard_error() {
    let broken = SHOP.replace("200", "0").replace("path", "pth");
    let (status, out, errors) = check(&format!("{broken}{OBJECTS}"), &[]);
    assert_eq!(status, 1);
    assert!(!out.contains("Error") && !out.contains("Room shop"), "{out}");
    assert!(
        errors.contains("Error: room shop: new_users_per_minute = 0: must be a whole number"),
        "{errors}"
    );
    assert!(errors.contains("did you mean path?"), "{errors}");
    assert!(errors.contains("2 errors; 0 rooms are valid."), "{errors}");
}

#[test]
fn syntax_errors_name_the_line() {
    refused("[vars]\nORIGIN = \"\"\nnew_users = = 5\n", &["line 3", "new_users = = 5", "is not valid TOML"]);
    refused("[vars]\nA = 1\nA = 2\n", &["line 3", "is not valid TOML"]);
    refused("\u{fffd}\n", &["line 1", "is not valid TOML"]);
}

#[test]
fn files_that_cannot_be_read_are_errors() {
    for (arguments, part) in [
        (["--config", "no/such/wrangler.toml"], "cannot be read"),
        (["--config", "wrangler.jsonc"], "must be a TOML file"),
    ] {
        let output = run(&arguments);
        assert_eq!(output.status.code(), Some(1));
        let errors = String::from_utf8(output.stderr).unwrap();
        assert!(errors.contains(part) && errors.contains("Fix: "), "{errors}");
    }
    assert_eq!(run(&["--colour"]).status.code(), Some(2));
}

#[test]
fn origin_is_empty_or_a_url() {
    for origin in ["", "http://localhost:8788", "https://origin.example.com/", "http://[::1]:8788"] {
        let (status, out, errors) = check(&format!("[vars]\nORIGIN = \"{origin}\"\n{OBJECTS}"), &[]);
        assert_eq!(status, 0, "{origin}: {errors}");
        assert!(out.contains("Admitted visitors go to"), "{out}");
    }
    for origin in [
        "ftp://x",
        "https://",
        "http://x:0",
        "http://x:99999",
        "https://user@x",
        "https://x/path",
        "https://x?y",
        "//x",
        " ",
    ] {
        refused(
            &format!("[vars]\nORIGIN = \"{origin}\"\n{OBJECTS}"),
            &["vars.ORIGIN = ", "http:// or https://", "Fix: "],
        );
    }
    refused(
        &format!("[vars]\nORIGIN = \"localhost:8788\"\n{OBJECTS}"),
        &["write ORIGIN = \"https://localhost:8788\""],
    );
    refused(&format!("[vars]\nORIGIN = 5\n{OBJECTS}"), &["vars.ORIGIN = 5"]);
}

#[test]
fn the_deadline_of_objects_has_a_range_and_secrets_do_not_belong_here() {
    let with = |line: &str| format!("{}{OBJECTS}", SHOP.replace("ORIGIN = \"\"", line));
    let (status, ..) = check(&with("OBJECT_DEADLINE_MS = \"750\""), &[]);
    assert_eq!(status, 0);
    for wrong in ["750", "\"20\"", "\"60000\"", "\"soon\""] {
        refused(&with(&format!("OBJECT_DEADLINE_MS = {wrong}")), &["OBJECT_DEADLINE_MS", "50 to 10000"]);
    }
    warned(&with("COOKIE_KEYS = \"abc\""), "npx wrangler secret put COOKIE_KEYS");
    warned(&with("WEBHOOK_SECRET = \"abc\""), "npx wrangler secret put WEBHOOK_SECRET");
    let parts = ["ADMIN_TOKEN = (not shown): needs at least 16 characters", "secret put ADMIN_TOKEN"];
    refused(&with("ADMIN_TOKEN = \"fifteen-letters\""), &parts);
}

#[test]
fn the_settings_of_the_health_page_have_their_values() {
    let with = |line: &str| format!("{}{OBJECTS}", SHOP.replace("ORIGIN = \"\"", line));
    let (status, ..) = check(&with("HEALTH_PAGE = \"public\"\nHEALTH_DAYS = \"7\""), &[]);
    assert_eq!(status, 0);
    refused(
        &with("HEALTH_PAGE = \"open\""),
        &["vars.HEALTH_PAGE = \"open\"", "\"public\", \"token\" or \"off\""],
    );
    for wrong in ["30", "\"0\"", "\"366\"", "\"month\""] {
        refused(&with(&format!("HEALTH_DAYS = {wrong}")), &["HEALTH_DAYS", "1 to 365"]);
    }
}

#[test]
fn the_settings_of_push_messages_have_their_values() {
    let with = |line: &str| format!("{}{OBJECTS}", SHOP.replace("ORIGIN = \"\"", line));
    let right =
        "VAPID_SUBJECT = \"mailto:you@example.com\"\nPUSH_SERVICES = \"push.example.org *.example.net\"";
    assert_eq!(check(&with(right), &[]).0, 0);
    for wrong in ["\"you@example.com\"", "1", "\"mailto:\""] {
        refused(&with(&format!("VAPID_SUBJECT = {wrong}")), &["VAPID_SUBJECT", "mailto:"]);
    }
    refused(&with("PUSH_SERVICES = \"https://push.example.org\""), &["PUSH_SERVICES", "host names"]);
    let (_, out, error) = check(&with("VAPID_PRIVATE_KEY = \"{}\""), &[]);
    assert!(format!("{out}{error}").contains("VAPID_PRIVATE_KEY is a secret"), "{out}{error}");
}

#[test]
fn bindings_and_migrations_must_be_there() {
    refused(
        SHOP,
        &["durable_objects.bindings = (not set)", "class_name = \"DataCenter\"", "new_sqlite_classes = ["],
    );
    refused(
        &format!("{SHOP}{}", OBJECTS.replace("class_name = \"Global\"", "class_name = \"Globe\"")),
        &["bindings.GLOBAL = \"Globe\"", "class_name = \"Global\""],
    );
    refused(&format!("{SHOP}{}", OBJECTS.replace("\"Anywhere\", ", "")), &["must name \"Anywhere\""]);
    refused(
        &format!("{SHOP}{}", OBJECTS.replace("new_sqlite_classes", "new_classes")),
        &["rename new_classes"],
    );
    refused(
        "durable_objects = 5\nmigrations = \"x\"\nvars = []\n",
        &["vars = []", "must be a table", "COUNTER", "migrations"],
    );
    refused(
        &format!("{SHOP}{}", OBJECTS.replace("name = \"COUNTER\"", "name = \"COUNT\"")),
        &["durable_objects.bindings.COUNTER = (not set)"],
    );
}

#[test]
fn vars_are_bounded() {
    let long = "x".repeat(5 * 1024 + 1);
    refused(
        &format!("[vars]\nTEXT = \"{long}\"\n{OBJECTS}"),
        &["vars.TEXT = 5121 bytes", "at most 5120 bytes"],
    );
    let many = |count: usize| {
        let lines = (0..count).map(|number| format!("V{number} = 1")).collect::<Vec<_>>().join("\n");
        format!("[vars]\n{lines}\n{OBJECTS}")
    };
    refused(&many(129), &["vars = 129", "at most 128"]);
    warned(&many(128), "the Free plan takes 64");
}

#[test]
fn what_is_probably_not_meant_is_a_warning() {
    let shop = |more: &str| format!("{SHOP}{more}\n{OBJECTS}");
    warned(OBJECTS, "There are no rooms");
    warned(&shop("").replace("1000", "100"), "never lets in 200 new users in a minute");
    warned(
        &shop("").replace("host = \"shop.example.com\"\npath = \"/sale\"", ""),
        "covers every path on every host",
    );
    warned(&shop("cookie_attributes = { secure = \"never\" }"), "unencrypted HTTP");
    warned(&shop("suspended = true"), "is suspended");
    warned(&shop("queue_all = true"), "queues all");
    warned(&shop("curve_factor = 2"), "curve_factor");
    refused(&shop("[[vars.ROOM_TOYS]]\npath = \"/toys\""), &["room toys: ROOM_TOYS = [", "single brackets"]);
}

#[test]
fn a_table_whose_name_is_nearly_that_of_a_room_is_an_error() {
    for (table, right) in [
        ("[vars.room_toys]\npath = \"/toys\"", "rename it to ROOM_TOYS"),
        ("[vars.ROMM_TOYS]\npath = \"/toys\"", "rename it to ROOM_TOYS"),
        ("[vars.EVNT_DROP]\nroom = \"shop\"", "rename it to EVENT_DROP"),
        ("[[vars.ROOMS]]\npath = \"/toys\"", "write [vars.ROOM_SHOP]"),
        ("[ROOM_TOYS]\npath = \"/toys\"", "write [vars.ROOM_TOYS]"),
    ] {
        refused(&format!("{SHOP}{table}\n{OBJECTS}"), &["does nothing", right]);
    }
    let (_, out, errors) = check(&format!("{SHOP}[vars.ZOOM_LEVELS]\nfar = 2\n{OBJECTS}"), &[]);
    assert_eq!(errors, "", "{out}");
}

#[test]
fn rooms_that_no_request_reaches_are_pointed_out() {
    let routed = |routes: &str| format!("routes = [{routes}]\n{SHOP}{OBJECTS}");
    warned(
        &format!("{SHOP}{OBJECTS}"),
        "Write routes = [\"shop.example.com/sale*\"] above the first [table]",
    );
    for routes in [
        r#""shop.example.com/*""#,
        r#"{ pattern = "https://shop.example.com/sale*", zone_name = "example.com" }"#,
        r#""*.example.com/*""#,
        r#""shop.example.com/sale", "shop.example.com/sale/*""#,
        r#"{ pattern = "shop.example.com", custom_domain = true }"#,
    ] {
        let (status, out, errors) = check(&routed(routes), &[]);
        assert_eq!((status, errors.as_str()), (0, ""), "{out}");
        assert!(!out.contains("Warning"), "{routes}:\n{out}");
    }
    for routes in [
        r#""www.example.com/*""#,
        r#""shop.example.com/sale/*""#,
        r#""shop.example.com/sale""#,
        r#""shop.example.com/sale/shoes*""#,
        r#""*.shop.example.com/*""#,
    ] {
        warned(&routed(routes), "Add \"shop.example.com/sale*\" to routes");
    }
}

#[test]
fn what_is_over_unknown_or_no_cron_is_pointed_out() {
    let shop = |more: &str| format!("{SHOP}{more}\n{OBJECTS}");
    let event = "[vars.EVENT_DROP]\nroom = \"shop\"\nevent_start_time = \"2020-11-27T08:00:00Z\"\n\
                 event_end_time = \"2020-11-27T10:00:00Z\"";
    warned(&shop(event), "Event drop of room shop is over since 2020-11-27T10:00:00Z");
    warned(&shop("health_checks = [\"origin\"]"), "Add [vars.CHECK_ORIGIN]");
    let known = "health_checks = [\"Origin\"]\n[vars.CHECK_ORIGIN]\nurl = \"https://origin.example.com/\"";
    assert!(!check(&shop(known), &[]).1.contains("none of this file"));
    for cron in ["*/5 * * *", "61 * * * *", "* * * FOO *", "*/0 * * * *", "every minute"] {
        warned(&shop(&format!("[triggers]\ncrons = [\"{cron}\"]")), "is no cron");
    }
    let crons = "[triggers]\ncrons = [\"*/5 * * * *\", \"0 9-17,20 1 JAN-MAR MON\", \"59 23 LW * 6L\", \"0 0 * * fri#2\"]";
    assert!(!check(&shop(crons), &[]).1.contains("is no cron"));
}

#[test]
fn a_valid_check_is_told_in_sentences() {
    let text = |more: &str| {
        format!(
            "{ROUTES}{SHOP}[vars.CHECK_ORIGIN]\nurl = \"https://origin.example.com/health\"\n{more}\n{OBJECTS}"
        )
    };
    let more =
        "interval = 10\nexpected_body = \"Welcome\"\nregions = [\"WNAM\", \"SEAS\"]\nconsecutive_fails = 2";
    let (status, out, errors) = check(&text(more), &[]);
    assert_eq!((status, errors.as_str()), (0, ""));
    for sentence in [
        "Check origin asks for https://origin.example.com/health with GET.",
        "3 observers in each of 2 regions (Western North America, South East Asia) do so every 10 seconds: about 2160 \
         requests an hour.",
        "What takes longer than 5 seconds is repeated at once, up to 2 times.",
        "Healthy is an answer with status 200 and with \"Welcome\"",
        "must be trusted, and for origin.example.com",
        "agree that it is unhealthy 2 times in a row or healthy.",
        "at least half of the regions",
    ] {
        assert!(out.contains(sentence), "{sentence:?} is not in:\n{out}");
    }
    assert!(!out.contains("Warning"), "{out}");
    let (_, out, _) = check(&text(more), &["--json"]);
    let answer: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(answer["checks"][0]["regions"], serde_json::json!(["WNAM", "SEAS"]));

    let (status, out, _) = check(&text("interval = 1"), &["--json"]);
    let answer: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((status, &answer["errors"][0]["check"]), (1, &"origin".into()));
    refused(&text("regions = [\"WUE\"]"), &["check origin: regions = \"WUE\"", "did you mean \"WEU\"?"]);
    warned(&text("suspended = true"), "Check origin is suspended");
    warned(&text("regions = [\"IN\", \"NEAS\"]"), "IN and NEAS");
    let host = |host: &str| text("").replace("origin.example.com", host);
    warned(&host("localhost:8788"), "looks at localhost");
    warned(&host("192.168.1.1"), "in a private network");
    warned(&host("shop.example.com"), "which room shop covers");
    refused(&text("[vars.check_db]\ntcp = \"a:1\""), &["rename it to CHECK_DB"]);
    refused(&text("[CHECK_DB]\ntcp = \"a:1\""), &["write [vars.CHECK_DB]"]);
}

#[test]
fn an_environment_has_vars_and_bindings_of_its_own() {
    let own = SHOP.replace("[vars", "[env.live.vars").replace("shop.example", "live.example")
        + &OBJECTS.replace("[[durable", "[[env.live.durable");
    let own = own
        .replace("[[migrations]]\ntag = \"v1\"\n", "")
        .replace("new_sqlite_classes", "# new_sqlite_classes");
    let text = format!("{SHOP}{OBJECTS}{own}\n[env.bare]\n");
    let (status, out, errors) = check(&text, &["--env", "live"]);
    assert_eq!((status, errors.as_str()), (0, ""), "{out}");
    assert!(out.contains("on live.example.com") && out.contains("environment live: 1 room"), "{out}");

    let (status, out, errors) = check(&text, &["--env", "bare"]);
    assert_eq!(status, 1);
    assert!(out.contains("Write [env.bare.vars.ROOM_SHOP]"), "{out}");
    assert_eq!(errors.matches("Error: ").count(), 1, "{errors}");
    let block = errors.split('`').nth(1).unwrap();
    assert!(errors.contains("below [env.bare]") && !errors.contains("migrations"), "{errors}");
    let (_, _, errors) =
        check(&text.replace("[env.bare]\n", &format!("[env.bare]\n{block}\n")), &["--env", "bare"]);
    assert_eq!(errors, "", "what it says to paste is right");

    let (status, _, errors) = check(&text, &["--env", "life"]);
    assert_eq!(status, 1);
    assert!(errors.contains("choose one of: bare, live"), "{errors}");
    warned(&text, "Validate each environment too, with --env: bare, live");
}

#[test]
fn says_what_webhooks_send() {
    let webhooks = r#"
[vars.WEBHOOK_OPS]
url = "https://hooks.example.com/anteroom"
rooms = ["shop"]
news = ["queueing_started", "wait_above"]
wait_minutes = 10
[vars.WEBHOOK_CHAT]
url = "https://hooks.slack.com/services/T0/B0/x"
"#;
    let (status, out, errors) = check(&format!("{SHOP}{webhooks}{OBJECTS}"), &[]);
    assert_eq!((status, errors.as_str()), (0, ""), "{out}");
    for sentence in [
        "Webhook ops sends to https://hooks.example.com/anteroom what is new in room shop.",
        "It sends: queueing_started, wait_above.",
        "A wait is news when the estimate is at least 10 minutes",
        "Messages are signed with the secret WEBHOOK_SECRET_OPS; without it nothing is sent.",
        "Warning: Webhook chat is one of https://hooks.slack.com/, which needs format = \"slack\".",
    ] {
        assert!(out.contains(sentence), "{sentence} is not in {out}");
    }
    let secret = "WEBHOOK_SECRET_OPS = \"whsec_x\"\n[vars.WEBHOOK_CHAT]\nformat = \"slack\"\n";
    let (status, out, _) =
        check(&(SHOP.replace("[vars.ROOM_SHOP]", &format!("{secret}[vars.ROOM_SHOP]")) + OBJECTS), &[]);
    assert_eq!(status, 0, "{out}");
    assert!(out.contains("Warning: WEBHOOK_SECRET_OPS is a secret, and vars are not"), "{out}");
    assert!(
        out.contains(
            "Webhook chat sends to the address in the secret WEBHOOK_URL_CHAT what is new in every room."
        ),
        "{out}"
    );
    refused(
        &format!("{SHOP}[vars.WEBHOOK_OPS]\nurl = \"http://example.com\"\n{OBJECTS}"),
        &["webhook ops: url", "must begin with https://"],
    );
}

#[test]
fn says_when_events_are_and_what_they_change() {
    let event = r#"
[vars.EVENT_DROP]
room = "shop"
prequeue_start_time = "2026-11-27T07:30:00Z"
event_start_time = "2026-11-27T09:00:00+01:00"
event_end_time = 2026-11-27T10:00:00Z
shuffle_at_event_start = true
total_active_users = 50
new_users_per_minute = 5
"#;
    let (status, out, errors) = check(&format!("{SHOP}{event}{OBJECTS}"), &[]);
    assert_eq!((status, errors.as_str()), (0, ""), "{out}");
    assert!(
        out.contains("Event drop starts at 2026-11-27T08:00:00Z and is over at 2026-11-27T10:00:00Z."),
        "{out}"
    );
    assert!(
        out.contains("From 2026-11-27T07:30:00Z on nobody new enters, and whoever comes in that time"),
        "{out}"
    );
    assert!(out.contains("new_users_per_minute = 5") && out.contains("total_active_users = 50"), "{out}");

    let (_, _, errors) = check(&format!("{SHOP}{event}custom_page_html = \"winter\"\n{OBJECTS}"), &[]);
    assert!(
        errors
            .contains("event drop: custom_page_html = \"winter\": there is no file static/pages/winter.html"),
        "{errors}"
    );

    let wrong = event.replace("total_active_users = 50", "");
    let (status, _, errors) = check(&format!("{SHOP}{wrong}{OBJECTS}"), &[]);
    assert_eq!(status, 1);
    assert!(
        errors.contains("event drop: new_users_per_minute = 5: needs total_active_users too"),
        "{errors}"
    );
    let (_, out, _) = check(&format!("{SHOP}{wrong}{OBJECTS}"), &["--json"]);
    let answer: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&answer["errors"][0]["event"], &answer["errors"][0]["room"]), (&"drop".into(), &().into()));
}

#[test]
fn json_is_for_programs() {
    let (status, out, errors) = check(&format!("{SHOP}{OBJECTS}"), &["--json"]);
    let answer: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((status, errors.as_str(), &answer["ok"]), (0, "", &true.into()));
    assert_eq!(answer["rooms"][0]["total_active_users"], 1000);
    assert_eq!(answer["rooms"][0]["cookie_path"], "/sale");

    let (status, out, errors) = check(&format!("{}{OBJECTS}", SHOP.replace("1000", "0")), &["--json"]);
    let answer: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((status, errors.as_str(), &answer["ok"]), (1, "", &false.into()));
    assert_eq!(answer["errors"][0]["room"], "shop");
    assert_eq!(answer["errors"][0]["field"], "total_active_users");
}

#[test]
fn help_teaches_every_field() {
    let output = run(&["--help"]);
    let help = String::from_utf8(output.stdout).unwrap();
    assert!(help.contains("Usage: npm run check -- ") && !help.contains("anteroom-check"), "{help}");
    assert!(output.status.success());
    let more = [
        "domain",
        "event_start_time",
        "event_end_time",
        "prequeue_start_time",
        "shuffle_at_event_start",
        "url",
        "tcp",
        "method",
        "interval",
        "timeout",
        "retries",
        "consecutive_fails",
        "consecutive_successes",
        "expected_codes",
        "expected_body",
        "follow_redirects",
        "header",
        "regions",
        "description",
        "--env",
        "--json",
        "Exit status",
    ];
    let fields = FIELDS.iter().map(|field| field.name);
    for word in fields.chain(WEBHOOK_FIELDS).chain(more) {
        assert!(help.contains(word), "{word}");
    }
}

/// Values that a schema allows, and others that it forbids, at the edge of both.
fn at_the_edge(schema: &Value) -> (Vec<Value>, Vec<Value>) {
    let (mut good, mut bad) = (Vec::new(), Vec::new());
    let is_whole = schema["type"] == "integer";
    let step = if is_whole { 1.0 } else { 0.01 };
    let number = |value: f64| if is_whole { json!(value as i64) } else { json!(value) };
    for (keyword, outwards) in [("minimum", -step), ("maximum", step)] {
        if let Some(edge) = schema[keyword].as_f64() {
            good.push(number(edge));
            bad.push(number(edge + outwards));
        }
    }
    if let Some(names) = schema["enum"].as_array() {
        good.extend(names.clone());
        bad.push(if is_whole { json!(1) } else { json!("none of these") });
    }
    if let Some(longest) = schema["maxLength"].as_u64() {
        bad.push(json!("x".repeat(longest as usize + 1)));
    }
    if let Some(most) = schema["maxItems"].as_u64() {
        let items = &schema["items"];
        let one = |at| {
            if items["type"] == "object" {
                json!({ "path": format!("/{at}") })
            } else {
                json!(format!("x{at}"))
            }
        };
        let list = |count| Value::Array((0..count).map(one).collect());
        good.push(list(most));
        bad.push(list(most + 1));
        bad.extend(at_the_edge(items).1.into_iter().map(|item| json!([item])));
    }
    good.extend(schema["examples"].as_array().into_iter().flatten().cloned());
    good.extend(schema.get("default").cloned());
    (good, bad)
}

#[test]
fn what_the_table_says_of_a_value_is_what_the_parser_says() {
    // What some of the fields need beside them.
    let beside = json!({
        "total_active_users": { "min": 1, "max": 1000 }, "new_users_per_minute": 200, "limits": "adaptive",
        "mode": "observe", "turnstile_sitekey": "0x4AAAA", "cookie_suffix": "shop", "refresh_interval_seconds": 5, "host": "shop.example.com",
        "session_duration": 30,
    });
    let output = run(&["--fields", "--json"]);
    let tables: Value = serde_json::from_slice(&output.stdout).unwrap();
    let (mut tried, mut wrong) = (0, Vec::new());
    let mut try_all = |name: &str, schema: &Value, value_of: &dyn Fn(&Value) -> (String, Value)| {
        let (good, bad) = at_the_edge(schema);
        for (value, is_good) in
            good.iter().map(|value| (value, true)).chain(bad.iter().map(|value| (value, false)))
        {
            let (field, whole) = value_of(value);
            let mut table = beside.clone();
            table[&field] = whole;
            let errors = parse_room("ROOM_SHOP", &table).err().unwrap_or_default();
            let about: Vec<String> = errors
                .iter()
                .filter(|error| error.field.starts_with(name))
                .map(ToString::to_string)
                .collect();
            if about.is_empty() != is_good {
                wrong.push(format!("{name} = {value}: {about:?}"));
            }
            tried += 1;
        }
    };
    for (name, schema) in tables["fields"].as_object().into_iter().flatten() {
        if name == "bypass_rules" {
            continue;
        }
        try_all(name, schema, &|value| (name.clone(), value.clone()));
        for (inner, schema) in schema["properties"].as_object().into_iter().flatten() {
            try_all(&format!("{name}.{inner}"), schema, &|value| {
                // A window's least is at most its most.
                let mut table = Map::from_iter([(inner.clone(), value.clone())]);
                if inner == "min" {
                    table.insert("max".to_owned(), json!(10_000));
                }
                (name.clone(), Value::Object(table))
            });
        }
    }
    assert!(wrong.is_empty() && tried > 200, "of {tried}: {wrong:#?}");
}

#[test]
fn the_documents_have_the_table_of_fields() {
    let output = run(&["--fields"]);
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && table.contains("| `total_active_users` |"), "{table}");
    let document = include_str!("../../docs/configuration.md");
    assert!(document.contains(&table), "put what anteroom-check --fields prints into docs/configuration.md");
    let output = run(&["--fields", "--json"]);
    let tables: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(output.status.success());
    for field in FIELDS {
        assert!(tables["fields"][field.name]["type"].is_string(), "{}", field.name);
    }
    assert_eq!(tables["endpoints"].as_array().map(Vec::len), Some(ENDPOINTS.len()));
    let events = include_str!("../../docs/events.md");
    for field in FIELDS.iter().filter(|field| field.in_events.is_some()) {
        assert!(events.contains(field.name), "docs/events.md does not name {}", field.name);
    }
}

#[test]
fn every_value_says_where_it_comes_from() {
    let shared = "[vars.DEFAULTS]\nsession_duration = 7\nbypass_rules = [\"ip.src in {192.0.2.0/24}\"]\n";
    let (status, out, errors) = check(&format!("{SHOP}{shared}{OBJECTS}"), &["--sources"]);
    assert_eq!((status, errors.as_str()), (0, ""));
    for line in [
        "total_active_users = 1000 ([vars.ROOM_SHOP])",
        "session_duration = 7 ([vars.DEFAULTS])",
        "refresh_interval_seconds = 20 (default)",
    ] {
        assert!(out.contains(line), "{line}: {out}");
    }
    let (_, out, _) = check(&format!("{SHOP}{shared}{OBJECTS}"), &["--json"]);
    let answer: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(answer["rooms"][0]["sources"]["bypass_rules"], "DEFAULTS");
    let (status, _, errors) =
        check(&format!("{SHOP}{}{OBJECTS}", shared.replace("DEFAULTS", "defaults")), &[]);
    assert!(status == 1 && errors.contains("write [vars.DEFAULTS]"), "{errors}");
}

#[test]
fn sites_that_are_workers_are_bound_as_services() {
    let own = SHOP.replace("new_users", "origin_service = \"SITE\"\nnew_users");
    let (status, _, errors) = check(&format!("{own}{OBJECTS}"), &[]);
    assert!(
        status == 1 && errors.contains("room shop: origin_service = \"SITE\": is not a service binding"),
        "{errors}"
    );
    let services = "[[services]]\nbinding = \"SITE\"\nservice = \"shop-site\"\n\
                    [[services]]\nbinding = \"ORIGIN_SERVICE\"\nservice = \"the-site\"\n";
    let (status, out, errors) = check(&format!("{own}{OBJECTS}{services}"), &[]);
    assert_eq!((status, errors.as_str()), (0, ""));
    assert!(
        out.contains("the Worker the-site (ORIGIN_SERVICE)") && out.contains("the service binding SITE"),
        "{out}"
    );
    let both = own.replace("ORIGIN = \"\"", "ORIGIN = \"https://origin.example.com\"");
    let (status, _, errors) = check(&format!("{both}{OBJECTS}{services}"), &[]);
    assert!(status == 1 && errors.contains("vars.ORIGIN"), "{errors}");
}
