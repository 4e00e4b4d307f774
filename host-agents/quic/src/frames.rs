//! The frames of a 1-RTT packet (RFC 9000, section 19; draft-ietf-quic-multipath, section 4), as far as it takes to know what was sent.

use std::ops::Range;

use noq::ConnectionId;

use crate::parameters::varint;
pub use ack::Ack;

mod ack;

/// What a frame says that is of interest here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// Bytes `from..to` of a stream; `fin` if they are its last.
    Stream {
        id: u64,
        from: u64,
        to: u64,
        fin: bool,
    },
    /// The sender gives the stream up.
    Reset { id: u64 },
    /// The receiver wants no more of a stream.
    StopSending { id: u64, code: u64 },
    /// ACK, of path 0, or PATH_ACK.
    Ack(Ack<'a>),
    /// Bytes of all streams that the receiver takes in all.
    MaxData { limit: u64 },
    /// Bytes that it takes of a stream.
    MaxStreamData { id: u64, limit: u64 },
    /// A connection id for the path; those of a number below `retire_prior_to` end.
    PathNewConnectionId {
        path: u32,
        sequence: u64,
        retire_prior_to: u64,
        id: ConnectionId,
    },
    /// The path ends.
    PathAbandon { path: u32 },
    /// The connection does.
    Close,
    /// Its sender asks whether it is heard where it sends to.
    PathChallenge { data: [u8; 8] },
    /// It is.
    PathResponse { data: [u8; 8] },
    /// The server has confirmed the handshake.
    HandshakeDone,
    /// PING or IMMEDIATE_ACK.
    Ping,
    /// NEW_CONNECTION_ID or a run of PADDING, which go with a probe, as the two above do (RFC 9000, section 9.1).
    Probing,
    /// Any other.
    Other,
}

/// The frames, in order, up to one that is malformed or of an extension unknown here.
#[inline]
pub fn read(payload: &[u8]) -> impl Iterator<Item = Frame<'_>> {
    let mut rest = Reader(payload);
    std::iter::from_fn(move || frame(&mut rest))
}

/// The same, and where in `payload` each is. What is behind the last one is malformed or unknown.
#[inline]
pub fn spans(payload: &[u8]) -> impl Iterator<Item = (Range<usize>, Frame<'_>)> {
    let mut rest = Reader(payload);
    std::iter::from_fn(move || {
        let start = payload.len() - rest.0.len();
        let frame = frame(&mut rest)?;
        Some((start..payload.len() - rest.0.len(), frame))
    })
}

/// `None` if it is malformed, or none is left.
#[inline]
fn frame<'a>(r: &mut Reader<'a>) -> Option<Frame<'a>> {
    // Nearly all are STREAM, in its shortest form.
    match *r.0.first()? {
        kind @ 0x08..=0x0f => {
            r.skip(1)?;
            stream(r, kind)
        }
        _ => other(r),
    }
}

#[inline]
fn stream<'a>(r: &mut Reader<'a>, kind: u8) -> Option<Frame<'a>> {
    let id = r.varint()?;
    let from = if kind & 0x04 != 0 { r.varint()? } else { 0 };
    let length = if kind & 0x02 != 0 {
        r.varint()?
    } else {
        r.0.len() as u64
    };
    r.skip(length)?;
    Some(Frame::Stream {
        id,
        from,
        to: from + length,
        fin: kind & 0x01 != 0,
    })
}

#[inline(never)]
fn other<'a>(r: &mut Reader<'a>) -> Option<Frame<'a>> {
    Some(match r.varint()? {
        0x00 => {
            // PADDING comes in long runs.
            let run = r.0.iter().take_while(|octet| **octet == 0).count();
            r.skip(run as u64)?;
            Frame::Probing
        }
        0x01 | 0x1f => Frame::Ping,
        kind @ 0x02..=0x03 => Frame::Ack(Ack::read(r, 0, kind == 0x03)?),
        kind @ 0x3e..=0x3f => {
            let path = r.path()?;
            Frame::Ack(Ack::read(r, path, kind == 0x3f)?)
        }
        0x04 => {
            let id = r.varint()?;
            r.varints(2)?;
            Frame::Reset { id }
        }
        0x05 => Frame::StopSending {
            id: r.varint()?,
            code: r.varint()?,
        },
        0x10 => Frame::MaxData { limit: r.varint()? },
        0x11 => Frame::MaxStreamData {
            id: r.varint()?,
            limit: r.varint()?,
        },
        // NEW_CONNECTION_ID: sequence number, retire prior to, connection id, reset token
        0x18 => {
            r.varints(2)?;
            let length = r.octet()?;
            r.skip(u64::from(length) + RESET_TOKEN)?;
            Frame::Probing
        }
        0x3e78 => path_new_connection_id(r)?,
        0x1a => Frame::PathChallenge { data: r.data()? },
        0x1b => Frame::PathResponse { data: r.data()? },
        0x1e => Frame::HandshakeDone,
        kind @ 0x1c..=0x1d => {
            r.varints(if kind == 0x1c { 2 } else { 1 })?;
            r.block()?;
            Frame::Close
        }
        0x3e75 => {
            let path = r.path()?;
            r.varint()?;
            Frame::PathAbandon { path }
        }
        kind => {
            skip(r, kind)?;
            Frame::Other
        }
    })
}

/// Steps over a frame whose content is of no interest.
fn skip(r: &mut Reader<'_>, kind: u64) -> Option<()> {
    match kind {
        // MAX_STREAMS, DATA_BLOCKED, STREAMS_BLOCKED, RETIRE_CONNECTION_ID
        0x12 | 0x13 | 0x14 | 0x16 | 0x17 | 0x19 => r.varints(1),
        // STREAM_DATA_BLOCKED
        0x15 => r.varints(2),
        // CRYPTO
        0x06 => {
            r.varint()?;
            r.block()
        }
        // NEW_TOKEN, DATAGRAM with a length
        0x07 | 0x31 => r.block(),
        // DATAGRAM to the end
        0x30 => {
            r.0 = &[];
            Some(())
        }
        // ACK_FREQUENCY
        0xaf => r.varints(4),
        // MAX_PATH_ID, PATHS_BLOCKED
        0x3e7a | 0x3e7b => r.varints(1),
        // PATH_STATUS_BACKUP, PATH_STATUS_AVAILABLE, PATH_RETIRE_CONNECTION_ID, PATH_CIDS_BLOCKED
        0x3e76 | 0x3e77 | 0x3e79 | 0x3e7c => r.varints(2),
        // OBSERVED_ADDRESS (draft-ietf-quic-address-discovery): sequence number, IPv4 or IPv6 address, port
        0x9f_81a6 | 0x9f_81a7 => {
            r.varint()?;
            r.skip(if kind == 0x9f_81a6 { 6 } else { 18 })
        }
        _ => None,
    }
}

/// Octets of a stateless reset's token.
const RESET_TOKEN: u64 = 16;

fn path_new_connection_id<'a>(r: &mut Reader<'a>) -> Option<Frame<'a>> {
    let (path, sequence, retire_prior_to) = (r.path()?, r.varint()?, r.varint()?);
    let length = usize::from(r.octet()?);
    let id = r.0.get(..length)?;
    let known = (1..=MAX_CONNECTION_ID).contains(&length) && retire_prior_to <= sequence;
    let id = known.then(|| ConnectionId::new(id))?;
    r.skip(length as u64 + RESET_TOKEN)?;
    Some(Frame::PathNewConnectionId {
        path,
        sequence,
        retire_prior_to,
        id,
    })
}

/// Octets of a connection id at most (RFC 9000, section 17.2).
const MAX_CONNECTION_ID: usize = 20;

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn octet(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    #[inline]
    fn varint(&mut self) -> Option<u64> {
        varint(&mut self.0)
    }

    /// A path's id; larger ones there are not.
    fn path(&mut self) -> Option<u32> {
        u32::try_from(self.varint()?).ok()
    }

    fn varints(&mut self, n: usize) -> Option<()> {
        (0..n).try_for_each(|_| self.varint().map(drop))
    }

    #[inline]
    fn skip(&mut self, n: u64) -> Option<()> {
        self.0 = self.0.get(usize::try_from(n).ok()?..)?;
        Some(())
    }

    fn data(&mut self) -> Option<[u8; 8]> {
        let (data, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*data)
    }

    fn block(&mut self) -> Option<()> {
        let length = self.varint()?;
        self.skip(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frames(payload: &[u8]) -> Vec<Frame<'_>> {
        read(payload).collect()
    }

    #[test]
    fn streams_with_and_without_offset_and_length() {
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
    fn everything_else_is_stepped_over() {
        let mut payload = vec![
            0x01, 0x1e, 0x10, 1, 0x12, 1, 0x16, 1, 0x19, 1, 0x05, 1, 1, 0x11, 1, 1, 0x06, 0, 1, 9,
            0x07, 1, 9,
        ];
        payload.extend([0x18, 1, 0, 2, 9, 9]);
        payload.extend([9; 16]);
        payload.extend([0x1a, 1, 2, 3, 4, 5, 6, 7, 8, 0x1b, 1, 2, 3, 4, 5, 6, 7, 8]);
        // ACK with two more ranges, ACK with counts of ECN, RESET_STREAM, CONNECTION_CLOSE, PADDING.
        payload.extend([0x02, 0x40, 100, 0, 2, 10, 2, 4, 9, 1]);
        payload.extend([0x03, 0, 0, 0, 0, 1, 1, 1, 0x04, 12, 0, 0, 0x1d, 0, 0, 0, 0]);
        // Of several paths: MAX_PATH_ID, PATHS_BLOCKED, PATH_STATUS_*, PATH_RETIRE_CONNECTION_ID, PATH_CIDS_BLOCKED; OBSERVED_ADDRESS.
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
            Frame::Probing,
        ] {
            assert!(seen.contains(&frame), "{frame:?}");
        }
    }

    #[test]
    fn what_is_said_of_paths() {
        let mut payload = vec![0x7e, 0x78, 2, 3, 1, 4, 9, 8, 7, 6];
        payload.extend([0; 16]);
        payload.extend([0x7e, 0x75, 2, 0, 0x3e, 2, 20, 0, 0, 4]);
        let seen = frames(&payload);
        let id = ConnectionId::new(&[9, 8, 7, 6]);
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
        // An id that is too long, or retires itself; a path's id that is none.
        for wrong in [
            &[0x7e, 0x78, 2, 3, 1, 21][..],
            &[0x7e, 0x78, 2, 3, 4, 4],
            &[0x7e, 0x75, 0xc0, 0, 0, 1, 0, 0, 0, 0, 0],
        ] {
            let wrong = [wrong, &[0; 40]].concat();
            assert_eq!(frames(&wrong), []);
        }
    }

    proptest! {
        #[test]
        fn noise_is_survived(payload: Vec<u8>) {
            prop_assert!(read(&payload).count() <= payload.len());
        }

        #[test]
        fn spans_follow_each_other(payload: Vec<u8>) {
            let mut at = 0;
            for (span, _) in spans(&payload) {
                prop_assert!(span.start == at && span.end > at);
                at = span.end;
            }
        }
    }
}
