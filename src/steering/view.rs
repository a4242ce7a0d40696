//! What operators are shown of it.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{Steering, UnreadView};
use crate::config::{Field, Kind, steered_fields};
use crate::room::Room;

/// An override, beside what is deployed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OverrideView {
    /// The field.
    pub field: &'static str,
    /// What is in force.
    pub value: Value,
    /// What is deployed now.
    pub deployed: Value,
    /// What was deployed when an operator last looked at it.
    pub deployed_then: Value,
    /// Whether a deploy has changed that since: the override is to be kept or cleared.
    pub deploy_changed: bool,
    /// Whose token ordered it.
    pub by: String,
    /// When, in milliseconds since the epoch.
    pub at: u64,
    /// When it ends by itself, in milliseconds since the epoch; `None`: it holds until it is cleared.
    pub until: Option<u64>,
    /// Why, as the operator says; may be empty.
    pub reason: String,
}

/// A field that can be steered.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FieldView {
    /// What is deployed.
    pub deployed: Value,
    /// What is in force.
    pub value: Value,
    /// The override, if there is one.
    #[serde(rename = "override")]
    pub overridden: Option<OverrideView>,
    /// The least that a number may be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub least: Option<u32>,
    /// The most that a number may be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub most: Option<u32>,
    /// The most characters that a text may have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub longest: Option<usize>,
}

/// An event's times. All in milliseconds since the epoch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EventView {
    /// Its name.
    pub name: String,
    /// `upcoming`, `prequeueing`, `active`, `over`, `suspended`, or `gone`: it is no longer deployed.
    pub phase: &'static str,
    /// When it starts, as it is in force.
    pub start: Option<u64>,
    /// When it is over, as it is in force.
    pub end: Option<u64>,
    /// When its prequeue begins.
    pub prequeue: Option<u64>,
    /// When it starts, as deployed.
    pub deployed_start: Option<u64>,
    /// When it is over, as deployed.
    pub deployed_end: Option<u64>,
    /// Whether an operator has changed its times.
    pub steered: bool,
    /// Whose token did.
    pub by: Option<String>,
    /// When.
    pub at: Option<u64>,
    /// Why, as the operator says; may be empty.
    pub reason: String,
}

/// All of a room's steering.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SteeringView {
    /// The room.
    pub room: String,
    /// The version in force.
    pub version: u32,
    /// By field: what is deployed, and what is in force.
    pub fields: Map<String, Value>,
    /// The room's events.
    pub events: Vec<EventView>,
    /// In how many awake colos this version is in force.
    pub colos_in_force: usize,
    /// How many colos are awake.
    pub colos: usize,
    /// What is stored and cannot be read; `null`: all is read.
    pub unread: Option<UnreadView>,
}

impl Steering {
    /// The overrides that are in force at a time, in milliseconds since the epoch, beside what is deployed.
    pub fn override_views(&self, deployed: &Room, time: u64) -> Vec<OverrideView> {
        let of = |field: &'static Field| {
            let (change, deployed) = (self.fields.get(field.name)?, field.value(deployed)?);
            if change.until.is_some_and(|until| until <= time) {
                return None;
            }
            Some(OverrideView {
                field: field.name,
                value: change.value.clone(),
                deploy_changed: change.deployed_then != deployed,
                deployed,
                deployed_then: change.deployed_then.clone(),
                by: change.by.clone(),
                at: change.at,
                until: change.until,
                reason: change.reason.clone(),
            })
        };
        steered_fields().filter_map(of).collect()
    }

    /// The room's events, and those that were steered and are gone.
    pub fn event_views(&self, deployed: &Room, time: u64) -> Vec<EventView> {
        let steered = deployed.steered(&self.overrides());
        let mut views: Vec<EventView> = steered
            .events
            .iter()
            .zip(deployed.events.iter())
            .map(|(event, original)| {
                let change = self.events.get(&event.name);
                EventView {
                    name: event.name.clone(),
                    phase: event.phase_name(&steered, time),
                    start: Some(event.start),
                    end: Some(event.end),
                    prequeue: event.prequeue,
                    deployed_start: Some(original.start),
                    deployed_end: Some(original.end),
                    steered: change.is_some(),
                    by: change.map(|change| change.by.clone()),
                    at: change.map(|change| change.at),
                    reason: change.map(|change| change.reason.clone()).unwrap_or_default(),
                }
            })
            .collect();
        let gone =
            self.events.iter().filter(|(name, _)| !deployed.events.iter().any(|event| event.name == **name));
        views.extend(gone.map(|(name, change)| EventView {
            name: name.clone(),
            phase: "gone",
            start: change.start,
            end: change.end,
            prequeue: None,
            deployed_start: None,
            deployed_end: None,
            steered: true,
            by: Some(change.by.clone()),
            at: Some(change.at),
            reason: change.reason.clone(),
        }));
        views
    }

    /// All of it. `in_force` and `colos`: in how many of the awake colos this version is in force.
    pub fn view(&self, deployed: &Room, time: u64, (in_force, colos): (usize, usize)) -> SteeringView {
        let overrides = self.override_views(deployed, time);
        let steered = deployed.steered(&self.overrides());
        let now = steered.at(time).0;
        let fields = steered_fields().map(|field| {
            let view = FieldView {
                deployed: field.value(deployed).unwrap_or_default(),
                value: field.value(now).unwrap_or_default(),
                overridden: overrides.iter().find(|view| view.field == field.name).cloned(),
                least: field.range().map(|(least, _)| least),
                most: field.range().map(|(_, most)| most),
                longest: match field.kind {
                    Kind::Line { longest, .. } => Some(longest),
                    _ => None,
                },
            };
            (field.name.to_owned(), json!(view))
        });
        SteeringView {
            room: deployed.name.clone(),
            version: self.version,
            fields: fields.collect(),
            events: self.event_views(deployed, time),
            colos_in_force: in_force,
            colos,
            unread: self.unread(),
        }
    }
}
