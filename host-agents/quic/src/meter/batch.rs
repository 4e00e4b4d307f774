//! What a batch of packets tells, on its way from the meter to the socket. noq makes the packets of a batch and hands them to the connection's
//! sender in one go, on one thread; so it is left there, and the socket need not ask whose packets these are.

use std::cell::Cell;

thread_local! {
    static MADE: Cell<Option<Told>> = const { Cell::new(None) };
}

/// What a packet tells; of a batch, the least counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Told {
    /// It carries bytes of a response of which so many are still to be acknowledged.
    Carried(u64),
    /// It carries none; these are left of the response nearest to its end.
    Nearest(u64),
}

/// A packet was made that tells this.
pub fn add(told: Told) {
    MADE.set(Some(MADE.get().map_or(told, |least| least.min(told))));
}

/// Whether no packet was made since the last batch was sent.
pub fn is_empty() -> bool {
    MADE.get().is_none()
}

/// Bytes of which the packets tell that were made since the last batch was sent; what is made after that is of another. `None` if none was, as
/// when a batch is sent again that the socket did not take.
pub fn take() -> Option<u64> {
    MADE.take()
        .map(|(Told::Carried(bytes) | Told::Nearest(bytes))| bytes)
}
