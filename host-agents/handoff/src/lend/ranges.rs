//! Sets of packet numbers, and the frames that acknowledge them.

use std::ops::RangeInclusive;

use frontage_quic::parameters::put_varint;

/// Ranges kept at most: those of the largest numbers. An acknowledgement may leave out others (RFC 9000, section 13.2.4).
const RANGES: usize = 256;

/// Numbers below 2^62, in ranges that do not touch, from the largest down.
#[derive(Debug, Default)]
pub(super) struct Ranges(Vec<RangeInclusive<u64>>);

impl Ranges {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn largest(&self) -> Option<u64> {
        self.0.first().map(|range| *range.end())
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Those after the first `RANGES` ranges are forgotten.
    pub(super) fn insert(&mut self, range: RangeInclusive<u64>) {
        let (mut start, mut end) = range.into_inner();
        let mut above = self.0.iter();
        let at = above
            .position(|other| *other.start() <= end + 1)
            .unwrap_or(self.0.len());
        let mut until = at;
        while let Some(other) = self.0.get(until)
            && *other.end() + 1 >= start
        {
            start = start.min(*other.start());
            end = end.max(*other.end());
            until += 1;
        }
        self.0.splice(at..until, [start..=end]);
        self.0.truncate(RANGES);
    }

    /// Takes those of `other`, too.
    pub(super) fn merge(&mut self, other: &mut Self) {
        for range in other.0.drain(..) {
            self.insert(range);
        }
    }

    /// Appends PATH_ACK of `path`, or ACK if that is none, with counts of ECN or without (RFC 9000, section 19.3). Nothing if this is empty.
    pub(super) fn write(
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
        put_varint(wire, kind | u64::from(ecn.is_some()));
        if let Some(path) = path {
            put_varint(wire, path.into());
        }
        put_varint(wire, *first.end());
        put_varint(wire, delay);
        put_varint(wire, others.len() as u64);
        put_varint(wire, first.end() - first.start());
        let mut smallest = *first.start();
        for range in others {
            put_varint(wire, smallest - range.end() - 2);
            put_varint(wire, range.end() - range.start());
            smallest = *range.start();
        }
        for count in ecn.into_iter().flatten() {
            put_varint(wire, count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use frontage_quic::frames::{Frame, read};
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn what_is_inserted_is_written(parts in prop::collection::vec((0..300u64, 0..9u64), 1..60), path: Option<u32>) {
            let mut ranges = Ranges::default();
            let mut numbers = BTreeSet::new();
            for (start, more) in parts {
                ranges.insert(start..=start + more);
                numbers.extend(start..=start + more);
            }
            let mut wire = Vec::new();
            ranges.write(path, 7, Some([1, 2, 3]), &mut wire);
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
    fn the_largest_stay() {
        let mut ranges = Ranges::default();
        for i in 0..2 * RANGES as u64 {
            ranges.insert(4 * i..=4 * i + 1);
        }
        assert_eq!(ranges.0.len(), RANGES);
        assert_eq!(ranges.0[0], 2044..=2045);
    }
}
