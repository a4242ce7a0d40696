//! What a room will do, in plain words and as JSON.

use std::fmt::Write as _;

use anteroom::config::{OnError, RateWindow, Room, SameSite, Secure, SlotStrategy};
use anteroom::health::check::{Check, OBSERVERS, SEARCHED_BODY, Target};

/// One headline and the sentences below it.
pub fn of_room(room: &Room) -> Vec<String> {
    let everything = if room.path == "/" {
        "every path".to_owned()
    } else {
        format!("{} and everything below it", room.path)
    };
    let host = room.host.clone().unwrap_or_else(|| "every host".to_owned());
    let mut sentences = vec![format!("Room {} covers {everything} on {host}.", room.name)];
    if room.suspended {
        sentences.push("It is suspended: every request goes to the origin, and no cookie is set.".to_owned());
    } else if room.queue_all {
        sentences.push("It queues all: users who are active go on, nobody new enters.".to_owned());
    }
    sentences.push(format!(
        "It lets in at most {} in {}, and has at most {} at once.",
        count(room.new_users_per_minute.into(), "new user", "new users"),
        match room.rate_window {
            RateWindow::Minute => "a minute",
            RateWindow::Sliding => "any 60 seconds",
        },
        count(room.total_active_users.into(), "active user", "active users"),
    ));
    sentences.push(format!(
        "A user stays active for {} after the last request.",
        count(room.session_duration.into(), "minute", "minutes")
    ));
    sentences.push(format!(
        "Everybody else waits, oldest minute first, on a page with status {} that refreshes every {} seconds.",
        room.queueing_status_code, room.refresh_interval_seconds
    ));
    let strategy = match room.slot_strategy {
        SlotStrategy::Leases => {
            "Slots are tickets that data centers lease from one pool, Anywhere (leases).".to_owned()
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
    };
    sentences.push(strategy);
    let new_users = match room.on_error {
        OnError::Admit => "are let in (on_error = \"admit\")",
        OnError::Queue => "wait (on_error = \"queue\")",
    };
    sentences.push(format!("When neither the objects nor a cached state answer, new users {new_users}."));
    let samesite = match room.cookie_attributes.samesite {
        SameSite::Auto | SameSite::Lax => "SameSite=Lax",
        SameSite::None => "SameSite=None",
        SameSite::Strict => "SameSite=Strict",
    };
    let secure = match (room.cookie_attributes.samesite, room.cookie_attributes.secure) {
        (SameSite::None, _) | (_, Secure::Always) => "always Secure",
        (_, Secure::Auto) => "Secure over HTTPS",
        (_, Secure::Never) => "never Secure",
    };
    let (name, path) = (room.cookie_name(), room.cookie_path());
    sentences.push(format!("The place is kept in the cookie {name} (Path={path}, {samesite}, {secure})."));
    sentences
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
pub fn check_as_json(check: &Check) -> serde_json::Value {
    let (url, tcp) = match &check.target {
        Target::Http(url) => (Some(url.to_string()), None),
        Target::Tcp { host, port } => (None, Some(format!("{host}:{port}"))),
    };
    serde_json::json!({
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

/// Where admitted visitors go.
pub fn of_origin(origin: &str) -> String {
    if origin.is_empty() {
        "Admitted visitors go to the zone's own origin (ORIGIN is empty).".to_owned()
    } else {
        format!("Admitted visitors go to {origin} (ORIGIN).")
    }
}

/// The room's settings under the names of its fields, and its sentences.
pub fn as_json(room: &Room) -> serde_json::Value {
    serde_json::json!({
        "name": room.name,
        "host": room.host,
        "path": room.path,
        "total_active_users": room.total_active_users,
        "new_users_per_minute": room.new_users_per_minute,
        "rate_window": match room.rate_window {
            RateWindow::Minute => "minute",
            RateWindow::Sliding => "sliding",
        },
        "session_duration": room.session_duration,
        "queueing_method": "fifo",
        "queue_all": room.queue_all,
        "suspended": room.suspended,
        "slot_strategy": match room.slot_strategy {
            SlotStrategy::Leases => "leases",
            SlotStrategy::Counters => "counters",
            SlotStrategy::WorkerSlots => "worker_slots",
            SlotStrategy::AdaptedWorkerSlots => "adapted_worker_slots",
        },
        "curve_factor": room.curve_factor,
        "on_error": match room.on_error {
            OnError::Admit => "admit",
            OnError::Queue => "queue",
        },
        "cookie_name": room.cookie_name(),
        "cookie_path": room.cookie_path(),
        "cookie_attributes": {
            "samesite": match room.cookie_attributes.samesite {
                SameSite::Auto => "auto",
                SameSite::Lax => "lax",
                SameSite::None => "none",
                SameSite::Strict => "strict",
            },
            "secure": match room.cookie_attributes.secure {
                Secure::Auto => "auto",
                Secure::Always => "always",
                Secure::Never => "never",
            },
        },
        "queueing_status_code": room.queueing_status_code,
        "refresh_interval_seconds": room.refresh_interval_seconds,
        "sentences": of_room(room),
    })
}

/// `1 user`, `2 users`.
pub fn count(number: u64, one: &str, many: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {many}") }
}
