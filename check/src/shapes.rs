//! What a field looks like that is of a kind of its own (`Kind::Own`), as a part of a JSON Schema. The table of fields only has
//! words for that; forms and generated clients go by this. A test tries each bound on the parser.

use anteroom::room::{GuardStrategy, LANGUAGES, WhenFull};
use serde_json::{Value, json};

/// The keywords that hold for a field's values, beyond its type; null where there are none.
pub fn shape(name: &str) -> Value {
    match name {
        "host" => json!({ "maxLength": 253 }),
        "path" => json!({ "maxLength": 1024, "pattern": "^/" }),
        "additional_routes" => json!({ "maxItems": 20, "items": {
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "host": { "type": "string", "maxLength": 253, "x-default": "the room's" },
                "path": { "type": "string", "maxLength": 1024, "pattern": "^/", "default": "/" },
            },
        } }),
        "limits" => json!({ "enum": ["fixed", "adaptive"] }),
        "origin_slow_ms" => json!({ "minimum": 10, "maximum": 60_000 }),
        "curve_factor" => json!({ "minimum": 0.1, "maximum": 10 }),
        "origin" => json!({ "format": "uri", "pattern": "^https?://" }),
        "origin_guard" => json!({ "additionalProperties": false, "properties": guard() }),
        "health_checks" => {
            json!({ "maxItems": 10, "items": { "type": "string", "minLength": 1, "maxLength": 100 } })
        }
        "exempt_extensions" => {
            json!({ "maxItems": 50, "items": { "type": "string", "pattern": "^[a-z0-9]{1,16}$" } })
        }
        // Cloudflare's clients send an empty one for none.
        "cookie_suffix" => json!({ "pattern": "^[A-Za-z0-9_-]{0,32}$" }),
        "enabled_origin_commands" => json!({ "items": { "type": "string", "enum": ["revoke"] } }),
        "turnstile_mode" => {
            json!({ "enum": ["invisible", "off", "visible_non_interactive", "visible_managed"] })
        }
        "turnstile_action" => json!({ "enum": ["log", "infinite_queue"] }),
        "queueing_status_code" => json!({ "enum": [200, 202, 429] }),
        "refresh_interval_max_seconds" => json!({ "minimum": 5, "maximum": 300 }),
        "custom_page_html" => json!({ "pattern": "^[A-Za-z0-9_-]{1,64}$" }),
        "default_template_language" => json!({ "enum": LANGUAGES.as_slice() }),
        _ => Value::Null,
    }
}

/// The fields of `origin_guard`.
fn guard() -> Value {
    let whole = |least: u32, most: u32, help: &str| json!({ "type": "integer", "minimum": least, "maximum": most, "description": help });
    let or = |mut schema: Value, default: u32| {
        if let Value::Object(keywords) = &mut schema {
            keywords.insert("default".to_owned(), default.into());
        }
        schema
    };
    let one = |names: &[&str], help: &str| json!({ "type": "string", "enum": names, "default": names.first(), "description": help });
    json!({
        "strategy": one(GuardStrategy::NAMES, "how the window follows the origin"),
        "min": or(whole(1, 10_000, "no window gets smaller, in requests of one worker; windows start with it"), 2),
        "max": or(whole(1, 10_000, "no window gets larger; fixed with static, the stack of newest_first"), 1_000),
        "at_once": whole(
            1,
            10_000,
            "how many of the window are sent at once, all without it; the others wait in the worker",
        ),
        "timeout": or(whole(1, 100, "an answer whose first byte comes later is a timeout, in seconds"), 10),
        "hold_ms": or(whole(0, 10_000, "how long a request may stand in line, in milliseconds"), 1_000),
        "admitted": one(WhenFull::NAMES, "what users get who are in, when there is no place in line"),
    })
}
