// SPDX-License-Identifier: Apache-2.0
//! Damaged and arbitrary datagrams: each is rejected with a named fault.

use frontage_first_flight::compose::{crypto, initial, whole};
use frontage_first_flight::packet::Invariants;
use frontage_first_flight::{Fault, Version, hello};
use proptest::prelude::*;

use crate::{read, said};

const DCID: &[u8] = b"connection";

fn good() -> Vec<u8> {
    whole(Version::V1, DCID, b"films.example", &[b"h3"])
}

fn fault(change: impl FnOnce(&mut Vec<u8>)) -> Fault {
    let mut datagram = good();
    change(&mut datagram);
    read(&[datagram]).expect_err("damaged")
}

#[test]
fn each_kind_of_damage_has_its_own_fault() {
    assert_eq!(fault(Vec::clear), Fault::Truncated);
    assert_eq!(fault(|d| d.truncate(20)), Fault::Truncated);
    assert_eq!(fault(|d| d.truncate(1199)), Fault::Truncated);
    assert_eq!(fault(|d| d[0] &= 0x7f), Fault::ShortHeader);
    assert_eq!(fault(|d| d[0] &= 0xbf), Fault::FixedBit);
    assert_eq!(fault(|d| d[1..5].fill(0)), Fault::VersionNegotiation);
    assert_eq!(fault(|d| d[1..5].fill(0x1a)), Fault::UnknownVersion);
    assert_eq!(fault(|d| d[5] = 21), Fault::ConnectionId);
    assert_eq!(fault(|d| d[0] |= 0x20), Fault::PacketType);
    assert_eq!(fault(|d| d[1199] ^= 1), Fault::Undecryptable);
    assert_eq!(fault(|d| d[10] ^= 1), Fault::Undecryptable);
    let short = whole(Version::V1, b"seven b", b"films.example", &[b"h3"]);
    assert_eq!(read(&[short]), Err(Fault::ConnectionId));
    for frames in [&[0x08, 0][..], &[6, 0, 60, 1], &[2, 0, 0, 0xc0], &[0x1c, 0]] {
        // Padding follows, so only its own length shows that a field is truncated.
        let frames = [frames, &[0xff; 1100]].concat();
        let datagram = initial(Version::V1, DCID, b"", 0, &frames);
        assert_eq!(read(&[datagram]), Err(Fault::Frame), "{:?}", &frames[..4]);
    }
}

/// A server may acknowledge an incomplete first flight, so the client's next packet may have an ACK.
#[test]
fn ack_and_close_frames_are_accepted() {
    let frames = [
        &[2, 5, 0, 1, 1, 0, 0][..],
        &[3, 5, 0, 0, 1, 9, 9, 9],
        &[0x1c, 0, 6, 1, b'x'],
        &[1],
    ];
    let datagram = initial(Version::V1, DCID, b"", 7, &frames.concat());
    assert_eq!(read(&[datagram]), Ok(None));
}

#[test]
fn initial_in_a_small_datagram_is_rejected() {
    // A 0-RTT packet of version 1 alone: a valid beginning of a first flight, without CRYPTO data.
    let mut early = vec![0xd0, 0, 0, 0, 1, 8];
    early.extend([*b"connecti", [0, 0x14, 1, 2, 3, 4, 5, 6]].concat());
    early.resize(early.len() + 14, 9);
    assert_eq!(read(&[early]), Ok(None));
    let mut datagram = good();
    // Decrease the two low bytes of the length by one, so that the packet is complete.
    let length = u32::from_be_bytes(datagram[18..22].try_into().unwrap()) - 1;
    datagram[18..22].copy_from_slice(&length.to_be_bytes());
    datagram.truncate(1199);
    assert_eq!(read(&[datagram]), Err(Fault::SmallDatagram));
}

#[test]
fn fault_names_are_unique_and_complete() {
    let mut names: Vec<_> = Fault::ALL.iter().map(|f| f.name()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), Fault::ALL.len());
    assert!(Fault::ALL.iter().enumerate().all(|(n, f)| *f as usize == n));
}

proptest! {
    /// The AEAD covers everything that decides the content, so a changed packet is either rejected or read correctly.
    #[test]
    fn changed_byte_never_changes_the_server_name(at in 0..1200_usize, flip in 1..=255_u8) {
        let mut datagram = good();
        datagram[at] ^= flip;
        if let Ok(Some(read)) = read(&[datagram]) {
            prop_assert_eq!(read, said("films.example", &["h3"]));
        }
    }

    #[test]
    fn truncated_datagram_is_rejected(cut in 0..1200_usize) {
        prop_assert!(read(&[good()[..cut].to_vec()]).is_err());
    }

    #[test]
    fn arbitrary_datagrams_are_survived(start in any::<[u8; 32]>(), n in 0..1300_usize, version in 0..3_usize) {
        let mut datagram: Vec<u8> = start.iter().copied().cycle().take(n).collect();
        if let (Some(version), Some(bytes)) = (Version::ALL.get(version), datagram.get_mut(1..5)) {
            bytes.copy_from_slice(&version.number().to_be_bytes());
        }
        let _ = Invariants::parse(&datagram);
        let _ = read(&[datagram]);
    }

    /// Correctly protected packets, so that all arbitrary frames reach the parser.
    #[test]
    fn arbitrary_frames_are_survived(frames in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = read(&[initial(Version::V1, DCID, b"", 0, &frames)]);
    }

    #[test]
    fn arbitrary_client_hellos_are_survived(body in prop::collection::vec(any::<u8>(), 0..300), announced in 0..400_u16) {
        let [high, low] = announced.to_be_bytes();
        let _ = hello::read(&[&[1, 0, high, low], body.as_slice()].concat());
        let datagram = initial(Version::V1, DCID, b"", 0, &crypto(0, &body));
        let _ = read(&[datagram]);
    }
}
