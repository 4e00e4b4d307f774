// SPDX-License-Identifier: Apache-2.0
//! TCP segments and the ECN field of their IP header.

use std::ops::{BitOr, BitOrAssign, Deref};

/// A TCP segment without ports and checksum. Its payload is only a length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Sequence number of the first byte, or of the SYN.
    pub seq: u32,
    /// Acknowledgment number, if [`Flags::ACK`] is set.
    pub ack: u32,
    /// Control bits.
    pub flags: Flags,
    /// Window field of the header: scaled, except in a SYN.
    pub window: u16,
    /// Window scale option, in a SYN.
    pub window_scale: Option<u8>,
    /// Maximum segment size option, in a SYN.
    pub mss: Option<u16>,
    /// SACK permitted option, in a SYN.
    pub sack_permitted: bool,
    /// Timestamps option.
    pub ts: Option<Timestamps>,
    /// SACK option.
    pub sack: SackBlocks,
    /// Length of the payload in bytes.
    pub len: u32,
    /// The ECN field of the IP header.
    pub ecn: Ecn,
}

/// The timestamps option of RFC 7323.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timestamps {
    /// TSval: the sender's clock in milliseconds.
    pub val: u32,
    /// TSecr: the echo of the peer's clock; 0 means absent.
    pub ecr: u32,
}

/// The ECN field of the IP header (RFC 3168, section 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ecn {
    /// 00
    #[default]
    NotEct,
    /// 10
    Ect0,
    /// 11: congestion experienced.
    Ce,
}

/// Control bits as in bytes 12 and 13 of the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags(pub u8);

impl Flags {
    /// No flags.
    pub const NONE: Self = Self(0);
    /// End of data.
    pub const FIN: Self = Self(0x01);
    /// Opens a connection.
    pub const SYN: Self = Self(0x02);
    /// Aborts a connection.
    pub const RST: Self = Self(0x04);
    /// Last segment of the written data.
    pub const PSH: Self = Self(0x08);
    /// The acknowledgment number is valid.
    pub const ACK: Self = Self(0x10);
    /// A marked packet was received (RFC 3168).
    pub const ECE: Self = Self(0x40);
    /// The window was reduced (RFC 3168).
    pub const CWR: Self = Self(0x80);

    /// Returns true if all flags of `other` are set.
    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for Flags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Flags {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

/// Up to three ranges of sequence numbers received out of order (RFC 2018), as left edge and exclusive right edge.
///
/// The first block contains the latest segment. Dereferences to a slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SackBlocks {
    blocks: [(u32, u32); Self::MAX],
    count: u8,
}

impl SackBlocks {
    /// Maximum number of blocks that fit next to timestamps in 40 bytes of options.
    pub const MAX: usize = 3;

    /// Appends a block. A fourth block is ignored.
    pub fn push(&mut self, left: u32, right: u32) {
        if let Some(block) = self.blocks.get_mut(usize::from(self.count)) {
            *block = (left, right);
            self.count += 1;
        }
    }
}

impl Deref for SackBlocks {
    type Target = [(u32, u32)];

    fn deref(&self) -> &Self::Target {
        &self.blocks[..usize::from(self.count)]
    }
}

impl Segment {
    /// Creates a segment without options and payload.
    pub(super) fn bare(seq: u32, ack: u32, flags: Flags) -> Self {
        Self {
            seq,
            ack,
            flags,
            window: 0,
            window_scale: None,
            mss: None,
            sack_permitted: false,
            ts: None,
            sack: SackBlocks::default(),
            len: 0,
            ecn: Ecn::NotEct,
        }
    }

    /// Returns the RST with which a host without a matching connection answers this segment (RFC 9293, section 3.10.7.1). A RST has no answer.
    pub fn reset(&self) -> Option<Self> {
        if self.flags.has(Flags::RST) {
            None
        } else if self.flags.has(Flags::ACK) {
            Some(Self::bare(self.ack, 0, Flags::RST))
        } else {
            let ack = self.seq.wrapping_add(self.sequence_length());
            Some(Self::bare(0, ack, Flags::RST | Flags::ACK))
        }
    }

    /// Returns the length of the TCP header with options in bytes, padded as in Linux: 20 to 60.
    pub fn header_length(&self) -> u32 {
        let syn = self.flags.has(Flags::SYN);
        let mut options = 0;
        options += if self.mss.is_some() { 4 } else { 0 };
        options += match (self.ts.is_some(), syn && self.sack_permitted) {
            (true, _) => 12, // SACK permitted takes the place of the two NOPs.
            (false, true) => 4,
            (false, false) => 0,
        };
        options += if self.window_scale.is_some() { 4 } else { 0 };
        options += if self.sack.is_empty() {
            0
        } else {
            4 + 8 * self.sack.len() as u32
        };
        20 + options
    }

    /// Returns the number of sequence numbers that the segment occupies: payload, SYN and FIN.
    pub fn sequence_length(&self) -> u32 {
        self.len + u32::from(self.flags.has(Flags::SYN)) + u32::from(self.flags.has(Flags::FIN))
    }
}
