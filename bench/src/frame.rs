// SPDX-License-Identifier: Apache-2.0
//! Ethernet frames with IPv4, and TCP or UDP in them, or with IPv6 and UDP.

use std::net::{SocketAddrV4, SocketAddrV6};

const IPV4: usize = 14;
const L4: usize = IPV4 + 20;
const PROTO_TCP: u8 = 6;
const PROTO_UDP: u8 = 17;

pub const SYN: u8 = 0x02;
pub const ACK: u8 = 0x10;

/// Who sends to whom.
#[derive(Clone, Copy)]
pub struct Way {
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

/// What a TCP segment says besides. Its timestamps stand where Linux puts them.
#[derive(Clone, Copy)]
pub struct Segment {
    pub flags: u8,
    /// TSval holds a dynamic cookie.
    pub ck: bool,
    pub tsval: u32,
    pub tsecr: u32,
    /// Bytes of payload.
    pub payload: usize,
}

/// A TCP segment with right checksums.
pub fn tcp(way: &Way, segment: &Segment) -> Vec<u8> {
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
    let header = 20 + options.len();
    let mut l4 = vec![0; header + segment.payload];
    l4[4..8].copy_from_slice(&0x1234_5678_u32.to_be_bytes());
    l4[12] = (header as u8 / 4) << 4
        | if segment.ck {
            frontage_cookie::tcp::CK
        } else {
            0
        };
    l4[13] = segment.flags;
    l4[14..16].copy_from_slice(&0x8000_u16.to_be_bytes());
    l4[20..header].copy_from_slice(&options);
    frame(way, PROTO_TCP, 16, l4)
}

/// A UDP datagram in a frame of `len` bytes, with right checksums.
pub fn udp(way: &Way, len: usize) -> Vec<u8> {
    let mut l4 = vec![0; len - L4];
    let udp_len = l4.len() as u16;
    l4[4..6].copy_from_slice(&udp_len.to_be_bytes());
    frame(way, PROTO_UDP, 6, l4)
}

/// A frame of `len` bytes in which only the ports of this protocol are set.
pub fn any(way: &Way, protocol: u8, len: usize) -> Vec<u8> {
    frame(way, protocol, 6, vec![0; len - L4])
}

/// A UDP datagram over IPv6, with the right checksum.
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

fn frame(way: &Way, protocol: u8, checksum_at: usize, mut l4: Vec<u8>) -> Vec<u8> {
    l4[0..2].copy_from_slice(&way.src.port().to_be_bytes());
    l4[2..4].copy_from_slice(&way.dst.port().to_be_bytes());
    let (src, dst) = (way.src.ip().octets(), way.dst.ip().octets());
    let pseudo = sum(&src) + sum(&dst) + u64::from(protocol) + l4.len() as u64;
    let checksum = fold(pseudo + sum(&l4));
    l4[checksum_at..checksum_at + 2].copy_from_slice(&checksum.to_be_bytes());

    let mut frame = Vec::with_capacity(L4 + l4.len());
    frame.extend(way.macs.dst);
    frame.extend(way.macs.src);
    frame.extend([0x08, 0x00, 0x45, 0]);
    frame.extend((20 + l4.len() as u16).to_be_bytes());
    frame.extend([0, 0, 0x40, 0, way.ttl, protocol, 0, 0]);
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
