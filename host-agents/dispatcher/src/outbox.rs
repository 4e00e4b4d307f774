// SPDX-License-Identifier: Apache-2.0
//! Packets to send as one batch.

use std::net::IpAddr;

/// One packet of an [`Outbox`].
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Destination tunnel endpoint.
    pub to: IpAddr,
    start: usize,
    /// Length of the packet in bytes.
    pub len: usize,
}

/// A batch of packets to send.
///
/// It copies packets, so that the receive buffer can be reused. Its memory grows to the size of the largest batch.
#[derive(Debug, Default)]
pub struct Outbox {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
}

impl Outbox {
    /// Adds a packet that consists of `head` and `payload`.
    #[inline]
    pub fn push(&mut self, to: IpAddr, head: &[u8], payload: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(head);
        self.bytes.extend_from_slice(payload);
        let len = self.bytes.len() - start;
        self.entries.push(Entry { to, start, len });
    }

    /// Groups packets by destination, so that each group can be sent with GSO. Keeps the order within a group.
    pub fn group_by_destination(&mut self) -> &[Entry] {
        self.entries.sort_by_key(|entry| entry.to);
        &self.entries
    }

    /// Returns the bytes of a packet.
    pub fn packet(&self, entry: Entry) -> &[u8] {
        &self.bytes[entry.start..entry.start + entry.len]
    }

    /// Returns the packets.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Removes all packets.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
    }
}
