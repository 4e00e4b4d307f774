//! From segments to frames.

use std::net::IpAddr;

use frontage_cookie::tcp::CK;
use frontage_transport::tcp::{Ecn, Flags, Segment};

use super::checksum::{fold, pseudo_header, sum};
use super::{ETHERNET, IPV4, IPV4_HEADER, IPV6, IPV6_HEADER, TCP, TCP_HEADER, Way, option};

const HOP_LIMIT: u8 = 64;
const DONT_FRAGMENT: u8 = 0x40;
/// With the options that go into 40 bytes.
const MOST_HEADERS: usize = ETHERNET + IPV6_HEADER + TCP_HEADER + 40;

/// Overwrites a buffer with the frame of a segment, whose payload is zeros. `ck` says that TSval holds a dynamic cookie.
pub fn write(buffer: &mut Vec<u8>, way: &Way, segment: &Segment, ck: bool) {
    let mut bytes = [0; MOST_HEADERS];
    let header = segment.header_length() as usize;
    let length = header + segment.len as usize;
    bytes[..6].copy_from_slice(&way.to_mac);
    bytes[6..12].copy_from_slice(&way.from_mac);
    let (at, pseudo) = match (way.from.ip(), way.to.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            bytes[12..ETHERNET].copy_from_slice(&IPV4.to_be_bytes());
            let at = ETHERNET + IPV4_HEADER;
            let ip = &mut bytes[ETHERNET..at];
            (ip[0], ip[1]) = (0x45, ecn(segment.ecn));
            ip[2..4].copy_from_slice(&((IPV4_HEADER + length) as u16).to_be_bytes());
            (ip[6], ip[8], ip[9]) = (DONT_FRAGMENT, HOP_LIMIT, TCP);
            ip[12..16].copy_from_slice(&from.octets());
            ip[16..].copy_from_slice(&to.octets());
            let checksum = fold(sum(ip));
            ip[10..12].copy_from_slice(&checksum);
            (at, pseudo_header(&ip[12..], TCP, length))
        }
        (from, to) => {
            bytes[12..ETHERNET].copy_from_slice(&IPV6.to_be_bytes());
            let at = ETHERNET + IPV6_HEADER;
            let ip = &mut bytes[ETHERNET..at];
            (ip[0], ip[1]) = (0x60, ecn(segment.ecn) << 4);
            ip[4..6].copy_from_slice(&(length as u16).to_be_bytes());
            (ip[6], ip[7]) = (TCP, HOP_LIMIT);
            ip[8..24].copy_from_slice(&octets(from));
            ip[24..].copy_from_slice(&octets(to));
            (at, pseudo_header(&ip[8..], TCP, length))
        }
    };
    let tcp = &mut bytes[at..at + header];
    tcp[..2].copy_from_slice(&way.from.port().to_be_bytes());
    tcp[2..4].copy_from_slice(&way.to.port().to_be_bytes());
    tcp[4..8].copy_from_slice(&segment.seq.to_be_bytes());
    tcp[8..12].copy_from_slice(&segment.ack.to_be_bytes());
    tcp[12] = (header as u8 / 4) << 4 | if ck { CK } else { 0 };
    tcp[13] = segment.flags.0;
    tcp[14..16].copy_from_slice(&segment.window.to_be_bytes());
    write_options(&mut tcp[TCP_HEADER..], segment);
    let checksum = fold(pseudo + sum(tcp));
    tcp[16..18].copy_from_slice(&checksum);
    buffer.clear();
    buffer.extend_from_slice(&bytes[..at + header]);
    buffer.resize(at + length, 0);
}

fn ecn(ecn: Ecn) -> u8 {
    match ecn {
        Ecn::NotEct => 0,
        Ecn::Ect0 => 2,
        Ecn::Ce => 3,
    }
}

fn octets(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    }
}

fn write_options(mut room: &mut [u8], segment: &Segment) {
    let mut put = |bytes: &[u8]| {
        let (here, rest) = std::mem::take(&mut room).split_at_mut(bytes.len());
        here.copy_from_slice(bytes);
        room = rest;
    };
    if let Some(mss) = segment.mss {
        let [high, low] = mss.to_be_bytes();
        put(&[option::MSS, 4, high, low]);
    }
    let sack_permitted = segment.sack_permitted && segment.flags.has(Flags::SYN);
    match (sack_permitted, segment.ts.is_some()) {
        (true, true) => put(&[option::SACK_PERMITTED, 2]),
        (true, false) => put(&[option::NOP, option::NOP, option::SACK_PERMITTED, 2]),
        (false, true) => put(&[option::NOP, option::NOP]),
        (false, false) => {}
    }
    if let Some(ts) = segment.ts {
        put(&[option::TIMESTAMPS, 10]);
        put(&ts.val.to_be_bytes());
        put(&ts.ecr.to_be_bytes());
    }
    if let Some(shift) = segment.window_scale {
        put(&[option::NOP, option::WINDOW_SCALE, 3, shift]);
    }
    if !segment.sack.is_empty() {
        put(&[
            option::NOP,
            option::NOP,
            option::SACK,
            2 + 8 * segment.sack.len() as u8,
        ]);
        for (left, right) in segment.sack.iter() {
            put(&left.to_be_bytes());
            put(&right.to_be_bytes());
        }
    }
}
