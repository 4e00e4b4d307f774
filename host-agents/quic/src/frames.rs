//! The frames of a 1-RTT packet (RFC 9000, section 19), as far as it takes to know what was sent.

use crate::parameters::varint;

/// What a frame says that is of interest here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// Bytes `from..to` of a stream; `fin` if they are its last.
    Stream {
        id: u64,
        from: u64,
        to: u64,
        fin: bool,
    },
    /// The sender gives the stream up.
    Reset { id: u64 },
    /// Its sender asks whether it is heard where it sends to.
    PathChallenge { data: [u8; 8] },
    /// It is.
    PathResponse { data: [u8; 8] },
    /// NEW_CONNECTION_ID or a run of PADDING, which go with a probe, as the two above do (RFC 9000, section 9.1).
    Probing,
    /// Any other.
    Other,
}

/// The frames, in order, up to one that is malformed or of an extension unknown here.
#[inline]
pub fn read(payload: &[u8]) -> impl Iterator<Item = Frame> {
    let mut rest = Reader(payload);
    std::iter::from_fn(move || frame(&mut rest))
}

/// `None` if it is malformed, or none is left.
#[inline]
fn frame(r: &mut Reader<'_>) -> Option<Frame> {
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
fn stream(r: &mut Reader<'_>, kind: u8) -> Option<Frame> {
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
fn other(r: &mut Reader<'_>) -> Option<Frame> {
    match r.varint()? {
        0x00 => {
            // PADDING comes in long runs.
            let run = r.0.iter().take_while(|octet| **octet == 0).count();
            r.skip(run as u64)?;
            return Some(Frame::Probing);
        }
        // ACK, and with counts of ECN
        kind @ 0x02..=0x03 => {
            r.varints(2)?;
            let ranges = r.varint()?;
            r.varint()?;
            (0..ranges).try_for_each(|_| r.varints(2))?;
            r.varints(if kind == 0x03 { 3 } else { 0 })?;
        }
        0x04 => {
            let id = r.varint()?;
            r.varints(2)?;
            return Some(Frame::Reset { id });
        }
        // PING, HANDSHAKE_DONE, IMMEDIATE_ACK
        0x01 | 0x1e | 0x1f => {}
        // MAX_DATA, MAX_STREAMS, DATA_BLOCKED, STREAMS_BLOCKED, RETIRE_CONNECTION_ID
        0x10 | 0x12 | 0x13 | 0x14 | 0x16 | 0x17 | 0x19 => r.varints(1)?,
        // STOP_SENDING, MAX_STREAM_DATA, STREAM_DATA_BLOCKED
        0x05 | 0x11 | 0x15 => r.varints(2)?,
        // CRYPTO
        0x06 => {
            r.varint()?;
            r.block()?;
        }
        // NEW_TOKEN, DATAGRAM with a length
        0x07 | 0x31 => r.block()?,
        // NEW_CONNECTION_ID: sequence number, retire prior to, connection id, reset token
        0x18 => {
            r.varints(2)?;
            let length = r.octet()?;
            r.skip(u64::from(length) + 16)?;
            return Some(Frame::Probing);
        }
        0x1a => return Some(Frame::PathChallenge { data: r.data()? }),
        0x1b => return Some(Frame::PathResponse { data: r.data()? }),
        // CONNECTION_CLOSE
        0x1c => {
            r.varints(2)?;
            r.block()?;
        }
        0x1d => {
            r.varint()?;
            r.block()?;
        }
        // DATAGRAM to the end
        0x30 => r.0 = &[],
        // ACK_FREQUENCY
        0xaf => r.varints(4)?,
        _ => return None,
    }
    Some(Frame::Other)
}

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

    fn frames(payload: &[u8]) -> Vec<Frame> {
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
        let seen = frames(&payload);
        let others = seen.iter().filter(|frame| **frame == Frame::Other);
        assert_eq!((others.count(), seen.len()), (13, 18));
        let data = [1, 2, 3, 4, 5, 6, 7, 8];
        for frame in [
            Frame::Reset { id: 12 },
            Frame::PathChallenge { data },
            Frame::PathResponse { data },
            Frame::Probing,
        ] {
            assert!(seen.contains(&frame), "{frame:?}");
        }
    }

    proptest! {
        #[test]
        fn noise_is_survived(payload: Vec<u8>) {
            prop_assert!(read(&payload).count() <= payload.len());
        }
    }
}
