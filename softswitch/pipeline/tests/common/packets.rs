// SPDX-License-Identifier: Apache-2.0
//! Random Ethernet, IPv4, IPv6, ARP, ICMP and TCP packets, some of them damaged.

use softswitch_random::Rng;

pub const MACS: [u64; 3] = [0x0200_0000_0001, 0x0200_0000_0002, 0xffff_ffff_ffff];
pub const ADDRESSES: [u32; 4] = [0x0a00_0001, 0x0a00_0002, 0xcb00_710a, 0x0a01_0203];
pub const ADDRESSES_6: [u128; 3] = [
    0x2001_0db8_0000_0000_0000_0000_0000_0001,
    0x2001_0db8_0000_0000_0000_0000_0000_0002,
    0xfd00_0000_0000_0000_0000_0000_0000_0001,
];
pub const L4_PORTS: [u16; 3] = [80, 443, 40_000];

fn tcp(rng: &mut Rng) -> Vec<u8> {
    let options: &[u8] = match rng.below(6) {
        0 => &[],
        1 => &[1, 1, 8, 10, 0, 0, 1, 2, 0, 0, 3, 4],
        2 => &[
            2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 7,
        ],
        3 => &[1, 1, 4, 2, 1, 3, 3, 7, 1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8],
        4 => &[1, 1, 5, 10, 1, 2, 3, 4, 5, 6, 7, 8],
        _ => &[3, 3, 0, 1, 2, 8, 0, 0, 0, 0, 0, 0],
    };
    let mut f = Vec::new();
    f.extend(rng.pick(&L4_PORTS).to_be_bytes());
    f.extend(rng.pick(&L4_PORTS).to_be_bytes());
    f.extend(rng.next().to_be_bytes());
    f.push((((20 + options.len()) / 4) << 4) as u8 | if rng.one_in(2) { 8 } else { 0 });
    f.push(rng.pick(&[0x02, 0x10, 0x12, 0x11, 0x04]));
    f.extend((rng.next() as u32).to_be_bytes());
    f.extend([0, 0]);
    f.extend(options);
    f.extend(vec![7; rng.below(20)]);
    f
}

fn ipv4(rng: &mut Rng) -> Vec<u8> {
    let options = if rng.one_in(6) { rng.below(11) } else { 0 };
    let l4 = if rng.one_in(5) {
        vec![8, 0, 1, 2, 3, 4]
    } else {
        tcp(rng)
    };
    let len = 20 + options * 4 + l4.len();
    let mut f = vec![0x45 + options as u8, 0];
    f.extend((len as u16).to_be_bytes());
    f.extend([0, 1, if rng.one_in(6) { 0x20 } else { 0 }, 0, 64, 6, 0, 0]);
    f.extend(rng.pick(&ADDRESSES).to_be_bytes());
    f.extend(rng.pick(&ADDRESSES).to_be_bytes());
    f.extend(vec![1; options * 4]);
    if rng.one_in(8) {
        f[9] = 1;
    }
    let sum: u32 = f
        .chunks(2)
        .map(|w| u32::from(w[0]) << 8 | u32::from(w[1]))
        .sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    if !rng.one_in(8) {
        f[10..12].copy_from_slice(&sum.to_be_bytes());
    }
    f.extend(l4);
    f
}

fn ipv6(rng: &mut Rng) -> Vec<u8> {
    let (next, l4) = match rng.below(4) {
        0 => (
            58,
            [
                &[135, 0, 0, 0, 0, 0, 0, 0][..],
                &rng.pick(&ADDRESSES_6).to_be_bytes(),
                &[1, 1, 2, 0, 0, 0, 0, 1],
            ]
            .concat(),
        ),
        1 => (0, [&[6, 1][..], &[0; 14], &tcp(rng)].concat()),
        _ => (6, tcp(rng)),
    };
    let mut f = vec![0x60, 0, 0, 0];
    f.extend((l4.len() as u16).to_be_bytes());
    f.extend([next, if rng.one_in(6) { 1 } else { 64 }]);
    f.extend(rng.pick(&ADDRESSES_6).to_be_bytes());
    f.extend(rng.pick(&ADDRESSES_6).to_be_bytes());
    f.extend(l4);
    f
}

fn arp(rng: &mut Rng) -> Vec<u8> {
    let mut f = vec![0, 1, 8, 0, 6, 4, 0, 1];
    f.extend([2, 0, 0, 0, 0, 1]);
    f.extend(rng.pick(&ADDRESSES).to_be_bytes());
    f.extend([0; 6]);
    f.extend(rng.pick(&ADDRESSES).to_be_bytes());
    f
}

/// A packet.
pub fn packet(rng: &mut Rng) -> Vec<u8> {
    let mut f = rng.pick(&MACS).to_be_bytes()[2..].to_vec();
    f.extend(&rng.pick(&MACS).to_be_bytes()[2..]);
    let (kind, rest) = match rng.below(8) {
        0 => (0x0806_u16, arp(rng)),
        1..=3 => (0x86dd, ipv6(rng)),
        4 => (rng.next() as u16, vec![3; rng.below(40)]),
        _ => (0x0800, ipv4(rng)),
    };
    f.extend(kind.to_be_bytes());
    f.extend(rest);
    for _ in 0..rng.below(8).saturating_sub(5) {
        let at = rng.below(f.len());
        f[at] ^= 1 << rng.below(8);
    }
    if rng.one_in(10) {
        f.truncate(rng.below(f.len() + 1));
    }
    f
}
