//! What a room will do, in plain words and as JSON.

use std::fmt::Write as _;

use anteroom::bypass::BypassRule;
use anteroom::config::{FIELDS, Field, Rooms};
use anteroom::health::check::{Check, OBSERVERS, SEARCHED_BODY, Target};
use anteroom::origin::GuardStrategy;
use anteroom::room::{
    BindTicket, Count, Event, Location, Mode, OnError, OnUnhealthy, OriginGuard, PageSettings,
    QueueingMethod, RateWindow, Room, SameSite, Secure, SlotStrategy, TurnstileAction, Webhook,
    WebhookFormat, WhenFull,
};
use anteroom::time::rfc3339;
use serde_json::{Map, Value as Json, json};

use crate::project::Project;

/// One headline and the sentences below it.
pub fn of_room(room: &Room) -> Vec<String> {
    let mut sentences = of_routes(room);
    if room.suspended {
        sentences.push("It is suspended: every request goes to the origin, and no cookie is set.".to_owned());
    } else if room.queue_all {
        sentences.push("It queues all: users who are active go on, nobody new enters.".to_owned());
    }
    if room.mode == Mode::Observe {
        let percent = (room.enforce_share.part() * 1_000.0).round() / 10.0;
        let except = match percent {
            0.0 => String::new(),
            _ => format!(", but for {percent} % of the visitors, for whom it is on"),
        };
        sentences.push(format!(
            "It only observes: everybody passes{except}. The rest is how it judges and counts."
        ));
    }
    sentences.extend(of_bypass(room));
    sentences.push(format!(
        "It lets in at most {} in {}, and has at most {} at once.",
        count(room.new_users_per_minute.into(), "new user", "new users"),
        match room.rate_window {
            RateWindow::Minute => "a minute",
            RateWindow::Sliding => "any 60 seconds",
        },
        count(room.total_active_users.into(), "active user", "active users"),
    ));
    if let Some(origin) = room.own_origin() {
        let kind = if room.origin.is_empty() { "the service binding " } else { "" };
        sentences.push(format!("Its admitted visitors go to {kind}{origin}."));
    }
    sentences.extend(of_health(room));
    sentences.push(format!(
        "A user stays active for {} after {}.",
        count(room.session_duration.into(), "minute", "minutes"),
        if room.disable_session_renewal { "entering, whatever requests come" } else { "the last request" }
    ));
    if room.max_session_duration > 0 {
        sentences.push(format!(
            "Whoever has been in for {} is new again.",
            count(room.max_session_duration.into(), "minute", "minutes"),
        ));
    }
    sentences.push(of_method(room));
    sentences.extend(of_places(room));
    sentences.extend(of_page(&room.page));
    sentences.push(of_strategy(room));
    sentences.push(match room.location {
        Location::Auto => {
            "Its Anywhere and Global are made near the first visitor, and stay there.".to_owned()
        }
        hint => format!(
            "Its Anywhere and Global are made where the platform's location hint {} says, and stay there.",
            hint.name()
        ),
    });
    let new_users = match room.on_error {
        OnError::Admit => "are let in (on_error = \"admit\")",
        OnError::Queue => "wait (on_error = \"queue\")",
    };
    sentences.push(format!("When neither the objects nor a cached state answer, new users {new_users}."));
    if let Some(turnstile) = &room.turnstile {
        let what = match turnstile.action {
            TurnstileAction::Log => "and who fails is logged",
            TurnstileAction::InfiniteQueue => "and only who passes is counted and let in",
        };
        sentences.push(format!(
            "Those who wait are tested by Turnstile (site key {}), {what}.",
            turnstile.sitekey
        ));
    }
    sentences.push(of_cookie(room));
    if room.revoke {
        sentences
            .push("The origin may end a session by its answer's header Anteroom-Command: revoke.".to_owned());
    }
    sentences
}

/// How slots are handed out.
fn of_strategy(room: &Room) -> String {
    match room.slot_strategy {
        SlotStrategy::Leases => {
            "Slots are permits that data centers lease from one pool, Anywhere (leases).".to_owned()
        }
        SlotStrategy::Counters => {
            "Slots are counted by the data center's Counter, then by Anywhere (counters).".to_owned()
        }
        SlotStrategy::WorkerSlots => {
            "Slots are divided among the workers, without calls (worker_slots).".to_owned()
        }
        SlotStrategy::AdaptedWorkerSlots => format!(
            "Slots are divided among the workers times utilisation^{} (adapted_worker_slots).",
            room.curve_factor
        ),
    }
}

/// Where the place is kept.
fn of_cookie(room: &Room) -> String {
    let attributes = &room.cookie_attributes;
    let samesite = match attributes.samesite {
        SameSite::Auto | SameSite::Lax => "SameSite=Lax",
        SameSite::None => "SameSite=None",
        SameSite::Strict => "SameSite=Strict",
    };
    let secure = match (attributes.samesite, attributes.secure) {
        (SameSite::None, _) | (_, Secure::Always) => "always Secure",
        (_, Secure::Auto) => "Secure over HTTPS",
        (_, Secure::Never) => "never Secure",
    };
    let domain = match room.cookie_domain.as_str() {
        "" => String::new(),
        domain => format!(", Domain={domain}"),
    };
    let partitioned = if attributes.partitioned { ", Partitioned" } else { "" };
    format!(
        "The place is kept in the cookie {} (Path={}{domain}, {samesite}, {secure}{partitioned}).",
        room.cookie_name(),
        room.cookie_path()
    )
}

/// When an event is and what it changes, in one paragraph.
pub fn of_event(room: &Room, event: &Event) -> String {
    let (name, start, end) = (&event.name, rfc3339(event.start), rfc3339(event.end));
    let mut text = format!("Event {name} starts at {start} and is over at {end}.");
    if let Some(prequeue) = event.prequeue {
        let order =
            if event.shuffle { ", and whoever comes in that time is put in an order by lot" } else { "" };
        let _ = write!(text, " From {} on nobody new enters{order}.", rfc3339(prequeue));
    }
    if !event.overrides.is_empty() {
        let changes: Vec<String> =
            event.overrides.iter().map(|(field, value)| format!("{field} = {value}")).collect();
        let _ = write!(text, " Other than in the room: {}.", changes.join(", "));
    }
    if event.suspended || room.suspended {
        text.push_str(" It is ignored: suspended.");
    } else if room.queue_all {
        text.push_str(" While the room queues all, nobody new enters all the same.");
    }
    text
}

fn event_as_json(event: &Event) -> Json {
    json!({
        "name": event.name,
        "event_start_time": rfc3339(event.start),
        "event_end_time": rfc3339(event.end),
        "prequeue_start_time": event.prequeue.map(rfc3339),
        "shuffle_at_event_start": event.shuffle,
        "suspended": event.suspended,
        "description": event.description,
        "overrides": event.overrides,
        "effective": event.effective(),
    })
}

/// What rooms with a path cannot promise; `None`: there are none.
pub fn of_paths(rooms: &Rooms) -> Option<String> {
    let with_path = rooms.iter().filter(|room| room.routes().any(|(_, path)| path != "/"));
    let names: Vec<&str> = with_path.map(|room| room.name.as_str()).collect();
    let fronts = match rooms.front_controllers() {
        [] => String::new(),
        fronts => format!(", and behind {}", fronts.join(" and ")),
    };
    (!names.is_empty()).then(|| {
        format!(
            "A room with a path ({}) is as tight as the origin's router. It covers its path in other spellings too, with an \
             extension such as .json{fronts}. But what the origin serves at yet another address goes around it. If that \
             matters, cover path = \"/\", or let the origin insist on the header Anteroom-Admitted (docs/sessions.md).",
            names.join(", ")
        )
    })
}

/// What the room covers.
fn of_routes(room: &Room) -> Vec<String> {
    let in_words = |(host, path): (Option<&str>, &str)| {
        let host = host.unwrap_or("every host");
        if path == "/" {
            format!("every path on {host}")
        } else {
            format!("{path} and everything below it on {host}")
        }
    };
    let routes: Vec<String> = room.routes().map(in_words).collect();
    let mut sentences = vec![format!("Room {} covers {}.", room.name, routes.join(", and "))];
    if room.path_case_insensitive {
        sentences.push("Paths in capitals and in small letters are the same to it.".to_owned());
    }
    if !room.additional_routes.is_empty() && room.host.is_none() {
        sentences.push(
            "A ticket holds for the host where it was given: on another host its visitor is new.".to_owned(),
        );
    }
    sentences
}

/// Which requests go past the room, or start no visit.
fn of_bypass(room: &Room) -> Vec<String> {
    let in_words = |rule: &BypassRule| {
        let described =
            if rule.description.is_empty() { String::new() } else { format!(" ({})", rule.description) };
        let off = if rule.enabled { "" } else { "; this rule is off" };
        format!(
            "Past the room, without cookie and uncounted, go requests with {}{described}{off}.",
            rule.expression
        )
    };
    let mut sentences: Vec<String> = room.bypass_rules.iter().map(in_words).collect();
    if room.count == Count::Navigations {
        sentences.push(
            "Only requests for pages enter or wait; all others of visitors who are not in go to the origin, uncounted \
             (count = \"navigations\")."
                .to_owned(),
        );
    }
    if !room.exempt_extensions.is_empty() {
        let all: Vec<String> =
            room.exempt_extensions.iter().map(|extension| format!(".{extension}")).collect();
        sentences.push(format!("Paths that end in {} neither enter nor wait.", all.join(", ")));
    }
    sentences
}

/// How long places are kept, and for whom.
fn of_places(room: &Room) -> Vec<String> {
    let mut sentences = Vec::new();
    if room.refresh_interval_max_seconds > room.refresh_interval_seconds {
        sentences.push(format!(
            "Far from the front it refreshes less often, at the least every {} seconds.",
            room.refresh_interval_max_seconds
        ));
    }
    sentences.push(format!(
        "A place is kept for {} after the last refresh, or for two and a half of the visitor's refreshes where that is longer.",
        count(room.place_kept_seconds.into(), "second", "seconds")
    ));
    if room.one_place_per_address {
        sentences.push(
            "Of those who come from one address without a ticket, one may enter at once per minute and data center; the \
             others wait for their first refresh."
                .to_owned(),
        );
    }
    if room.continue_on_another_device {
        sentences.push(
            "Whoever waits may take the place along to another device, once per link; the one before then stops waiting."
                .to_owned(),
        );
    }
    if room.confirm_within_minutes > 0 {
        sentences.push(format!(
            "Whoever has waited has to go in within {} once it is their turn; else the next one does.",
            count(room.confirm_within_minutes.into(), "minute", "minutes")
        ));
    }
    let bound = match room.bind_ticket {
        BindTicket::None => return sentences,
        BindTicket::Address => "the network of the visitor's address",
        BindTicket::UserAgent => "the visitor's user agent",
        BindTicket::Both => "the network of the visitor's address and the user agent",
    };
    sentences.push(format!("A ticket is bound to {bound}: elsewhere it is no ticket."));
    sentences
}

/// What the waiting page is like.
fn of_page(page: &PageSettings) -> Vec<String> {
    let made_of = if page.template.is_empty() {
        "Anteroom's own".to_owned()
    } else {
        format!("made of static/pages/{}", page.template)
    };
    let language = if page.visitor_languages {
        format!("in the visitor's language where there is a translation, else in {}", page.language)
    } else {
        format!("in {}", page.language)
    };
    let mut sentences = vec![format!("The page is {made_of}, {language}.")];
    sentences.push(
        match (page.preferred_json, page.exact_json) {
            (true, _) => "Programs that prefer JSON get JSON instead.",
            (false, true) => "Who sends exactly Accept: application/json gets JSON instead.",
            (false, false) => "Programs get the same page (json_response = \"off\").",
        }
        .to_owned(),
    );
    let hidden: Vec<&str> = [
        (page.position, "how many are ahead"),
        (page.wait, "how long it takes"),
        (page.progress, "how far they have come"),
    ]
    .into_iter()
    .filter_map(|(shown, what)| (!shown).then_some(what))
    .collect();
    if !hidden.is_empty() {
        sentences.push(format!("Visitors are not told {}.", hidden.join(", nor ")));
    }
    if !page.message.is_empty() {
        sentences.push(format!("Everybody who waits reads: {}", page.message));
    }
    sentences
}

/// What happens to those who are not in.
fn of_method(room: &Room) -> String {
    let (status, refresh) = (room.queueing_status_code, room.refresh_interval_seconds);
    match room.queueing_method {
        QueueingMethod::Fifo => format!(
            "Everybody else waits, oldest minute first, on a page with status {status} that refreshes every {refresh} \
             seconds."
        ),
        QueueingMethod::Random => format!(
            "Everybody else waits, and each is drawn by chance, on a page with status {status} that refreshes every \
             {refresh} seconds."
        ),
        QueueingMethod::Passthrough => {
            "Everybody enters and is counted, and nobody waits: the limits are not looked at (passthrough)."
                .to_owned()
        }
        QueueingMethod::Reject => format!(
            "Nobody new enters, and nobody waits: everybody else is turned away with a page with status {status} that \
             does not refresh (reject)."
        ),
    }
}

/// What the room does about its origin's health.
fn of_health(room: &Room) -> Vec<String> {
    let mut sentences = Vec::new();
    if let Some(range) = room.adaptive {
        let slow = match range.slow_ms {
            Some(slow_ms) => format!("{slow_ms} ms to its first byte"),
            None => "three times as long as usual".to_owned(),
        };
        sentences.push(format!(
            "These limits follow the origin's health, down to {} in a minute and {} at once: they shrink when more than 2 % \
             of requests fail or the origin takes {slow}.",
            count(range.least_new_users.into(), "new user", "new users"),
            count(range.least_active_users.into(), "active user", "active users"),
        ));
    }
    let checks = room.health_checks.join(", ");
    match (room.on_unhealthy, room.health_checks.is_empty()) {
        (OnUnhealthy::Ignore, true) => {}
        (OnUnhealthy::Ignore, false) => sentences.push(format!(
            "Its health checks ({checks}) are shown, and change nothing (on_unhealthy = \"ignore\")."
        )),
        (OnUnhealthy::Hold, true) => sentences.push(
            "While the origin fails nearly every request, nobody new enters; when it is back, few at first."
                .to_owned(),
        ),
        (OnUnhealthy::Hold, false) => sentences.push(format!(
            "While the origin is unhealthy ({checks}) or fails nearly every request, nobody new enters; when it is back, \
             few at first."
        )),
    }
    sentences.extend(room.origin_guard.as_ref().map(of_guard));
    sentences
}

fn of_guard(guard: &OriginGuard) -> String {
    let settings = &guard.settings;
    let window = match settings.strategy {
        GuardStrategy::Static => format!("at most {} at once", settings.max),
        GuardStrategy::Basic | GuardStrategy::Position => {
            format!("{} to {} at once, as many as it answers in time", settings.min, settings.max)
        }
        GuardStrategy::NewestFirst => format!("the newest of up to {} first", settings.max),
    };
    let full = match guard.admitted {
        WhenFull::Retry => "whoever is in is asked to try again in a moment",
        WhenFull::Pass => "whoever is in goes on",
    };
    format!(
        "Each worker sends its requests to the origin guarded ({}): {window}, each given up after {}. Beyond it new users \
         wait, and {full}.",
        settings.strategy.name(),
        count(settings.timeout_ms / 1_000, "second", "seconds"),
    )
}

/// What a check will do: one headline and the sentences below it.
pub fn of_check(check: &Check) -> Vec<String> {
    let name = &check.name;
    let mut sentences = vec![match &check.target {
        Target::Http(url) => {
            format!("Check {name} asks for {url} with {}.", if check.http.head { "HEAD" } else { "GET" })
        }
        Target::Tcp { host, port } => format!("Check {name} connects to {host}:{port}."),
    }];
    if check.suspended {
        sentences.push("It is suspended: nothing is asked.".to_owned());
    }
    let regions: Vec<&str> = check.regions.iter().map(|region| region.title).collect();
    let observers = u64::from(OBSERVERS) * regions.len() as u64;
    sentences.push(format!(
        "{OBSERVERS} observers in each of {} ({}) do so every {}: about {} an hour.",
        count(regions.len() as u64, "region", "regions"),
        regions.join(", "),
        count(check.interval.into(), "second", "seconds"),
        count(observers * 3_600 / u64::from(check.interval), "request", "requests"),
    ));
    let again = match check.retries {
        0 => "is not repeated".to_owned(),
        retries => format!("is repeated at once, up to {}", count(retries.into(), "time", "times")),
    };
    sentences.push(format!(
        "What takes longer than {} {again}.",
        count(check.timeout.into(), "second", "seconds")
    ));
    if let Target::Http(url) = &check.target {
        let mut healthy = format!("Healthy is an answer with status {}", check.expected_codes());
        if !check.http.expected_body.is_empty() {
            let _ = write!(
                healthy,
                " and with {:?}, in any case, in the first {SEARCHED_BODY} bytes of its body",
                check.http.expected_body
            );
        }
        let redirects = if check.http.follow_redirects { "followed" } else { "judged, not followed" };
        sentences.push(format!("{healthy}; redirects are {redirects}."));
        if url.secure {
            sentences.push(format!("The server's certificate must be trusted, and for {}.", url.host));
        }
    }
    let says = |probes: u32| if probes == 1 { String::new() } else { format!(" {probes} times in a row") };
    sentences.push(format!(
        "A region's state changes when two of its observers agree that it is unhealthy{} or healthy{}.",
        says(check.consecutive_fails),
        says(check.consecutive_successes)
    ));
    if regions.len() > 1 {
        sentences.push("It is unhealthy when at least half of the regions that can tell say so.".to_owned());
    }
    sentences
}

/// The check's settings under the names of its fields, and its sentences.
pub fn check_as_json(check: &Check) -> Json {
    let (url, tcp) = match &check.target {
        Target::Http(url) => (Some(url.to_string()), None),
        Target::Tcp { host, port } => (None, Some(format!("{host}:{port}"))),
    };
    json!({
        "name": check.name,
        "description": check.description,
        "url": url,
        "tcp": tcp,
        "method": if check.http.head { "HEAD" } else { "GET" },
        "interval": check.interval,
        "timeout": check.timeout,
        "retries": check.retries,
        "consecutive_fails": check.consecutive_fails,
        "consecutive_successes": check.consecutive_successes,
        "expected_codes": check.http.expected_codes,
        "expected_body": check.http.expected_body,
        "follow_redirects": check.http.follow_redirects,
        "header": check.http.headers,
        "regions": check.regions.iter().map(|region| region.name).collect::<Vec<_>>(),
        "suspended": check.suspended,
        "sentences": of_check(check),
    })
}

/// What a webhook will send: one headline and the sentences below it.
pub fn of_webhook(webhook: &Webhook) -> Vec<String> {
    let name = &webhook.name;
    let to = match &webhook.url {
        Some(url) => url.clone(),
        None => format!("the address in the secret {}", webhook.url_secret_name()),
    };
    let rooms = match webhook.rooms.as_slice() {
        [] => "every room".to_owned(),
        [room] => format!("room {room}"),
        rooms => format!("the rooms {}", rooms.join(", ")),
    };
    let news: Vec<&str> = webhook.news.iter().map(|kind| kind.name()).collect();
    let mut sentences = vec![
        format!("Webhook {name} sends to {to} what is new in {rooms}."),
        format!("It sends: {}.", news.join(", ")),
    ];
    if let Some(minutes) = webhook.wait_minutes {
        let minutes = count(minutes.into(), "minute", "minutes");
        sentences.push(format!(
            "A wait is news when the estimate is at least {minutes}, and when it is well below again."
        ));
    }
    sentences.push(match webhook.format {
        WebhookFormat::Standard => format!(
            "Messages are signed with the secret {}; without it nothing is sent.",
            webhook.secret_name()
        ),
        format => format!("Messages are written as {} wants them.", format_words(format)),
    });
    sentences.push("What is not answered with 2xx within 10 seconds is sent again, for a day.".to_owned());
    sentences
}

fn format_words(format: WebhookFormat) -> &'static str {
    match format {
        WebhookFormat::Standard => "Standard Webhooks",
        WebhookFormat::Slack => "Slack",
        WebhookFormat::Discord => "Discord",
        WebhookFormat::Teams => "Microsoft Teams",
        WebhookFormat::GoogleChat => "Google Chat",
    }
}

/// The webhook's settings under the names of its fields, and its sentences.
pub fn webhook_as_json(webhook: &Webhook) -> Json {
    json!({
        "name": webhook.name,
        "url": webhook.url,
        "rooms": webhook.rooms,
        "news": webhook.news,
        "wait_minutes": webhook.wait_minutes,
        "format": webhook.format.name(),
        "description": webhook.description,
        "sentences": of_webhook(webhook),
    })
}

/// Where admitted visitors go.
pub fn of_origin(origin: &str) -> String {
    if origin.is_empty() {
        "Admitted visitors go to the zone's own origin (ORIGIN is empty).".to_owned()
    } else {
        format!("Admitted visitors go to {origin} (ORIGIN).")
    }
}

/// The fields of a room: their values, and where these come from.
pub fn of_sources(room: &Room, project: &Project) -> Vec<String> {
    let source = |field: &Field| match project.written(room, field.name) {
        Some((var, value)) => format!("{} = {value} ([vars.{var}])", field.name),
        None => match field.value(room) {
            Some(value) => format!("{} = {value} (default)", field.name),
            None => format!("{} (default)", field.name),
        },
    };
    FIELDS.iter().map(source).collect()
}

/// The room's settings under the names of its fields, where they come from, and its sentences.
pub fn as_json(room: &Room, project: &Project) -> Json {
    let known = FIELDS.iter().filter_map(|field| Some((field.name.to_owned(), field.value(room)?)));
    let mut settings: Map<String, Json> = known.collect();
    let more = json!({
        "name": room.name,
        "host": room.host,
        "origin": room.origin,
        "origin_service": room.origin_service,
        "path": room.path,
        "additional_routes": room.routes().skip(1).map(|(host, path)| {
            json!({ "host": host, "path": path })
        }).collect::<Vec<_>>(),
        "limits": if room.adaptive.is_some() { "adaptive" } else { "fixed" },
        "least_active_users": room.adaptive.map(|range| range.least_active_users),
        "least_new_users": room.adaptive.map(|range| range.least_new_users),
        "origin_slow_ms": room.adaptive.and_then(|range| range.slow_ms),
        "health_checks": room.health_checks,
        "origin_guard": room.origin_guard.as_ref().map(guard_as_json),
        "events": room.events.iter().map(event_as_json).collect::<Vec<_>>(),
        "curve_factor": room.curve_factor,
        "exempt_extensions": &*room.exempt_extensions,
        "bypass_rules": room.bypass_rules.iter().map(rule_as_json).collect::<Vec<_>>(),
        "cookie_name": room.cookie_name(),
        "cookie_path": room.cookie_path(),
        "cookie_attributes": {
            "samesite": room.cookie_attributes.samesite,
            "secure": room.cookie_attributes.secure,
            "partitioned": room.cookie_attributes.partitioned,
            "domain": room.cookie_domain,
        },
        "turnstile": room.turnstile.as_ref().map(|turnstile| json!({
            "sitekey": turnstile.sitekey,
            "mode": turnstile.mode,
            "action": turnstile.action,
        })),
        "enabled_origin_commands": if room.revoke { vec!["revoke"] } else { Vec::new() },
        "queueing_status_code": room.queueing_status_code,
        "refresh_interval_max_seconds": room.refresh_interval_max_seconds,
        "custom_page_html": room.page.template,
        "default_template_language": room.page.language,
        "sentences": of_room(room),
        "sources": FIELDS
            .iter()
            .map(|field| {
                let var = project.written(room, field.name).map_or("default", |(var, _)| var);
                (field.name.to_owned(), Json::from(var))
            })
            .collect::<Map<_, _>>(),
    });
    if let Json::Object(more) = more {
        settings.extend(more);
    }
    Json::Object(settings)
}

fn guard_as_json(guard: &OriginGuard) -> Json {
    json!({
        "strategy": guard.settings.strategy,
        "min": guard.settings.min,
        "max": guard.settings.max,
        "at_once": guard.settings.at_once,
        "timeout": guard.settings.timeout_ms / 1_000,
        "hold_ms": guard.settings.hold_ms,
        "admitted": guard.admitted,
    })
}

fn rule_as_json(rule: &BypassRule) -> Json {
    let BypassRule { expression, description, enabled } = rule;
    json!({ "expression": expression.to_string(), "description": description, "enabled": enabled })
}

/// `1 user`, `2 users`.
pub fn count(number: u64, one: &str, many: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {many}") }
}
