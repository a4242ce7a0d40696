//! Keeps what an object has given in storage, behind the visitors' backs.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use worker::{State, Storage};

use super::store_in_background;
use crate::edge::clock::{now, pause};
use crate::edge::platform::log_error;

/// While something is given it is written so often, in milliseconds.
pub const WRITE_MS: u64 = 1_000;

/// What to write: bytes, and whether nothing has been given for so long that this is final.
pub type Record = (Vec<u8>, bool);

/// Writes what an object has given while that changes, and once more when it has settled. Being written to also shows
/// an object that has been replaced by another instance that it has: its storage then refuses.
pub struct LedgerStore<T> {
    giver: Rc<RefCell<Option<T>>>,
    writing: Rc<Cell<bool>>,
    storage: Rc<Storage>,
    key: &'static str,
    record: fn(&mut T, u64) -> Record,
}

impl<T: 'static> LedgerStore<T> {
    /// For an object's giver, the storage key, and what to write of it.
    pub fn new(
        giver: &Rc<RefCell<Option<T>>>,
        storage: Storage,
        key: &'static str,
        record: fn(&mut T, u64) -> Record,
    ) -> Self {
        let giver = Rc::clone(giver);
        Self { giver, writing: Rc::new(Cell::new(false)), storage: Rc::new(storage), key, record }
    }

    /// Something was given: sees to its being written.
    pub fn changed(&self, state: &State) {
        if self.writing.replace(true) {
            return;
        }
        let (giver, writing, storage) =
            (Rc::clone(&self.giver), Rc::clone(&self.writing), Rc::clone(&self.storage));
        let (key, record) = (self.key, self.record);
        state.wait_until(async move {
            loop {
                let record = giver.borrow_mut().as_mut().map(|giver| record(giver, now()));
                let Some((bytes, settled)) = record else { break };
                if let Err(error) = store_in_background(&storage, key, &bytes).await {
                    log_error(&format!("{key}: {error}"));
                }
                if settled {
                    break;
                }
                pause(WRITE_MS).await;
            }
            writing.set(false);
        });
    }
}
