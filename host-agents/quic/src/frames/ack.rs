//! Which packets a frame acknowledges (RFC 9000, section 19.3; draft-ietf-quic-multipath, section 4.1).

use std::ops::RangeInclusive;

use super::Reader;

/// Of ACK or PATH_ACK, its numbers all above or equal to 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack<'a> {
    /// Whose packets; 0 in ACK.
    pub path: u32,
    /// The largest number.
    pub largest: u64,
    /// Since that came, in the sender's units (RFC 9000, section 13.2.5).
    pub delay: u64,
    /// How many packets came by ECN's marks so far: ECT(0), ECT(1), CE.
    pub ecn: Option<[u64; 3]>,
    /// Numbers below the largest that are acknowledged in a row with it.
    first: u64,
    /// Of how many further ranges, each a gap and a length.
    count: u64,
    rest: &'a [u8],
}

impl<'a> Ack<'a> {
    /// Behind its type, and the path.
    pub(super) fn read(r: &mut Reader<'a>, path: u32, with_ecn: bool) -> Option<Self> {
        let (largest, delay, count, first) = (r.varint()?, r.varint()?, r.varint()?, r.varint()?);
        let mut smallest = largest.checked_sub(first)?;
        let rest = r.0;
        for _ in 0..count {
            smallest = *next(r, smallest)?.start();
        }
        let rest = &rest[..rest.len() - r.0.len()];
        let ecn = if with_ecn {
            Some([r.varint()?, r.varint()?, r.varint()?])
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

    /// From the largest numbers down.
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

/// The range below `smallest`.
fn next(r: &mut Reader<'_>, smallest: u64) -> Option<RangeInclusive<u64>> {
    let largest = smallest.checked_sub(r.varint()?)?.checked_sub(2)?;
    Some(largest.checked_sub(r.varint()?)?..=largest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_from_the_largest_down() {
        // RFC 9000, section 19.3.1: gap and length are one less than what they stand for.
        let wire = [20, 7, 2, 3, 0, 1, 4, 0, 1, 2, 3];
        let mut rest = Reader(&wire);
        let ack = Ack::read(&mut rest, 5, true).expect("it is well-formed");
        assert!(rest.0.is_empty());
        let ranges: Vec<_> = ack.ranges().collect();
        assert_eq!(ranges, [17..=20, 14..=15, 8..=8]);
        assert_eq!((ack.path, ack.delay, ack.ecn), (5, 7, Some([1, 2, 3])));
    }

    #[test]
    fn numbers_below_zero_are_refused() {
        for wire in [&[3, 0, 0, 4][..], &[3, 0, 1, 1, 1, 0], &[9, 0, 1, 0, 0, 8]] {
            assert_eq!(Ack::read(&mut Reader(wire), 0, false), None);
        }
    }
}
