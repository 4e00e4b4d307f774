// SPDX-License-Identifier: Apache-2.0
//! Sets of packet numbers, and the frames that acknowledge them.

use std::ops::RangeInclusive;

use crate::write_varint;

/// Most ranges in a set. Acknowledgments may leave out older ones (RFC 9000, section 13.2.4).
const MAX_RANGES: usize = 256;

/// Packet numbers below 2^62, in disjoint ranges that do not touch, largest first. The set forgets all but the 256
/// largest ranges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PacketNumberSet(Vec<RangeInclusive<u64>>);

impl PacketNumberSet {
    /// Return whether the set has no numbers.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Return the largest number.
    pub fn largest(&self) -> Option<u64> {
        self.0.first().map(|range| *range.end())
    }

    /// Remove all numbers.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Add a range of numbers.
    pub fn insert(&mut self, range: RangeInclusive<u64>) {
        let (mut start, mut end) = range.into_inner();
        let at = self.0.partition_point(|other| *other.start() > end + 1);
        let mut until = at;
        while let Some(other) = self.0.get(until)
            && *other.end() + 1 >= start
        {
            start = start.min(*other.start());
            end = end.max(*other.end());
            until += 1;
        }
        if at == until {
            self.0.insert(at, start..=end);
            self.0.truncate(MAX_RANGES);
        } else {
            self.0[at] = start..=end;
            self.0.drain(at + 1..until);
        }
    }

    /// Move all numbers of `other` to this set.
    pub fn merge(&mut self, other: &mut Self) {
        for range in other.0.drain(..) {
            self.insert(range);
        }
    }

    /// Append the frame that acknowledges the set, if it is not empty: PATH_ACK of `path`, or ACK without a path,
    /// with the `ecn` counts of ECT(0), ECT(1) and CE (RFC 9000, section 19.3). `delay` is in the sender's units.
    pub fn write_ack(
        &self,
        path: Option<u32>,
        delay: u64,
        ecn: Option<[u64; 3]>,
        wire: &mut Vec<u8>,
    ) {
        let Some((first, others)) = self.0.split_first() else {
            return;
        };
        let kind = if path.is_some() { 0x3e } else { 0x02 };
        write_varint(wire, kind | u64::from(ecn.is_some()));
        if let Some(path) = path {
            write_varint(wire, path.into());
        }
        write_varint(wire, *first.end());
        write_varint(wire, delay);
        write_varint(wire, others.len() as u64);
        write_varint(wire, first.end() - first.start());
        let mut smallest = *first.start();
        for range in others {
            write_varint(wire, smallest - range.end() - 2);
            write_varint(wire, range.end() - range.start());
            smallest = *range.start();
        }
        for count in ecn.into_iter().flatten() {
            write_varint(wire, count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frames::{Frame, read};
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn ack_frame_has_the_inserted_numbers(parts in prop::collection::vec((0..300u64, 0..9u64), 1..60), path: Option<u32>) {
            let mut set = PacketNumberSet::default();
            let mut numbers = BTreeSet::new();
            for (start, more) in parts {
                set.insert(start..=start + more);
                numbers.extend(start..=start + more);
            }
            let mut wire = Vec::new();
            set.write_ack(path, 7, Some([1, 2, 3]), &mut wire);
            let frames: Vec<_> = read(&wire).collect();
            let [Frame::Ack(ack)] = &frames[..] else {
                panic!("{frames:?}");
            };
            prop_assert_eq!((ack.path, ack.delay, ack.ecn), (path.unwrap_or(0), 7, Some([1, 2, 3])));
            let written: Vec<_> = ack.ranges().flatten().collect();
            prop_assert_eq!(written.len(), numbers.len());
            prop_assert_eq!(written.into_iter().collect::<BTreeSet<_>>(), numbers);
        }
    }

    #[test]
    fn full_set_keeps_the_largest_ranges() {
        let mut set = PacketNumberSet::default();
        for i in 0..2 * MAX_RANGES as u64 {
            set.insert(4 * i..=4 * i + 1);
        }
        assert_eq!(set.0.len(), MAX_RANGES);
        assert_eq!(set.0[0], 2044..=2045);
    }
}
