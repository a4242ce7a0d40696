//! A check's state, and which messages change it.

use serde::{Deserialize, Serialize};

use super::{Reason, StateChange};

/// What is known of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known {
    /// Whether it is healthy.
    pub healthy: bool,
    /// If not, why.
    pub reason: Reason,
    /// Since when it has been so, in milliseconds since the epoch.
    pub since: u64,
    /// The time of the newest message about it, in milliseconds since the epoch.
    pub at: u64,
}

impl Known {
    /// What is known once a change has come; `None`: the change says nothing new, because what happened since is known
    /// already.
    ///
    /// Two changes may bear one time, since the platform's times are whole seconds: then the one that comes later counts.
    /// So whoever calls this must have left out changes that came before, which are equal in everything.
    pub fn after(known: Option<&Self>, change: &StateChange) -> Option<Self> {
        let StateChange { healthy, at, .. } = *change;
        let since = match known {
            Some(known) if at < known.at => return None,
            Some(known) if known.healthy == healthy => known.since,
            _ => at,
        };
        Some(Self { healthy, reason: change.reason.clone(), since, at })
    }
}
