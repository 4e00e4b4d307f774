//! What a client says about packets and streams that are not the balancer's, as the balancer cut it out of the client's packets.

use frontage_quic_wire::{read_varint, write_varint};

use super::Error;
use super::puppet::FRAMES;
pub use acknowledgement::Numbers;
use acknowledgement::{ACK, ACK_ECN};

mod acknowledgement;

/// Types of frames (RFC 9000, section 19).
const PADDING: u64 = 0x00;
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

/// What `frames` say, for noq: packet numbers are its own, and streams are called what `own` says. What concerns a stream that is no more is left
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
    let mut next = || read_varint(frames).ok_or(Error::Feedback("a frame that ends early"));
    let mut write = |values: &[u64]| values.iter().for_each(|value| write_varint(out, *value));
    match next()? {
        PADDING => {}
        kind @ (ACK | ACK_ECN) => {
            return acknowledgement::translate(kind, numbers, next, write).map(News::Acked);
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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

    proptest! {
        #[test]
        fn noise_is_survived(frames in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(translated) = translated(&frames) {
                prop_assert!(translated.packets.concat().len() <= frames.len());
            }
        }
    }
}
