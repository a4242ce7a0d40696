//! A ticket's id: random, and the colo in which the ticket was made.

/// The colo's bits. The others stay random, the lowest and the highest among them: tables find tickets by those.
const COLO: u64 = 0x7fff << COLO_SHIFT;
const COLO_SHIFT: u32 = 40;

/// The id of a ticket that is made in a colo: 49 random bits, of `random`, and the colo's code.
pub fn ticket_id(random: u64, colo: &str) -> u64 {
    random & !COLO | code(colo)
}

/// Whether a ticket was made in a colo, as its id says. One of 0.1.0 has a random bit in each place, and may seem to be of
/// any.
pub fn is_made_in(id: u64, colo: &str) -> bool {
    id & COLO == code(colo)
}

/// Five bits of each of a colo's three letters.
fn code(colo: &str) -> u64 {
    colo.bytes().fold(0, |code, letter| code << 5 | u64::from(letter & 0x1f)) << COLO_SHIFT & COLO
}
