// SPDX-License-Identifier: Apache-2.0
//! Packets, and the links on which they travel.

use std::net::SocketAddrV4;

use serde::Deserialize;

use crate::frame::{Header, Macs};

pub const FLOWS: u16 = 1000;
/// One of so many flows starts in each round of the traffic, so a connection has 20 full segments, 29 kB.
pub const FLOWS_PER_CONNECTION: u16 = 10;
pub const FIRST_CLIENT_PORT: u16 = 20_000;
pub const TTL: u8 = 64;

/// An input frame of the switch, and its expected output.
pub struct Packet {
    pub kind: &'static str,
    pub port: u32,
    pub frame: Vec<u8>,
    pub out_port: u32,
    /// The expected output frame, if it depends only on the input.
    pub out_frame: Option<Vec<u8>>,
}

/// A port of the switch and the only neighbor behind it.
#[derive(Clone, Copy, Deserialize)]
pub struct Link {
    pub port: u32,
    mac: [u8; 6],
    neighbor: [u8; 6],
}

impl Link {
    /// Returns the MAC addresses of a frame from the neighbor to the switch.
    pub fn arriving(&self) -> Macs {
        Macs {
            src: self.neighbor,
            dst: self.mac,
        }
    }

    /// Returns the MAC addresses of a frame from the switch to the neighbor.
    pub fn leaving(&self) -> Macs {
        Macs {
            src: self.mac,
            dst: self.neighbor,
        }
    }
}

/// Returns the addresses of an IPv4 packet from the neighbor to the switch.
pub fn arriving(link: &Link, src: SocketAddrV4, dst: SocketAddrV4) -> Header {
    Header {
        macs: link.arriving(),
        src,
        dst,
        ttl: TTL,
    }
}

/// Returns the addresses of an IPv4 packet that the switch has routed to the neighbor.
pub fn leaving(link: &Link, src: SocketAddrV4, dst: SocketAddrV4) -> Header {
    Header {
        macs: link.leaving(),
        src,
        dst,
        ttl: TTL - 1,
    }
}
