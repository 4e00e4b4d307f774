// SPDX-License-Identifier: Apache-2.0
use frontage_transport::quic::{Ack, AckRanges, Frames, Packet, StreamFrame};
use frontage_transport::tcp::{Ecn, Flags, SackBlocks, Timestamps};
use proptest::prelude::*;

use super::*;

/// Returns the checksum according to RFC 1071, computed over every byte.
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes
        .chunks(2)
        .map(|pair| u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |&low| u32::from(low)));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

fn any_endpoints() -> impl Strategy<Value = Endpoints> {
    (
        any::<[[u8; 6]; 2]>(),
        any::<bool>(),
        any::<[[u8; 16]; 2]>(),
        any::<[u16; 2]>(),
    )
        .prop_map(|(macs, v4, ips, ports)| {
            let address = |octets: [u8; 16]| match v4 {
                true => [octets[0], octets[1], octets[2], octets[3]].into(),
                false => octets.into(),
            };
            Endpoints {
                from_mac: macs[0],
                to_mac: macs[1],
                from: SocketAddr::new(address(ips[0]), ports[0]),
                to: SocketAddr::new(address(ips[1]), ports[1]),
            }
        })
}

fn segments() -> impl Strategy<Value = Segment> {
    let timestamps =
        || any::<Option<(u32, u32)>>().prop_map(|ts| ts.map(|(val, ecr)| Timestamps { val, ecr }));
    let syn = (
        any::<[u32; 2]>(),
        any::<(u16, Option<u8>, Option<u16>, bool)>(),
        timestamps(),
    )
        .prop_map(
            |([seq, ack], (window, window_scale, mss, sack_permitted), ts)| Segment {
                seq,
                ack,
                flags: Flags::SYN,
                window,
                window_scale,
                mss,
                sack_permitted,
                ts,
                sack: SackBlocks::default(),
                len: 0,
                ecn: Ecn::NotEct,
            },
        );
    let ecn = prop::sample::select(vec![Ecn::NotEct, Ecn::Ect0, Ecn::Ce]);
    let blocks = prop::collection::vec(any::<(u32, u32)>(), 0..=3);
    let other = (
        any::<[u32; 2]>(),
        any::<(u8, u16)>(),
        timestamps(),
        blocks,
        0u32..9000,
        ecn,
    )
        .prop_map(|([seq, ack], (flags, window), ts, blocks, len, ecn)| {
            let mut sack = SackBlocks::default();
            blocks
                .iter()
                .for_each(|&(left, right)| sack.push(left, right));
            Segment {
                seq,
                ack,
                flags: Flags(flags & !Flags::SYN.0),
                window,
                window_scale: None,
                mss: None,
                sack_permitted: false,
                ts,
                sack,
                len,
                ecn,
            }
        });
    prop_oneof![syn, other]
}

fn ecns() -> impl Strategy<Value = Ecn> {
    prop::sample::select(vec![Ecn::NotEct, Ecn::Ect0, Ecn::Ce])
}

fn datagrams() -> impl Strategy<Value = Datagram> {
    const MAX_VARINT: u64 = (1 << 62) - 1;
    let ranges = prop::collection::vec((0u64..1 << 20, 2u64..1 << 20), 1..=AckRanges::MAX);
    let ack = (0u64..1 << 30, ranges, prop::option::of(0..=MAX_VARINT)).prop_map(
        |(delay, pieces, ce)| {
            let (mut ranges, mut above) = (AckRanges::default(), MAX_VARINT);
            for (length, gap) in pieces {
                let last = above - gap;
                above = last - length;
                ranges.push(above..=last);
            }
            let delay = delay * 8_000;
            Ack { ranges, delay, ce }
        },
    );
    let stream = (0u64..1 << 61, 0..=MAX_VARINT, 0u32..1 << 16, any::<bool>()).prop_map(
        |(id, offset, len, fin)| StreamFrame {
            id,
            offset,
            len,
            fin,
        },
    );
    let frames = prop::collection::vec(stream, 0..=Frames::MAX).prop_map(|list| {
        let mut frames = Frames::default();
        list.into_iter().for_each(|frame| frames.push(frame));
        frames
    });
    let parts = (
        0..=MAX_VARINT,
        any::<[bool; 2]>(),
        prop::option::of(ack),
        frames,
        600u32..9000,
        ecns(),
    );
    let ids = (any::<ConnectionId>(), any::<Option<ConnectionId>>());
    (parts, ids).prop_map(
        |((number, [ping, close], ack, frames, length, ecn), (to, from))| {
            let handshake = from.is_some();
            let packet = Packet {
                number,
                handshake,
                ping,
                close,
                ack,
                frames,
                length,
                ecn,
            };
            Datagram { packet, to, from }
        },
    )
}

fn bodies() -> impl Strategy<Value = Body> {
    let tcp = (segments(), any::<bool>()).prop_map(|(segment, ck)| Body::Tcp { segment, ck });
    prop_oneof![tcp, datagrams().prop_map(Body::Quic)]
}

proptest! {
    #[test]
    fn frame_round_trips(endpoints in any_endpoints(), body in bodies()) {
        let mut buffer = Vec::new();
        write(&mut buffer, &endpoints, &body);
        prop_assert_eq!(read(&buffer), Ok(Contents { endpoints, body }));
    }

    #[test]
    fn frame_does_not_depend_on_earlier_one(endpoints in any_endpoints(), earlier in bodies(), body in bodies(), head in prop::collection::vec(any::<u8>(), 0..MAX_HEAD)) {
        let (mut buffer, mut expected) = (Vec::new(), Vec::new());
        write(&mut buffer, &endpoints, &earlier);
        // Switches may have changed its head.
        buffer.iter_mut().zip(head).for_each(|(byte, other)| *byte = other);
        write(&mut buffer, &endpoints, &body);
        write(&mut expected, &endpoints, &body);
        prop_assert!(buffer == expected);
    }

    #[test]
    fn checksums_match_rfc_1071(endpoints in any_endpoints(), body in bodies()) {
        let mut frame = Vec::new();
        write(&mut frame, &endpoints, &body);
        let (addresses, payload) = if endpoints.from.is_ipv4() {
            prop_assert_eq!(checksum(&frame[14..34]), 0);
            (&frame[26..34], &frame[34..])
        } else {
            (&frame[22..54], &frame[54..])
        };
        let mut covered = addresses.to_vec();
        covered.extend([0, if matches!(body, Body::Tcp { .. }) { TCP } else { UDP }]);
        covered.extend((payload.len() as u16).to_be_bytes());
        covered.extend(payload);
        prop_assert_eq!(checksum(&covered), 0);
    }

    #[test]
    fn flipped_bit_in_header_is_detected(endpoints in any_endpoints(), body in bodies(), at in 0usize..40, bit in 0u8..8) {
        let mut frame = Vec::new();
        write(&mut frame, &endpoints, &body);
        let original = read(&frame);
        // Checksums cover only the addresses of the IPv6 header.
        let first = if endpoints.from.is_ipv4() { ETHERNET } else { ETHERNET + 8 };
        frame[first + at] ^= 1 << bit;
        prop_assert_ne!(read(&frame), original);
    }

    #[test]
    fn arbitrary_bytes_do_not_panic_and_truncated_frames_are_rejected(bytes in prop::collection::vec(any::<u8>(), 0..200), endpoints in any_endpoints(), body in bodies(), cut in 0usize..100) {
        let _ = read(&bytes);
        let mut frame = Vec::new();
        write(&mut frame, &endpoints, &body);
        prop_assert!(read(&frame[..cut.min(frame.len() - 1)]).is_err());
    }
}
