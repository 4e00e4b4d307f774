//! Whose the packet numbers of a path are.
//!
//! ```text
//!   on the wire   0 ...... first ............. next ..............
//!                 noq's    | a real server's  | noq's, shifted
//!   noq's own     0 ...... n (void) ......... m ..................
//! ```
//!
//! No number of a path is in two packets: each belongs to noq, to one real server, or to nobody. What noq sends on a path while that is lent has no number
//! there; it is sealed by a nonce of no path, and the client drops it.

use std::ops::RangeInclusive;

/// Segments that are remembered: eight loans. What a client acknowledges of older ones concerns nobody any more.
const SEGMENTS: usize = 16;

/// Who sent packets of these numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// noq, which knows them by `number - shift` (modulo 2^64).
    Balancer { shift: u64 },
    /// The real server that has the path now.
    RealServer,
    /// One that had it before, or none.
    Nobody,
}

/// Of one path.
#[derive(Debug)]
pub(super) struct Numbers {
    /// Each begins with a number, and ends with the next one.
    segments: Vec<(u64, Owner)>,
    /// noq's next one.
    next: u64,
}

impl Default for Numbers {
    fn default() -> Self {
        Self {
            segments: vec![(0, Owner::Balancer { shift: 0 })],
            next: 0,
        }
    }
}

impl Numbers {
    /// Whether all of them are noq's and as noq knows them.
    pub(super) fn plain(&self) -> bool {
        self.segments.len() == 1 && self.last() == Owner::Balancer { shift: 0 }
    }

    fn last(&self) -> Owner {
        self.segments.last().map_or(Owner::Nobody, |last| last.1)
    }

    /// noq sends a packet; its number on the wire, if it has one.
    pub(super) fn send(&mut self, number: u64) -> Option<u64> {
        self.next = self.next.max(number + 1);
        match self.last() {
            Owner::Balancer { shift } => Some(number.wrapping_add(shift)),
            Owner::RealServer | Owner::Nobody => None,
        }
    }

    /// noq's next one.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// The next on the wire, if it is noq's.
    pub(super) fn first(&self) -> Option<u64> {
        match self.last() {
            Owner::Balancer { shift } => Some(self.next.wrapping_add(shift)),
            Owner::RealServer | Owner::Nobody => None,
        }
    }

    /// Where the newest part begins.
    pub(super) fn begin(&self) -> u64 {
        self.segments.last().map_or(0, |last| last.0)
    }

    /// From the next one on, they are a real server's.
    pub(super) fn lend(&mut self) -> Option<u64> {
        let first = self.first()?;
        self.push(first, Owner::RealServer);
        Some(first)
    }

    /// The real server has them no more.
    pub(super) fn end(&mut self) {
        if let Some((_, owner @ Owner::RealServer)) = self.segments.last_mut() {
            *owner = Owner::Nobody;
        }
    }

    /// From `next` on, they are noq's. It is above those of all packets sent.
    pub(super) fn resume(&mut self, next: u64) {
        let shift = next.wrapping_sub(self.next);
        self.push(next, Owner::Balancer { shift });
    }

    fn push(&mut self, from: u64, owner: Owner) {
        // A segment without numbers.
        self.segments.retain(|(start, _)| *start < from);
        if self.segments.len() == SEGMENTS {
            self.segments.remove(0);
        }
        self.segments.push((from, owner));
    }

    /// The parts of a range by their owners, from the largest numbers down.
    pub(super) fn split(
        &self,
        range: RangeInclusive<u64>,
        mut part: impl FnMut(Owner, RangeInclusive<u64>),
    ) {
        let (start, mut end) = range.into_inner();
        for (from, owner) in self.segments.iter().rev() {
            if *from > end {
                continue;
            }
            let here = start.max(*from);
            part(*owner, here..=end);
            if here == start {
                return;
            }
            end = here - 1;
        }
        part(Owner::Nobody, start..=end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::{HashMap, HashSet};

    fn parts(numbers: &Numbers, range: RangeInclusive<u64>) -> Vec<(Owner, RangeInclusive<u64>)> {
        let mut parts = Vec::new();
        numbers.split(range, |owner, range| parts.push((owner, range)));
        parts
    }

    #[test]
    fn a_path_is_lent_and_comes_back() {
        let mut numbers = Numbers::default();
        assert!(numbers.plain());
        assert_eq!((numbers.send(0), numbers.send(1)), (Some(0), Some(1)));
        assert_eq!((numbers.lend(), numbers.first()), (Some(2), None));
        assert_eq!((numbers.send(2), numbers.send(3)), (None, None));
        let shared = [
            (Owner::RealServer, 2..=9),
            (Owner::Balancer { shift: 0 }, 1..=1),
        ];
        assert_eq!(parts(&numbers, 1..=9), shared);
        numbers.end();
        assert_eq!(numbers.send(4), None);
        numbers.resume(10);
        assert_eq!(numbers.send(5), Some(10));
        let after = [
            (Owner::Balancer { shift: 5 }, 10..=10),
            (Owner::Nobody, 2..=9),
        ];
        assert_eq!(parts(&numbers, 2..=10), after);
        assert!(!numbers.plain());
    }

    proptest! {
        /// Steps: noq sends, the real server sends, the path goes from one to the other.
        #[test]
        fn no_number_is_of_two_packets(steps in prop::collection::vec(0..4u8, 1..400)) {
            let mut numbers = Numbers::default();
            let (mut own, mut lent) = (0, None);
            // By whom: noq's number, or none.
            let mut sent: HashMap<u64, Option<u64>> = HashMap::new();
            let mut starts = HashSet::new();
            for step in steps {
                match (step, lent) {
                    (0 | 1, _) => {
                        if let Some(number) = numbers.send(own) {
                            prop_assert!(lent.is_none());
                            prop_assert_eq!(sent.insert(number, Some(own)), None);
                        }
                        own += 1;
                    }
                    (2, Some(next)) => {
                        prop_assert_eq!(sent.insert(next, None), None);
                        lent = Some(next + 1);
                    }
                    (3, Some(next)) => {
                        numbers.end();
                        numbers.resume(next);
                        lent = None;
                    }
                    (3, None) => {
                        lent = numbers.lend();
                        starts.insert(lent);
                    }
                    _ => {}
                }
            }
            if starts.len() > SEGMENTS / 2 - 1 {
                return Ok(());
            }
            for (number, by) in sent {
                let owner = parts(&numbers, number..=number)[0].0;
                let known = match owner {
                    Owner::Balancer { shift } => Some(number.wrapping_sub(shift)),
                    Owner::RealServer | Owner::Nobody => None,
                };
                prop_assert_eq!(known, by);
            }
        }
    }
}
