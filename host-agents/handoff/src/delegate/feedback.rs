// SPDX-License-Identifier: Apache-2.0
//! Translation of the client's frames, which the balancer extracted from its packets, for noq.

use frontage_quic_wire::{read_varint, write_varint};

use super::Error;
use super::synthetic_client::MAX_FRAMES;
pub use ack::Numbers;
use ack::{ACK, ACK_ECN};

mod ack;

/// Frame types (RFC 9000, section 19).
const PADDING: u64 = 0x00;
const STOP_SENDING: u64 = 0x05;
const MAX_DATA: u64 = 0x10;
const MAX_STREAM_DATA: u64 = 0x11;
const PATH_RESPONSE: u64 = 0x1b;

/// Feedback for noq.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Translated {
    /// The frames of each packet.
    pub packets: Vec<Vec<u8>>,
    /// The highest MAX_DATA among them, or 0.
    pub max_data: u64,
    /// The largest acknowledged number on the wire.
    pub largest_acked: Option<u64>,
}

/// Translate `frames` to noq's own packet numbers and, by `own`, stream ids. Frames about streams that ended are dropped.
pub fn translate(
    mut frames: &[u8],
    numbers: Numbers<'_>,
    own: impl Fn(u64) -> Option<u64>,
) -> Result<Translated, Error> {
    let mut translated = Translated::default();
    while !frames.is_empty() {
        let mut frame = Vec::new();
        match translate_one(&mut frames, numbers, &own, &mut frame)? {
            Update::MaxData(limit) => translated.max_data = translated.max_data.max(limit),
            Update::Acked(largest) => {
                translated.largest_acked = translated.largest_acked.max(Some(largest));
            }
            Update::Other => {}
        }
        if frame.len() > MAX_FRAMES {
            return Err(Error::Feedback("frame longer than a packet"));
        }
        match translated.packets.last_mut() {
            Some(last) if last.len() + frame.len() <= MAX_FRAMES => last.extend(frame),
            _ if frame.is_empty() => {}
            _ => translated.packets.push(frame),
        }
    }
    Ok(translated)
}

/// Effect of a frame on this server besides noq.
enum Update {
    MaxData(u64),
    /// Largest number of an ACK.
    Acked(u64),
    Other,
}

fn translate_one(
    frames: &mut &[u8],
    numbers: Numbers<'_>,
    own: impl Fn(u64) -> Option<u64>,
    out: &mut Vec<u8>,
) -> Result<Update, Error> {
    let mut next = || read_varint(frames).ok_or(Error::Feedback("truncated frame"));
    let mut write = |values: &[u64]| values.iter().for_each(|value| write_varint(out, *value));
    match next()? {
        PADDING => {}
        kind @ (ACK | ACK_ECN) => {
            return ack::translate(kind, numbers, next, write).map(Update::Acked);
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
            return Ok(Update::MaxData(limit));
        }
        // noq checks whether it sent the PATH_CHALLENGE.
        PATH_RESPONSE => {
            let (data, rest) = frames
                .split_first_chunk::<8>()
                .ok_or(Error::Feedback("truncated frame"))?;
            *frames = rest;
            out.push(PATH_RESPONSE as u8);
            out.extend(data);
        }
        _ => return Err(Error::Feedback("unexpected frame type")),
    }
    Ok(Update::Other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn translated(frames: &[u8]) -> Result<Translated, Error> {
        translate(frames, Numbers::From(10), |id| (id == 8).then_some(0))
    }

    #[test]
    fn numbers_and_stream_ids_are_translated() {
        // ACK of 30 to 28 and 20 to 10 with ECN counts, then frames about known and unknown streams.
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
            largest_acked: Some(30),
        };
        assert_eq!(translated(&frames), Ok(expected));
        assert_eq!(translated(&[0]), Ok(Translated::default()));
    }

    #[test]
    fn invalid_feedback_is_rejected() {
        for (frames, why) in [
            (&[2, 30, 0, 0][..], "truncated frame"),
            (&[2, 9, 0, 0, 0], "ACK of a number before the grant"),
            (&[2, 30, 0, 0, 21], "ACK of a number before the grant"),
            (&[2, 30, 0, 0, 31], "ACK of a number before the grant"),
            (&[2, 30, 0, 1, 2, 6, 11], "ACK of a number before the grant"),
            (&[0x1b, 1, 2, 3, 4, 5, 6, 7], "truncated frame"),
            (&[0x1e], "unexpected frame type"),
        ] {
            assert_eq!(translated(frames), Err(Error::Feedback(why)), "{frames:?}");
        }
        let mut long = vec![2, 0x80, 0, 0xff, 0xff, 0, 0x44, 0, 0];
        long.resize(long.len() + 2 * 1024, 0);
        let why = "frame longer than a packet";
        assert_eq!(translated(&long), Err(Error::Feedback(why)));
    }

    #[test]
    fn long_feedback_is_split_into_packets() {
        let frames = [2, 30, 0, 0, 0].repeat(1000);
        let packets = translated(&frames).unwrap().packets;
        assert!(packets.iter().all(|packet| packet.len() <= MAX_FRAMES));
        assert_eq!(packets.concat(), [2, 20, 0, 0, 0].repeat(1000));
    }

    proptest! {
        #[test]
        fn malformed_feedback_does_not_panic(frames in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(translated) = translated(&frames) {
                prop_assert!(translated.packets.concat().len() <= frames.len());
            }
        }
    }
}
