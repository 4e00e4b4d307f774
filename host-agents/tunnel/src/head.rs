// SPDX-License-Identifier: Apache-2.0
//! The headers before a payload: tunnel, IP and UDP.

use core::net::SocketAddr;
use core::num::NonZeroU8;
use core::ops::Deref;

use crate::checksum::Sum;
use crate::inner::{IPV4_LEN, IPV6_LEN, UDP, UDP_LEN};
use crate::{Encapsulation, Error, Family, Flow, gre, vxlan};

const HOP_LIMIT: u8 = 64;
const DONT_FRAGMENT: u8 = 0x40;

/// The bytes that make a payload a tunnelled datagram. They are valid before this payload only, because they contain
/// its UDP checksum.
#[derive(Clone, Copy, Debug)]
pub struct Head {
    bytes: [u8; Self::MAX],
    len: usize,
}

impl Head {
    /// Largest length in bytes: VXLAN around IPv6.
    pub const MAX: usize = vxlan::LEN + IPV6_LEN + UDP_LEN;

    /// Create the headers of `payload`, sent in `flow` with the two `ecn` bits, into the tunnel of the client's
    /// `origin` site.
    ///
    /// # Errors
    /// [`Error::Families`], [`Error::TooLong`].
    #[inline]
    pub fn new(
        encapsulation: Encapsulation,
        origin: NonZeroU8,
        flow: Flow,
        ecn: u8,
        payload: &[u8],
    ) -> Result<Self, Error> {
        let mut head = Self {
            bytes: [0; Self::MAX],
            len: 0,
        };
        let family = match flow.source {
            SocketAddr::V4(_) => Family::V4,
            SocketAddr::V6(_) => Family::V6,
        };
        match encapsulation {
            Encapsulation::Vxlan => head.push(&vxlan::write(origin.get(), family)),
            Encapsulation::Gre => head.push(&gre::write(origin.get(), family)),
        }
        // IPv4's total length includes its header. A payload within that limit also fits IPv6's payload length.
        let limit = usize::from(u16::MAX) - IPV4_LEN - UDP_LEN;
        if payload.len() > limit {
            return Err(Error::TooLong);
        }
        let length = (UDP_LEN + payload.len()) as u16;
        let addresses = head.ip(flow, ecn & 0x03, length)?;
        head.udp(flow, length, addresses, payload);
        Ok(head)
    }

    /// Write the IP header, and return the checksum of the two addresses.
    #[inline]
    fn ip(&mut self, flow: Flow, ecn: u8, length: u16) -> Result<Sum, Error> {
        let [high, low] = length.to_be_bytes();
        match (flow.source, flow.destination) {
            (SocketAddr::V4(source), SocketAddr::V4(destination)) => {
                let (source, destination) = (source.ip().octets(), destination.ip().octets());
                let addresses = Sum::default().bytes(&source).bytes(&destination);
                let [total_high, total_low] = (IPV4_LEN as u16 + length).to_be_bytes();
                let mut fixed = [
                    0x45,
                    ecn,
                    total_high,
                    total_low,
                    0,
                    0,
                    DONT_FRAGMENT,
                    0,
                    HOP_LIMIT,
                    UDP,
                    0,
                    0,
                ];
                let [a, b] = addresses.bytes(&fixed).finish();
                fixed[10..].copy_from_slice(&[a, b]);
                self.push(&fixed);
                self.push(&source);
                self.push(&destination);
                Ok(addresses)
            }
            (SocketAddr::V6(source), SocketAddr::V6(destination)) => {
                let (source, destination) = (source.ip().octets(), destination.ip().octets());
                self.push(&[0x60, ecn << 4, 0, 0, high, low, UDP, HOP_LIMIT]);
                self.push(&source);
                self.push(&destination);
                Ok(Sum::default().bytes(&source).bytes(&destination))
            }
            _ => Err(Error::Families),
        }
    }

    #[inline]
    fn udp(&mut self, flow: Flow, length: u16, addresses: Sum, payload: &[u8]) {
        let [s0, s1] = flow.source.port().to_be_bytes();
        let [d0, d1] = flow.destination.port().to_be_bytes();
        let [l0, l1] = length.to_be_bytes();
        let udp = [s0, s1, d0, d1, l0, l1];
        let sum = addresses
            .word(UDP.into())
            .word(length)
            .bytes(&udp[..4])
            .bytes(&udp[4..]);
        // A checksum field of 0 means that there is no checksum (RFC 768).
        let checksum = match sum.bytes(payload).finish() {
            [0, 0] => [0xff, 0xff],
            checksum => checksum,
        };
        self.push(&udp);
        self.push(&checksum);
    }

    #[inline]
    fn push(&mut self, bytes: &[u8]) {
        self.bytes[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }
}

impl Deref for Head {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}
