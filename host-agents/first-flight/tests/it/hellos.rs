// SPDX-License-Identifier: Apache-2.0
//! ClientHellos: complete, split, reordered, repeated, too long and malformed.

use frontage_first_flight::compose::{alpn, crypto, hello, initial, server_name, whole};
use frontage_first_flight::{Crypto, Fault, Version};

use crate::{read, said};

const DCID: &[u8] = b"connection";

fn key_share(bytes: usize) -> (u16, Vec<u8>) {
    (51, vec![5; bytes])
}

#[test]
fn both_versions_are_read() {
    for version in Version::ALL {
        let datagram = whole(version, DCID, b"films.example", &[b"h3", b"h3-29"]);
        assert_eq!(datagram.len(), 1200);
        let expected = said("films.example", &["h3", "h3-29"]);
        assert_eq!(read(&[datagram]), Ok(Some(expected)));
    }
}

/// After a post-quantum key share, the name is in the second packet, which may arrive first or twice.
#[test]
fn client_hello_in_two_packets_is_read_in_any_order() {
    let hello = hello(&[
        key_share(1216),
        server_name(b"films.example"),
        alpn(&[b"h3"]),
    ]);
    let (first, second) = hello.split_at(1100);
    let one = initial(Version::V1, DCID, b"me", 0, &crypto(0, first));
    let two = initial(Version::V1, DCID, b"me", 1, &crypto(1100, second));
    let expected = Ok(Some(said("films.example", &["h3"])));
    assert_eq!(read(&[one.clone(), two.clone()]), expected);
    assert_eq!(read(&[two.clone(), one.clone()]), expected);
    assert_eq!(read(&[two.clone(), two.clone(), one.clone()]), expected);
    assert_eq!(read(&[one.clone(), one]), Ok(None));
    assert_eq!(read(&[two]), Ok(None));
}

/// Name and ALPN in the first packet suffice.
#[test]
fn name_and_alpn_are_read_from_an_incomplete_client_hello() {
    let hello = hello(&[
        server_name(b"films.example"),
        alpn(&[b"h3"]),
        key_share(1216),
    ]);
    let one = initial(Version::V1, DCID, b"", 0, &crypto(0, &hello[..1000]));
    assert_eq!(read(&[one]), Ok(Some(said("films.example", &["h3"]))));
}

/// Chromium sends many CRYPTO frames out of order, with PING and PADDING between them.
#[test]
fn crypto_frames_are_reassembled_in_any_order() {
    let hello = hello(&[alpn(&[b"h3"]), server_name(b"films.example")]);
    let mut pieces: Vec<_> = hello.chunks(7).enumerate().collect();
    pieces.reverse();
    pieces.swap(0, 3);
    let frames: Vec<u8> = pieces
        .iter()
        .flat_map(|(n, piece)| [&crypto(7 * n, piece)[..], &[0, 0, 1]].concat())
        .collect();
    let datagram = initial(Version::V1, DCID, b"", 0, &frames);
    assert_eq!(read(&[datagram]), Ok(Some(said("films.example", &["h3"]))));
}

/// Two Initials in one datagram, followed by bytes outside any packet.
#[test]
fn coalesced_packets_are_read() {
    let hello = hello(&[server_name(b"films.example"), alpn(&[b"h3"])]);
    let one = initial(Version::V2, DCID, b"", 0, &crypto(0, &hello[..20]));
    let two = initial(Version::V2, DCID, b"", 1, &crypto(20, &hello[20..]));
    let expected = Ok(Some(said("films.example", &["h3"])));
    let both = [one.clone(), two, vec![0; 30]].concat();
    assert_eq!(read(&[both]), expected);
    // A coalesced packet of another connection is skipped (RFC 9000, 12.2).
    let other = initial(Version::V2, b"other id", b"", 1, &crypto(20, &hello[20..]));
    assert_eq!(read(&[[one, other].concat()]), Ok(None));
}

#[test]
fn missing_name_and_encrypted_client_hello_are_reported() {
    let nameless = initial(
        Version::V1,
        DCID,
        b"",
        0,
        &crypto(0, &hello(&[alpn(&[b"h3"])])),
    );
    assert_eq!(
        read(&[nameless]),
        Ok(Some((None, vec![b"h3".to_vec()], false)))
    );
    let ech = hello(&[(0xfe0d, vec![0; 100]), server_name(b"public.example")]);
    let ech = initial(Version::V1, DCID, b"", 0, &crypto(0, &ech));
    assert_eq!(
        read(&[ech]),
        Ok(Some((Some(b"public.example".to_vec()), vec![], true)))
    );
}

#[test]
fn too_long_client_hello_is_rejected() {
    let beyond = Crypto::BOUND - 10;
    let far = initial(Version::V1, DCID, b"", 0, &crypto(beyond, &[0; 11]));
    assert_eq!(read(&[far]), Err(Fault::CryptoTooLong));
    let announced = hello(&[key_share(Crypto::BOUND)]);
    let announced = initial(Version::V1, DCID, b"", 0, &crypto(0, &announced[..50]));
    assert_eq!(read(&[announced]), Err(Fault::CryptoTooLong));
}

#[test]
fn inconsistent_client_hello_is_rejected() {
    let bad = |bytes: &[u8]| {
        let datagram = initial(Version::V1, DCID, b"", 0, &crypto(0, bytes));
        assert_eq!(read(&[datagram]), Err(Fault::BadHello), "{bytes:?}");
    };
    bad(&[2, 0, 0, 1, 0]); // a ServerHello
    bad(&[22]); // a TLS record
    let name = server_name(b"films.example");
    bad(&hello(&[name.clone(), name]));
    bad(&hello(&[(0, vec![])]));
    bad(&hello(&[(0, vec![0, 0])]));
    bad(&hello(&[(0, vec![0, 3, 0, 0, 0])])); // an empty name
    bad(&hello(&[(0, vec![0, 4, 1, 0, 1, b'x'])])); // a name of another type
    bad(&hello(&[(0, vec![0, 4, 0, 0, 9, b'x'])]));
    bad(&hello(&[(16, vec![0, 0])]));
    bad(&hello(&[(16, vec![0, 2, 9, b'h'])]));
    bad(&hello(&[(16, vec![0, 1, 0])]));
    bad(&hello(&[(16, vec![0, 3, 2, b'h', b'3', 0])]));
    let mut longer = hello(&[alpn(&[b"h3"])]);
    longer[3] += 1;
    longer.push(0); // a byte after the extensions
    bad(&longer);
}
