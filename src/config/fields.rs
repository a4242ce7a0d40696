//! The table of a room's fields. The parser, the check command and its help, the documents, steering and the dashboard
//! all go by it: a new field is an entry here, its place in [`Room`], and its use.

use serde_json::Value;

use super::table::Table;
use crate::room::{
    AdaptiveRange, BindTicket, Count, Location, Mode, OnError, OnUnhealthy, QueueingMethod, RateWindow, Room,
    SameSite, Secure, Share, SlotStrategy, WhenDeleted,
};

/// The largest limit, as in Cloudflare's own schema.
pub(super) const LIMIT_MAX: u32 = 2_147_483_647;

/// One field of a room's table.
#[derive(Clone, Copy)]
pub struct Field {
    /// As owners write it.
    pub name: &'static str,
    /// What its values are, and where a room has them.
    pub kind: Kind,
    /// Whether operators may change it at run time: its number among those fields. The numbers are the order on the wire:
    /// they stay, and new ones follow.
    pub steered: Option<u8>,
    /// Whether an event may have another value, and from when on.
    pub in_events: Option<InEvents>,
    /// What people read about it.
    #[cfg(not(worker))]
    pub words: Words,
}

/// From when on a room has an event's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InEvents {
    /// From the event's prequeue.
    FromPrequeue,
    /// From the event's start.
    FromStart,
}

/// What people read about a field. The Worker carries none of it.
#[cfg(not(worker))]
#[derive(Clone, Copy, Default)]
pub struct Words {
    /// What it is for, in one line. Names and values stand between backticks.
    pub help: &'static str,
    /// The document that says more, below `docs/`; may be empty.
    pub see: &'static str,
    /// A value as it is written; empty: the default.
    pub example: &'static str,
    /// The type, the default and the range, where [`Field::kind`] does not say them.
    pub facts: [&'static str; 3],
}

/// What a field's values are.
#[derive(Clone, Copy)]
pub enum Kind {
    /// `true` or `false`.
    Flag {
        /// When it is not set.
        default: bool,
        /// Where a room has it.
        at: Place<bool>,
    },
    /// A whole number.
    Whole {
        /// The least.
        least: u32,
        /// The most.
        most: u32,
        /// When it is not set; `None`: it must be.
        default: Option<u32>,
        /// Where a room has it.
        at: Place<u32>,
    },
    /// A whole number from 1 on, which must be set; with `limits = "adaptive"` also a range.
    Limit {
        /// Goes before the range's fields in errors: the name and a dot.
        prefix: &'static str,
        /// Where a room has the number, and the most.
        at: Place<u32>,
        /// Where a range has the least.
        least: fn(&mut AdaptiveRange) -> &mut u32,
    },
    /// One of some names.
    Choice {
        /// The default first.
        names: &'static [&'static str],
        /// Capitals do not matter.
        any_case: bool,
        /// The name of a room's.
        of: fn(&Room) -> &'static str,
        /// Gives a room the one at a place among the names.
        set: fn(&mut Room, usize),
    },
    /// One line of text; may be empty, and is when it is not set.
    Line {
        /// In characters.
        longest: usize,
        /// For errors.
        example: &'static str,
        /// Where a room has it.
        at: Place<String>,
    },
    /// A part of all visitors, from 0 to 1; 0 when it is not set.
    Share {
        /// Where a room has it.
        at: Place<Share>,
    },
    /// A table of its own.
    Table {
        /// Its fields.
        of: &'static [Field],
        /// Goes before their names in errors: the name and a dot.
        prefix: &'static str,
        /// For errors.
        example: &'static str,
        /// Whether they fit together.
        judge: fn(&mut Table<'_>, &mut Room),
    },
    /// What only this field is.
    Own {
        /// Reads it.
        read: fn(&mut Table<'_>, &mut Room),
    },
}

/// Where a room has a value.
pub struct Place<T> {
    /// To look at it.
    pub of: fn(&Room) -> &T,
    /// To change it.
    pub of_mut: fn(&mut Room) -> &mut T,
}

impl<T> Clone for Place<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Place<T> {}

impl Field {
    const fn new(name: &'static str, kind: Kind) -> Self {
        Self {
            name,
            kind,
            steered: None,
            in_events: None,
            #[cfg(not(worker))]
            words: Words { help: "", see: "", example: "", facts: [""; 3] },
        }
    }

    const fn own(name: &'static str, read: fn(&mut Table<'_>, &mut Room)) -> Self {
        Self::new(name, Kind::Own { read })
    }

    const fn steered(mut self, number: u8) -> Self {
        self.steered = Some(number);
        self
    }

    const fn in_events(mut self, from: InEvents) -> Self {
        self.in_events = Some(from);
        self
    }

    /// What a room has there; `None`: this table does not know where.
    pub fn value(&self, room: &Room) -> Option<Value> {
        match self.kind {
            Kind::Flag { at, .. } => Some(Value::from(*(at.of)(room))),
            Kind::Whole { at, .. } | Kind::Limit { at, .. } => Some(Value::from(*(at.of)(room))),
            Kind::Choice { of, .. } => Some(Value::from(of(room))),
            Kind::Line { at, .. } => Some(Value::from((at.of)(room).as_str())),
            Kind::Share { at } => Some(Value::from((at.of)(room).part())),
            Kind::Table { .. } | Kind::Own { .. } => None,
        }
    }

    /// The least and the most of a number.
    pub fn range(&self) -> Option<(u32, u32)> {
        match self.kind {
            Kind::Whole { least, most, .. } => Some((least, most)),
            Kind::Limit { .. } => Some((1, LIMIT_MAX)),
            _ => None,
        }
    }
}

#[cfg(not(worker))]
impl Field {
    const fn help(mut self, help: &'static str) -> Self {
        self.words.help = help;
        self
    }

    const fn see(mut self, document: &'static str) -> Self {
        self.words.see = document;
        self
    }

    const fn example(mut self, example: &'static str) -> Self {
        self.words.example = example;
        self
    }

    /// The type, the default and the range.
    const fn facts(mut self, kind: &'static str, default: &'static str, range: &'static str) -> Self {
        self.words.facts = [kind, default, range];
        self
    }
}

#[cfg(worker)]
impl Field {
    const fn help(self, _: &'static str) -> Self {
        self
    }

    const fn see(self, _: &'static str) -> Self {
        self
    }

    const fn example(self, _: &'static str) -> Self {
        self
    }

    const fn facts(self, _: &'static str, _: &'static str, _: &'static str) -> Self {
        self
    }
}

/// The fields that operators may change at run time, by their numbers.
pub fn steered_fields() -> impl Iterator<Item = &'static Field> {
    (0..).map_while(|number| FIELDS.iter().find(|field| field.steered == Some(number)))
}

macro_rules! at {
    ($($place:tt)+) => { Place { of: |room| &room.$($place)+, of_mut: |room| &mut room.$($place)+ } };
}

/// A flag that is off, or on, unless it is set.
macro_rules! flag {
    ($default:literal, $($place:tt)+) => { Kind::Flag { default: $default, at: at!($($place)+) } };
}

/// A whole number: the least, the most, the default.
macro_rules! whole {
    ($least:literal..=$most:expr, $default:literal, $($place:tt)+) => {
        Kind::Whole { least: $least, most: $most, default: Some($default), at: at!($($place)+) }
    };
}

macro_rules! limit {
    ($place:ident, $least:ident) => {
        Kind::Limit {
            prefix: concat!(stringify!($place), "."),
            at: at!($place),
            least: |range| &mut range.$least,
        }
    };
}

/// A choice: the type, which knows the names, and where a room has it.
macro_rules! choice {
    ($choice:ident, $($place:tt)+) => {
        Kind::Choice {
            names: $choice::NAMES,
            any_case: false,
            of: |room| room.$($place)+.name(),
            set: |room, place| room.$($place)+ = $choice::ALL.get(place).copied().unwrap_or_default(),
        }
    };
}

use InEvents::{FromPrequeue, FromStart};

/// Every field of a room's table, in the order in which documents show them and errors are told.
pub static FIELDS: &[Field] = &[
    Field::own("description", |table, _| {
        table.text("description", "tickets for the summer tour");
    })
        .help("a note, not used")
        .example("\"the summer tour\"")
        .facts("text", "none", ""),
    Field::own("host", |table, room| room.host = table.host())
        .help("the host it covers")
        .example("\"shop.example.com\"")
        .facts("text", "every host", "one name, without wildcard, scheme or port"),
    Field::own("path", |table, room| room.path = table.path())
        .help("covered with everything below it, by whole segments")
        .example("\"/sale\"")
        .facts("text", "`\"/\"`", "up to 1,024 bytes, without query, wildcard or `;`"),
    Field::own("additional_routes", |table, room| {
        room.additional_routes = table.additional_routes(room.host.as_deref()).into();
    })
    .help("what else the room covers, in one queue; needs `cookie_suffix`")
    .example("[{ host = \"outlet.example.com\", path = \"/sale\" }]")
    .facts("list of `{ host, path }`", "none", "up to 20, each host and path once in all rooms"),
    Field::new("path_case_insensitive", flag!(false, path_case_insensitive)).help("`/SALE` is `/sale`"),
    Field::new("total_active_users", limit!(total_active_users, least_active_users))
        .steered(2)
        .in_events(FromStart)
        .help("users who may be active at once")
        .example("1000"),
    Field::new("new_users_per_minute", limit!(new_users_per_minute, least_new_users))
        .steered(3)
        .in_events(FromStart)
        .help("users who may enter in a minute")
        .example("200"),
    Field::own("limits", |table, room| {
        table.limits(room);
    })
        .help(
            "`\"adaptive\"`: the two limits follow the origin's health. A limit is then a range, \
             `{ min = 200, max = 1000 }`; a number stays fixed",
        )
        .see("adaptive.md")
        .example("\"fixed\"")
        .facts("text", "`\"fixed\"`", "`\"fixed\"`, `\"adaptive\"`"),
    Field::own("origin_slow_ms", |table, room| {
        table.origin_slow_ms(room);
    })
        .help(
            "with adaptive limits: an origin whose median time to the first byte is longer has too much to do",
        )
        .example("800")
        .facts("whole number", "3 times as long as usual", "10 to 60,000"),
    Field::new("rate_window", choice!(RateWindow, rate_window)).help(
        "which minutes `new_users_per_minute` is for: calendar minutes, or any 60 seconds, which needs \
         `slot_strategy = \"leases\"`",
    ),
    Field::new("session_duration", whole!(1..=Room::LONGEST_SESSION_MINUTES, 5, session_duration))
        .steered(4)
        .in_events(FromStart)
        .help("minutes that a user stays active after the last request"),
    Field::new("disable_session_renewal", flag!(false, disable_session_renewal))
        .in_events(FromPrequeue)
        .help("after entering, not after the last request"),
    Field::new("max_session_duration", whole!(0..=1_440, 0, max_session_duration)).help(
        "minutes after entering when a user who keeps a session alive is a new visitor again; 0: never",
    ),
    Field::new(
        "queueing_method",
        Kind::Choice {
            names: QueueingMethod::NAMES,
            any_case: true,
            of: |room| room.queueing_method.name(),
            set: |room, place| {
                room.queueing_method = QueueingMethod::ALL.get(place).copied().unwrap_or_default();
            },
        },
    )
    .in_events(FromPrequeue)
    .help(
        "`fifo`: the oldest minute first; `random`: drawn among all who wait; `passthrough`: everybody enters and is \
         counted; `reject`: nobody enters or waits",
    )
    .see("queueing-methods.md"),
    Field::new("queue_all", flag!(false, queue_all))
        .steered(0)
        .help("nobody new enters; active users go on"),
    Field::new("suspended", flag!(false, suspended))
        .steered(1)
        .help("the room is off: straight to the origin, no cookie"),
    Field::new("mode", choice!(Mode, mode))
        .steered(7)
        .help("`observe`: everybody passes, and all is judged and counted as if the room were on")
        .see("observe.md"),
    Field::new("enforce_share", Kind::Share { at: at!(enforce_share) })
        .steered(8)
        .help("with `mode = \"observe\"`: the part of the visitors for whom the room is on all the same")
        .see("observe.md")
        .example("0.05")
        .facts("number", "`0`", "0 to 1, only with `mode = \"observe\"`"),
    Field::new("slot_strategy", choice!(SlotStrategy, slot_strategy))
        .help("how slots are handed out")
        .see("strategies.md"),
    Field::own("curve_factor", |table, room| room.curve_factor = table.curve_factor())
        .help("exponent of `adapted_worker_slots`")
        .facts("number", "`1.0`", "0.1 to 10"),
    Field::new("location", choice!(Location, location))
        .help("where the room's `Anywhere` and `Global` are made; `auto`: near the first visitor")
        .see("operations.md#where-a-rooms-objects-are"),
    Field::new("on_error", choice!(OnError, on_error))
        .help("new users when neither the objects nor a recent state answer"),
    Field::own("origin", |table, room| room.origin = table.origin())
        .help("where the room's admitted visitors go, instead of `ORIGIN`")
        .see("origins.md")
        .example("\"https://shop-origin.example.com\"")
        .facts("text", "the deployment's", "scheme, host and port"),
    Field::own("origin_service", |table, room| room.origin_service = table.origin_service(room))
        .help("the same for a site that is a Worker: the name of a service binding")
        .see("origins.md")
        .example("\"SHOP_SITE\"")
        .facts("text", "the deployment's", "a binding of `[[services]]`; not with `origin`"),
    Field::own("origin_guard", |table, room| room.origin_guard = table.origin_guard())
        .help("how many requests of a worker may be at the origin")
        .see("guard.md")
        .example("{ strategy = \"position\", min = 2, max = 1000, timeout = 10, admitted = \"retry\" }")
        .facts(
            "table",
            "none",
            "`strategy`, `min`, `max`, `at_once`, `timeout`, `hold_ms`, `admitted`",
        ),
    Field::own("health_checks", |table, room| room.health_checks = table.health_checks())
        .help("the checks that speak for the room's origin")
        .see("health.md")
        .example("[\"origin\"]")
        .facts("list of names", "none", "up to 10"),
    Field::new("on_unhealthy", choice!(OnUnhealthy, on_unhealthy)).help(
        "new users while the origin is unhealthy: they enter as ever, or wait, and enter slowly at first when it is back",
    ),
    Field::own("bypass_rules", |table, room| room.bypass_rules = table.bypass_rules().into())
        .help("requests that go past the room: no cookie, not counted")
        .see("bypass.md")
        .example("[\"ip.src in {192.0.2.0/24}\"]")
        .facts(
            "list of expressions, or of tables with `expression`, `description`, `enabled`",
            "none",
            "up to 50 rules",
        ),
    Field::new("count", choice!(Count, count))
        .help("which requests of visitors who are not in take a slot or wait: all, or those for pages")
        .see("bypass.md#what-starts-a-visit"),
    Field::own("exempt_extensions", |table, room| room.exempt_extensions = table.exempt_extensions().into())
        .help("paths with these extensions neither enter nor wait")
        .example("[\"css\", \"js\"]")
        .facts("list of texts", "none", "up to 50"),
    Field::own("cookie_suffix", |table, room| room.cookie_suffix = table.cookie_suffix())
        .help("the cookie is then `__anteroom_<suffix>`")
        .example("\"shop\"")
        .facts("text", "none", "1 to 32 letters, digits, `_`, `-`"),
    Field::new(
        "cookie_attributes",
        Kind::Table {
            of: COOKIE_FIELDS,
            prefix: "cookie_attributes.",
            example: "{ samesite = \"auto\", secure = \"auto\" }",
            judge: |table, room| table.judge_cookie(room),
        },
    ),
    Field::own("enabled_origin_commands", |table, room| room.revoke = table.origin_commands())
        .help("the origin may end a session: its answer's header `Anteroom-Command: revoke`")
        .see("sessions.md")
        .example("[\"revoke\"]")
        .facts("list", "none", "`[\"revoke\"]`"),
    Field::own("turnstile_sitekey", |table, room| room.turnstile = table.turnstile())
        .help(
            "Cloudflare's Turnstile for those who wait; its secret is the secret `TURNSTILE_SECRET_<ROOM>`, or \
             `TURNSTILE_SECRET` for all rooms",
        )
        .see("turnstile.md")
        .example("\"0x4AAAA...\"")
        .facts("text", "none", "your widget's site key"),
    // Read together with the site key, without which there is none of the three.
    Field::own("turnstile_mode", |_, _| ())
        .in_events(FromPrequeue)
        .help("what is seen of it")
        .facts(
            "text",
            "`\"invisible\"`",
            "`\"off\"`, `\"invisible\"`, `\"visible_non_interactive\"`, `\"visible_managed\"`",
        ),
    Field::own("turnstile_action", |_, _| ())
        .in_events(FromPrequeue)
        .help("who fails: is logged, or waits for ever and is not counted")
        .facts("text", "`\"log\"`", "`\"log\"`, `\"infinite_queue\"`"),
    Field::own("queueing_status_code", |table, room| room.queueing_status_code = table.queueing_status_code())
        .help("status of the waiting page")
        .facts("whole number", "`200`", "200, 202, 429"),
    Field::new("refresh_interval_seconds", whole!(5..=60, 20, refresh_interval_seconds))
        .steered(5)
        .help("between two check-ins of a waiting visitor, a tenth more or less; sooner when the turn is near"),
    Field::own("refresh_interval_max_seconds", |table, room| {
        room.refresh_interval_max_seconds = table.longest_refresh(room.refresh_interval_seconds);
    })
    .help("the same far from the front")
    .see("places.md")
    .example("60")
    .facts("whole number", "3 times as long as usual", "as long as usual to 300"),
    Field::new("place_kept_seconds", whole!(10..=3_600, 300, place_kept_seconds))
        .help("how long a place is kept after the last refresh"),
    Field::new("one_place_per_address", flag!(false, one_place_per_address)).help(
        "of newcomers from one address, one a minute and data center enters at once; the others with their first refresh",
    ),
    Field::new("bind_ticket", choice!(BindTicket, bind_ticket)).help("for somebody else a ticket is none"),
    Field::new("continue_on_another_device", flag!(false, continue_on_another_device))
        .help(
            "the waiting page has a link, also as a QR code, that takes the place along, once; with `bind_ticket` \
             `\"none\"` or `\"address\"`",
        )
        .see("places.md#continue-on-another-device")
        .example("true"),
    Field::new("confirm_within_minutes", whole!(0..=30, 0, confirm_within_minutes))
        .help("who has waited has to go in within this time once it is their turn; else it is the next one's. 0: nobody has to")
        .see("places.md#confirm-or-the-next-one")
        .example("2"),
    Field::new("when_deleted", choice!(WhenDeleted, when_deleted))
        .help(
            "what those who wait see once a room that was made at run time is deleted: what they came for, or first a page \
             that says that the line has ended",
        )
        .see("rooms-api.md#when-a-room-moves-or-goes"),
    Field::own("custom_page_html", |table, room| room.page.template = table.template())
        .in_events(FromPrequeue)
        .help(
            "the waiting page is your Mustache template `static/pages/<name>.html`, or Anteroom's own with your \
             branding in `static/pages/<name>.toml`",
        )
        .see("pages.md")
        .example("\"sale\"")
        .facts("text", "Anteroom's own", "1 to 64 letters, digits, `_`, `-`"),
    Field::own("default_template_language", |table, room| room.page.language = table.language())
        .help("language of the waiting page")
        .see("pages.md#languages")
        .facts("text", "`\"en-US\"`", "one of 39"),
    Field::new("visitor_languages", flag!(true, page.visitor_languages))
        .help("the visitor's own languages come first"),
    Field::new("json_response_enabled", flag!(false, page.exact_json))
        .help("JSON for exactly `Accept: application/json`, whatever `json_response` says"),
    Field::new(
        "json_response",
        Kind::Choice {
            names: &["auto", "off"],
            any_case: false,
            of: |room| if room.page.preferred_json { "auto" } else { "off" },
            set: |room, place| room.page.preferred_json = place == 0,
        },
    )
    .help("`auto`: JSON for programs that prefer it"),
    Field::new(
        "message",
        Kind::Line {
            longest: 500,
            example: "Seats are left for all three evenings.",
            at: at!(page.message),
        },
    )
    .steered(6)
    .help("to everybody who waits"),
    Field::new("show_position", flag!(true, page.position)).help("tell how many are ahead"),
    Field::new("show_wait", flag!(true, page.wait)).help("tell how long it takes"),
    Field::new("show_progress", flag!(true, page.progress)).help("tell how far the visitor is"),
];

const COOKIE_FIELDS: &[Field] = &[
    Field::own("domain", |table, room| room.cookie_domain = table.cookie_domain())
        .help("the cookie is for all hosts of this domain; needed when routes lie on several hosts")
        .example("\"example.com\"")
        .facts("text", "the request's host alone", "at least two labels, a parent of all hosts"),
    Field::new("samesite", choice!(SameSite, cookie_attributes.samesite))
        .help("`auto` is `Lax`; `none` is always `Secure`"),
    Field::new("secure", choice!(Secure, cookie_attributes.secure))
        .help("`auto`: on requests over HTTPS; `never` not with `samesite = \"none\"`"),
    Field::own("partitioned", |table, room| {
        let attributes = &mut room.cookie_attributes;
        attributes.partitioned = table.partitioned(attributes.samesite);
    })
    .help("in frames of other sites each site has a ticket of its own")
    .see("sessions.md")
    .facts("true/false", "`true` with `samesite = \"none\"`", "only with it"),
];
