//! Where admitted visitors go: a URL, or another Worker by a service binding.

use serde_json::Value;

use super::table::Table;
use crate::room::Room;

/// The longest name of a binding, in bytes.
const BINDING_MAX: usize = 64;

/// Whether a text is a scheme, a host and perhaps a port, with or without a slash at the end.
pub fn is_origin(origin: &str) -> bool {
    let Some(rest) = origin.strip_prefix("https://").or_else(|| origin.strip_prefix("http://")) else {
        return false;
    };
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    let (host, port) = match rest.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (rest, None),
    };
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let is_address = |byte: u8| byte.is_ascii_hexdigit() || matches!(byte, b':' | b'.');
    let host_fits = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        Some(address) => !address.is_empty() && address.bytes().all(is_address),
        None => !host.is_empty() && host.bytes().all(is_name),
    };
    let port_fits = port.is_none_or(|port| port.parse::<u16>().is_ok_and(|port| port > 0));
    host_fits && port_fits
}

impl Table<'_> {
    /// The room's own origin, without a slash at the end; empty: the deployment's.
    pub(super) fn origin(&mut self) -> String {
        let field = "origin";
        let Some(origin) = self.text(field, "https://origin.example.com") else { return String::new() };
        if origin.is_empty() || is_origin(origin) {
            return origin.trim_end_matches('/').to_owned();
        }
        let message = "must be an http:// or https:// URL of host and port, without path and user";
        let fix = "write origin = \"https://origin.example.com\", or leave it out for that of the deployment";
        self.refuse(field, &Value::from(origin), message, fix);
        String::new()
    }

    /// The name of the service binding that the room's visitors go to; empty: none.
    pub(super) fn origin_service(&mut self, room: &Room) -> String {
        let field = "origin_service";
        let Some(name) = self.text(field, "SHOP_SITE") else { return String::new() };
        let is_name = |name: &str| {
            name.len() <= BINDING_MAX && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        };
        if !is_name(name) {
            let message = format!(
                "must be the name of a service binding: up to {BINDING_MAX} letters, digits and \"_\""
            );
            self.refuse(field, &Value::from(name), message, "write what stands as binding in [[services]]");
        } else if !name.is_empty() && !room.origin.is_empty() {
            self.refuse(field, &Value::from(name), "cannot stand beside origin", "leave one of the two out");
        }
        name.to_owned()
    }
}
