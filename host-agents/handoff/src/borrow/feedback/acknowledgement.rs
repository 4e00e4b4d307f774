//! Acknowledgements: the numbers on the wire are the client connection's, and noq's own packets have others.

use std::ops::Range;

use crate::borrow::Error;
use crate::borrow::pool::Pool;

/// Types of frames (RFC 9000, section 19.3).
pub(super) const ACK: u64 = 0x02;
pub(super) const ACK_ECN: u64 = 0x03;

/// How packet numbers on the wire become noq's.
#[derive(Clone, Copy)]
pub enum Numbers<'a> {
    /// They count from this one.
    From(u64),
    /// As they came.
    OneByOne(&'a Pool),
}

/// Writes for noq what `next` reads behind the type `kind`. The largest number on the wire.
pub(super) fn translate(
    kind: u64,
    numbers: Numbers<'_>,
    next: impl FnMut() -> Result<u64, Error>,
    write: impl FnMut(&[u64]),
) -> Result<u64, Error> {
    match numbers {
        Numbers::From(first) => shift(kind, first, next, write),
        Numbers::OneByOne(pool) => look_up(kind, pool, next, write),
    }
}

/// `number` if there is one, and the grant's, whose least is `first`.
fn granted(number: Option<u64>, first: u64) -> Result<u64, Error> {
    number
        .filter(|number| *number >= first)
        .ok_or(Error::Feedback(
            "an acknowledgement of what came before the grant",
        ))
}

/// noq's numbers are less by `first`.
fn shift(
    kind: u64,
    first: u64,
    mut next: impl FnMut() -> Result<u64, Error>,
    mut write: impl FnMut(&[u64]),
) -> Result<u64, Error> {
    let (largest, delay, ranges, range) = (next()?, next()?, next()?, next()?);
    granted(Some(largest), first)?;
    let mut smallest = granted(largest.checked_sub(range), first)?;
    write(&[kind, largest - first, delay, ranges, range]);
    for _ in 0..ranges {
        let (gap, range) = (next()?, next()?);
        smallest = granted(smallest.checked_sub(gap + range + 2), first)?;
        write(&[gap, range]);
    }
    // Counts of ECN (RFC 9000, section 19.3.2), which the balancer makes out for this grant's packets alone.
    if kind == ACK_ECN {
        write(&[next()?, next()?, next()?]);
    }
    Ok(largest)
}

/// `pool` knows them.
fn look_up(
    kind: u64,
    pool: &Pool,
    mut next: impl FnMut() -> Result<u64, Error>,
    write: impl FnMut(&[u64]),
) -> Result<u64, Error> {
    let (largest, delay, ranges, range) = (next()?, next()?, next()?, next()?);
    let mut smallest = granted(largest.checked_sub(range), 0)?;
    let mut wire = Vec::new();
    wire.push(smallest..largest + 1);
    for _ in 0..ranges {
        let (gap, range) = (next()?, next()?);
        let end = granted(smallest.checked_sub(gap + 1), 0)?;
        smallest = granted(end.checked_sub(range + 1), 0)?;
        wire.push(smallest..end);
    }
    if kind == ACK_ECN {
        // Of packets of others, too.
        _ = (next()?, next()?, next()?);
    }
    acknowledge(&pool.own(&wire), delay, write);
    Ok(largest)
}

/// Writes ACK of `own`, the highest first, unless that is nothing.
fn acknowledge(own: &[Range<u64>], delay: u64, mut write: impl FnMut(&[u64])) {
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
    use crate::borrow::feedback::translate;

    proptest! {
        /// noq's packet `i` got a number that is `gaps[i]` and one above the one before.
        #[test]
        fn numbers_that_came_one_by_one_lead_back(
            gaps in prop::collection::vec((0..4u64, any::<bool>()), 1..60),
            noise in prop::collection::vec(any::<u8>(), 0..100),
        ) {
            let pool = Pool::new(0, Arc::new(()));
            let (mut wire, mut acked, mut expected) = (0, Vec::new(), Vec::new());
            for (own, (gap, is_acked)) in (0..).zip(&gaps) {
                wire += gap;
                pool.give(wire..wire + 1).unwrap();
                prop_assert_eq!(pool.take(own), Some(wire));
                if *is_acked {
                    acked.insert(0, wire..wire + 1);
                    expected.push(own);
                }
                wire += 1;
            }
            // As single ranges, which touch only if nothing is between.
            acked.dedup_by(|below, above| {
                let touch = below.end == above.start;
                if touch {
                    above.start = below.start;
                }
                touch
            });
            let mut frames = Vec::new();
            acknowledge(&acked, 9, |values| {
                values.iter().for_each(|value| write_varint(&mut frames, *value));
            });
            let own = translate(&frames, Numbers::OneByOne(&pool), |_| None).unwrap();
            let own = own.packets.concat();
            let mut heard: Vec<u64> = read(&own)
                .flat_map(|frame| match frame {
                    Frame::Ack(ack) => ack.ranges().flatten().collect(),
                    _ => Vec::new(),
                })
                .collect();
            heard.sort_unstable();
            prop_assert_eq!(heard, expected);
            let _ = translate(&noise, Numbers::OneByOne(&pool), |_| None);
        }
    }
}
