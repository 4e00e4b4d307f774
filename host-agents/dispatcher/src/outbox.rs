//! Packets on their way out, until the system takes a batch of them at once.

use std::net::IpAddr;

/// One packet, in the bytes of [`Outbox`].
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The tunnel's other end.
    pub to: IpAddr,
    start: usize,
    /// Bytes of the packet.
    pub len: usize,
}

/// What is to be sent: copies, so that what came can be overwritten. Its memory is what a batch once needed.
#[derive(Debug, Default)]
pub struct Outbox {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
}

impl Outbox {
    /// Adds a packet in two parts.
    #[inline]
    pub fn push(&mut self, to: IpAddr, head: &[u8], payload: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(head);
        self.bytes.extend_from_slice(payload);
        let len = self.bytes.len() - start;
        self.entries.push(Entry { to, start, len });
    }

    /// Puts packets to one end side by side, as the system takes them as one; their order stays.
    pub fn group(&mut self) -> &[Entry] {
        self.entries.sort_by_key(|entry| entry.to);
        &self.entries
    }

    /// The bytes of a packet.
    pub fn packet(&self, entry: Entry) -> &[u8] {
        &self.bytes[entry.start..entry.start + entry.len]
    }

    /// The packets.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Forgets all packets.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
    }
}
