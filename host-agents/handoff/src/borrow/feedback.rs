//! What a client says about packets and streams that are not the balancer's, as the balancer cut it out of the client's packets.

use std::ops::Range;

use frontage_quic::parameters::{put_varint, varint};

use super::Error;
use super::pool::Pool;
use super::puppet::FRAMES;

/// Types of frames (RFC 9000, section 19).
const PADDING: u64 = 0x00;
const ACK: u64 = 0x02;
const ACK_ECN: u64 = 0x03;
const STOP_SENDING: u64 = 0x05;
const MAX_DATA: u64 = 0x10;
const MAX_STREAM_DATA: u64 = 0x11;
const PATH_RESPONSE: u64 = 0x1b;

/// What noq is to hear.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Translated {
    /// The frames of each packet.
    pub packets: Vec<Vec<u8>>,
    /// The highest MAX_DATA among them, or 0.
    pub max_data: u64,
    /// The largest number on the wire that is acknowledged.
    pub acked: Option<u64>,
}

/// How packet numbers on the wire become noq's.
#[derive(Clone, Copy)]
pub enum Numbers<'a> {
    /// They count from this one.
    From(u64),
    /// As they came.
    OneByOne(&'a Pool),
}

/// The same for noq: packet numbers are its own, and streams are called what `own` says. What concerns a stream that is no more is left
/// out.
pub fn translate(
    mut frames: &[u8],
    numbers: Numbers<'_>,
    own: impl Fn(u64) -> Option<u64>,
) -> Result<Translated, Error> {
    let mut translated = Translated::default();
    while !frames.is_empty() {
        let mut frame = Vec::new();
        match translate_one(&mut frames, numbers, &own, &mut frame)? {
            News::Credit(limit) => translated.max_data = translated.max_data.max(limit),
            News::Acked(largest) => translated.acked = translated.acked.max(Some(largest)),
            News::Other => {}
        }
        if frame.len() > FRAMES {
            return Err(Error::Feedback("a frame longer than a packet"));
        }
        match translated.packets.last_mut() {
            Some(last) if last.len() + frame.len() <= FRAMES => last.extend(frame),
            _ if frame.is_empty() => {}
            _ => translated.packets.push(frame),
        }
    }
    Ok(translated)
}

/// What is to be known of a frame beside noq.
enum News {
    /// MAX_DATA.
    Credit(u64),
    /// The largest number of an ACK.
    Acked(u64),
    Other,
}

fn translate_one(
    frames: &mut &[u8],
    numbers: Numbers<'_>,
    own: impl Fn(u64) -> Option<u64>,
    out: &mut Vec<u8>,
) -> Result<News, Error> {
    let mut next = || varint(frames).ok_or(Error::Feedback("a frame that ends early"));
    let mut write = |values: &[u64]| values.iter().for_each(|value| put_varint(out, *value));
    match next()? {
        PADDING => {}
        kind @ (ACK | ACK_ECN) => {
            let (largest, delay, ranges, range) = (next()?, next()?, next()?, next()?);
            let first = match numbers {
                Numbers::From(first) => first,
                Numbers::OneByOne(_) => 0,
            };
            let before = "an acknowledgement of what came before the grant";
            let ours = |number: Option<u64>| {
                number
                    .filter(|number| *number >= first)
                    .ok_or(Error::Feedback(before))
            };
            ours(Some(largest))?;
            let mut smallest = ours(largest.checked_sub(range))?;
            if let Numbers::OneByOne(pool) = numbers {
                let mut wire = Vec::new();
                wire.push(smallest..largest + 1);
                for _ in 0..ranges {
                    let (gap, range) = (next()?, next()?);
                    let end = ours(smallest.checked_sub(gap + 1))?;
                    smallest = ours(end.checked_sub(range + 1))?;
                    wire.push(smallest..end);
                }
                if kind == ACK_ECN {
                    // Of packets of others, too.
                    _ = (next()?, next()?, next()?);
                }
                acknowledge(&pool.own(&wire), delay, &mut write);
                return Ok(News::Acked(largest));
            }
            write(&[kind, largest - first, delay, ranges, range]);
            for _ in 0..ranges {
                let (gap, range) = (next()?, next()?);
                smallest = ours(smallest.checked_sub(gap + range + 2))?;
                write(&[gap, range]);
            }
            // Counts of ECN (RFC 9000, section 19.3.2), which the balancer makes out for this grant's packets alone.
            if kind == ACK_ECN {
                write(&[next()?, next()?, next()?]);
            }
            return Ok(News::Acked(largest));
        }
        kind @ (STOP_SENDING | MAX_STREAM_DATA) => {
            let (stream, value) = (next()?, next()?);
            if let Some(own) = own(stream) {
                write(&[kind, own, value]);
            }
        }
        MAX_DATA => {
            let limit = next()?;
            write(&[MAX_DATA, limit]);
            return Ok(News::Credit(limit));
        }
        // noq knows what it asked.
        PATH_RESPONSE => {
            let (data, rest) = frames
                .split_first_chunk::<8>()
                .ok_or(Error::Feedback("a frame that ends early"))?;
            *frames = rest;
            out.push(PATH_RESPONSE as u8);
            out.extend(data);
        }
        _ => return Err(Error::Feedback("a frame of another kind")),
    }
    Ok(News::Other)
}

/// Writes ACK of `own`, the highest first, unless that is nothing.
fn acknowledge(own: &[Range<u64>], delay: u64, write: &mut impl FnMut(&[u64])) {
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
    use super::*;
    use frontage_quic::frames::Frame;
    use frontage_quic::session::{Observer, Packet};
    use proptest::prelude::*;
    use std::sync::Arc;

    fn translated(frames: &[u8]) -> Result<Translated, Error> {
        translate(frames, Numbers::From(10), |id| (id == 8).then_some(0))
    }

    #[test]
    fn numbers_and_streams_get_noqs_names() {
        // Acknowledged: 30 to 28, 20 to 10; with counts of ECN. Then streams, known and not.
        let frames = [
            3, 30, 9, 1, 2, 6, 10, 1, 1, 1, 0x11, 8, 50, 5, 8, 1, 5, 12, 1, 0x10, 60, 0, 0x1b, 1,
            2, 3, 4, 5, 6, 7, 8,
        ];
        let expected = Translated {
            packets: vec![vec![
                3, 20, 9, 1, 2, 6, 10, 1, 1, 1, 0x11, 0, 50, 5, 0, 1, 0x10, 60, 0x1b, 1, 2, 3, 4,
                5, 6, 7, 8,
            ]],
            max_data: 60,
            acked: Some(30),
        };
        assert_eq!(translated(&frames), Ok(expected));
        assert_eq!(translated(&[0]), Ok(Translated::default()));
    }

    #[test]
    fn lies_are_refused() {
        for (frames, why) in [
            (&[2, 30, 0, 0][..], "a frame that ends early"),
            (
                &[2, 9, 0, 0, 0],
                "an acknowledgement of what came before the grant",
            ),
            (
                &[2, 30, 0, 0, 21],
                "an acknowledgement of what came before the grant",
            ),
            (
                &[2, 30, 0, 0, 31],
                "an acknowledgement of what came before the grant",
            ),
            (
                &[2, 30, 0, 1, 2, 6, 11],
                "an acknowledgement of what came before the grant",
            ),
            (&[0x1b, 1, 2, 3, 4, 5, 6, 7], "a frame that ends early"),
            (&[0x1e], "a frame of another kind"),
        ] {
            assert_eq!(translated(frames), Err(Error::Feedback(why)), "{frames:?}");
        }
        let mut long = vec![2, 0x80, 0, 0xff, 0xff, 0, 0x44, 0, 0];
        long.resize(long.len() + 2 * 1024, 0);
        let why = "a frame longer than a packet";
        assert_eq!(translated(&long), Err(Error::Feedback(why)));
    }

    #[test]
    fn much_is_more_than_a_packet() {
        let frames = [2, 30, 0, 0, 0].repeat(1000);
        let packets = translated(&frames).unwrap().packets;
        assert!(packets.iter().all(|packet| packet.len() <= FRAMES));
        assert_eq!(packets.concat(), [2, 20, 0, 0, 0].repeat(1000));
    }

    struct Blind;

    impl Observer for Blind {
        fn sent(&self, _: &Packet<'_>) {}

        fn received(&self, _: &Packet<'_>) {}
    }

    proptest! {
        /// noq's packet `i` got a number that is `gaps[i]` and one above the one before.
        #[test]
        fn numbers_that_came_one_by_one_lead_back(
            gaps in prop::collection::vec((0..4u64, any::<bool>()), 1..60),
            noise in prop::collection::vec(any::<u8>(), 0..100),
        ) {
            let pool = Pool::new(0, Arc::new(Blind));
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
            acknowledge(&acked, 9, &mut |values| {
                values.iter().for_each(|value| put_varint(&mut frames, *value));
            });
            let own = translate(&frames, Numbers::OneByOne(&pool), |_| None).unwrap();
            let own = own.packets.concat();
            let mut heard: Vec<u64> = frontage_quic::frames::read(&own)
                .flat_map(|frame| match frame {
                    Frame::Ack(ack) => ack.ranges().flatten().collect(),
                    _ => Vec::new(),
                })
                .collect();
            heard.sort_unstable();
            prop_assert_eq!(heard, expected);
            let _ = translate(&noise, Numbers::OneByOne(&pool), |_| None);
        }

        #[test]
        fn noise_is_survived(frames in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(translated) = translated(&frames) {
                prop_assert!(translated.packets.concat().len() <= frames.len());
            }
        }
    }
}
