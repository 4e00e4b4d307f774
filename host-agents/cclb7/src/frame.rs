// SPDX-License-Identifier: Apache-2.0
//! Ethernet frames with a TCP segment, which benchmarks and tests feed to the programs.

use std::net::{IpAddr, SocketAddr};

/// Bytes of an Ethernet header.
pub const ETHERNET: usize = 14;

/// A TCP segment.
#[derive(Clone, Debug)]
pub struct Segment {
    /// Source address and port.
    pub source: SocketAddr,
    /// Destination address and port, of the same family.
    pub destination: SocketAddr,
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgment number.
    pub ack: u32,
    /// Flags: byte 13 of the header.
    pub flags: u8,
    /// Options, which [`build`] pads to whole words.
    pub options: Vec<u8>,
    /// Length of the payload in bytes.
    pub payload: usize,
}

/// SYN flag.
pub const SYN: u8 = 0x02;
/// RST flag.
pub const RST: u8 = 0x04;
/// ACK flag.
pub const ACK: u8 = 0x10;

/// Return the options that Linux puts into every segment of an established connection.
pub fn timestamps(tsval: u32, tsecr: u32) -> Vec<u8> {
    let mut options = vec![1, 1, 8, 10];
    options.extend(tsval.to_be_bytes());
    options.extend(tsecr.to_be_bytes());
    options
}

/// Return the frame of `segment`, with correct checksums.
///
/// # Panics
/// If the addresses are of different families.
pub fn build(segment: &Segment) -> Vec<u8> {
    let mut options = segment.options.clone();
    options.resize(options.len().next_multiple_of(4), 0);
    let mut tcp = Vec::new();
    tcp.extend(segment.source.port().to_be_bytes());
    tcp.extend(segment.destination.port().to_be_bytes());
    tcp.extend(segment.seq.to_be_bytes());
    tcp.extend(segment.ack.to_be_bytes());
    tcp.extend([
        (5 + options.len() as u8 / 4) << 4,
        segment.flags,
        0xff,
        0xff,
        0,
        0,
        0,
        0,
    ]);
    tcp.extend(options);
    tcp.resize(tcp.len() + segment.payload, b'x');

    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    match (segment.source.ip(), segment.destination.ip()) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            frame.extend([0x08, 0x00, 0x45, 0]);
            frame.extend((20 + tcp.len() as u16).to_be_bytes());
            frame.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
            frame.extend(source.octets());
            frame.extend(destination.octets());
            let sum = checksum(&frame[ETHERNET..], 0);
            frame[ETHERNET + 10..ETHERNET + 12].copy_from_slice(&sum.to_be_bytes());
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
            frame.extend((tcp.len() as u16).to_be_bytes());
            frame.extend([6, 64]);
            frame.extend(source.octets());
            frame.extend(destination.octets());
        }
        (source, destination) => panic!("{source} and {destination} are of different families"),
    }
    let sum = checksum(&tcp, pseudo_header(&frame, tcp.len()));
    tcp[16..18].copy_from_slice(&sum.to_be_bytes());
    frame.extend(tcp);
    frame
}

/// Return the offset of the TCP header in a frame of [`build`].
pub fn tcp_offset(frame: &[u8]) -> usize {
    if frame[12] == 0x08 {
        ETHERNET + 20
    } else {
        ETHERNET + 40
    }
}

/// Return whether the TCP checksum of a frame of [`build`] is still correct.
pub fn is_checksum_valid(frame: &[u8]) -> bool {
    let tcp = &frame[tcp_offset(frame)..];
    checksum(tcp, pseudo_header(frame, tcp.len())) == 0
}

/// Return the big-endian 32-bit word at `offset`.
pub fn word(frame: &[u8], offset: usize) -> u32 {
    u32::from_be_bytes(frame[offset..offset + 4].try_into().expect("4 bytes"))
}

fn pseudo_header(frame: &[u8], length: usize) -> u32 {
    let end = tcp_offset(frame);
    let addresses = if end == ETHERNET + 20 {
        end - 8
    } else {
        end - 32
    };
    sum_words(&frame[addresses..end]) + 6 + length as u32
}

fn checksum(bytes: &[u8], start: u32) -> u16 {
    let mut sum = sum_words(bytes) + start;
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

fn sum_words(bytes: &[u8]) -> u32 {
    bytes
        .chunks(2)
        .map(|w| u32::from(w[0]) << 8 | w.get(1).map_or(0, |b| u32::from(*b)))
        .sum()
}
