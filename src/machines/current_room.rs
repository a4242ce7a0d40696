//! The room as operators have it.

use std::rc::Rc;

use crate::room::Room;
use crate::steering::Overrides;

/// Makes the room of what operators have changed once, and keeps it. The version alone would not do: a Global that has lost
/// what it knew may begin anew below one that it gave. The room itself changes too, where it is made at run time.
#[derive(Debug, Clone, Default)]
pub struct CurrentRoom {
    made: Option<(Rc<Room>, Overrides, Rc<Room>)>,
}

impl CurrentRoom {
    /// The deployed room with what operators have changed, events and all; [`Room::at`] tells what holds at a time.
    pub fn with(&mut self, deployed: &Rc<Room>, overrides: &Overrides) -> Rc<Room> {
        if overrides.is_empty() {
            return Rc::clone(deployed);
        }
        if let Some((of, made_of, room)) = &self.made
            && Rc::ptr_eq(of, deployed)
            && made_of == overrides
        {
            return Rc::clone(room);
        }
        let room = Rc::new(deployed.steered(overrides));
        self.made = Some((Rc::clone(deployed), overrides.clone(), Rc::clone(&room)));
        room
    }
}
