//! One room's var, read and validated. All errors of a room are found in one go.

use serde_json::{Map, Value};

use super::error::{ConfigError, Part};
use super::fields::{FIELDS, Kind, LIMIT_MAX, steered_fields};
use super::table::{Table, names_of, whole_meant};
use crate::room::{BindTicket, Mode, RateWindow, Room, SlotStrategy};

/// The longest time between two check-ins, in seconds.
const REFRESH_MAX: u32 = 300;
/// How many times as long as usual a refresh is far from the front, by default.
const REFRESH_STRETCH: u32 = 3;
const STATUS_CODES: [u16; 3] = [200, 202, 429];

/// Reads one room: the var `ROOM_SHOP` with a table becomes the room `shop`.
///
/// `total_active_users` and `new_users_per_minute` are required, everything else has a default. Either limit may be
/// the larger one: more new users per minute than active users is no conflict, the smaller limit is simply reached
/// first.
///
/// # Errors
/// Every error of the room: unknown fields, wrong types, values out of range, conflicts, what is missing.
pub fn parse_room(var_name: &str, value: &Value) -> Result<Room, Vec<ConfigError>> {
    let (name, mut table) = Table::open(Part::Room, var_name, value)?;
    table.unknown(&names_of(FIELDS));
    let mut room = Room { name, ..Room::default() };
    for field in FIELDS {
        table.read(field, &mut room);
    }
    if room.rate_window == RateWindow::Sliding && room.slot_strategy != SlotStrategy::Leases {
        table.refuse(
            "rate_window",
            &Value::from("sliding"),
            "needs slot_strategy = \"leases\"",
            "set slot_strategy to \"leases\", or leave rate_window out",
        );
    }
    if let Some(share) = table.get("enforce_share").filter(|_| room.mode == Mode::Enforce) {
        let fix = "add mode = \"observe\", or leave enforce_share out: the room is on for everybody";
        table.refuse("enforce_share", share, "needs mode = \"observe\"", fix);
    }
    if room.continue_on_another_device && matches!(room.bind_ticket, BindTicket::UserAgent | BindTicket::Both)
    {
        table.refuse(
            "continue_on_another_device",
            &Value::from(true),
            "conflicts with bind_ticket: another device has another user agent",
            "set bind_ticket to \"none\" or \"address\", or remove this",
        );
    }
    if room.confirm_within_minutes > room.session_duration {
        table.refuse(
            "confirm_within_minutes",
            &Value::from(room.confirm_within_minutes),
            "must not be longer than session_duration",
            &format!("write at most {}, or make session_duration longer", room.session_duration),
        );
    }
    table.judge_routes(&room);
    if table.errors.is_empty() { Ok(room) } else { Err(table.errors) }
}

/// What is wrong with values that an operator wants to give to fields of a room at run time.
pub fn check_steered(room: &str, fields: &Map<String, Value>) -> Vec<ConfigError> {
    let mut table = Table::of_order(room, fields);
    table.unknown(&steered_fields().map(|field| field.name).collect::<Vec<_>>());
    let mut read = Room::default();
    for field in steered_fields().filter(|field| fields.contains_key(field.name)) {
        match field.kind {
            // Not even where the limits adapt: an operator says the most.
            Kind::Limit { .. } => drop(table.whole(field.name, 1..=LIMIT_MAX, Some(200))),
            _ => table.read(field, &mut read),
        }
    }
    table.errors
}

impl Table<'_> {
    /// Seconds between two check-ins far from the front, by those of others.
    pub(super) fn longest_refresh(&mut self, usual: u32) -> u32 {
        let default = (usual * REFRESH_STRETCH).min(REFRESH_MAX);
        self.whole("refresh_interval_max_seconds", usual..=REFRESH_MAX, Some(default))
    }

    /// Whether `revoke` is among `enabled_origin_commands`.
    pub(super) fn origin_commands(&mut self) -> bool {
        let field = "enabled_origin_commands";
        let Some(value) = self.get(field) else { return false };
        let commands = value.as_array().filter(|commands| commands.iter().all(|name| name == "revoke"));
        if commands.is_none() {
            let fix = "write enabled_origin_commands = [\"revoke\"]";
            self.refuse(field, value, "must be a list of commands, and the only command is \"revoke\"", fix);
        }
        commands.is_some_and(|commands| !commands.is_empty())
    }

    pub(super) fn queueing_status_code(&mut self) -> u16 {
        let field = "queueing_status_code";
        let default = 200;
        let Some(value) = self.get(field) else { return default };
        if let Some(code) = value.as_u64().and_then(|code| u16::try_from(code).ok())
            && STATUS_CODES.contains(&code)
        {
            return code;
        }
        let meant = whole_meant(value).and_then(|code| u16::try_from(code).ok());
        let code = meant.filter(|code| STATUS_CODES.contains(code)).unwrap_or(default);
        let fix = format!("write a whole number without quotes, for example {field} = {code}");
        self.refuse(field, value, "must be 200, 202 or 429", &fix);
        default
    }
}
