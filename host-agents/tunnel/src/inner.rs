// SPDX-License-Identifier: Apache-2.0
//! The inner packet: UDP over IPv4 (RFC 791) or IPv6 (RFC 8200).

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::checksum::Sum;
use crate::{Error, Family};

pub(crate) const UDP: u8 = 17;
pub(crate) const UDP_LEN: usize = 8;
pub(crate) const IPV4_LEN: usize = 20;
pub(crate) const IPV6_LEN: usize = 40;

/// The source and destination of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Flow {
    /// Sender.
    pub source: SocketAddr,
    /// Receiver, of the same address family.
    pub destination: SocketAddr,
}

impl Flow {
    /// Return the flow of the responses.
    pub const fn reversed(self) -> Self {
        Self {
            source: self.destination,
            destination: self.source,
        }
    }
}

/// The datagram in a tunnelled packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// Addresses and ports.
    pub flow: Flow,
    /// The two ECN bits of its IP header (RFC 3168, 5).
    pub ecn: u8,
    /// The UDP payload.
    pub payload: &'a [u8],
}

impl<'a> Datagram<'a> {
    #[inline]
    pub(crate) fn parse(family: Family, packet: &'a [u8]) -> Result<Self, Error> {
        let first = *packet.first().ok_or(Error::InnerShort)?;
        match (family, first >> 4) {
            (Family::V4, 4) => Self::v4(packet),
            (Family::V6, 6) => Self::v6(packet),
            _ => Err(Error::Version),
        }
    }

    #[inline]
    fn v4(packet: &'a [u8]) -> Result<Self, Error> {
        let ip: &[u8; IPV4_LEN] = packet.first_chunk().ok_or(Error::InnerShort)?;
        let header = usize::from(ip[0] & 0x0f) * 4;
        let total = usize::from(u16::from_be_bytes([ip[2], ip[3]]));
        if header < IPV4_LEN || total < header {
            return Err(Error::Ipv4Header);
        }
        let packet = packet.get(..total).ok_or(Error::InnerShort)?;
        let (header, segment) = packet.split_at(header);
        if !Sum::default().bytes(header).is_valid() {
            return Err(Error::Ipv4Header);
        }
        // More fragments, or an offset.
        if u16::from_be_bytes([ip[6], ip[7]]) & 0x3fff != 0 {
            return Err(Error::Fragment);
        }
        let address = |at: usize| Ipv4Addr::new(ip[at], ip[at + 1], ip[at + 2], ip[at + 3]);
        let ips = (address(12).into(), address(16).into());
        Self::udp(ip[9], ips, ip[1], segment, &ip[12..])
    }

    #[inline]
    fn v6(packet: &'a [u8]) -> Result<Self, Error> {
        let (ip, rest) = packet
            .split_first_chunk::<IPV6_LEN>()
            .ok_or(Error::InnerShort)?;
        let length = usize::from(u16::from_be_bytes([ip[4], ip[5]]));
        let segment = rest.get(..length).ok_or(Error::InnerShort)?;
        let address = |at: usize| {
            let octets: [u8; 16] = ip[at..at + 16].try_into().expect("16 bytes");
            IpAddr::V6(Ipv6Addr::from(octets))
        };
        let ecn = ip[1] >> 4;
        Self::udp(ip[6], (address(8), address(24)), ecn, segment, &ip[8..])
    }

    #[inline]
    fn udp(
        protocol: u8,
        (source, destination): (IpAddr, IpAddr),
        traffic_class: u8,
        segment: &'a [u8],
        addresses: &[u8],
    ) -> Result<Self, Error> {
        const FRAGMENT_HEADER: u8 = 44;
        match protocol {
            UDP => {}
            FRAGMENT_HEADER if source.is_ipv6() => return Err(Error::Fragment),
            _ => return Err(Error::Protocol),
        }
        let (udp, payload) = segment
            .split_first_chunk::<UDP_LEN>()
            .ok_or(Error::InnerShort)?;
        let length = u16::from_be_bytes([udp[4], udp[5]]);
        // Reject jumbograms, and bytes that belong to IP but not to UDP: no agent uses UDP options.
        if usize::from(length) != segment.len() {
            return Err(Error::UdpLength);
        }
        let unchecked = udp[6..] == [0, 0];
        let pseudo = Sum::default()
            .bytes(addresses)
            .word(UDP.into())
            .word(length);
        if unchecked && source.is_ipv6() || !unchecked && !pseudo.bytes(segment).is_valid() {
            return Err(Error::UdpChecksum);
        }
        let port = |at: usize| u16::from_be_bytes([udp[at], udp[at + 1]]);
        Ok(Self {
            flow: Flow {
                source: SocketAddr::new(source, port(0)),
                destination: SocketAddr::new(destination, port(2)),
            },
            ecn: traffic_class & 0x03,
            payload,
        })
    }
}
