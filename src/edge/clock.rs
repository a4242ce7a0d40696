//! Time and randomness of the platform, for the core that has neither.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use worker::Delay;

use super::calls::failure;
use crate::time::Steady;

thread_local! {
    static CLOCK: Cell<Steady> = const { Cell::new(Steady::new()) };
}

/// Milliseconds since the epoch. In a Worker it stands still between two waits for I/O. It does not go back by a little.
pub fn now() -> u64 {
    let mut clock = CLOCK.get();
    let now = clock.read(js_sys::Date::now() as u64);
    CLOCK.set(clock);
    now
}

/// What the platform's clock says at a time by [`now`].
pub fn platform_time(time: u64) -> u64 {
    CLOCK.get().platform_time(time)
}

/// What [`now`] says at a time by the platform's clock.
pub fn own_time(platform_time: u64) -> u64 {
    CLOCK.get().own_time(platform_time)
}

/// Lets some milliseconds pass.
pub async fn pause(milliseconds: u64) {
    Delay::from(Duration::from_millis(milliseconds)).await;
}

/// The future's result, or `None` when it takes longer than a number of milliseconds.
pub async fn within<T>(milliseconds: u64, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    let mut late = pin!(Delay::from(Duration::from_millis(milliseconds)));
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(result) => Poll::Ready(Some(result)),
        Poll::Pending => late.as_mut().poll(context).map(|()| None),
    })
    .await
}

/// How many random bytes are drawn at a time: a draw costs more than what is done with them.
const DRAWN: usize = 1_024;

thread_local! {
    static RANDOM: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Random bytes, each given once. Without a source of randomness no ticket can be sealed safely, so this is an error,
/// not a default.
pub fn random<const LENGTH: usize>() -> worker::Result<[u8; LENGTH]> {
    RANDOM.with_borrow_mut(|drawn| {
        if drawn.len() < LENGTH {
            let mut bytes = vec![0; DRAWN];
            getrandom::fill(&mut bytes).map_err(|error| failure(error.to_string()))?;
            *drawn = bytes;
        }
        let (rest, bytes) =
            drawn.split_last_chunk::<LENGTH>().ok_or_else(|| failure("too many random bytes".to_owned()))?;
        let (left, bytes) = (rest.len(), *bytes);
        drawn.truncate(left);
        Ok(bytes)
    })
}

/// A random number that is not 0.
pub fn random_id() -> worker::Result<u64> {
    Ok(u64::from_le_bytes(random()?).max(1))
}

/// The same for an object's start, drawn for it alone.
pub fn start_id() -> worker::Result<u64> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|error| failure(error.to_string()))?;
    Ok(u64::from_le_bytes(bytes).max(1))
}
