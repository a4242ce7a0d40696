//! The link by which somebody who waits goes on with the place on another device.

use super::{Standing, Terms, Ticket, standing};

/// How long a link is good that another device is shown, in milliseconds.
pub const LINK_MS: u64 = 120_000;

/// What a link says, sealed as tickets are ([`KeyRing::seal_link`](super::KeyRing::seal_link)): the place of one ticket, and
/// until when it may be taken along. It is good once: each move makes the ticket's [`moves`](Ticket::moves) one more, and
/// Global remembers the latest ([`Moves`](crate::counts::Moves)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// The ticket, with its last check-in before the link was made.
    pub ticket: Ticket,
    /// When it ceases to be good, in milliseconds since the epoch.
    pub until: u64,
}

impl Link {
    /// A link to the place of a ticket, good for as long as the place is kept; `None`: its visitor does not wait, it has
    /// moved too often, or its page may be closed for longer than moves are remembered.
    pub fn to_keep(ticket: &Ticket, terms: &Terms) -> Option<Self> {
        let may_move =
            ticket.accepted_at.is_none() && !ticket.subscribed && ticket.moves < Ticket::MOST_MOVES;
        may_move.then(|| Self { ticket: *ticket, until: terms.end(ticket) })
    }

    /// The same for a device that is at hand: good for [`LINK_MS`] from `now_ms` at the most.
    #[must_use]
    pub fn at_hand(self, now_ms: u64) -> Self {
        Self { until: self.until.min(now_ms.saturating_add(LINK_MS)), ..self }
    }

    /// Whether it is to be kept, and not for a device at hand.
    pub fn is_to_keep(&self, terms: &Terms) -> bool {
        self.until >= terms.end(&self.ticket)
    }

    /// Whether it is good at a time, in milliseconds since the epoch: a link gives no more than its ticket.
    pub fn holds(&self, now_ms: u64, terms: &Terms) -> bool {
        now_ms < self.until && matches!(standing(Some(self.ticket), now_ms, terms), Standing::Waiting(_))
    }

    /// The ticket of the device to which the place moves: the same place in every respect.
    pub fn moved(&self) -> Ticket {
        Ticket { moves: self.ticket.moves.saturating_add(1).min(Ticket::MOST_MOVES), ..self.ticket }
    }
}
