// SPDX-License-Identifier: Apache-2.0
//! The frames of a 1-RTT packet (RFC 9000, section 19; draft-ietf-quic-multipath, section 4), as far as an observer
//! of packets needs them.

use std::ops::Range;

use crate::Reader;
use crate::server_addresses::{Announcement, ServerAddresses};
pub use ack::Ack;

mod ack;

/// A frame, with the fields that observers need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// STREAM: bytes `from..to` of a stream, the last ones if `fin`.
    Stream {
        /// Stream id.
        id: u64,
        /// Offset of the first byte.
        from: u64,
        /// Offset after the last byte.
        to: u64,
        /// True if the stream ends at `to`.
        fin: bool,
    },
    /// RESET_STREAM.
    Reset {
        /// Stream id.
        id: u64,
    },
    /// STOP_SENDING.
    StopSending {
        /// Stream id.
        id: u64,
        /// Application error code.
        code: u64,
    },
    /// ACK, which is for path 0, or PATH_ACK.
    Ack(Ack<'a>),
    /// MAX_DATA.
    MaxData {
        /// Most bytes on all streams together.
        limit: u64,
    },
    /// MAX_STREAM_DATA.
    MaxStreamData {
        /// Stream id.
        id: u64,
        /// Most bytes on the stream.
        limit: u64,
    },
    /// PATH_NEW_CONNECTION_ID.
    PathNewConnectionId {
        /// Path id.
        path: u32,
        /// Sequence number of the connection id.
        sequence: u64,
        /// Connection ids with smaller sequence numbers are retired.
        retire_prior_to: u64,
        /// The connection id, 1 to 20 bytes.
        id: &'a [u8],
    },
    /// PATH_ABANDON.
    PathAbandon {
        /// Path id.
        path: u32,
    },
    /// CONNECTION_CLOSE.
    Close,
    /// PATH_CHALLENGE.
    PathChallenge {
        /// Data that the response must echo.
        data: [u8; 8],
    },
    /// PATH_RESPONSE.
    PathResponse {
        /// Data of the challenge.
        data: [u8; 8],
    },
    /// HANDSHAKE_DONE.
    HandshakeDone,
    /// PING or IMMEDIATE_ACK.
    Ping,
    /// NEW_CONNECTION_ID.
    NewConnectionId {
        /// Sequence number of the connection id.
        sequence: u64,
        /// Connection ids with smaller sequence numbers are retired.
        retire_prior_to: u64,
        /// The connection id.
        id: &'a [u8],
    },
    /// DATAGRAM (RFC 9221).
    Datagram {
        /// The data.
        data: &'a [u8],
    },
    /// ALTERNATIVE_ADDRESS or NEXT_SERVER, well-formed.
    ServerAddresses {
        /// The type of the frame.
        announcement: Announcement,
        /// The frame without its type; see [`ServerAddresses::read`].
        body: &'a [u8],
    },
    /// A run of PADDING. Like PATH_CHALLENGE, PATH_RESPONSE and NEW_CONNECTION_ID, it is a probing frame (RFC 9000,
    /// section 9.1).
    Probing,
    /// Any other known frame.
    Other,
}

/// Return the frames in `payload`, up to the first that is malformed or of an unknown extension.
#[inline]
pub fn read(payload: &[u8]) -> impl Iterator<Item = Frame<'_>> {
    let mut reader = Reader(payload);
    std::iter::from_fn(move || frame(&mut reader))
}

/// Like [`read`], with the bytes of `payload` that each frame occupies.
#[inline]
pub fn read_with_spans(payload: &[u8]) -> impl Iterator<Item = (Range<usize>, Frame<'_>)> {
    let mut reader = Reader(payload);
    std::iter::from_fn(move || {
        let start = payload.len() - reader.0.len();
        let frame = frame(&mut reader)?;
        Some((start..payload.len() - reader.0.len(), frame))
    })
}

/// Read one frame. Return `None` if it is malformed or unknown, or if no frame is left.
#[inline]
fn frame<'a>(reader: &mut Reader<'a>) -> Option<Frame<'a>> {
    // Nearly all frames are STREAM, whose type takes one byte.
    match *reader.0.first()? {
        kind @ 0x08..=0x0f => {
            reader.skip(1)?;
            stream(reader, kind)
        }
        _ => other(reader),
    }
}

#[inline]
fn stream<'a>(reader: &mut Reader<'a>, kind: u8) -> Option<Frame<'a>> {
    let id = reader.varint()?;
    let from = if kind & 0x04 != 0 {
        reader.varint()?
    } else {
        0
    };
    let length = if kind & 0x02 != 0 {
        reader.varint()?
    } else {
        reader.0.len() as u64
    };
    reader.skip(length)?;
    Some(Frame::Stream {
        id,
        from,
        to: from + length,
        fin: kind & 0x01 != 0,
    })
}

#[inline(never)]
fn other<'a>(reader: &mut Reader<'a>) -> Option<Frame<'a>> {
    Some(match reader.varint()? {
        0x00 => {
            // PADDING comes in long runs, which count as one frame.
            reader.skip(leading_zeros(reader.0) as u64)?;
            Frame::Probing
        }
        0x01 | 0x1f => Frame::Ping,
        kind @ 0x02..=0x03 => Frame::Ack(Ack::read(reader, 0, kind == 0x03)?),
        kind @ 0x3e..=0x3f => {
            let path = path_id(reader)?;
            Frame::Ack(Ack::read(reader, path, kind == 0x3f)?)
        }
        0x04 => {
            let id = reader.varint()?;
            reader.skip_varints(2)?;
            Frame::Reset { id }
        }
        0x05 => Frame::StopSending {
            id: reader.varint()?,
            code: reader.varint()?,
        },
        0x10 => Frame::MaxData {
            limit: reader.varint()?,
        },
        0x11 => Frame::MaxStreamData {
            id: reader.varint()?,
            limit: reader.varint()?,
        },
        0x18 => {
            let (sequence, retire_prior_to) = (reader.varint()?, reader.varint()?);
            let length = usize::from(reader.byte()?);
            let id = reader.bytes(length)?;
            reader.skip(RESET_TOKEN)?;
            Frame::NewConnectionId {
                sequence,
                retire_prior_to,
                id,
            }
        }
        0x30 => Frame::Datagram {
            data: std::mem::take(&mut reader.0),
        },
        0x31 => Frame::Datagram {
            data: reader.length_prefixed()?,
        },
        0x3e78 => path_new_connection_id(reader)?,
        0x1a => Frame::PathChallenge {
            data: reader.array()?,
        },
        0x1b => Frame::PathResponse {
            data: reader.array()?,
        },
        0x1e => Frame::HandshakeDone,
        kind @ 0x1c..=0x1d => {
            reader.skip_varints(if kind == 0x1c { 2 } else { 1 })?;
            reader.length_prefixed()?;
            Frame::Close
        }
        0x3e75 => {
            let path = path_id(reader)?;
            reader.varint()?;
            Frame::PathAbandon { path }
        }
        kind => match Announcement::from_frame_type(kind) {
            Some(announcement) => {
                let body = reader.0;
                ServerAddresses::read(reader)?;
                Frame::ServerAddresses {
                    announcement,
                    body: &body[..body.len() - reader.0.len()],
                }
            }
            None => {
                skip(reader, kind)?;
                Frame::Other
            }
        },
    })
}

/// Return how many bytes at the front of `bytes` are zero.
fn leading_zeros(bytes: &[u8]) -> usize {
    // A packet that probes for a larger MTU has more than a thousand, for which a comparison of each byte takes too long.
    let (chunks, _) = bytes.as_chunks::<16>();
    let whole = 16 * chunks.iter().take_while(|chunk| **chunk == [0; 16]).count();
    whole + bytes[whole..].iter().take_while(|byte| **byte == 0).count()
}

/// Skip the rest of a frame of type `kind`.
fn skip(reader: &mut Reader<'_>, kind: u64) -> Option<()> {
    match kind {
        // MAX_STREAMS, DATA_BLOCKED, STREAMS_BLOCKED, RETIRE_CONNECTION_ID
        0x12 | 0x13 | 0x14 | 0x16 | 0x17 | 0x19 => reader.skip_varints(1),
        // STREAM_DATA_BLOCKED
        0x15 => reader.skip_varints(2),
        // CRYPTO
        0x06 => {
            reader.varint()?;
            reader.length_prefixed().map(drop)
        }
        // NEW_TOKEN
        0x07 => reader.length_prefixed().map(drop),
        // ACK_FREQUENCY
        0xaf => reader.skip_varints(4),
        // MAX_PATH_ID, PATHS_BLOCKED
        0x3e7a | 0x3e7b => reader.skip_varints(1),
        // PATH_STATUS_BACKUP, PATH_STATUS_AVAILABLE, PATH_RETIRE_CONNECTION_ID, PATH_CIDS_BLOCKED
        0x3e76 | 0x3e77 | 0x3e79 | 0x3e7c => reader.skip_varints(2),
        // OBSERVED_ADDRESS (draft-ietf-quic-address-discovery): sequence number, IPv4 or IPv6 address, port
        0x9f_81a6 | 0x9f_81a7 => {
            reader.varint()?;
            reader.skip(if kind == 0x9f_81a6 { 6 } else { 18 })
        }
        _ => None,
    }
}

/// Bytes of a stateless reset token.
const RESET_TOKEN: u64 = 16;

fn path_new_connection_id<'a>(reader: &mut Reader<'a>) -> Option<Frame<'a>> {
    let (path, sequence) = (path_id(reader)?, reader.varint()?);
    let retire_prior_to = reader.varint()?;
    let length = usize::from(reader.byte()?);
    let id = reader.bytes(length)?;
    reader.skip(RESET_TOKEN)?;
    let valid = (1..=MAX_CONNECTION_ID).contains(&length) && retire_prior_to <= sequence;
    valid.then_some(Frame::PathNewConnectionId {
        path,
        sequence,
        retire_prior_to,
        id,
    })
}

/// Most bytes of a connection id (RFC 9000, section 17.2).
const MAX_CONNECTION_ID: usize = 20;

/// Read a path id, which has 32 bits.
fn path_id(reader: &mut Reader<'_>) -> Option<u32> {
    u32::try_from(reader.varint()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frames(payload: &[u8]) -> Vec<Frame<'_>> {
        read(payload).collect()
    }

    #[test]
    fn stream_frames_with_and_without_offset_and_length_are_read() {
        let payload = [
            0x0a, 4, 2, b'a', b'b', 0x0f, 8, 0x44, 0, 1, b'c', 0x09, 0, b'd', b'e', b'f',
        ];
        let expected = [
            Frame::Stream {
                id: 4,
                from: 0,
                to: 2,
                fin: false,
            },
            Frame::Stream {
                id: 8,
                from: 1024,
                to: 1025,
                fin: true,
            },
            Frame::Stream {
                id: 0,
                from: 0,
                to: 3,
                fin: true,
            },
        ];
        assert_eq!(frames(&payload), expected);
    }

    #[test]
    fn known_frames_are_read_or_skipped() {
        let mut payload = vec![
            0x01, 0x1e, 0x10, 1, 0x12, 1, 0x16, 1, 0x19, 1, 0x05, 1, 1, 0x11, 1, 1, 0x06, 0, 1, 9,
            0x07, 1, 9,
        ];
        payload.extend([0x18, 1, 0, 2, 9, 9]);
        payload.extend([9; 16]);
        payload.extend([0x1a, 1, 2, 3, 4, 5, 6, 7, 8, 0x1b, 1, 2, 3, 4, 5, 6, 7, 8]);
        // ACK with two more ranges, ACK with ECN counts, RESET_STREAM, CONNECTION_CLOSE, PADDING.
        payload.extend([0x02, 0x40, 100, 0, 2, 10, 2, 4, 9, 1]);
        payload.extend([0x03, 0, 0, 0, 0, 1, 1, 1, 0x04, 12, 0, 0, 0x1d, 0, 0, 0, 0]);
        // Multipath: MAX_PATH_ID, PATHS_BLOCKED, PATH_STATUS_*, PATH_RETIRE_CONNECTION_ID, PATH_CIDS_BLOCKED;
        // OBSERVED_ADDRESS.
        payload.extend([0x7e, 0x7a, 1, 0x7e, 0x7b, 1, 0x7e, 0x76, 1, 1]);
        payload.extend([0x7e, 0x77, 1, 1, 0x7e, 0x79, 1, 1, 0x7e, 0x7c, 1, 1]);
        payload.extend([0x80, 0x9f, 0x81, 0xa6, 1, 127, 0, 0, 1, 1, 1, 0x01]);
        let seen = frames(&payload);
        let others = seen.iter().filter(|frame| **frame == Frame::Other);
        assert_eq!((others.count(), seen.len()), (12, 26));
        let data = [1, 2, 3, 4, 5, 6, 7, 8];
        for frame in [
            Frame::Reset { id: 12 },
            Frame::StopSending { id: 1, code: 1 },
            Frame::MaxData { limit: 1 },
            Frame::MaxStreamData { id: 1, limit: 1 },
            Frame::Close,
            Frame::Ping,
            Frame::PathChallenge { data },
            Frame::PathResponse { data },
            Frame::HandshakeDone,
            Frame::NewConnectionId {
                sequence: 1,
                retire_prior_to: 0,
                id: &[9, 9],
            },
            Frame::Probing,
        ] {
            assert!(seen.contains(&frame), "{frame:?}");
        }
    }

    #[test]
    fn padding_of_any_length_is_one_frame() {
        for length in (1..=50).chain([1400]) {
            let mut payload = vec![0; length];
            assert_eq!(frames(&payload), [Frame::Probing]);
            // 0x1e ends the run, and the zero after it begins another.
            payload.extend([0x1e, 0]);
            assert_eq!(
                frames(&payload),
                [Frame::Probing, Frame::HandshakeDone, Frame::Probing]
            );
        }
    }

    #[test]
    fn datagrams_and_announced_addresses_are_read() {
        let addresses = ServerAddresses {
            sequence: 1,
            preferred: vec![(0, "192.0.2.1:443".parse().unwrap())],
            backup: vec![],
        };
        let frame = addresses.to_frame(Announcement::HandOver);
        let payload = [&[0x31, 2, 7, 8][..], &frame, &[0x01, 0x30, 9, 9]].concat();
        let expected = [
            Frame::Datagram { data: &[7, 8] },
            Frame::ServerAddresses {
                announcement: Announcement::HandOver,
                body: &frame[4..],
            },
            Frame::Ping,
            Frame::Datagram { data: &[9, 9] },
        ];
        assert_eq!(frames(&payload), expected);
        // Without its last octet, the frame is malformed.
        assert_eq!(frames(&frame[..frame.len() - 1]), []);
    }

    #[test]
    fn multipath_frames_are_read() {
        let mut payload = vec![0x7e, 0x78, 2, 3, 1, 4, 9, 8, 7, 6];
        payload.extend([0; 16]);
        payload.extend([0x7e, 0x75, 2, 0, 0x3e, 2, 20, 0, 0, 4]);
        let seen = frames(&payload);
        let id = &[9, 8, 7, 6];
        let new = Frame::PathNewConnectionId {
            path: 2,
            sequence: 3,
            retire_prior_to: 1,
            id,
        };
        assert_eq!(seen[..2], [new, Frame::PathAbandon { path: 2 }]);
        let [_, _, Frame::Ack(ack)] = &seen[..] else {
            panic!("{seen:?}");
        };
        assert_eq!((ack.path, ack.ranges().collect()), (2, vec![16..=20]));
        // A connection id that is too long, one that retires itself, and a path id above 32 bits.
        for malformed in [
            &[0x7e, 0x78, 2, 3, 1, 21][..],
            &[0x7e, 0x78, 2, 3, 4, 4],
            &[0x7e, 0x75, 0xc0, 0, 0, 1, 0, 0, 0, 0, 0],
        ] {
            let malformed = [malformed, &[0; 40]].concat();
            assert_eq!(frames(&malformed), []);
        }
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_are_survived(payload: Vec<u8>) {
            prop_assert!(read(&payload).count() <= payload.len());
        }

        #[test]
        fn spans_are_contiguous(payload: Vec<u8>) {
            let mut at = 0;
            for (span, _) in read_with_spans(&payload) {
                prop_assert!(span.start == at && span.end > at);
                at = span.end;
            }
        }
    }
}
