//! Time and randomness of the platform, for the core that has neither.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use worker::{Date, Delay};

/// Milliseconds since the epoch. In a Worker it stands still between two waits for I/O.
pub fn now() -> u64 {
    Date::now().as_millis()
}

/// Lets some milliseconds pass.
pub async fn pause(milliseconds: u64) {
    Delay::from(Duration::from_millis(milliseconds)).await;
}

/// The future's result, or `None` when it takes longer than so many milliseconds.
pub async fn within<T>(milliseconds: u64, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    let mut late = pin!(Delay::from(Duration::from_millis(milliseconds)));
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(result) => Poll::Ready(Some(result)),
        Poll::Pending => late.as_mut().poll(context).map(|()| None),
    })
    .await
}

/// Random bytes. Without a source of randomness no ticket can be sealed safely, so this is an error, not a default.
pub fn random<const LENGTH: usize>() -> worker::Result<[u8; LENGTH]> {
    let mut bytes = [0; LENGTH];
    getrandom::fill(&mut bytes).map_err(|error| worker::Error::RustError(error.to_string()))?;
    Ok(bytes)
}

/// A random number that is not 0.
pub fn random_id() -> worker::Result<u64> {
    Ok(u64::from_le_bytes(random()?).max(1))
}
