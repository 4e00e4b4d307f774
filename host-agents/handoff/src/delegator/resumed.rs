// SPDX-License-Identifier: Apache-2.0
//! Streams of dead real servers that noq completes. noq begins the stream at offset 0; on the wire it continues where
//! the acknowledged prefix ends.

use frontage_quic_wire::{read_varint, write_varint};
use tokio::sync::watch;

/// Types of frames (RFC 9000, section 19).
const RESET_STREAM: u8 = 0x04;
/// Bit of a STREAM frame's type: it has an offset.
const OFFSET: u8 = 0x04;

/// Maximum growth of a frame of a resumed stream in bytes: the length of an offset, which noq's first frame
/// lacks.
pub const MAX_FRAME_GROWTH: usize = 8;

/// A stream that noq resumed.
#[derive(Debug)]
pub(super) struct ResumedStream {
    /// Offset on the wire of noq's offset 0.
    base: u64,
    /// Number of bytes after `base` that the real server may have sent.
    overlap: u64,
    /// The client's limit, on the wire.
    limit: watch::Sender<u64>,
}

impl ResumedStream {
    pub(super) fn new(base: u64, overlap: u64, limit: u64) -> Self {
        Self {
            base,
            overlap,
            limit: watch::Sender::new(limit),
        }
    }

    /// Return the client's limit, on the wire.
    pub(super) fn limits(&self) -> watch::Receiver<u64> {
        self.limit.subscribe()
    }

    pub(super) fn raise_limit(&self, limit: u64) {
        self.limit.send_replace(limit);
    }

    /// Return the client's `limit` in noq's offsets.
    pub(super) fn limit_of(&self, limit: u64) -> u64 {
        limit.saturating_sub(self.base)
    }

    /// Append noq's STREAM or RESET_STREAM `frame` to `out`, with offsets on the wire.
    pub(super) fn write(&self, frame: &[u8], out: &mut Vec<u8>) -> Option<()> {
        let (kind, mut rest) = frame.split_first()?;
        let id = read_varint(&mut rest)?;
        if *kind == RESET_STREAM {
            let (code, size) = (read_varint(&mut rest)?, read_varint(&mut rest)?);
            out.push(RESET_STREAM);
            for value in [id, code, self.base + size.max(self.overlap)] {
                write_varint(out, value);
            }
        } else {
            let from = match kind & OFFSET {
                0 => 0,
                _ => read_varint(&mut rest)?,
            };
            out.push(kind | OFFSET);
            write_varint(out, id);
            write_varint(out, self.base + from);
            out.extend_from_slice(rest);
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(frame: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        let resumed = ResumedStream::new(100_000, 50, 0);
        resumed.write(frame, &mut out).unwrap();
        out
    }

    #[test]
    fn frames_have_offsets_on_the_wire() {
        let at = |offset: u64| {
            let mut wire = Vec::new();
            write_varint(&mut wire, offset);
            wire
        };
        assert_eq!(
            written(&[0x0b, 4, 2, b'a', b'b']),
            [&[0x0f, 4], &at(100_000)[..], &[2, b'a', b'b']].concat()
        );
        assert_eq!(
            written(&[0x0c, 4, 0x44, 0, b'a']),
            [&[0x0c, 4], &at(101_024)[..], b"a"].concat()
        );
        // The client may have received bytes that noq has not sent.
        for (size, wire) in [(9, 100_050), (60, 100_060)] {
            assert_eq!(
                written(&[0x04, 4, 2, size]),
                [&[0x04, 4, 2], &at(wire)[..]].concat()
            );
        }
    }
}
