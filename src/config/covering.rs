//! Which routes may cover a path on a host, without looking at the others: it costs as much with a thousand rooms as with ten.
//!
//! A room's path ends where a segment of the request's path ends, or where its extension begins. So the beginnings of a path
//! that end there are looked up, each with the host.

use crate::hash::{ByHash, TextHash};

/// The places of routes, by their hosts and paths, in any case. Whoever finds one looks whether it is the right one: hashes may
/// be the same.
#[derive(Debug, Clone, Default)]
pub(super) struct Index {
    by_host_and_path: ByHash<Vec<usize>>,
    /// The longest path, in bytes.
    longest: usize,
}

impl Index {
    /// Adds a route. `host`: empty for all hosts.
    pub(super) fn add(&mut self, host: &str, path: &[u8], place: usize) {
        let host = TextHash::of(host.as_bytes());
        for path in [TextHash::EMPTY, TextHash::of(path)] {
            self.by_host_and_path.entry(host.and(path)).or_default().push(place);
        }
        self.longest = self.longest.max(path.len());
    }

    /// The routes of a host.
    pub(super) fn of_host(&self, host: &str) -> &[usize] {
        self.get(TextHash::of(host.as_bytes()).and(TextHash::EMPTY))
    }

    /// Routes that may cover a path on one of these hosts: all that do are among them.
    pub(super) fn above<'a, const HOSTS: usize>(
        &'a self,
        hosts: [&str; HOSTS],
        path: &'a [u8],
    ) -> impl Iterator<Item = usize> + 'a {
        let hosts = hosts.map(|host| TextHash::of(host.as_bytes()));
        let ends = |end: usize| matches!(path.get(end), None | Some(b'/' | b'.'));
        let mut hash = TextHash::EMPTY;
        path.iter()
            .take(self.longest)
            .enumerate()
            .filter_map(move |(place, byte)| {
                hash = hash.with(*byte);
                // The first one is of the room of all paths.
                (place == 0 || ends(place + 1)).then_some(hash)
            })
            .flat_map(move |path| hosts.map(|host| self.get(host.and(path))))
            .flatten()
            .copied()
    }

    fn get(&self, key: u64) -> &[usize] {
        self.by_host_and_path.get(&key).map_or(&[], Vec::as_slice)
    }
}
