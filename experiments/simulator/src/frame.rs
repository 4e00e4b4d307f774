//! TCP segments as Ethernet frames, and back: IPv4 or IPv6, options as Linux lays them out, checksums right.

mod checksum;
mod read;
mod write;

use std::net::SocketAddr;

use frontage_transport::tcp::Segment;

pub use read::{Fault, read};
pub use write::write;

const ETHERNET: usize = 14;
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const IPV4_HEADER: usize = 20;
const IPV6_HEADER: usize = 40;
const TCP_HEADER: usize = 20;
const TCP: u8 = 6;

/// Kinds of TCP options.
mod option {
    pub const END: u8 = 0;
    pub const NOP: u8 = 1;
    pub const MSS: u8 = 2;
    pub const WINDOW_SCALE: u8 = 3;
    pub const SACK_PERMITTED: u8 = 4;
    pub const SACK: u8 = 5;
    pub const TIMESTAMPS: u8 = 8;
}

/// Who sends to whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Way {
    /// The sender's Ethernet address.
    pub from_mac: [u8; 6],
    /// The receiver's.
    pub to_mac: [u8; 6],
    /// The sender's address and port.
    pub from: SocketAddr,
    /// The receiver's, of the same family.
    pub to: SocketAddr,
}

/// What a frame carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contents {
    /// Who sent it to whom.
    pub way: Way,
    /// The segment.
    pub segment: Segment,
    /// Whether TSval holds a dynamic cookie (docs/cookie.md).
    pub ck: bool,
}

#[cfg(test)]
mod tests;
