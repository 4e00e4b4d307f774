// SPDX-License-Identifier: Apache-2.0
//! The lengths of frames that an interface accepts.

use std::ops::RangeInclusive;

use super::socket::{Interface, PacketSocket};

/// Bytes of an Ethernet header.
const ETHERNET_HEADER: usize = 14;

/// Bytes of a VLAN tag, which an interface accepts in addition to its MTU.
const VLAN_TAG: usize = 4;

/// Number of batches between two reads of the interface's MTU.
const MTU_ASKED_EVERY: u32 = 1024;

/// The lengths of frames that an interface accepts. Its MTU may change while the port exists.
#[derive(Debug)]
pub struct FrameLimit {
    mtu: usize,
    batches: u32,
}

impl FrameLimit {
    /// Creates the limit of an interface with this MTU in bytes.
    pub fn new(mtu: usize) -> Self {
        Self { mtu, batches: 0 }
    }

    /// Returns true if the interface accepts a frame.
    pub fn accepts(&self, frame: &[u8]) -> bool {
        self.lengths(frame).contains(&frame.len())
    }

    /// Returns the accepted lengths of frames with or without a VLAN tag, like this one.
    fn lengths(&self, frame: &[u8]) -> RangeInclusive<usize> {
        let is_tagged = frame.get(12..14) == Some(&[0x81, 0x00]);
        let tag = if is_tagged { VLAN_TAG } else { 0 };
        ETHERNET_HEADER..=ETHERNET_HEADER + self.mtu + tag
    }

    /// Counts a batch, and reads the interface's MTU from time to time.
    pub fn end_batch(&mut self, socket: &PacketSocket, interface: &Interface) {
        self.batches += 1;
        if self.batches >= MTU_ASKED_EVERY {
            self.batches = 0;
            // The interface may be gone.
            self.mtu = socket.mtu(interface).unwrap_or(self.mtu);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tagged_frames_may_be_longer() {
        let limit = FrameLimit::new(100);
        let frame = |len: usize, kind: [u8; 2]| {
            let mut frame = vec![0; len];
            frame[12..14].copy_from_slice(&kind);
            frame
        };
        let (ipv4, vlan) = ([0x08, 0x00], [0x81, 0x00]);
        assert!(limit.accepts(&frame(114, ipv4)) && limit.accepts(&frame(118, vlan)));
        assert!(!limit.accepts(&frame(115, ipv4)) && !limit.accepts(&frame(119, vlan)));
        assert!(!limit.accepts(&[0; 13]));
    }
}
