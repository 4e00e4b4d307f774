// SPDX-License-Identifier: Apache-2.0
use super::*;
use proptest::prelude::*;
use rustls::Side;
use rustls::quic::{DirectionalKeys, Version};

fn keys() -> (DirectionalKeys, DirectionalKeys) {
    let provider = rustls::crypto::ring::default_provider();
    let suite = super::super::initial_suite(&provider).expect("ring has the suite");
    let keys = |side| suite.keys(b"of a test", side, Version::V1);
    (keys(Side::Server).local, keys(Side::Client).remote)
}

/// Return a packet as noq writes it (first byte, connection id, number, payload, room for the tag) and the length of
/// its header.
fn packet(id: usize, short: usize, payload: &[u8]) -> (Vec<u8>, usize) {
    let mut packet = vec![0x44 | (short - 1) as u8];
    packet.extend(vec![7; id]);
    packet.extend(vec![9; short]);
    let header_len = packet.len();
    packet.extend(payload);
    packet.resize(packet.len() + 16, 0);
    (packet, header_len)
}

/// Seal a packet with a longer number.
fn seal(key: &dyn PacketKey, nonce: Nonce, packet: &mut [u8], header_len: usize) {
    let longer = Longer {
        number: true,
        payload: None,
    };
    longer.seal(key, nonce, packet, header_len);
}

/// Send the batch run by run, and return its datagrams.
fn datagrams(batch: &mut LongHeaderBatch, transmit: &Transmit<'_>) -> Vec<Vec<u8>> {
    let mut sent = Vec::new();
    while let Some(next) = batch.next(transmit) {
        let size = next.segment_size.unwrap_or(next.contents.len());
        sent.extend(next.contents.chunks(size).map(<[u8]>::to_vec));
        batch.advance();
    }
    sent
}

fn transmit(contents: &[u8], size: usize) -> Transmit<'_> {
    Transmit {
        destination: ([127, 0, 0, 1], 443).into(),
        ecn: None,
        contents,
        segment_size: (size < contents.len()).then_some(size),
        src_ip: None,
    }
}

proptest! {
    /// However many bytes noq's packet numbers have, the client opens the payload with the number on the wire.
    #[test]
    fn packets_with_longer_headers_keep_their_payload(
        id in 0..=20usize,
        made in prop::collection::vec((any::<bool>(), 1..=4usize, 0..1u64 << 62), 1..8),
        last in 20..100usize,
        discarded: bool,
    ) {
        let (local, remote) = keys();
        let header_key = HeaderProtector(local.header);
        let mut contents = Vec::new();
        if discarded {
            let (mut packet, header_len) = packet(id, 1, &[1; 50]);
            seal(&*local.packet, Nonce { path: 0, number: 7 }, &mut packet, header_len);
            header_key.encrypt(1 + id, &mut packet);
        }
        for (i, (far, short, number)) in made.iter().enumerate() {
            // All but the last have one size.
            let length = if i + 1 == made.len() { last } else { 100 + 4 - short };
            let (mut packet, header_len) = packet(id, *short, &vec![i as u8; length]);
            if *far {
                let nonce = Nonce { path: 0, number: *number };
                seal(&*local.packet, nonce, &mut packet, header_len);
                header_key.encrypt(1 + id, &mut packet);
            }
            contents.extend(packet);
        }
        let transmit = transmit(&contents, 1 + id + 4 + 100 + 16);
        let mut batch = LongHeaderBatch::default();
        batch.fill(&transmit);
        let any = discarded || made.iter().any(|(far, ..)| *far);
        prop_assert_eq!(batch.is_empty(), !any);
        let sent = datagrams(&mut batch, &transmit);
        prop_assert!(batch.is_empty());
        prop_assert_eq!(sent.len(), if any { made.len() } else { 0 });
        for (i, (mut datagram, (far, short, number))) in sent.into_iter().zip(made).enumerate() {
            if !far {
                prop_assert_eq!(datagram[0], 0x44 | (short - 1) as u8);
                continue;
            }
            let (header, rest) = datagram.split_at_mut(1 + id + 4);
            let (first, others) = header.split_at_mut(1);
            remote.header.decrypt_in_place(&rest[..16], &mut first[0], &mut others[id..]).unwrap();
            let long = usize::from(first[0] & 3) + 1;
            prop_assert_eq!(long, 4.min(short + 2));
            let (header, sealed) = datagram.split_at_mut(1 + id + long);
            prop_assert_eq!(&header[1 + id..], &number.to_be_bytes()[8 - long..]);
            let opened = remote.packet.decrypt_in_place(number, header, sealed).unwrap();
            prop_assert!(opened.iter().all(|byte| *byte == i as u8));
        }
    }
}

/// noq's packet numbers may grow from one byte to two within a batch.
#[test]
fn numbers_of_one_and_two_bytes_form_one_run() {
    let (local, _) = keys();
    let header_key = HeaderProtector(local.header);
    let mut contents = Vec::new();
    for (short, length) in [(1, 101), (2, 100), (2, 50)] {
        let (mut packet, header_len) = packet(8, short, &vec![1; length]);
        let number = contents.len() as u64;
        seal(
            &*local.packet,
            Nonce { path: 0, number },
            &mut packet,
            header_len,
        );
        header_key.encrypt(9, &mut packet);
        contents.extend(packet);
    }
    let transmit = transmit(&contents, 127);
    let mut batch = LongHeaderBatch::default();
    batch.fill(&transmit);
    assert_eq!(batch.runs, [(129 + 129 + 79, 129)]);
    batch.clear();
    batch.fill(&transmit);
    assert!(batch.is_empty());
}

#[test]
fn longer_payload_replaces_that_of_noq() {
    let (local, remote) = keys();
    let header_key = HeaderProtector(local.header);
    for number in [false, true] {
        let (mut own, header_len) = packet(8, 2, &[1; 60]);
        let longer = Longer {
            number,
            payload: Some(vec![2; 68]),
        };
        let nonce = Nonce {
            path: 0,
            number: 0x0909,
        };
        longer.seal(&*local.packet, nonce, &mut own, header_len);
        header_key.encrypt(9, &mut own);
        let transmit = transmit(&own, own.len());
        let mut batch = LongHeaderBatch::default();
        batch.fill(&transmit);
        let mut sent = datagrams(&mut batch, &transmit);
        assert_eq!(sent.len(), 1);
        let datagram = &mut sent[0];
        let (header, rest) = datagram.split_at_mut(9 + 4);
        let (first, others) = header.split_at_mut(1);
        let decrypted =
            remote
                .header
                .decrypt_in_place(&rest[..16], &mut first[0], &mut others[8..]);
        decrypted.expect("a sample");
        let long = usize::from(first[0] & 3) + 1;
        assert_eq!(long, if number { 4 } else { 2 });
        let (header, sealed) = datagram.split_at_mut(9 + long);
        let opened = remote.packet.decrypt_in_place(nonce.number, header, sealed);
        assert_eq!(opened.expect("an authentic packet"), [2; 68]);
    }
}
