//! ClientHellos that are whole, split, shuffled, repeated, too long, or none.

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

/// As after a post-quantum key share: the name comes behind it, in the second packet, which may come first, or twice.
#[test]
fn a_hello_over_two_packets_in_any_order() {
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

/// Name and ALPN in front suffice: the second packet need not be waited for.
#[test]
fn what_is_known_is_not_waited_for() {
    let hello = hello(&[
        server_name(b"films.example"),
        alpn(&[b"h3"]),
        key_share(1216),
    ]);
    let one = initial(Version::V1, DCID, b"", 0, &crypto(0, &hello[..1000]));
    assert_eq!(read(&[one]), Ok(Some(said("films.example", &["h3"]))));
}

/// As Chromium sends them: many CRYPTO frames in no order, with PING and PADDING between.
#[test]
fn frames_are_gathered_in_any_order() {
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

/// Two Initials in one datagram, and behind them bytes that are no packet.
#[test]
fn coalesced_packets_are_read() {
    let hello = hello(&[server_name(b"films.example"), alpn(&[b"h3"])]);
    let one = initial(Version::V2, DCID, b"", 0, &crypto(0, &hello[..20]));
    let two = initial(Version::V2, DCID, b"", 1, &crypto(20, &hello[20..]));
    let expected = Ok(Some(said("films.example", &["h3"])));
    let both = [one.clone(), two, vec![0; 30]].concat();
    assert_eq!(read(&[both]), expected);
    // One of another connection is not read (RFC 9000, 12.2).
    let other = initial(Version::V2, b"other id", b"", 1, &crypto(20, &hello[20..]));
    assert_eq!(read(&[[one, other].concat()]), Ok(None));
}

#[test]
fn names_may_be_missing_and_encrypted_hellos_are_seen() {
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
fn what_is_too_long_is_refused() {
    let beyond = Crypto::BOUND - 10;
    let far = initial(Version::V1, DCID, b"", 0, &crypto(beyond, &[0; 11]));
    assert_eq!(read(&[far]), Err(Fault::CryptoTooLong));
    let announced = hello(&[key_share(Crypto::BOUND)]);
    let announced = initial(Version::V1, DCID, b"", 0, &crypto(0, &announced[..50]));
    assert_eq!(read(&[announced]), Err(Fault::CryptoTooLong));
}

#[test]
fn what_contradicts_itself_is_refused() {
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
    longer.push(0); // a byte behind the extensions
    bad(&longer);
}
