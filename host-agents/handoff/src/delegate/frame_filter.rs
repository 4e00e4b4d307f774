// SPDX-License-Identifier: Apache-2.0
//! Filter of the frames that a real server may send. It owns the sending half of its streams and nothing else of the
//! connection, so every other frame of noq is overwritten with PADDING.

use std::ops::Range;

use frontage_quic_wire::frames::{self, Frame};
use frontage_quic_wire::read_varint;

/// Frame types (RFC 9000, section 19).
const PADDING: u8 = 0x00;
const PING: u8 = 0x01;
const ACK: u8 = 0x02;
const ACK_ECN: u8 = 0x03;
const RESET_STREAM: u8 = 0x04;
const CONNECTION_CLOSE: u8 = 0x1c;
const CONNECTION_CLOSE_APPLICATION: u8 = 0x1d;

/// Keep PATH_CHALLENGE, PING, PADDING, and the STREAM and RESET_STREAM frames of delegated streams in `payload`.
///
/// `rename` maps noq's stream id, and the range of the frame's data, to the client's id; `None` if the stream is not
/// delegated. If an ack-eliciting packet has no other frame left, it gets a PING, so that the client still acknowledges
/// it. Returns whether anything but PADDING is left.
pub fn filter(payload: &mut [u8], mut rename: impl FnMut(u64, Range<u64>) -> Option<u64>) -> bool {
    let (mut has_frames, mut is_ack_eliciting, mut end) = (false, false, 0);
    while end < payload.len() {
        // Parse from the end of the last frame each time, because frames change.
        let next = frames::read_with_spans(&payload[end..]).next();
        let Some((span, frame)) = next else {
            is_ack_eliciting = true;
            payload[end..].fill(PADDING);
            break;
        };
        let span = end + span.start..end + span.end;
        end = span.end;
        let kind = payload[span.start];
        let is_kept = match (kind, frame) {
            (PING, _) | (_, Frame::PathChallenge { .. }) => true,
            (0x08..=0x0f, Frame::Stream { id, from, to, .. }) => {
                rename(id, from..to).is_some_and(|id| write_id(&mut payload[span.clone()], id))
            }
            (RESET_STREAM, Frame::Reset { id }) => {
                rename(id, 0..0).is_some_and(|id| write_id(&mut payload[span.clone()], id))
            }
            _ => false,
        };
        has_frames |= is_kept;
        if !is_kept {
            is_ack_eliciting |= !matches!(
                kind,
                PADDING | ACK | ACK_ECN | CONNECTION_CLOSE | CONNECTION_CLOSE_APPLICATION
            );
            payload[span].fill(PADDING);
        }
    }
    if is_ack_eliciting && !has_frames {
        payload[0] = PING;
        has_frames = true;
    }
    has_frames
}

/// Overwrite the frame's stream id with `id`, in as many octets; RFC 9000, section 16, permits longer encodings. Returns
/// whether the id fits.
fn write_id(frame: &mut [u8], id: u64) -> bool {
    let range = id_range(frame);
    let octets = range.len();
    let fits = id >> (8 * octets - 2) == 0;
    if fits {
        let prefix = (octets.trailing_zeros() as u64) << (8 * octets - 2);
        frame[range].copy_from_slice(&(prefix | id).to_be_bytes()[8 - octets..]);
    }
    fits
}

/// Return the position of the stream id in a valid frame with a type of one octet.
fn id_range(frame: &[u8]) -> Range<usize> {
    let mut rest = &frame[1..];
    read_varint(&mut rest).expect("the frame was parsed");
    1..frame.len() - rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use frontage_quic_wire::write_varint;
    use proptest::prelude::*;

    /// Streams 64, 68, ... are delegated, as 4096, 4100, ...
    fn rename(id: u64, _: Range<u64>) -> Option<u64> {
        (64..1024).contains(&id).then(|| id - 64 + 4096)
    }

    fn varints(values: &[u64]) -> Vec<u8> {
        let mut wire = Vec::new();
        for value in values {
            write_varint(&mut wire, *value);
        }
        wire
    }

    /// A frame of noq, or random bytes.
    fn frame() -> impl Strategy<Value = Vec<u8>> {
        let stream = (0x08u64..0x10, 0u64..2048, 0u64..1 << 40, 0usize..40).prop_map(
            |(kind, id, offset, length)| {
                let mut frame = varints(&[kind, id]);
                if kind & 4 != 0 {
                    write_varint(&mut frame, offset);
                }
                if kind & 2 != 0 {
                    write_varint(&mut frame, length as u64);
                }
                frame.resize(frame.len() + length, 0x5a);
                frame
            },
        );
        let reset = (0u64..2048, 0u64..9, 0u64..9)
            .prop_map(|(id, code, size)| varints(&[0x04, id, code, size]));
        let plain = prop::sample::select(vec![
            vec![0x00],
            vec![0x01],
            vec![0x1e],
            vec![0x02, 9, 0, 1, 2, 3, 4],
            vec![0x10, 9],
            vec![0x12, 9],
            vec![0x05, 64, 1],
            vec![0x11, 64, 1],
            vec![0x06, 0, 1, 9],
            vec![0x40, 0x04, 64, 0, 0],
            vec![0x1d, 0, 0],
            vec![0x1a, 1, 2, 3, 4, 5, 6, 7, 8],
            vec![0x1b, 1, 2, 3, 4, 5, 6, 7, 8],
        ]);
        let noise = prop::collection::vec(any::<u8>(), 0..12);
        prop_oneof![4 => stream, 1 => reset, 4 => plain, 1 => noise]
    }

    proptest! {
        #[test]
        fn only_permitted_frames_remain(
            original in prop::collection::vec(frame(), 0..8).prop_map(|frames| frames.concat()),
        ) {
            let mut payload = original.clone();
            let has_frames = filter(&mut payload, rename);
            prop_assert_eq!(payload.len(), original.len());
            let left: Vec<_> = frames::read_with_spans(&payload).collect();
            prop_assert_eq!(left.last().map_or(0, |(span, _)| span.end), payload.len());
            let mut anything = false;
            for (span, frame) in left {
                match (payload[span.start], frame) {
                    (PADDING, Frame::Probing) => continue,
                    (PING, _) | (_, Frame::PathChallenge { .. }) => {}
                    (_, Frame::Stream { id, .. } | Frame::Reset { id }) => {
                        prop_assert!((4096..4096 + 960).contains(&id), "{id}");
                    }
                    other => prop_assert!(false, "{other:?}"),
                }
                anything = true;
            }
            prop_assert_eq!(anything, has_frames);
        }

        #[test]
        fn delegated_stream_data_is_unchanged(id in 64u64..1024, data in prop::collection::vec(any::<u8>(), 0..40)) {
            let mut payload = varints(&[0x0b, id, data.len() as u64]);
            payload.extend(&data);
            payload.extend([0x1e, 0x00]);
            prop_assert!(filter(&mut payload, rename));
            let mut expected = varints(&[0x0b, rename(id, 0..0).unwrap(), data.len() as u64]);
            expected.extend(&data);
            expected.extend([0, 0]);
            prop_assert_eq!(payload, expected);
        }
    }

    #[test]
    fn ack_eliciting_packet_without_permitted_frames_becomes_ping() {
        for (written, left) in [
            (&[0x1e, 0x00][..], Some(&[0x01, 0x00][..])),
            (&[0x02, 9, 0, 0, 0], None),
            (&[0x1d, 0, 0], None),
            // STREAM of another stream, and one whose new id does not fit.
            (&[0x0a, 12, 1, 9], Some(&[0x01, 0, 0, 0])),
        ] {
            let mut payload = written.to_vec();
            let has_frames = filter(&mut payload, |_, _| None);
            assert_eq!(has_frames.then_some(&payload[..]), left);
        }
        let mut short = vec![0x0a, 12, 1, 9];
        assert!(filter(&mut short, |_, _| Some(64)));
        assert_eq!(short, [0x01, 0, 0, 0]);
    }
}
