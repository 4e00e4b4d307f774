// SPDX-License-Identifier: Apache-2.0
//! `programs/tofino_checksums.p4`: the checksums of a packet whose address changes.

use super::common::through;
use super::{compiled, ports};

fn sum(data: &[u8]) -> u16 {
    let word = |w: &[u8]| u32::from(w[0]) << 8 | u32::from(w.get(1).copied().unwrap_or(0));
    let mut sum: u32 = data.chunks(2).map(word).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// The sum over the pseudo-header and the segment, as both protocols cover them.
fn covered(packet: &[u8]) -> u16 {
    let (ipv4, segment) = packet.split_at(20);
    let length = segment.len() as u16;
    let pseudo = [&ipv4[12..20], &[0, ipv4[9]], &length.to_be_bytes()].concat();
    sum(&[pseudo, segment.to_vec()].concat())
}

/// A packet with right checksums; the one of the segment is at `at`.
fn packet(protocol: u8, header: &[u8], at: usize, payload: &[u8]) -> Vec<u8> {
    let mut p = vec![0x45, 0, 0, 60, 0x12, 0x34, 0, 0, 64, protocol, 0, 0];
    p.extend([192, 168, 1, 2, 198, 51, 100, 7]);
    let checksum = !sum(&p);
    p[10..12].copy_from_slice(&checksum.to_be_bytes());
    p.extend(header);
    p.extend(payload);
    let checksum = !covered(&p);
    p[20 + at..22 + at].copy_from_slice(&checksum.to_be_bytes());
    assert_eq!((sum(&p[..20]), covered(&p)), (0xffff, 0xffff));
    p
}

#[test]
fn checksums_stay_right_when_an_address_changes() {
    let mut p = compiled("tofino_checksums");
    let tcp = [&[4, 210, 0, 80][..], &[7; 12], &[0; 4]].concat();
    let udp = [4, 210, 0, 53, 0, 17, 0, 0];
    let payloads: [&[u8]; 3] = [b"", b"some bytes", b"an odd number of bytes!"];
    for payload in payloads {
        for (protocol, header, at) in [(6, &tcp[..], 16), (17, &udp, 6)] {
            let frame = packet(protocol, header, at, payload);
            let sent = through(&mut p, 7, &frame, 0).swap_remove(0).1;
            assert_eq!(sent[12..16], [10, 1, 2, 3]);
            assert_eq!(
                (sum(&sent[..20]), covered(&sent)),
                (0xffff, 0xffff),
                "{protocol}"
            );
        }
    }
}

#[test]
fn packet_with_wrong_header_checksum_is_dropped() {
    let mut p = compiled("tofino_checksums");
    let mut frame = packet(17, &[4, 210, 0, 53, 0, 8, 0, 0], 6, b"");
    assert_eq!(ports(&mut p, &frame), [1]);
    frame[8] -= 1;
    assert!(ports(&mut p, &frame).is_empty());
}
