// SPDX-License-Identifier: Apache-2.0
//! Packet numbers of a client with a single path: all senders share one number space (QDSR, appendix A).
//!
//! ```text
//!   on the wire   0 .......... 40 41 42 43 44 45 ...        the ledger: the owner of each number
//!                 noq          |---1---| n  |-2-
//!   noq's own     0 .......... .......... 40 .....          the map
//! ```
//!
//! The first delegation starts the ledger. Before it, noq's own numbers are those on the wire. Each delegation has an id that
//! stands for a path id; the client has no path with that id.
//!
//! # Limits
//!
//! - Clients treat packet numbers outside their window as duplicates; a noq client does so 128 below the largest number
//!   it has received. Real servers therefore request numbers when they need them, and get few at once.
//! - The client's ECN counts cover the packets of all senders, so they are not forwarded.
//! - noq's packets become longer by [`MAX_HEADER_GROWTH`] octets. noq gets a correspondingly smaller `max_udp_payload_size`, and the
//!   endpoint's `MtuDiscoveryConfig` must leave the same room.

use std::ops::Range;

use frontage_quic::session::{MAX_HEADER_GROWTH, Nonce, Outgoing};

use crate::number_ledger::{NumberLedger, NumberMap, Unsent};

/// Maximum number of packet numbers per allocation: half of a client's duplicate window.
///
/// The numbers are for packets that are ready to be sent, in the order of the requests, so the numbers that others get in the
/// meantime are only slightly higher.
const MAX_ALLOCATION: u64 = 64;

/// noq's id among those of delegations.
const BALANCER: u32 = 0;

/// Minimum of `max_udp_payload_size` (RFC 9000, section 18.2).
const MIN_UDP_PAYLOAD_SIZE: u64 = 1200;

/// Return the `max_udp_payload_size` that noq gets if `size` is the client's.
pub(super) fn max_udp_payload_size(size: u64) -> u64 {
    size.saturating_sub(MAX_HEADER_GROWTH as u64)
        .max(MIN_UDP_PAYLOAD_SIZE)
}

/// An ACK of the client, split by sender.
#[derive(Debug)]
pub(super) struct SplitAck<'a> {
    /// noq's part, in noq's own numbers.
    pub(super) own: Vec<Range<u64>>,
    /// The parts of delegations, in numbers on the wire, the highest first.
    pub(super) delegated: &'a [(u32, Range<u64>)],
}

/// The number space of a connection, from its first delegation on.
#[derive(Debug)]
pub(super) struct SharedNumbers {
    ledger: NumberLedger<u32>,
    /// noq's own numbers.
    map: NumberMap,
    /// The highest delegation id so far.
    last_id: u32,
    /// Buffers, kept to avoid an allocation per ACK.
    acked: Vec<Range<u64>>,
    delegated: Vec<(u32, Range<u64>)>,
    own: Vec<Range<u64>>,
}

impl SharedNumbers {
    /// Create the number space; `next` is noq's next number.
    pub(super) fn new(next: u64) -> Self {
        Self {
            ledger: NumberLedger::new(next, BALANCER),
            map: NumberMap::new(next),
            last_id: 0,
            acked: Vec::new(),
            delegated: Vec::new(),
            own: Vec::new(),
        }
    }

    /// Return the id of a new delegation, and a lower bound of its packet numbers.
    pub(super) fn start_delegation(&mut self) -> Option<(u32, u64)> {
        self.last_id = self.last_id.checked_add(1)?;
        Some((self.last_id, self.ledger.next()))
    }

    /// Allocate up to `wanted` numbers to delegation `id`.
    pub(super) fn allocate(&mut self, id: u32, wanted: u64) -> Range<u64> {
        self.ledger.allocate(id, wanted.min(MAX_ALLOCATION))
    }

    /// Assign a number to noq's packet.
    pub(super) fn seal(&mut self, outgoing: &mut Outgoing<'_>) -> Nonce {
        let number = self.ledger.allocate(BALANCER, 1).start;
        self.map.insert(outgoing.number, number);
        outgoing.needs_long_number = true;
        Nonce { path: 0, number }
    }

    /// Split an ACK by sender.
    ///
    /// # Errors
    /// If the client acknowledges a number that was not allocated.
    pub(super) fn split(
        &mut self,
        acked: impl Iterator<Item = Range<u64>>,
    ) -> Result<SplitAck<'_>, Unsent> {
        let Self {
            ledger,
            map,
            acked: ranges,
            delegated,
            own,
            ..
        } = self;
        ranges.clear();
        ranges.extend(acked);
        delegated.clear();
        own.clear();
        ledger.split(ranges, |id, part| match id {
            BALANCER => own.push(part),
            _ => delegated.push((id, part)),
        })?;
        Ok(SplitAck {
            own: map.own(own),
            delegated,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payload_size_leaves_room_but_never_below_minimum() {
        for (size, announced) in [(65_527, 65_525), (1201, 1200), (1200, 1200), (7, 1200)] {
            assert_eq!(max_udp_payload_size(size), announced);
        }
    }
}
