//! Which frames leave. A real server owns the sending half of its streams and nothing else of the connection, so whatever else noq writes
//! becomes PADDING where it stands.

use std::ops::Range;

use frontage_quic_wire::frames::{self, Frame};
use frontage_quic_wire::read_varint;

/// Types of frames (RFC 9000, section 19).
const PADDING: u8 = 0x00;
const PING: u8 = 0x01;
const ACK: u8 = 0x02;
const ACK_ECN: u8 = 0x03;
const RESET_STREAM: u8 = 0x04;
const CONNECTION_CLOSE: u8 = 0x1c;
const CONNECTION_CLOSE_APPLICATION: u8 = 0x1d;

/// Lets out of `payload` only STREAM and RESET_STREAM frames of streams that `named` knows, which get the id that it gives them, PATH_CHALLENGE, PING and
/// PADDING. `named` is told up to which offset there are bytes of the stream, too. Where nothing else is left of a packet that its sender wants to see acknowledged, a PING is: so the client does that itself.
/// Returns whether anything but PADDING is left.
pub fn pass(payload: &mut [u8], mut named: impl FnMut(u64, u64) -> Option<u64>) -> bool {
    let (mut passed, mut eliciting, mut end) = (false, false, 0);
    while end < payload.len() {
        // Each time from where the last one ended, since frames change as they pass.
        let next = frames::read_with_spans(&payload[end..]).next();
        let Some((span, frame)) = next else {
            eliciting = true;
            payload[end..].fill(PADDING);
            break;
        };
        let span = end + span.start..end + span.end;
        end = span.end;
        let kind = payload[span.start];
        let lets = match (kind, frame) {
            (PING, _) | (_, Frame::PathChallenge { .. }) => true,
            (0x08..=0x0f, Frame::Stream { id, to, .. }) => {
                named(id, to).is_some_and(|id| rename(&mut payload[span.clone()], id))
            }
            (RESET_STREAM, Frame::Reset { id }) => {
                named(id, 0).is_some_and(|id| rename(&mut payload[span.clone()], id))
            }
            _ => false,
        };
        passed |= lets;
        if !lets {
            eliciting |= !matches!(
                kind,
                PADDING | ACK | ACK_ECN | CONNECTION_CLOSE | CONNECTION_CLOSE_APPLICATION
            );
            payload[span].fill(PADDING);
        }
    }
    if eliciting && !passed {
        payload[0] = PING;
        passed = true;
    }
    passed
}

/// Writes `id` where the frame's is, in as many octets (RFC 9000, section 16, allows more than it takes). Whether it fits.
fn rename(frame: &mut [u8], id: u64) -> bool {
    let range = id_range(frame);
    let octets = range.len();
    let fits = id >> (8 * octets - 2) == 0;
    if fits {
        let prefix = (octets.trailing_zeros() as u64) << (8 * octets - 2);
        frame[range].copy_from_slice(&(prefix | id).to_be_bytes()[8 - octets..]);
    }
    fits
}

/// Where the id is in a whole frame whose type takes one octet.
fn id_range(frame: &[u8]) -> Range<usize> {
    let mut rest = &frame[1..];
    read_varint(&mut rest).expect("the frame was read");
    1..frame.len() - rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use frontage_quic_wire::write_varint;
    use proptest::prelude::*;

    /// Streams 64, 68, .. are granted, as 4096, 4100, ..
    fn named(id: u64, _: u64) -> Option<u64> {
        (64..1024).contains(&id).then(|| id - 64 + 4096)
    }

    fn varints(values: &[u64]) -> Vec<u8> {
        let mut wire = Vec::new();
        for value in values {
            write_varint(&mut wire, *value);
        }
        wire
    }

    /// What noq may write, and noise.
    fn a_frame() -> impl Strategy<Value = Vec<u8>> {
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
        fn nothing_but_granted_frames_leaves(
            soup in prop::collection::vec(a_frame(), 0..8).prop_map(|frames| frames.concat()),
        ) {
            let mut payload = soup.clone();
            let passed = pass(&mut payload, named);
            prop_assert_eq!(payload.len(), soup.len());
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
            prop_assert_eq!(anything, passed);
        }

        #[test]
        fn granted_bytes_leave_as_they_are(id in 64u64..1024, data in prop::collection::vec(any::<u8>(), 0..40)) {
            let mut payload = varints(&[0x0b, id, data.len() as u64]);
            payload.extend(&data);
            payload.extend([0x1e, 0x00]);
            prop_assert!(pass(&mut payload, named));
            let mut expected = varints(&[0x0b, named(id, 0).unwrap(), data.len() as u64]);
            expected.extend(&data);
            expected.extend([0, 0]);
            prop_assert_eq!(payload, expected);
        }
    }

    #[test]
    fn what_is_to_be_acknowledged_becomes_a_ping() {
        for (written, left) in [
            (&[0x1e, 0x00][..], Some(&[0x01, 0x00][..])),
            (&[0x02, 9, 0, 0, 0], None),
            (&[0x1d, 0, 0], None),
            // STREAM of another, and one whose new name does not fit.
            (&[0x0a, 12, 1, 9], Some(&[0x01, 0, 0, 0])),
        ] {
            let mut payload = written.to_vec();
            let passed = pass(&mut payload, |_, _| None);
            assert_eq!(passed.then_some(&payload[..]), left);
        }
        let mut short = vec![0x0a, 12, 1, 9];
        assert!(pass(&mut short, |_, _| Some(64)));
        assert_eq!(short, [0x01, 0, 0, 0]);
    }
}
