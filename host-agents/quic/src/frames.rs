//! The frames of a 1-RTT packet (RFC 9000, section 19), as far as it takes to know what was sent and what arrived.

use std::ops::ControlFlow;

use crate::parameters::varint;

/// What a frame says that is of interest here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// Packets `first..=last` arrived; one for each range of an ACK frame, the highest first.
    Acknowledged { first: u64, last: u64 },
    /// Bytes `from..to` of a stream; `fin` if they are its last.
    Stream {
        id: u64,
        from: u64,
        to: u64,
        fin: bool,
    },
    /// The sender gives the stream up.
    Reset { id: u64 },
    /// Migration's question: this packet may be a mere probe of a path.
    PathChallenge,
    /// Any other.
    Other,
}

/// Calls `see` for each frame, in order, until it has seen enough; it ends too at one that is malformed or of an extension unknown here.
#[inline]
pub fn read(payload: &[u8], mut see: impl FnMut(Frame) -> ControlFlow<()>) {
    let mut rest = Reader(payload);
    while !rest.0.is_empty() {
        if !matches!(frame(&mut rest, &mut see), Some(ControlFlow::Continue(()))) {
            return;
        }
    }
}

/// `None` if it is malformed.
#[inline]
fn frame(
    r: &mut Reader<'_>,
    see: &mut impl FnMut(Frame) -> ControlFlow<()>,
) -> Option<ControlFlow<()>> {
    let kind = r.varint()?;
    match kind {
        0x00 => {
            // PADDING comes in long runs.
            let run = r.0.iter().take_while(|octet| **octet == 0).count();
            r.skip(run as u64)?;
            return Some(ControlFlow::Continue(()));
        }
        0x02 | 0x03 => return ack(r, kind == 0x03, see),
        0x08..=0x0f => {
            let id = r.varint()?;
            let from = if kind & 0x04 != 0 { r.varint()? } else { 0 };
            let length = if kind & 0x02 != 0 {
                r.varint()?
            } else {
                r.0.len() as u64
            };
            r.skip(length)?;
            return Some(see(Frame::Stream {
                id,
                from,
                to: from + length,
                fin: kind & 0x01 != 0,
            }));
        }
        0x04 => {
            let id = r.varint()?;
            r.varints(2)?;
            return Some(see(Frame::Reset { id }));
        }
        0x1a => {
            r.skip(8)?;
            return Some(see(Frame::PathChallenge));
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
        }
        // PATH_RESPONSE
        0x1b => r.skip(8)?,
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
    Some(see(Frame::Other))
}

#[inline]
fn ack(
    r: &mut Reader<'_>,
    ecn: bool,
    see: &mut impl FnMut(Frame) -> ControlFlow<()>,
) -> Option<ControlFlow<()>> {
    let mut last = r.varint()?;
    r.varint()?; // delay
    let ranges = r.varint()?;
    let mut first = last.checked_sub(r.varint()?)?;
    let mut enough = see(Frame::Acknowledged { first, last });
    for _ in 0..ranges {
        if enough.is_break() {
            return Some(enough);
        }
        last = first.checked_sub(r.varint()?.checked_add(2)?)?;
        first = last.checked_sub(r.varint()?)?;
        enough = see(Frame::Acknowledged { first, last });
    }
    if ecn {
        r.varints(3)?;
    }
    Some(enough)
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn octet(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn varint(&mut self) -> Option<u64> {
        varint(&mut self.0)
    }

    fn varints(&mut self, n: usize) -> Option<()> {
        (0..n).try_for_each(|_| self.varint().map(drop))
    }

    fn skip(&mut self, n: u64) -> Option<()> {
        self.0 = self.0.get(usize::try_from(n).ok()?..)?;
        Some(())
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
        let mut frames = Vec::new();
        read(payload, |frame| {
            frames.push(frame);
            ControlFlow::Continue(())
        });
        frames
    }

    #[test]
    fn acknowledged_ranges_count_downwards() {
        // 90 to 100, three missing, 82 to 86; then PING and padding.
        let payload = [0x02, 0x40, 100, 0, 1, 10, 2, 4, 0x01, 0, 0, 0];
        let expected = [
            Frame::Acknowledged {
                first: 90,
                last: 100,
            },
            Frame::Acknowledged {
                first: 82,
                last: 86,
            },
            Frame::Other,
        ];
        assert_eq!(frames(&payload), expected);
    }

    #[test]
    fn reading_ends_when_enough_was_seen() {
        let payload = [0x02, 0x40, 100, 0, 2, 10, 2, 4, 9, 1, 0x01];
        let mut seen = Vec::new();
        read(&payload, |frame| {
            let enough = seen.len() == 1;
            seen.push(frame);
            if enough {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
        let second = Frame::Acknowledged {
            first: 82,
            last: 86,
        };
        assert_eq!((seen.len(), &seen[1]), (2, &second));
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
        payload.extend([0x04, 12, 0, 0, 0x03, 0, 0, 0, 0, 1, 1, 1, 0x1d, 0, 0]);
        let seen = frames(&payload);
        assert_eq!(
            seen.iter().filter(|frame| **frame == Frame::Other).count(),
            13
        );
        assert!(seen.contains(&Frame::PathChallenge) && seen.contains(&Frame::Reset { id: 12 }));
        assert!(seen.contains(&Frame::Acknowledged { first: 0, last: 0 }));
    }

    proptest! {
        #[test]
        fn noise_is_survived(payload: Vec<u8>) {
            read(&payload, |_| ControlFlow::Continue(()));
        }
    }
}
