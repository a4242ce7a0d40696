//! Keeps a ledger in storage, behind the visitors' backs.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use worker::{State, Storage};

use super::store_in_background;
use crate::edge::clock::{now, pause};
use crate::edge::platform::log_error;
use crate::queue::{Ledger, SavedLedger};

/// The storage key.
pub const LEDGER: &str = "ledger";
/// While numbers are given it is written so often, in milliseconds.
const WRITE_MS: u64 = 1_000;

/// Writes a ledger while it changes, and once more when it has settled. Being written to also shows an object that
/// has been replaced by another instance that it has: its storage then refuses.
pub struct LedgerStore<T> {
    giver: Rc<RefCell<Option<T>>>,
    writing: Rc<Cell<bool>>,
    storage: Rc<Storage>,
    ledger: fn(&mut T, u64) -> &Ledger,
}

impl<T: 'static> LedgerStore<T> {
    /// For an object's giver of numbers, and how to find its ledger.
    pub fn new(giver: &Rc<RefCell<Option<T>>>, storage: Storage, ledger: fn(&mut T, u64) -> &Ledger) -> Self {
        let giver = Rc::clone(giver);
        Self { giver, writing: Rc::new(Cell::new(false)), storage: Rc::new(storage), ledger }
    }

    /// Numbers were given: sees to their being written.
    pub fn changed(&self, state: &State) {
        if self.writing.replace(true) {
            return;
        }
        let (giver, writing, storage) =
            (Rc::clone(&self.giver), Rc::clone(&self.writing), Rc::clone(&self.storage));
        let ledger = self.ledger;
        state.wait_until(async move {
            loop {
                let saved: Option<SavedLedger> = giver.borrow_mut().as_mut().map(|giver| {
                    let ledger = ledger(giver, now());
                    ledger.save(now() >= ledger.changed_at() + WRITE_MS)
                });
                let Some(saved) = saved else { break };
                if let Err(error) = store_in_background(&storage, LEDGER, &saved).await {
                    log_error(&format!("ledger: {error}"));
                }
                if saved.settled {
                    break;
                }
                pause(WRITE_MS).await;
            }
            writing.set(false);
        });
    }
}
