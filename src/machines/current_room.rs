//! The room as operators have it.

use std::rc::Rc;

use crate::config::Room;
use crate::steering::Overrides;

/// Makes the room of a version of what operators have changed once, and keeps it.
#[derive(Debug, Clone, Default)]
pub struct CurrentRoom {
    made: Option<(u32, Rc<Room>)>,
}

impl CurrentRoom {
    /// The deployed room with what operators have changed, events and all; [`Room::at`] tells what holds at a time.
    pub fn with(&mut self, deployed: &Rc<Room>, overrides: &Overrides) -> Rc<Room> {
        if overrides.is_empty() {
            return Rc::clone(deployed);
        }
        if let Some((version, room)) = &self.made
            && *version == overrides.version
        {
            return Rc::clone(room);
        }
        let room = Rc::new(deployed.steered(overrides));
        self.made = Some((overrides.version, Rc::clone(&room)));
        room
    }
}
