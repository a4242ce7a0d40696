//! What a room covers besides its `host` and `path` (`additional_routes`), and for which hosts its cookie holds.

use serde_json::Value;

use super::table::Table;
use crate::room::{Room, Route};

/// The most additional routes a room may have. Every request looks at each route of each room once at most.
const MAX_ROUTES: usize = 20;
const FIELD: &str = "additional_routes";
const ROUTE_FIELDS: [&str; 2] = ["host", "path"];
const DOMAIN: &str = "cookie_attributes.domain";

impl Table<'_> {
    /// More routes of a room on this host. A route without a host has the room's.
    pub(super) fn additional_routes(&mut self, host: Option<&str>) -> Vec<Route> {
        let Some(value) = self.get(FIELD) else { return Vec::new() };
        let given = value.as_array().filter(|given| given.len() <= MAX_ROUTES);
        let tables: Option<Vec<_>> = given.and_then(|given| given.iter().map(Value::as_object).collect());
        let Some(tables) = tables else {
            self.refuse_as(FIELD, value, || {
                (
                    format!("must be a list of at most {MAX_ROUTES} tables with host and path"),
                    format!("write {FIELD} = [{{ host = \"shop.example.com\", path = \"/outlet\" }}]"),
                )
            });
            return Vec::new();
        };
        let mut routes = Vec::with_capacity(tables.len());
        for fields in tables {
            routes.push(self.within("additional_routes.", Some(fields), |route| {
                route.unknown(&ROUTE_FIELDS);
                Route { host: route.host().or_else(|| host.map(str::to_owned)), path: route.path() }
            }));
        }
        routes
    }

    /// `cookie_attributes.domain`, in lower case; empty: the cookie holds for the request's host alone.
    pub(super) fn cookie_domain(&mut self) -> String {
        let domain = self.text("domain", "example.com").unwrap_or_default();
        domain.strip_prefix('.').unwrap_or(domain).to_ascii_lowercase()
    }

    /// Whether the routes, the cookie's name and its domain fit together.
    pub(super) fn judge_routes(&mut self, room: &Room) {
        let routes = room.additional_routes.len();
        if routes > 0 && room.cookie_suffix.is_empty() {
            self.refuse_as(FIELD, &Value::from(routes), || {
                (
                    "routes need a cookie_suffix: their cookie must not be taken for another room's"
                        .to_owned(),
                    format!("add it, for example cookie_suffix = \"{}\"", room.name),
                )
            });
        }
        let domain = room.cookie_domain.as_str();
        let hosts = || room.routes().map(|(host, _)| host);
        let is_within = |host: &str| {
            host == domain || host.strip_suffix(domain).is_some_and(|start| start.ends_with('.'))
        };
        let outside = hosts().flatten().find(|host| !is_within(host));
        if domain.is_empty() {
            let differs =
                hosts().flatten().any(|host| room.host.as_deref().is_some_and(|first| first != host));
            if differs {
                self.refuse_as(DOMAIN, &Value::from(""), || {
                    (
                        "is required when routes lie on several hosts: a ticket holds on all".to_owned(),
                        "add what all hosts end with, for example cookie_attributes = { domain = \"example.com\" }"
                            .to_owned(),
                    )
                });
            }
        } else if hosts().any(|host| host.is_none()) {
            self.refuse_as(DOMAIN, &Value::from(domain), || {
                (
                    "is for rooms with hosts: other hosts could not set such a cookie".to_owned(),
                    "name the host of the room, or remove domain".to_owned(),
                )
            });
        } else if !domain.contains('.') || domain.split('.').any(str::is_empty) || outside.is_some() {
            self.refuse_as(DOMAIN, &Value::from(domain), || {
                (
                    match outside {
                        Some(host) => format!("is not a domain that {host} belongs to"),
                        None => "must have at least two labels: browsers refuse others".to_owned(),
                    },
                    "write what all hosts end with, for example domain = \"example.com\"".to_owned(),
                )
            });
        }
    }
}
