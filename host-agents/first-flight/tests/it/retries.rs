// SPDX-License-Identifier: Apache-2.0
//! Initials that are opened and rebuilt for a Retry.

use frontage_first_flight::compose::{crypto, initial};
use frontage_first_flight::{Fault, Initial, MIN_DATAGRAM, Reader, Retry, Version, retry};
use proptest::prelude::*;

const DCID: &[u8] = &[7; 8];

/// Return a client's datagram with one Initial with this packet number and these frames.
fn sealed(version: Version, number: &[u8], frames: &[u8]) -> Vec<u8> {
    let initial = Initial {
        version,
        dcid: vec![],
        scid: vec![1, 2, 3, 4],
        number: number.into(),
        frames: frames.into(),
    };
    let tokenless = retried(&initial, DCID, b"");
    let retry = Retry::read(&tokenless).unwrap();
    initial.for_retry(&Reader::default(), &retry).unwrap()
}

/// Return a server's Retry in response to an Initial.
fn retried(to: &Initial, scid: &[u8], token: &[u8]) -> Vec<u8> {
    let first = match to.version {
        Version::V1 => 0xf0,
        Version::V2 => 0xc0,
    };
    let mut packet = vec![first];
    packet.extend(to.version.number().to_be_bytes());
    for cid in [&to.scid, scid] {
        packet.push(cid.len() as u8);
        packet.extend(cid);
    }
    packet.extend(token);
    let tag = retry::tag(to.version, &to.dcid, &packet);
    packet.extend(tag);
    packet
}

fn open(datagram: &[u8]) -> Result<Initial, Fault> {
    Reader::default().open(datagram)
}

/// CRYPTO with five bytes, PADDING, PING, and CRYPTO whose data ends with zeros.
const CHAOS: [u8; 20] = [
    0x06, 0, 5, 1, 2, 3, 4, 5, 0, 0, 0, 0x01, 0, 0x06, 5, 4, 9, 0, 0, 0,
];
const TIDY: [u8; 16] = [0x06, 0, 5, 1, 2, 3, 4, 5, 0x01, 0x06, 5, 4, 9, 0, 0, 0];

#[test]
fn initial_is_rebuilt_for_a_retry() {
    for version in Version::ALL {
        for number in [&[0][..], &[0, 1], &[0, 1, 2], &[0, 0, 0, 3]] {
            let first = open(&sealed(version, number, &CHAOS)).unwrap();
            assert_eq!((&*first.frames, &*first.number), (&TIDY[..], number));
            assert_eq!(first.dcid, DCID);
            for cid in [&[9; 8][..], &[8; 20]] {
                let wire = retried(&first, cid, &[5; 90]);
                let read = Retry::read(&wire).unwrap();
                assert!(read.answers(&first));
                let again = first.for_retry(&Reader::default(), &read).unwrap();
                assert_eq!(again.len(), MIN_DATAGRAM);
                let at = again.windows(90).any(|window| window == [5; 90]);
                assert!(at, "the token is in it");
                let expected = Initial {
                    dcid: cid.into(),
                    ..first.clone()
                };
                assert_eq!(open(&again), Ok(expected));
            }
        }
    }
}

#[test]
fn forged_retry_or_one_with_an_empty_token_is_rejected() {
    let first = open(&sealed(Version::V1, &[0], &CHAOS)).unwrap();
    let wire = retried(&first, &[9; 8], b"token");
    for at in 0..wire.len() {
        let mut forged = wire.clone();
        forged[at] ^= 1;
        assert!(
            !Retry::read(&forged).is_some_and(|retry| retry.answers(&first)),
            "byte {at}"
        );
    }
    let empty = retried(&first, &[9; 8], b"");
    assert!(!Retry::read(&empty).unwrap().answers(&first));
}

#[test]
fn initial_is_not_rebuilt_if_the_token_is_too_long() {
    let first = open(&sealed(Version::V1, &[0], &CHAOS)).unwrap();
    for (length, fits) in [(1300, true), (1500, false), (20_000, false)] {
        let wire = retried(&first, &[9; 8], &vec![5; length]);
        let again = first.for_retry(&Reader::default(), &Retry::read(&wire).unwrap());
        assert_eq!(again.is_some(), fits);
    }
}

#[test]
fn other_datagrams_are_rejected() {
    let good = sealed(Version::V1, &[0], &CHAOS);
    assert_eq!(
        open(&good[..MIN_DATAGRAM - 1]),
        Err(Fault::SmallDatagram),
        "whatever else is wrong with it"
    );
    let with = |at: usize, byte: u8| {
        let mut wire = good.clone();
        wire[at] = byte;
        open(&wire).unwrap_err()
    };
    assert_eq!(with(0, 0x40), Fault::ShortHeader);
    assert_eq!(with(0, 0x80), Fault::FixedBit);
    assert_eq!(with(0, 0xd0), Fault::PacketType);
    assert_eq!(with(0, 0xf0), Fault::PacketType);
    assert_eq!(with(4, 9), Fault::UnknownVersion);
    assert_eq!(with(5, 21), Fault::ConnectionId);
    assert_eq!(with(6, 0), Fault::Undecryptable);
    assert_eq!(with(500, good[500] ^ 1), Fault::Undecryptable);
    // A STREAM frame is not allowed in an Initial.
    let stream = initial(Version::V1, DCID, b"", 0, &[0x08, 0]);
    assert_eq!(open(&stream), Err(Fault::Frame));
}

proptest! {
    /// The AEAD covers the complete packet.
    #[test]
    fn damaged_packet_is_rejected(at in 0..MIN_DATAGRAM, flip in 1..=255_u8) {
        let mut wire = initial(Version::V2, DCID, b"me", 3, &crypto(0, b"hello"));
        wire[at] ^= flip;
        prop_assert!(open(&wire).is_err());
    }
}
