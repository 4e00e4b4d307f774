// SPDX-License-Identifier: Apache-2.0
//! Packets and frames, and their lengths (RFC 9000, sections 16, 17 and 19).

use std::ops::{Deref, RangeInclusive};

use crate::Nanos;
use crate::tcp::Ecn;

/// A packet. Each is alone in its datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet {
    /// Packet number.
    pub number: u64,
    /// The packet has a long header and the handshake message, padded to a full datagram.
    pub handshake: bool,
    /// The packet has a PING frame.
    pub ping: bool,
    /// The packet has a CONNECTION_CLOSE frame.
    pub close: bool,
    /// ACK frame.
    pub ack: Option<Ack>,
    /// STREAM frames.
    pub frames: Frames,
    /// UDP payload in bytes, including header and authentication tag.
    pub length: u32,
    /// The ECN field of the IP header.
    pub ecn: Ecn,
}

/// STREAM frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StreamFrame {
    /// Stream id.
    pub id: u64,
    /// Offset of the first byte.
    pub offset: u64,
    /// Length in bytes.
    pub len: u32,
    /// The stream ends with this frame.
    pub fin: bool,
}

/// ACK frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ack {
    /// Received packet numbers.
    pub ranges: AckRanges,
    /// Time since the largest packet number was received.
    pub delay: Nanos,
    /// Number of marked packets, if the peer sends ECN-capable ones.
    pub ce: Option<u64>,
}

/// The highest ranges of packet numbers, in descending order. Dereferences to a slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AckRanges {
    ranges: [(u64, u64); Self::MAX],
    count: u8,
}

/// Up to three STREAM frames. Dereferences to a slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Frames {
    frames: [StreamFrame; Self::MAX],
    count: u8,
}

impl AckRanges {
    /// Maximum number of ranges. Older ones were in earlier acknowledgments.
    pub const MAX: usize = 10;

    /// Appends a lower range. Ranges beyond the maximum are ignored.
    pub fn push(&mut self, range: RangeInclusive<u64>) {
        if let Some(free) = self.ranges.get_mut(usize::from(self.count)) {
            *free = range.into_inner();
            self.count += 1;
        }
    }
}

impl Deref for AckRanges {
    /// First and last number of each range.
    type Target = [(u64, u64)];

    fn deref(&self) -> &Self::Target {
        &self.ranges[..usize::from(self.count)]
    }
}

impl Frames {
    /// Maximum number of frames in a packet.
    pub const MAX: usize = 3;

    /// Returns true if no further frame fits.
    pub fn is_full(&self) -> bool {
        usize::from(self.count) == Self::MAX
    }

    /// Appends a frame. Frames beyond the maximum are ignored.
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

/// Length of the AEAD tag in bytes.
const TAG_LEN: u32 = 16;

impl Packet {
    /// Returns true if the packet is ack-eliciting (RFC 9002, section 2).
    pub fn is_eliciting(&self) -> bool {
        self.handshake || self.ping || !self.frames.is_empty()
    }
}

/// Returns the length of a short header and the tag in bytes (RFC 9000, section 17.3.1).
///
/// `unacknowledged` is the distance of the packet number to the largest acknowledged one, which determines its encoded length.
pub fn overhead(connection_id: u8, unacknowledged: u64) -> u32 {
    let number = match unacknowledged {
        ..0x80 => 1,
        0x80..0x8000 => 2,
        0x8000..0x80_0000 => 3,
        _ => 4,
    };
    1 + u32::from(connection_id) + number + TAG_LEN
}

impl StreamFrame {
    /// Returns the length in bytes of a frame without its data, of which there are at most `room` bytes.
    pub fn overhead(id: u64, offset: u64, room: u32) -> u32 {
        1 + varint(id) + if offset > 0 { varint(offset) } else { 0 } + varint(u64::from(room))
    }
}

impl Ack {
    /// Returns the length of the frame in bytes (section 19.3). The delay has a unit of 8 microseconds.
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

/// Returns the length of a variable-length integer in bytes (section 16).
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
    fn lengths_match_rfc_9000() {
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
