//! How often a token may ask.

use litemap::LiteMap;

/// The most requests of a token within [`WINDOW_MS`].
const MOST: u32 = 1_200;
/// In milliseconds.
const WINDOW_MS: u64 = 300_000;

/// What each token has asked in the last five minutes. Kept in memory: who starts anew begins at nothing.
#[derive(Debug, Default)]
pub struct Rates(LiteMap<String, (u64, u32)>);

impl Rates {
    /// Counts a request of a token. Returns after how many seconds the next one is answered, where this one is not.
    pub fn count(&mut self, token: &str, now: u64) -> Option<u32> {
        self.0.retain(|_, (since, _)| now < *since + WINDOW_MS);
        let Some((since, asked)) = self.0.get_mut(token) else {
            self.0.insert(token.to_owned(), (now, 1));
            return None;
        };
        *asked += 1;
        (*asked > MOST).then(|| (*since + WINDOW_MS).saturating_sub(now).div_ceil(1_000).max(1) as u32)
    }
}
