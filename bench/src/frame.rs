// SPDX-License-Identifier: Apache-2.0
//! Ethernet frames with TCP or UDP over IPv4, or UDP over IPv6.

use std::net::{SocketAddrV4, SocketAddrV6};

const IPV4: usize = 14;
const L4: usize = IPV4 + 20;
const PROTO_TCP: u8 = 6;
const PROTO_UDP: u8 = 17;

pub const SYN: u8 = 0x02;
pub const ACK: u8 = 0x10;

/// Addresses and TTL of an IPv4 packet.
#[derive(Clone, Copy)]
pub struct Header {
    pub macs: Macs,
    pub src: SocketAddrV4,
    pub dst: SocketAddrV4,
    pub ttl: u8,
}

#[derive(Clone, Copy)]
pub struct Macs {
    pub src: [u8; 6],
    pub dst: [u8; 6],
}

/// All other fields of a TCP segment. Its timestamp option is at the same offset as Linux's.
#[derive(Clone, Copy)]
pub struct Segment {
    pub flags: u8,
    /// Whether TSval contains a dynamic cookie.
    pub ck: bool,
    pub tsval: u32,
    pub tsecr: u32,
    /// Bytes of payload.
    pub payload: usize,
}

/// Builds a TCP segment with correct checksums.
pub fn tcp(header: &Header, segment: &Segment) -> Vec<u8> {
    let mut options = Vec::with_capacity(20);
    if segment.flags & SYN != 0 {
        options.extend([2, 4, 0x05, 0xb4, 4, 2]); // maximum segment size 1460, SACK permitted
    } else {
        options.extend([1, 1]);
    }
    options.extend([8, 10]);
    options.extend(segment.tsval.to_be_bytes());
    options.extend(segment.tsecr.to_be_bytes());
    if segment.flags & SYN != 0 {
        options.extend([1, 3, 3, 7]); // window scale 7
    }
    let tcp_header_len = 20 + options.len();
    let mut l4 = vec![0; tcp_header_len + segment.payload];
    l4[4..8].copy_from_slice(&0x1234_5678_u32.to_be_bytes());
    l4[12] = (tcp_header_len as u8 / 4) << 4
        | if segment.ck {
            frontage_cookie::tcp::CK
        } else {
            0
        };
    l4[13] = segment.flags;
    l4[14..16].copy_from_slice(&0x8000_u16.to_be_bytes());
    l4[20..tcp_header_len].copy_from_slice(&options);
    frame(header, PROTO_TCP, 16, l4)
}

/// Builds a UDP datagram in a frame of `len` bytes with correct checksums.
pub fn udp(header: &Header, len: usize) -> Vec<u8> {
    let mut l4 = vec![0; len - L4];
    let udp_len = l4.len() as u16;
    l4[4..6].copy_from_slice(&udp_len.to_be_bytes());
    frame(header, PROTO_UDP, 6, l4)
}

/// Builds a frame of `len` bytes whose layer-4 header contains only the ports and a checksum.
pub fn any(header: &Header, protocol: u8, len: usize) -> Vec<u8> {
    frame(header, protocol, 6, vec![0; len - L4])
}

/// Builds a UDP datagram over IPv6 with correct checksum.
pub fn udp6(
    macs: Macs,
    src: SocketAddrV6,
    dst: SocketAddrV6,
    hop_limit: u8,
    payload: &[u8],
) -> Vec<u8> {
    let length = 8 + payload.len() as u16;
    let mut l4 = Vec::with_capacity(usize::from(length));
    for field in [src.port(), dst.port(), length, 0] {
        l4.extend(field.to_be_bytes());
    }
    l4.extend(payload);
    let (from, to) = (src.ip().octets(), dst.ip().octets());
    let pseudo = sum(&from) + sum(&to) + u64::from(PROTO_UDP) + u64::from(length);
    let checksum = fold(pseudo + sum(&l4));
    l4[6..8].copy_from_slice(&checksum.to_be_bytes());

    let mut frame = Vec::with_capacity(54 + l4.len());
    frame.extend(macs.dst);
    frame.extend(macs.src);
    frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
    frame.extend(length.to_be_bytes());
    frame.extend([PROTO_UDP, hop_limit]);
    frame.extend(from);
    frame.extend(to);
    frame.extend(l4);
    frame
}

fn frame(header: &Header, protocol: u8, checksum_at: usize, mut l4: Vec<u8>) -> Vec<u8> {
    l4[0..2].copy_from_slice(&header.src.port().to_be_bytes());
    l4[2..4].copy_from_slice(&header.dst.port().to_be_bytes());
    let (src, dst) = (header.src.ip().octets(), header.dst.ip().octets());
    let pseudo = sum(&src) + sum(&dst) + u64::from(protocol) + l4.len() as u64;
    let checksum = fold(pseudo + sum(&l4));
    l4[checksum_at..checksum_at + 2].copy_from_slice(&checksum.to_be_bytes());

    let mut frame = Vec::with_capacity(L4 + l4.len());
    frame.extend(header.macs.dst);
    frame.extend(header.macs.src);
    frame.extend([0x08, 0x00, 0x45, 0]);
    frame.extend((20 + l4.len() as u16).to_be_bytes());
    frame.extend([0, 0, 0x40, 0, header.ttl, protocol, 0, 0]);
    frame.extend(src);
    frame.extend(dst);
    let checksum = fold(sum(&frame[IPV4..]));
    frame[IPV4 + 10..IPV4 + 12].copy_from_slice(&checksum.to_be_bytes());
    frame.extend(l4);
    frame
}

fn sum(bytes: &[u8]) -> u64 {
    bytes
        .chunks(2)
        .map(|c| u64::from(c[0]) << 8 | u64::from(c.get(1).copied().unwrap_or(0)))
        .sum()
}

fn fold(mut sum: u64) -> u16 {
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}
