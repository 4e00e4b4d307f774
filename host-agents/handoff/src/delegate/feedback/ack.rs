// SPDX-License-Identifier: Apache-2.0
//! Translation of ACK frames from numbers on the wire to noq's own.

use std::ops::Range;

use crate::delegate::Error;
use crate::delegate::number_pool::NumberPool;

/// Frame types (RFC 9000, section 19.3).
pub(super) const ACK: u64 = 0x02;
pub(super) const ACK_ECN: u64 = 0x03;

/// Relation of packet numbers on the wire to noq's own.
#[derive(Clone, Copy)]
pub enum Numbers<'a> {
    /// The number on the wire is this one plus noq's own.
    From(u64),
    /// The pool assigned each number.
    Pool(&'a NumberPool),
}

/// Translate the ACK of type `kind` whose fields `next` returns. Returns the largest number on the wire.
pub(super) fn translate(
    kind: u64,
    numbers: Numbers<'_>,
    next: impl FnMut() -> Result<u64, Error>,
    write: impl FnMut(&[u64]),
) -> Result<u64, Error> {
    match numbers {
        Numbers::From(first) => shift(kind, first, next, write),
        Numbers::Pool(pool) => look_up(kind, pool, next, write),
    }
}

/// Check that `number` is not negative and not below `first`, the first of the grant.
fn check(number: Option<u64>, first: u64) -> Result<u64, Error> {
    number
        .filter(|number| *number >= first)
        .ok_or(Error::Feedback("ACK of a number before the grant"))
}

/// Subtract `first` from all numbers.
fn shift(
    kind: u64,
    first: u64,
    mut next: impl FnMut() -> Result<u64, Error>,
    mut write: impl FnMut(&[u64]),
) -> Result<u64, Error> {
    let (largest, delay, ranges, range) = (next()?, next()?, next()?, next()?);
    check(Some(largest), first)?;
    let mut smallest = check(largest.checked_sub(range), first)?;
    write(&[kind, largest - first, delay, ranges, range]);
    for _ in 0..ranges {
        let (gap, range) = (next()?, next()?);
        smallest = check(smallest.checked_sub(gap + range + 2), first)?;
        write(&[gap, range]);
    }
    // ECN counts (RFC 9000, section 19.3.2), which the balancer has reduced to the packets of this grant.
    if kind == ACK_ECN {
        write(&[next()?, next()?, next()?]);
    }
    Ok(largest)
}

/// Look all numbers up in `pool`.
fn look_up(
    kind: u64,
    pool: &NumberPool,
    mut next: impl FnMut() -> Result<u64, Error>,
    write: impl FnMut(&[u64]),
) -> Result<u64, Error> {
    let (largest, delay, ranges, range) = (next()?, next()?, next()?, next()?);
    let mut smallest = check(largest.checked_sub(range), 0)?;
    let mut wire = Vec::new();
    wire.push(smallest..largest + 1);
    for _ in 0..ranges {
        let (gap, range) = (next()?, next()?);
        let end = check(smallest.checked_sub(gap + 1), 0)?;
        smallest = check(end.checked_sub(range + 1), 0)?;
        wire.push(smallest..end);
    }
    if kind == ACK_ECN {
        // ECN counts cover the packets of other senders, too.
        _ = (next()?, next()?, next()?);
    }
    write_ack(&pool.own(&wire), delay, write);
    Ok(largest)
}

/// Write ACK of the ranges `own`, which are in descending order, if there are any.
fn write_ack(own: &[Range<u64>], delay: u64, mut write: impl FnMut(&[u64])) {
    let Some((first, others)) = own.split_first() else {
        return;
    };
    let (largest, more) = (first.end - 1, others.len() as u64);
    write(&[ACK, largest, delay, more, largest - first.start]);
    for (above, range) in own.iter().zip(others) {
        write(&[above.start - range.end - 1, range.end - 1 - range.start]);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use frontage_quic_wire::frames::{Frame, read};
    use frontage_quic_wire::write_varint;
    use proptest::prelude::*;

    use super::*;
    use crate::delegate::feedback::translate;

    proptest! {
        /// The number of noq's packet `i` exceeds the previous one by `gaps[i] + 1`.
        #[test]
        fn pool_numbers_translate_to_the_acknowledged_packets(
            gaps in prop::collection::vec((0..4u64, any::<bool>()), 1..60),
            noise in prop::collection::vec(any::<u8>(), 0..100),
        ) {
            let pool = NumberPool::new(0, Arc::new(()));
            let (mut wire, mut acked, mut expected) = (0, Vec::new(), Vec::new());
            for (own, (gap, is_acked)) in (0..).zip(&gaps) {
                wire += gap;
                pool.add_ahead(wire..wire + 1).unwrap();
                prop_assert_eq!(pool.take(own), Some(wire));
                if *is_acked {
                    acked.insert(0, wire..wire + 1);
                    expected.push(own);
                }
                wire += 1;
            }
            // Merge adjacent ranges.
            acked.dedup_by(|below, above| {
                let touch = below.end == above.start;
                if touch {
                    above.start = below.start;
                }
                touch
            });
            let mut frames = Vec::new();
            write_ack(&acked, 9, |values| {
                values.iter().for_each(|value| write_varint(&mut frames, *value));
            });
            let own = translate(&frames, Numbers::Pool(&pool), |_| None).unwrap();
            let own = own.packets.concat();
            let mut translated: Vec<u64> = read(&own)
                .flat_map(|frame| match frame {
                    Frame::Ack(ack) => ack.ranges().flatten().collect(),
                    _ => Vec::new(),
                })
                .collect();
            translated.sort_unstable();
            prop_assert_eq!(translated, expected);
            let _ = translate(&noise, Numbers::Pool(&pool), |_| None);
        }
    }
}
