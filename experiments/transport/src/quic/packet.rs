//! What is in a packet, and how many bytes that takes (RFC 9000, sections 16, 17 and 19).

use std::ops::{Deref, RangeInclusive};

use crate::Nanos;
use crate::tcp::Ecn;

/// A packet, alone in its datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet {
    /// Packet number.
    pub number: u64,
    /// The handshake's message, in a packet with a long header, padded to a full datagram.
    pub handshake: bool,
    /// Nothing but that it wants to be acknowledged (PING).
    pub ping: bool,
    /// The connection is over (CONNECTION_CLOSE).
    pub close: bool,
    /// ACK frame.
    pub ack: Option<Ack>,
    /// STREAM frames.
    pub frames: Frames,
    /// Bytes of UDP payload, with header and authentication tag.
    pub length: u32,
    /// The ECN field of the IP header.
    pub ecn: Ecn,
}

/// A stretch of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StreamFrame {
    /// Stream id.
    pub id: u64,
    /// Offset of its first byte.
    pub offset: u64,
    /// Bytes.
    pub len: u32,
    /// The stream ends with it.
    pub fin: bool,
}

/// ACK frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ack {
    /// Packet numbers received.
    pub ranges: AckRanges,
    /// Since the largest was received.
    pub delay: Nanos,
    /// Packets received with a mark, if the peer sends ECN-capable ones.
    pub ce: Option<u64>,
}

/// The highest ranges of packet numbers, from the highest on. A slice, for reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AckRanges {
    ranges: [(u64, u64); Self::MOST],
    count: u8,
}

/// Up to three STREAM frames. A slice, for reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Frames {
    frames: [StreamFrame; Self::MOST],
    count: u8,
}

impl AckRanges {
    /// Older ranges are left out: they were in earlier acknowledgements.
    pub const MOST: usize = 10;

    /// Appends a lower range; one too many is left out.
    pub fn push(&mut self, range: RangeInclusive<u64>) {
        if let Some(free) = self.ranges.get_mut(usize::from(self.count)) {
            *free = range.into_inner();
            self.count += 1;
        }
    }
}

impl Deref for AckRanges {
    /// First and last number of a range.
    type Target = [(u64, u64)];

    fn deref(&self) -> &Self::Target {
        &self.ranges[..usize::from(self.count)]
    }
}

impl Frames {
    /// Of a packet.
    pub const MOST: usize = 3;

    /// Whether another fits.
    pub fn is_full(&self) -> bool {
        usize::from(self.count) == Self::MOST
    }

    /// Appends a frame; one too many is left out.
    pub fn push(&mut self, frame: StreamFrame) {
        if let Some(free) = self.frames.get_mut(usize::from(self.count)) {
            *free = frame;
            self.count += 1;
        }
    }
}

impl Deref for Frames {
    type Target = [StreamFrame];

    fn deref(&self) -> &Self::Target {
        &self.frames[..usize::from(self.count)]
    }
}

/// Bytes of the AEAD's tag.
const TAG: u32 = 16;

impl Packet {
    /// Whether the peer is to acknowledge it (RFC 9002, section 2).
    pub fn is_eliciting(&self) -> bool {
        self.handshake || self.ping || !self.frames.is_empty()
    }
}

/// Bytes of a short header and the tag (RFC 9000, section 17.3.1). `unacknowledged` packets lie
/// between the number and the largest acknowledged one, which says how many of its bytes are sent.
pub fn overhead(connection_id: u8, unacknowledged: u64) -> u32 {
    let number = match unacknowledged {
        ..0x80 => 1,
        0x80..0x8000 => 2,
        0x8000..0x80_0000 => 3,
        _ => 4,
    };
    1 + u32::from(connection_id) + number + TAG
}

impl StreamFrame {
    /// Bytes of the frame without its data, if that is at most `room`.
    pub fn overhead(id: u64, offset: u64, room: u32) -> u32 {
        1 + varint(id) + if offset > 0 { varint(offset) } else { 0 } + varint(u64::from(room))
    }
}

impl Ack {
    /// Bytes of the frame (section 19.3); the delay is in units of 8 microseconds.
    pub fn length(&self) -> u32 {
        let Some(&(first, last)) = self.ranges.first() else {
            return 0;
        };
        let delay = varint(self.delay / 8_000);
        let mut length =
            1 + varint(last) + delay + varint(self.ranges.len() as u64 - 1) + varint(last - first);
        for pair in self.ranges.windows(2) {
            length += varint(pair[0].0 - pair[1].1 - 2) + varint(pair[1].1 - pair[1].0);
        }
        length + self.ce.map_or(0, |ce| 2 * varint(last) + varint(ce))
    }
}

/// Bytes of a variable-length integer (section 16).
fn varint(value: u64) -> u32 {
    match value {
        ..0x40 => 1,
        0x40..0x4000 => 2,
        0x4000..0x4000_0000 => 4,
        _ => 8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_those_of_rfc_9000() {
        assert_eq!(
            [0, 63, 64, 16_383, 16_384, 1 << 30].map(varint),
            [1, 1, 2, 2, 4, 8]
        );
        assert_eq!(overhead(8, 5), 1 + 8 + 1 + 16);
        assert_eq!(overhead(0, 0x8000), 1 + 3 + 16);
        assert_eq!(StreamFrame::overhead(4, 0, 1000), 1 + 1 + 2);
        assert_eq!(StreamFrame::overhead(4, 100_000, 10), 1 + 1 + 4 + 1);
        let mut ack = Ack {
            ranges: AckRanges::default(),
            delay: 0,
            ce: None,
        };
        ack.ranges.push(90..=100);
        ack.ranges.push(0..=10);
        // Type, largest, delay, count, first range, gap of 78, range of 10.
        assert_eq!(ack.length(), 1 + 2 + 1 + 1 + 1 + 2 + 1);
    }
}
