use super::*;

fn suite() -> Suite {
    crate::suite()
}

/// A client's datagram with one Initial packet: this payload behind this packet number.
fn sealed(version: Version, number: &[u8], payload: &[u8]) -> Vec<u8> {
    let retry = Retry {
        version,
        dst_cid: &[],
        src_cid: &[7; 8],
        token: b"",
        packet: &[],
        tag: [0; 16],
    };
    let initial = Initial {
        version,
        dst_cid: vec![],
        src_cid: vec![1, 2, 3, 4],
        number: number.into(),
        frames: payload.into(),
    };
    initial.again(&suite(), &retry).unwrap()
}

/// The Retry with which a server would answer.
fn retry(version: Version, to: &Initial, src_cid: &[u8], token: &[u8]) -> Vec<u8> {
    let mut packet = vec![0xc0 | version.retry() << 4];
    packet.extend(version.wire().to_be_bytes());
    for cid in [&to.src_cid, src_cid] {
        packet.push(cid.len() as u8);
        packet.extend(cid);
    }
    packet.extend(token);
    let secret = match version {
        Version::V1 => frontage_quic::retry::V1,
        Version::V2 => frontage_quic::retry::V2,
    };
    let tag = frontage_quic::retry::tag(&secret, &to.dst_cid, &packet);
    packet.extend(tag);
    packet
}

/// CRYPTO with five octets, PADDING between, PING, CRYPTO whose data ends with zeros.
const CHAOS: [u8; 20] = [
    0x06, 0, 5, 1, 2, 3, 4, 5, 0, 0, 0, 0x01, 0, 0x06, 5, 4, 9, 0, 0, 0,
];
const TIDY: [u8; 16] = [0x06, 0, 5, 1, 2, 3, 4, 5, 0x01, 0x06, 5, 4, 9, 0, 0, 0];

#[test]
fn a_first_flight_is_built_anew_for_a_retry() {
    for version in [Version::V1, Version::V2] {
        for number in [&[0][..], &[0, 1], &[0, 0, 0, 3]] {
            let first = open(&suite(), &sealed(version, number, &CHAOS)).unwrap();
            assert_eq!((&*first.frames, &*first.number), (&TIDY[..], number));
            assert_eq!(first.dst_cid, [7; 8]);
            for cid in [&[9; 8][..], &[8; 20]] {
                let wire = retry(version, &first, cid, &[5; 90]);
                let read = Retry::read(&wire).unwrap();
                assert!(read.answers(&first));
                let again = first.again(&suite(), &read).unwrap();
                assert_eq!(again.len(), LEAST);
                let at = again.windows(90).any(|window| window == [5; 90]);
                assert!(at, "the token is in it");
                let opened = open(&suite(), &again).unwrap();
                let expected = Initial {
                    dst_cid: cid.into(),
                    ..first.clone()
                };
                assert_eq!(opened, expected);
            }
        }
    }
}

#[test]
fn a_retry_of_somebody_else_is_none() {
    let first = open(&suite(), &sealed(Version::V1, &[0], &CHAOS)).unwrap();
    let wire = retry(Version::V1, &first, &[9; 8], b"token");
    for at in 0..wire.len() {
        let mut forged = wire.clone();
        forged[at] ^= 1;
        assert!(
            !Retry::read(&forged).is_some_and(|retry| retry.answers(&first)),
            "octet {at}"
        );
    }
    let empty = retry(Version::V1, &first, &[9; 8], b"");
    assert!(!Retry::read(&empty).unwrap().answers(&first));
}

#[test]
fn a_token_can_be_too_long() {
    let first = open(&suite(), &sealed(Version::V1, &[0], &CHAOS)).unwrap();
    for (length, fits) in [(1300, true), (1500, false)] {
        let wire = retry(Version::V1, &first, &[9; 8], &vec![5; length]);
        let again = first.again(&suite(), &Retry::read(&wire).unwrap());
        assert_eq!(again.is_some(), fits);
    }
}

#[test]
fn what_is_no_first_flight_is_refused_by_name() {
    let good = sealed(Version::V1, &[0], &CHAOS);
    let refused = |wire: &[u8]| open(&suite(), wire).unwrap_err();
    assert_eq!(refused(&good[..LEAST - 1]), Problem::Short);
    let with = |at: usize, octet: u8| {
        let mut wire = good.clone();
        wire[at] = octet;
        refused(&wire)
    };
    assert_eq!(with(0, 0x40), Problem::NotInitial);
    assert_eq!(with(0, 0x80), Problem::NotInitial);
    assert_eq!(with(0, 0xf0), Problem::NotInitial);
    assert_eq!(with(4, 9), Problem::Version);
    assert_eq!(with(5, 21), Problem::NotInitial);
    assert_eq!(with(6, 0), Problem::Forged);
    assert_eq!(with(500, good[500] ^ 1), Problem::Forged);
    // A frame that has no place in an Initial packet: STREAM.
    assert_eq!(
        refused(&sealed(Version::V1, &[0], &[0x08, 0])),
        Problem::NotInitial
    );
    assert_eq!(refused(&[0xc0; 1300]), Problem::Version);
}
