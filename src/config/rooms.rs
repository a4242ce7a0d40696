//! All rooms of a deployment, and which of them covers a request.

use std::borrow::Cow;

use litemap::LiteMap;
use serde_json::Value;

use super::covering::Index;
use super::defaults::{DEFAULTS, Defaults};
use super::error::{ConfigError, Part};
use super::event::give_events;
use super::parse::parse_room;
use super::table::name_of;
use crate::room::Room;
use crate::text::shown_text;
use crate::url::bare_host;
use crate::url::path::{self, Reading};

/// The most rooms that a deployment's vars may describe. Every request looks at each of them once at most.
pub const MAX_ROOMS: usize = 64;
/// The most rooms there may be with those that are made at run time.
pub const MAX_ROOMS_MADE: usize = 1_000;

/// The var that names front controllers.
pub const FRONT_CONTROLLERS: &str = "FRONT_CONTROLLERS";
/// What [`Rooms::read_front_controllers`] wants, and how to mend what it refuses.
pub const FRONT_CONTROLLERS_FIX: (&str, &str) = (
    "must be a list of at most 10 plain paths",
    "write FRONT_CONTROLLERS = [\"/index.php\", \"/app.php\"], which is the default, or [] for none",
);
const MAX_FRONT_CONTROLLERS: usize = 10;

/// All rooms of a deployment, ready to be asked which of them covers a request.
#[derive(Debug, Clone, Default)]
pub struct Rooms {
    /// In the order of their first routes.
    working: Vec<Room>,
    /// Longest path first; with equal paths, one with a host before one without.
    routes: Vec<Covered>,
    /// By each host that a route names: the places of the routes that hold there, in their order.
    by_host: LiteMap<String, Vec<usize>>,
    /// The places of the routes that hold on every host.
    anywhere: Vec<usize>,
    /// The places of all routes.
    index: Index,
    /// Whether case does not matter to any of them.
    in_any_case: bool,
    /// Paths behind which an origin may find another path: `/index.php/sale` is `/sale`.
    front_controllers: Vec<String>,
    broken: Vec<BrokenRoom>,
}

/// A host and a path that a room covers.
#[derive(Debug, Clone)]
struct Covered {
    /// In lower case; `None` covers every host.
    host: Option<String>,
    /// Normalised, and [folded](path::folded) where case does not matter.
    path: String,
    any_case: bool,
    /// The room's place among the rooms.
    room: usize,
}

impl Covered {
    /// What decides which of two routes is looked at first: the larger one is.
    fn rank(&self) -> (usize, bool) {
        (self.path.len(), self.host.is_some())
    }

    fn is_on(&self, host: &str) -> bool {
        self.host.as_ref().is_none_or(|own| own.eq_ignore_ascii_case(host))
    }

    /// `last`: where the path's [last segment](path::last_segment) begins, if that has slashes.
    fn has_path(&self, path: &[u8], last: usize) -> bool {
        let is_below = |path: &[u8]| {
            if self.any_case {
                path::is_below_in_any_case(path, &self.path)
            } else {
                path::is_below(path, self.path.as_bytes())
            }
        };
        // Up to the first slash that may belong to an extension of this path.
        let up_to_slash = || {
            let rest = path.get(self.path.len()..)?;
            path.get(..self.path.len() + rest.iter().position(|byte| *byte == b'/')?)
        };
        is_below(path) || self.path.len() >= last && up_to_slash().is_some_and(is_below)
    }
}

/// A room that is left out because of its errors. Its requests go to the next room that covers them, or to the
/// origin: it fails open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokenRoom {
    /// What follows `ROOM_` in the var's name, in lower case.
    pub name: String,
    /// Everything that is wrong with it, at least one error.
    pub errors: Vec<ConfigError>,
}

/// Which room covers a request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Coverage<'a> {
    /// None: the request is the origin's alone.
    Uncovered,
    /// This one.
    Covered(&'a Room),
    /// The path hides `..` segments (`/open/..%2fsale`) so that, depending on the origin, it leads to one room or
    /// to another; this is the most specific of them. No honest client sends such a path: the safe answer is 400,
    /// as a ticket of one room must not open another.
    Contradictory(&'a Room),
}

impl Rooms {
    /// Builds the rooms and their events from all vars of the Worker: those whose names start with `ROOM_` or `EVENT_`, and
    /// [`DEFAULTS`]; others are passed over.
    ///
    /// A room with errors is left out, remembered in [`Rooms::broken`], and leaves the others unharmed. Rooms are
    /// taken in the order of their vars' names, so that the result does not depend on the order in which a platform
    /// lists vars. Of two rooms with the same name, or the same host and path, the later one is an error; so is
    /// every room after the first [`MAX_ROOMS`]. An event with errors is left out too, and its room works. The errors of
    /// all rooms and events are returned.
    pub fn from_vars(vars: impl Iterator<Item = (String, Value)>) -> (Self, Vec<ConfigError>) {
        Self::with_made(vars, std::iter::empty())
    }

    /// The same with rooms and events that were made at run time, as such vars, in the order in which they were made. What
    /// the deployment describes comes before them, and its [`DEFAULTS`] are not theirs.
    pub fn with_made(
        vars: impl Iterator<Item = (String, Value)>,
        made: impl Iterator<Item = (String, Value)>,
    ) -> (Self, Vec<ConfigError>) {
        let mut by_name: LiteMap<String, Value> = LiteMap::new();
        let mut events: LiteMap<String, Value> = LiteMap::new();
        let mut defaults = Defaults::default();
        for (name, value) in vars {
            if name.starts_with(Part::Room.var_prefix()) {
                by_name.insert(name, value);
            } else if name.starts_with(Part::Event.var_prefix()) {
                events.insert(name, value);
            } else if name == DEFAULTS {
                defaults = Defaults::read(&value);
            }
        }
        let mut written: LiteMap<String, (String, Value)> = LiteMap::new();
        let front_controllers = ["/index.php", "/app.php"].map(str::to_owned).to_vec();
        let mut all = Self { front_controllers, ..Self::default() };
        let (made, made_events): (Vec<_>, Vec<_>) =
            made.partition(|(name, _)| name.starts_with(Part::Room.var_prefix()));
        events.extend(made_events);
        let (shared, own_alone) = (defaults, Defaults::default());
        let of_vars = by_name.iter().map(|(name, value)| (name, value, &shared, MAX_ROOMS));
        let of_made = made.iter().map(|(name, value)| (name, value, &own_alone, MAX_ROOMS_MADE));
        for (var_name, own, defaults, most) in of_vars.chain(of_made) {
            let value = defaults.under(own);
            let parsed = match defaults.error() {
                Some(error) => Err(vec![error.clone()]),
                None => parse_room(var_name, &value),
            };
            let parsed = parsed.and_then(|room| match all.conflict(&room, most) {
                None => Ok(room),
                Some(error) => Err(vec![error]),
            });
            match parsed {
                Ok(room) => {
                    let rank = |room: &Room| (room.path.len(), room.host.is_some());
                    let at = all.working.partition_point(|other| rank(other) >= rank(&room));
                    written.insert(room.name.clone(), (var_name.clone(), value));
                    all.working.insert(at, room);
                }
                Err(errors) => {
                    let name = shown_text(&name_of(Part::Room, var_name));
                    let errors = errors.into_iter().map(|error| defaults.place(error, own)).collect();
                    all.broken.push(BrokenRoom { name, errors });
                }
            }
        }
        for (index, room) in all.working.iter().enumerate() {
            let any_case = room.path_case_insensitive;
            for (host, path) in room.routes() {
                let path = if any_case { path::folded(path) } else { path.to_owned() };
                all.in_any_case |= any_case;
                let route = Covered { host: host.map(str::to_owned), path, any_case, room: index };
                let at = all.routes.partition_point(|other| other.rank() >= route.rank());
                all.routes.insert(at, route);
            }
        }
        all.sort_by_host();
        for (place, route) in all.routes.iter().enumerate() {
            all.index.add(route.host.as_deref().unwrap_or_default(), route.path.as_bytes(), place);
        }
        let of_events = give_events(&events, &written, &mut all.working);
        let mut errors: Vec<ConfigError> = Vec::new();
        for error in all.broken.iter().flat_map(|room| &room.errors).chain(&of_events) {
            // What is wrong with what all rooms share is told once.
            if error.part != Part::Defaults || !errors.contains(error) {
                errors.push(error.clone());
            }
        }
        (all, errors)
    }

    /// All that counts the rooms' users ends in one moment: see [`Room::ends_at_once`].
    pub fn end_at_once(&mut self) {
        for room in &mut self.working {
            room.ends_at_once = true;
        }
    }

    /// Takes the front controllers from a var; `false`: it is wrong, and they stay as they are.
    pub fn read_front_controllers(&mut self, value: &Value) -> bool {
        let plain = |value: &Value| {
            let path = value.as_str().filter(|path| path.len() > 1)?;
            (*path::normalise(path.as_bytes()) == *path.as_bytes()).then(|| path.to_owned())
        };
        let read = value.as_array().filter(|values| values.len() <= MAX_FRONT_CONTROLLERS);
        let read: Option<Vec<_>> = read.and_then(|values| values.iter().map(plain).collect());
        let is_right = read.is_some();
        self.front_controllers = read.unwrap_or_else(|| std::mem::take(&mut self.front_controllers));
        is_right
    }

    /// The front controllers; at most ten.
    pub fn front_controllers(&self) -> &[String] {
        &self.front_controllers
    }

    /// The room that covers a request: the one with the longest path of those whose host fits; with equal paths, one
    /// with a host comes before one without. `host` may carry a port, which is ignored, and any case; `path` is
    /// compared in its one spelling (see [`path`]) and by whole segments; in any case where the room says so. Behind a front
    /// controller another path may stand.
    ///
    /// A suspended room covers its path like any other, and so takes it out of a wider room.
    pub fn find(&self, host: &str, path: &str) -> Coverage<'_> {
        let host = bare_host(host);
        let is_here = |place: &usize| self.routes.get(*place).is_some_and(|route| route.is_on(host));
        if self.anywhere.is_empty() && !self.index.of_host(host).iter().any(is_here) {
            return Coverage::Uncovered;
        }
        let covered = |route: &Covered| self.working.get(route.room);
        let tangle = match path::read(path.as_bytes()) {
            Reading::Plain(read) => {
                // One that is plain already has no slash that came encoded.
                let is_plain = matches!(read, Cow::Borrowed(_));
                let last = if is_plain { usize::MAX } else { path::last_segment(path.as_bytes()) };
                let behind = self.front_controllers.iter().find_map(|front| path::behind(&read, front));
                let behind = behind.map(|path| (last.saturating_sub(read.len() - path.len()), path));
                let first = self.first(host, &read, last);
                let behind = behind.and_then(|(last, path)| self.first(host, &path, last));
                let route = first.into_iter().chain(behind).min().and_then(|place| self.routes.get(place));
                return route.and_then(covered).map_or(Coverage::Uncovered, Coverage::Covered);
            }
            Reading::Tangled(tangle) => tangle,
        };
        let words = tangle.words();
        let on_host = self.on(host).iter().filter_map(|place| self.routes.get(*place));
        let mut possible =
            on_host.filter(|route| path::can_spell(&words, route.path.as_bytes(), route.any_case));
        let Some((first, room)) = possible.next().and_then(|first| Some((first, covered(first)?))) else {
            return Coverage::Uncovered;
        };
        // A route with the same path that comes later is never the one.
        if possible.all(|other| other.room == first.room || other.path == first.path) {
            Coverage::Covered(room)
        } else {
            Coverage::Contradictory(room)
        }
    }

    /// The place of the first route that covers a plain path on a host. `last`: as for [`Covered::has_path`].
    fn first(&self, host: &str, path: &[u8], last: usize) -> Option<usize> {
        let covers = |place: &usize| self.routes.get(*place).is_some_and(|route| route.has_path(path, last));
        if self.in_any_case && !path.is_ascii() {
            // The index knows capitals of ASCII alone.
            return self.on(host).iter().copied().find(covers);
        }
        let is_here = |place: &usize| self.routes.get(*place).is_some_and(|route| route.is_on(host));
        let found = self.index.above([host, ""], path);
        found.filter(|place| is_here(place) && covers(place)).min()
    }

    /// The room that covers a request, as [`Rooms::find`] says, or the most specific one that may.
    pub fn cover(&self, host: &str, path: &str) -> Option<&Room> {
        match self.find(host, path) {
            Coverage::Uncovered => None,
            Coverage::Covered(room) | Coverage::Contradictory(room) => Some(room),
        }
    }

    /// Gives rooms that were made at run time, which are known by their ids, the names that people call them by.
    pub(super) fn call(&mut self, names: &LiteMap<String, String>) {
        for room in &mut self.working {
            if let Some(name) = names.get(&room.name) {
                room.called.clone_from(name);
            }
        }
    }

    /// The room that people call so, in any case, or whose id this is.
    pub fn by_label(&self, label: &str) -> Option<&Room> {
        let is_it = |room: &&Room| room.name == label || room.label().eq_ignore_ascii_case(label);
        self.working.iter().find(is_it)
    }

    /// The room of this name (in lower case).
    pub fn get(&self, name: &str) -> Option<&Room> {
        self.working.iter().find(|room| room.name == name)
    }

    /// The places of the routes that hold on a host: however many rooms there are on others.
    fn on(&self, host: &str) -> &[usize] {
        let host = bare_host(host);
        let known = self.by_host.get(host).or_else(|| {
            // Browsers write hosts in lower case.
            let has_capitals = host.bytes().any(|byte| byte.is_ascii_uppercase());
            has_capitals.then(|| self.by_host.get(&host.to_ascii_lowercase()))?
        });
        known.unwrap_or(&self.anywhere)
    }

    fn sort_by_host(&mut self) {
        for host in self.routes.iter().filter_map(|route| route.host.clone()) {
            self.by_host.insert(host, Vec::new());
        }
        for (place, route) in self.routes.iter().enumerate() {
            if let Some(host) = &route.host {
                self.by_host.get_mut(host).into_iter().for_each(|places| places.push(place));
            } else {
                self.by_host.iter_mut().for_each(|(_, places)| places.push(place));
                self.anywhere.push(place);
            }
        }
    }

    /// The rooms that work, most specific path first; at most [`MAX_ROOMS`].
    pub fn iter(&self) -> impl Iterator<Item = &Room> {
        self.working.iter()
    }

    /// How many rooms work.
    pub fn len(&self) -> usize {
        self.working.len()
    }

    /// Whether no room works.
    pub fn is_empty(&self) -> bool {
        self.working.is_empty()
    }

    /// The rooms that were left out, by the names of their vars; at most as many as there are vars.
    pub fn broken(&self) -> &[BrokenRoom] {
        &self.broken
    }

    /// What keeps a valid room from joining these.
    fn conflict(&self, new: &Room, most: usize) -> Option<ConfigError> {
        let error = |field: &str, value: String, message: String, fix: String| {
            Some(ConfigError {
                part: Part::Room,
                name: new.name.clone(),
                field: field.to_owned(),
                value,
                message,
                fix,
                excerpt: String::new(),
            })
        };
        if self.get(&new.name).is_some() {
            return error(
                "name",
                format!("\"{}\"", new.name),
                "is the name of another room too: names are compared in lower case".to_owned(),
                "rename one of the two vars".to_owned(),
            );
        }
        for (place, (host, path)) in new.routes().enumerate() {
            let field = if place == 0 { "path" } else { "additional_routes.path" };
            let is_same = |any_case: bool, other: (Option<&str>, &str)| {
                host == other.0
                    && (path == other.1 || any_case && path::folded(path) == path::folded(other.1))
            };
            let any_case = new.path_case_insensitive;
            let of_another = self.working.iter().find(|room| {
                room.routes().any(|route| is_same(any_case || room.path_case_insensitive, route))
            });
            let by = match of_another {
                Some(other) => format!("room {}", other.label()),
                None if new.routes().take(place).any(|route| is_same(any_case, route)) => {
                    "another route of this room".to_owned()
                }
                None => continue,
            };
            return error(
                field,
                format!("\"{}\"", shown_text(path)),
                format!("is covered by {by} on {} already", host.unwrap_or("every host")),
                "give one of the two another path or host, or remove it".to_owned(),
            );
        }
        if self.working.len() >= most {
            return error(
                "name",
                format!("\"{}\"", new.name),
                format!("is one room too many: a deployment has at most {most}"),
                "remove a room, or put it into a Worker of its own".to_owned(),
            );
        }
        None
    }
}
