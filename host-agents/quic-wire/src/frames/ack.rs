// SPDX-License-Identifier: Apache-2.0
//! ACK and PATH_ACK (RFC 9000, section 19.3; draft-ietf-quic-multipath, section 4.1).

use std::ops::RangeInclusive;

use crate::Reader;

/// An ACK or PATH_ACK frame whose ranges are valid: none reaches below 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack<'a> {
    /// Path whose packets the frame acknowledges; 0 in ACK.
    pub path: u32,
    /// The largest acknowledged packet number.
    pub largest: u64,
    /// Time since the largest arrived, in the sender's units (RFC 9000, section 13.2.5).
    pub delay: u64,
    /// Packets received so far with ECN mark ECT(0), ECT(1) and CE.
    pub ecn: Option<[u64; 3]>,
    /// Count of acknowledged numbers directly below the largest.
    first: u64,
    /// Number of further ranges in `rest`, each a gap and a length.
    count: u64,
    rest: &'a [u8],
}

impl<'a> Ack<'a> {
    /// Read what follows the type and the path.
    pub(super) fn read(reader: &mut Reader<'a>, path: u32, with_ecn: bool) -> Option<Self> {
        let (largest, delay, count, first) = (
            reader.varint()?,
            reader.varint()?,
            reader.varint()?,
            reader.varint()?,
        );
        let mut smallest = largest.checked_sub(first)?;
        let rest = reader.0;
        for _ in 0..count {
            smallest = *next(reader, smallest)?.start();
        }
        let rest = &rest[..rest.len() - reader.0.len()];
        let ecn = if with_ecn {
            Some([reader.varint()?, reader.varint()?, reader.varint()?])
        } else {
            None
        };
        Some(Self {
            path,
            largest,
            delay,
            ecn,
            first,
            count,
            rest,
        })
    }

    /// Return the acknowledged ranges, largest numbers first.
    pub fn ranges(&self) -> impl Iterator<Item = RangeInclusive<u64>> + 'a {
        let mut rest = Reader(self.rest);
        let mut smallest = self.largest - self.first;
        let first = smallest..=self.largest;
        let others = (0..self.count).map_while(move |_| {
            let range = next(&mut rest, smallest)?;
            smallest = *range.start();
            Some(range)
        });
        std::iter::once(first).chain(others)
    }
}

/// Read the next range, which is below `smallest`.
fn next(reader: &mut Reader<'_>, smallest: u64) -> Option<RangeInclusive<u64>> {
    let largest = smallest.checked_sub(reader.varint()?)?.checked_sub(2)?;
    Some(largest.checked_sub(reader.varint()?)?..=largest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_from_the_largest_down() {
        // RFC 9000, section 19.3.1: gap and length are one less than what they mean.
        let wire = [20, 7, 2, 3, 0, 1, 4, 0, 1, 2, 3];
        let mut rest = Reader(&wire);
        let ack = Ack::read(&mut rest, 5, true).expect("a well-formed frame");
        assert!(rest.0.is_empty());
        let ranges: Vec<_> = ack.ranges().collect();
        assert_eq!(ranges, [17..=20, 14..=15, 8..=8]);
        assert_eq!((ack.path, ack.delay, ack.ecn), (5, 7, Some([1, 2, 3])));
    }

    #[test]
    fn ranges_below_zero_are_rejected() {
        for wire in [&[3, 0, 0, 4][..], &[3, 0, 1, 1, 1, 0], &[9, 0, 1, 0, 0, 8]] {
            assert_eq!(Ack::read(&mut Reader(wire), 0, false), None);
        }
    }
}
