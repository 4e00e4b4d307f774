// SPDX-License-Identifier: Apache-2.0
//! Tests of the codec: round trips, byte sequences from the RFCs, and damaged packets.

use std::net::SocketAddr;
use std::num::NonZeroU8;

use frontage_tunnel::{Encapsulation, Error, Flow, Head, decode};
use proptest::prelude::*;

const ORIGIN: NonZeroU8 = NonZeroU8::new(7).unwrap();

fn flow(source: &str, destination: &str) -> Flow {
    Flow {
        source: source.parse().unwrap(),
        destination: destination.parse().unwrap(),
    }
}

fn tunnelled(encapsulation: Encapsulation, flow: Flow, payload: &[u8]) -> Vec<u8> {
    let head = Head::new(encapsulation, ORIGIN, flow, 1, payload).unwrap();
    [&head, payload].concat()
}

fn v4() -> Flow {
    flow("198.51.100.9:40000", "203.0.113.1:443")
}

fn v6() -> Flow {
    flow("[2001:db8:c1::9]:40000", "[2001:db8:a::1]:443")
}

#[test]
fn vxlan_header_of_ipv4_matches_the_rfcs() {
    #[rustfmt::skip]
    let expected = [
        0x08, 0, 0, 0, 0, 0, 7, 0, // I, VNI
        2, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0x08, 0x00,
        0x45, 0x01, 0, 31, 0, 0, 0x40, 0, 64, 17, 0xd4, 0x8e, 198, 51, 100, 9, 203, 0, 113, 1,
        0x9c, 0x40, 0x01, 0xbb, 0, 11, 0x37, 0x3b, b'a', b'b', b'c',
    ];
    assert_eq!(tunnelled(Encapsulation::Vxlan, v4(), b"abc"), expected);
}

#[test]
fn gre_header_of_ipv6_matches_the_rfcs() {
    #[rustfmt::skip]
    let expected = [
        0x20, 0, 0x86, 0xdd, 0, 0, 0, 7, // K, protocol type, key
        0x60, 0x10, 0, 0, 0, 8, 17, 64,
        0x20, 0x01, 0x0d, 0xb8, 0, 0xc1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9,
        0x20, 0x01, 0x0d, 0xb8, 0, 0x0a, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,
        0x9c, 0x40, 0x01, 0xbb, 0, 8, 0x05, 0x9c,
    ];
    assert_eq!(tunnelled(Encapsulation::Gre, v6(), b""), expected);
}

/// Apply `damage` to a valid packet, and return the codec's error.
fn decode_damaged(
    encapsulation: Encapsulation,
    flow: Flow,
    damage: impl FnOnce(&mut Vec<u8>),
) -> Error {
    let mut bytes = tunnelled(encapsulation, flow, b"payload");
    damage(&mut bytes);
    decode(encapsulation, &bytes).expect_err("damaged")
}

#[test]
fn each_kind_of_damage_has_its_own_error() {
    use Encapsulation::{Gre, Vxlan};
    type Damage = fn(&mut Vec<u8>);
    let cases: [(Encapsulation, Flow, Damage, Error); 24] = [
        (Vxlan, v4(), |b| b.truncate(21), Error::TunnelShort),
        (Gre, v4(), |b| b.truncate(7), Error::TunnelShort),
        (Gre, v4(), |b| b.truncate(3), Error::TunnelShort),
        (Vxlan, v4(), |b| b[0] = 0xf7, Error::VniAbsent),
        (Gre, v4(), |b| b[1] = 1, Error::GreVersion),
        (Gre, v4(), |b| b[0] |= 0x40, Error::GreVersion),
        (Gre, v4(), |b| b[0] = 0, Error::KeyAbsent),
        (Gre, v4(), |b| b[0] |= 0x80, Error::GreChecksum),
        (Vxlan, v4(), |b| b[6] = 0, Error::Origin),
        (Vxlan, v4(), |b| b[5] = 1, Error::Origin),
        (Gre, v4(), |b| b[4] = 1, Error::Origin),
        (Vxlan, v4(), |b| b[20] = 0x81, Error::EtherType),
        (Gre, v4(), |b| b[2] = 0x65, Error::EtherType),
        (Vxlan, v4(), |b| b[22] = 0x65, Error::Version),
        (Vxlan, v6(), |b| b[22] = 0x40, Error::Version),
        (Vxlan, v4(), |b| b.truncate(22), Error::InnerShort),
        (Vxlan, v6(), |b| b.truncate(22 + 40 + 14), Error::InnerShort),
        (Vxlan, v4(), |b| b[22] = 0x44, Error::Ipv4Header),
        (Vxlan, v4(), |b| b[30] ^= 1, Error::Ipv4Header),
        (Gre, v6(), |b| b[8 + 6] = 44, Error::Fragment),
        (Gre, v6(), |b| b[8 + 6] = 6, Error::Protocol),
        (Gre, v6(), |b| b[8 + 40 + 5] -= 1, Error::UdpLength),
        (
            Gre,
            v6(),
            |b| *b.last_mut().unwrap() ^= 1,
            Error::UdpChecksum,
        ),
        (Gre, v6(), |b| b[8 + 46..8 + 48].fill(0), Error::UdpChecksum),
    ];
    for (n, (encapsulation, flow, damage, expected)) in cases.into_iter().enumerate() {
        assert_eq!(
            decode_damaged(encapsulation, flow, damage),
            expected,
            "case {n}"
        );
    }
}

#[test]
fn ipv4_fragment_is_rejected() {
    let refused = decode_damaged(Encapsulation::Gre, v4(), |b| {
        // Set the more-fragments flag, and update the header checksum (RFC 1624).
        b[8 + 6] |= 0x20;
        let checksum = u16::from_be_bytes([b[18], b[19]]) - 0x2000;
        b[18..20].copy_from_slice(&checksum.to_be_bytes());
    });
    assert_eq!(refused, Error::Fragment);
}

#[test]
fn ipv4_packet_without_udp_checksum_is_decoded() {
    let mut bytes = tunnelled(Encapsulation::Gre, v4(), b"payload");
    bytes[8 + 26..8 + 28].fill(0);
    *bytes.last_mut().unwrap() ^= 1;
    let inner = decode(Encapsulation::Gre, &bytes).unwrap().inner;
    assert_eq!(inner.payload, b"payloae");
}

#[test]
fn gre_packet_with_checksum_and_sequence_number_is_decoded() {
    let plain = tunnelled(Encapsulation::Gre, v4(), b"payload!");
    let mut bytes = [
        &plain[..4],
        &[0; 4],
        &plain[4..8],
        &[0, 0, 0, 1],
        &plain[8..],
    ]
    .concat();
    bytes[0] |= 0x90;
    let sum: u32 = bytes
        .chunks(2)
        .map(|w| u32::from(w[0]) << 8 | u32::from(w[1]))
        .sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    let checksum = !((folded & 0xffff) + (folded >> 16)) as u16;
    bytes[4..6].copy_from_slice(&checksum.to_be_bytes());
    assert_eq!(
        decode(Encapsulation::Gre, &bytes),
        decode(Encapsulation::Gre, &plain)
    );
}

#[test]
fn padding_after_the_inner_packet_is_ignored() {
    for flow in [v4(), v6()] {
        let mut bytes = tunnelled(Encapsulation::Vxlan, flow, b"abc");
        bytes.extend([0; 9]);
        let inner = decode(Encapsulation::Vxlan, &bytes).unwrap().inner;
        assert_eq!(inner.payload, b"abc");
    }
}

#[test]
fn mixed_families_and_oversized_payloads_are_rejected() {
    let mixed = flow("198.51.100.9:1", "[2001:db8::1]:2");
    let head = |flow, payload: &[u8]| {
        Head::new(Encapsulation::Vxlan, ORIGIN, flow, 0, payload).map(|head| head.len())
    };
    assert_eq!(head(mixed, b""), Err(Error::Families));
    assert_eq!(head(v4(), &[0; 65_507]), Ok(22 + 28));
    assert_eq!(head(v4(), &[0; 65_508]), Err(Error::TooLong));
}

#[test]
fn error_names_are_unique_and_complete() {
    let mut names: Vec<_> = Error::ALL.iter().map(|e| e.name()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), Error::ALL.len());
    assert!(Error::ALL.iter().enumerate().all(|(n, e)| *e as usize == n));
}

fn any_flow() -> impl Strategy<Value = Flow> {
    let v4 = any::<([u8; 4], u16, [u8; 4], u16)>().prop_map(|(a, p, b, q)| Flow {
        source: SocketAddr::from((a, p)),
        destination: SocketAddr::from((b, q)),
    });
    let v6 = any::<([u8; 16], u16, [u8; 16], u16)>().prop_map(|(a, p, b, q)| Flow {
        source: SocketAddr::from((a, p)),
        destination: SocketAddr::from((b, q)),
    });
    prop_oneof![v4, v6]
}

fn any_encapsulation() -> impl Strategy<Value = Encapsulation> {
    prop_oneof![Just(Encapsulation::Vxlan), Just(Encapsulation::Gre)]
}

proptest! {
    #[test]
    fn packets_survive_a_round_trip(
        encapsulation in any_encapsulation(),
        origin in any::<NonZeroU8>(),
        flow in any_flow(),
        ecn in 0..4_u8,
        payload in prop::collection::vec(any::<u8>(), 0..1500),
    ) {
        let head = Head::new(encapsulation, origin, flow, ecn, &payload).unwrap();
        let bytes = [&head, payload.as_slice()].concat();
        let read = decode(encapsulation, &bytes).unwrap();
        prop_assert_eq!(read.origin, origin);
        prop_assert_eq!((read.inner.flow, read.inner.ecn), (flow, ecn));
        prop_assert_eq!(read.inner.payload, payload);
    }

    #[test]
    fn change_of_any_byte_is_detected(
        encapsulation in any_encapsulation(),
        flow in any_flow(),
        payload in prop::collection::vec(any::<u8>(), 0..64),
        at in any::<prop::sample::Index>(),
        flip in 1..=255_u8,
    ) {
        let sent = tunnelled(encapsulation, flow, &payload);
        let mut bytes = sent.clone();
        let at = at.index(bytes.len());
        bytes[at] ^= flip;
        if let (Ok(read), Ok(meant)) = (decode(encapsulation, &bytes), decode(encapsulation, &sent)) {
            prop_assert_eq!(read.inner.flow, meant.inner.flow);
            prop_assert_eq!(read.inner.payload, meant.inner.payload);
        }
    }

    #[test]
    fn arbitrary_bytes_are_survived(
        encapsulation in any_encapsulation(),
        bytes in prop::collection::vec(any::<u8>(), 0..128),
    ) {
        let _ = decode(encapsulation, &bytes);
    }

    #[test]
    fn truncated_packet_is_rejected(encapsulation in any_encapsulation(), flow in any_flow(), cut in any::<prop::sample::Index>()) {
        let bytes = tunnelled(encapsulation, flow, b"payload");
        prop_assert!(decode(encapsulation, &bytes[..cut.index(bytes.len())]).is_err());
    }
}
