// SPDX-License-Identifier: Apache-2.0
//! Requests survive a round trip, responses are encoded as in RFC 9204, and malformed requests are rejected.

use bytes::{Buf as _, Bytes};
use frontage_handoff::http3::{Error, data_head, read_request, request, response_head};
use http::{HeaderMap, Request, StatusCode};
use proptest::collection::vec;
use proptest::prelude::*;

proptest! {
    #[test]
    fn request_survives_round_trip(
        method in "[A-Z]{1,10}",
        path in "/[a-z0-9/]{0,300}",
        fields in vec(("[a-z][a-z-]{0,140}", "[ -~]{0,200}"), 0..8),
        body in vec(any::<u8>(), 0..300),
    ) {
        let mut built = Request::builder().method(&*method).uri(format!("https://frontage.test:443{path}"));
        for (name, value) in &fields {
            built = built.header(name, value.trim());
        }
        let sent = built.body(Bytes::from(body)).unwrap();
        let read = read_request(request(&sent, sent.body())).unwrap();
        prop_assert_eq!(read.method(), sent.method());
        prop_assert_eq!(read.uri(), sent.uri());
        prop_assert_eq!(read.headers(), sent.headers());
        prop_assert_eq!(read.body(), sent.body());
    }

    #[test]
    fn random_bytes_do_not_panic(noise in vec(any::<u8>(), 0..200)) {
        let _ = read_request(noise.into());
    }

    #[test]
    fn damaged_request_does_not_panic(
        at in any::<prop::sample::Index>(),
        octet in any::<u8>(),
        keep in any::<prop::sample::Index>(),
    ) {
        let sent = Request::get("https://frontage.test/a").header("x", "y").body(()).unwrap();
        let mut wire = request(&sent, b"body").to_vec();
        let at = at.index(wire.len());
        wire[at] = octet;
        wire.truncate(1 + keep.index(wire.len()));
        let _ = read_request(wire.into());
    }
}

/// Indexed fields, Huffman coding and the dynamic table are rejected.
#[test]
fn only_literal_fields_are_accepted() {
    let error = |wire: &'static [u8]| read_request(Bytes::from_static(wire)).unwrap_err();
    assert_eq!(error(&[1, 3, 0, 0, 0xd1]), Error::Encoding);
    assert_eq!(error(&[1, 3, 2, 0, 0x80]), Error::Encoding);
    assert_eq!(error(&[1, 2, 0, 0]), Error::Field);
    assert_eq!(error(&[0, 0]), Error::Frames);
    assert_eq!(error(&[1, 9, 0, 0]), Error::Truncated);
}

#[test]
fn response_is_encoded_as_frames() {
    let mut headers = HeaderMap::new();
    headers.insert("a", "bc".parse().unwrap());
    let head = response_head(StatusCode::OK, &headers);
    let expected = b"\x01\x14\0\0\x27\0:status\x03200\x21a\x02bc";
    assert_eq!(head.chunk(), expected);
    assert_eq!(data_head(5).chunk(), b"\0\x05");
}
