// SPDX-License-Identifier: Apache-2.0
//! Ethernet and IP headers of a segment or datagram.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use frontage_transport::tcp::Ecn;

use super::checksum::{fold, pseudo_header, sum};
use super::{ETHERNET, Endpoints, Fault};

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const IPV4_HEADER: usize = 20;
const IPV6_HEADER: usize = 40;
const HOP_LIMIT: u8 = 64;
const DONT_FRAGMENT: u8 = 0x40;

/// Maximum length of the headers.
pub const MAX_LENGTH: usize = ETHERNET + IPV6_HEADER;

/// Writes the headers of a payload of `length` bytes. Returns their length and the sum of the pseudo-header.
pub fn write(
    bytes: &mut [u8],
    endpoints: &Endpoints,
    ecn: Ecn,
    protocol: u8,
    length: usize,
) -> (usize, u64) {
    bytes[..6].copy_from_slice(&endpoints.to_mac);
    bytes[6..12].copy_from_slice(&endpoints.from_mac);
    match (endpoints.from.ip(), endpoints.to.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            bytes[12..ETHERNET].copy_from_slice(&IPV4.to_be_bytes());
            let at = ETHERNET + IPV4_HEADER;
            let ip = &mut bytes[ETHERNET..at];
            (ip[0], ip[1]) = (0x45, bits(ecn));
            ip[2..4].copy_from_slice(&((IPV4_HEADER + length) as u16).to_be_bytes());
            (ip[6], ip[8], ip[9]) = (DONT_FRAGMENT, HOP_LIMIT, protocol);
            ip[12..16].copy_from_slice(&from.octets());
            ip[16..].copy_from_slice(&to.octets());
            let checksum = fold(sum(ip));
            ip[10..12].copy_from_slice(&checksum);
            (at, pseudo_header(&ip[12..], protocol, length))
        }
        (from, to) => {
            bytes[12..ETHERNET].copy_from_slice(&IPV6.to_be_bytes());
            let at = ETHERNET + IPV6_HEADER;
            let ip = &mut bytes[ETHERNET..at];
            (ip[0], ip[1]) = (0x60, bits(ecn) << 4);
            ip[4..6].copy_from_slice(&(length as u16).to_be_bytes());
            (ip[6], ip[7]) = (protocol, HOP_LIMIT);
            ip[8..24].copy_from_slice(&octets(from));
            ip[24..].copy_from_slice(&octets(to));
            (at, pseudo_header(&ip[8..], protocol, length))
        }
    }
}

fn octets(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    }
}

/// A parsed IP packet.
pub struct Packet<'a> {
    pub from: IpAddr,
    pub to: IpAddr,
    pub ecn: Ecn,
    pub protocol: u8,
    /// Sum of the pseudo-header.
    pub pseudo: u64,
    pub payload: &'a [u8],
}

/// Parses the packet after an Ethernet header.
pub fn read<'a>(ethernet: &[u8; ETHERNET], ip: &'a [u8]) -> Result<Packet<'a>, Fault> {
    match u16::from_be_bytes([ethernet[12], ethernet[13]]) {
        IPV4 => ipv4(ip),
        IPV6 => ipv6(ip),
        _ => Err(Fault::OtherProtocol),
    }
}

fn ipv4(ip: &[u8]) -> Result<Packet<'_>, Fault> {
    let header = ip.first_chunk::<IPV4_HEADER>().ok_or(Fault::Malformed)?;
    if header[0] != 0x45 {
        return Err(Fault::OtherProtocol);
    }
    if fold(sum(header)) != [0, 0] {
        return Err(Fault::Checksum);
    }
    let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
    let payload = ip.get(IPV4_HEADER..length).ok_or(Fault::Malformed)?;
    let address =
        |at: usize| Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3]);
    Ok(Packet {
        from: address(12).into(),
        to: address(16).into(),
        ecn: ecn(header[1]),
        protocol: header[9],
        pseudo: pseudo_header(&header[12..], header[9], payload.len()),
        payload,
    })
}

fn ipv6(ip: &[u8]) -> Result<Packet<'_>, Fault> {
    let header = ip.first_chunk::<IPV6_HEADER>().ok_or(Fault::Malformed)?;
    if header[0] >> 4 != 6 {
        return Err(Fault::OtherProtocol);
    }
    let length = usize::from(u16::from_be_bytes([header[4], header[5]]));
    let payload = ip
        .get(IPV6_HEADER..IPV6_HEADER + length)
        .ok_or(Fault::Malformed)?;
    let address = |at: usize| Ipv6Addr::from(std::array::from_fn::<u8, 16, _>(|i| header[at + i]));
    Ok(Packet {
        from: address(8).into(),
        to: address(24).into(),
        ecn: ecn(header[1] >> 4),
        protocol: header[6],
        pseudo: pseudo_header(&header[8..], header[6], length),
        payload,
    })
}

fn bits(ecn: Ecn) -> u8 {
    match ecn {
        Ecn::NotEct => 0,
        Ecn::Ect0 => 2,
        Ecn::Ce => 3,
    }
}

fn ecn(bits: u8) -> Ecn {
    match bits & 3 {
        0 => Ecn::NotEct,
        3 => Ecn::Ce,
        _ => Ecn::Ect0,
    }
}
