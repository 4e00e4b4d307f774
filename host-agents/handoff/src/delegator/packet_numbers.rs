// SPDX-License-Identifier: Apache-2.0
//! Ownership of the packet numbers of a path.
//!
//! ```text
//!   on the wire   0 ...... first ............. next ..............
//!                 noq      | a real server    | noq, shifted
//!   noq's own     0 ...... n (unused) ....... m ..................
//! ```
//!
//! Each packet number of a path belongs to noq, to one real server, or to no sender, so no number is used for two packets.
//! A packet that noq sends on a delegated path has no number there. It is sealed with a nonce of a path that does not
//! exist, and the client drops it.

use std::ops::RangeInclusive;

use frontage_quic::session::Nonce;

/// Number of segments that are remembered: eight delegations. ACKs of older packets are ignored.
const MAX_SEGMENTS: usize = 16;

/// Path id of packets without a path. No connection has such a path (draft-ietf-quic-multipath, section 2.3: below
/// 2^32 - 1), so the client cannot open them.
const NO_PATH: u32 = u32::MAX;

/// Numbers of noq's packets that belong to no path.
#[derive(Debug, Default)]
pub(super) struct PathlessNumbers {
    next: u64,
}

impl PathlessNumbers {
    pub(super) fn next(&mut self) -> Nonce {
        self.next += 1;
        Nonce {
            path: NO_PATH,
            number: self.next - 1,
        }
    }
}

/// Sender of packets with certain numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// noq, whose own number is `number - shift` (modulo 2^64).
    Balancer { shift: u64 },
    /// The real server that has the path now.
    RealServer,
    /// A former real server, or no sender.
    Unowned,
}

/// Packet numbers of one path.
#[derive(Debug)]
pub(super) struct PathNumbers {
    /// First number and owner of each segment; a segment ends where the next one begins.
    segments: Vec<(u64, Owner)>,
    /// noq's next own number.
    next: u64,
}

impl Default for PathNumbers {
    fn default() -> Self {
        Self {
            segments: vec![(0, Owner::Balancer { shift: 0 })],
            next: 0,
        }
    }
}

impl PathNumbers {
    /// Return whether all numbers belong to noq, unshifted.
    pub(super) fn is_plain(&self) -> bool {
        self.segments.len() == 1 && self.owner() == Owner::Balancer { shift: 0 }
    }

    /// Return the current owner.
    fn owner(&self) -> Owner {
        self.segments.last().map_or(Owner::Unowned, |last| last.1)
    }

    /// Map the number of a packet that noq sends to the wire; `None` if the path does not belong to noq.
    pub(super) fn send(&mut self, number: u64) -> Option<u64> {
        self.next = self.next.max(number + 1);
        match self.owner() {
            Owner::Balancer { shift } => Some(number.wrapping_add(shift)),
            Owner::RealServer | Owner::Unowned => None,
        }
    }

    /// Return noq's next own number.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Return the next number on the wire, if it belongs to noq.
    pub(super) fn first(&self) -> Option<u64> {
        match self.owner() {
            Owner::Balancer { shift } => Some(self.next.wrapping_add(shift)),
            Owner::RealServer | Owner::Unowned => None,
        }
    }

    /// Return the first number of the current owner.
    pub(super) fn begin(&self) -> u64 {
        self.segments.last().map_or(0, |last| last.0)
    }

    /// Give all numbers from the next one on to a real server. Returns the first.
    pub(super) fn delegate(&mut self) -> Option<u64> {
        let first = self.first()?;
        self.push(first, Owner::RealServer);
        Some(first)
    }

    /// Take the numbers away from the real server.
    pub(super) fn end_delegation(&mut self) {
        if let Some((_, owner @ Owner::RealServer)) = self.segments.last_mut() {
            *owner = Owner::Unowned;
        }
    }

    /// Give the numbers from `next` on to noq. `next` must be above the numbers of all packets sent.
    pub(super) fn resume(&mut self, next: u64) {
        let shift = next.wrapping_sub(self.next);
        self.push(next, Owner::Balancer { shift });
    }

    fn push(&mut self, from: u64, owner: Owner) {
        // Replaces a segment without numbers.
        self.segments.retain(|(start, _)| *start < from);
        if self.segments.len() == MAX_SEGMENTS {
            self.segments.remove(0);
        }
        self.segments.push((from, owner));
    }

    /// Split `range` by owner, from the largest numbers down.
    pub(super) fn split(
        &self,
        range: RangeInclusive<u64>,
        mut on_part: impl FnMut(Owner, RangeInclusive<u64>),
    ) {
        let (start, mut end) = range.into_inner();
        for (from, owner) in self.segments.iter().rev() {
            if *from > end {
                continue;
            }
            let part_start = start.max(*from);
            on_part(*owner, part_start..=end);
            if part_start == start {
                return;
            }
            end = part_start - 1;
        }
        on_part(Owner::Unowned, start..=end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::{HashMap, HashSet};

    fn parts(
        numbers: &PathNumbers,
        range: RangeInclusive<u64>,
    ) -> Vec<(Owner, RangeInclusive<u64>)> {
        let mut parts = Vec::new();
        numbers.split(range, |owner, range| parts.push((owner, range)));
        parts
    }

    #[test]
    fn numbers_after_delegation_are_shifted() {
        let mut numbers = PathNumbers::default();
        assert!(numbers.is_plain());
        assert_eq!((numbers.send(0), numbers.send(1)), (Some(0), Some(1)));
        assert_eq!((numbers.delegate(), numbers.first()), (Some(2), None));
        assert_eq!((numbers.send(2), numbers.send(3)), (None, None));
        let during = [
            (Owner::RealServer, 2..=9),
            (Owner::Balancer { shift: 0 }, 1..=1),
        ];
        assert_eq!(parts(&numbers, 1..=9), during);
        numbers.end_delegation();
        assert_eq!(numbers.send(4), None);
        numbers.resume(10);
        assert_eq!(numbers.send(5), Some(10));
        let after = [
            (Owner::Balancer { shift: 5 }, 10..=10),
            (Owner::Unowned, 2..=9),
        ];
        assert_eq!(parts(&numbers, 2..=10), after);
        assert!(!numbers.is_plain());
    }

    proptest! {
        /// Steps: noq sends, the real server sends, the path changes its owner.
        #[test]
        fn no_number_is_used_for_two_packets(steps in prop::collection::vec(0..4u8, 1..400)) {
            let mut numbers = PathNumbers::default();
            let (mut own, mut delegated) = (0, None);
            // noq's own number; `None` for packets of a real server.
            let mut sent: HashMap<u64, Option<u64>> = HashMap::new();
            let mut starts = HashSet::new();
            for step in steps {
                match (step, delegated) {
                    (0 | 1, _) => {
                        if let Some(number) = numbers.send(own) {
                            prop_assert!(delegated.is_none());
                            prop_assert_eq!(sent.insert(number, Some(own)), None);
                        }
                        own += 1;
                    }
                    (2, Some(next)) => {
                        prop_assert_eq!(sent.insert(next, None), None);
                        delegated = Some(next + 1);
                    }
                    (3, Some(next)) => {
                        numbers.end_delegation();
                        numbers.resume(next);
                        delegated = None;
                    }
                    (3, None) => {
                        delegated = numbers.delegate();
                        starts.insert(delegated);
                    }
                    _ => {}
                }
            }
            if starts.len() > MAX_SEGMENTS / 2 - 1 {
                return Ok(());
            }
            for (number, own) in sent {
                let owner = parts(&numbers, number..=number)[0].0;
                let known = match owner {
                    Owner::Balancer { shift } => Some(number.wrapping_sub(shift)),
                    Owner::RealServer | Owner::Unowned => None,
                };
                prop_assert_eq!(known, own);
            }
        }
    }
}
