//! What owners write.

/// Whatever stands in the vars: the rooms that work are within all bounds and cover their own paths, and each mistake is
/// named in one line with a fix. The input is a JSON object of all vars.
pub mod rooms {
    use anteroom::config::{ConfigError, Coverage, Rooms, Webhooks};
    use anteroom::health::check::Checks;
    use anteroom::ticket::set_cookie;
    use anteroom::url::path::{as_browsers_write, normalise};
    use serde_json::{Map, Value};

    /// The longest error, in bytes: names and values are cut, and a list of all names may follow.
    const LONGEST: usize = 2_500;

    pub fn run(input: &[u8]) {
        let Ok(Value::Object(vars)) = serde_json::from_slice(input) else { return };
        let (rooms, mut errors) = Rooms::from_vars(vars.clone().into_iter());
        let of_rooms = vars.keys().filter(|name| name.starts_with("ROOM_")).count();
        assert_eq!(rooms.len() + rooms.broken().len(), of_rooms);
        for room in rooms.iter() {
            assert!(room.total_active_users >= 1 && room.new_users_per_minute >= 1);
            assert!((5..=300).contains(&room.refresh_interval_seconds));
            assert!(room.refresh_interval_seconds <= room.refresh_interval_max_seconds);
            assert!((60_000..=1_800_000).contains(&room.session_ms()));
            let goal = room.own_origin().unwrap_or_default();
            assert!(!goal.contains(char::is_whitespace), "it stands in a line: {goal:?}");
            for (host, path) in room.routes() {
                assert_eq!(
                    *normalise(path.as_bytes()),
                    *path.as_bytes(),
                    "a room's path is in its one spelling"
                );
                for host in [host.unwrap_or("other.example"), &host.unwrap_or("x").to_uppercase()] {
                    let asked = as_browsers_write(path.as_bytes());
                    let Coverage::Covered(found) = rooms.find(host, &asked) else {
                        panic!("{host}{asked} is not covered")
                    };
                    let is_own = found.name == room.name || found.path.len() >= path.len();
                    assert!(
                        is_own || found.host.is_some(),
                        "{host}{asked}: {} for {}",
                        found.name,
                        room.name
                    );
                }
            }
            let cookie = set_cookie(room, "/", "x", 60, true);
            assert!(cookie.is_ascii() && !cookie.contains(char::is_control), "{cookie}");
            assert!((5..=8).contains(&cookie.split(';').count()), "{cookie}");
        }
        errors.extend(Checks::from_vars(vars.clone().into_iter()).1);
        errors.extend(Webhooks::from_vars(vars.clone().into_iter(), &rooms).1);
        for error in &errors {
            is_told(error);
        }
        let front_controllers = vars.get("FRONT_CONTROLLERS").unwrap_or(&Value::Null);
        let mut rooms = rooms;
        if rooms.read_front_controllers(front_controllers) {
            assert!(rooms.front_controllers().len() <= 10);
        }
    }

    fn is_told(error: &ConfigError) {
        let line = error.to_string();
        assert!(!error.message.is_empty() && !error.fix.is_empty(), "{line}");
        assert!(line.len() <= LONGEST, "{} bytes: {line}", line.len());
        assert!(!line.contains(char::is_control), "{line:?}");
    }

    pub fn seeds() -> Vec<Vec<u8>> {
        let fields = anteroom::config::FIELDS.iter().map(|field| {
            let room = Map::from_iter([(field.name.to_owned(), Value::from("auto"))]);
            serde_json::json!({ "ROOM_A": room }).to_string().into_bytes()
        });
        crate::paragraphs(include_str!("../seeds/rooms.txt")).into_iter().chain(fields).collect()
    }
}
