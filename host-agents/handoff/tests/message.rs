// SPDX-License-Identifier: Apache-2.0
//! The committed test vectors match the generator, and the codec matches the vectors and itself.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use frontage_handoff::grant::{Grant, Keys};
use frontage_handoff::message::{Cookie, Error, Message as _, RejectReason, ToBalancer, ToServer};
use frontage_handoff::vectors::{self, Vectors};
use noq::ConnectionId;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

const PATH: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../docs/handoff-vectors.json"
);

fn vectors() -> Vectors {
    let text = std::fs::read_to_string(PATH).expect("docs/handoff-vectors.json");
    serde_json::from_str(&text).expect("valid vectors")
}

#[test]
fn committed_vectors_match_generator() {
    // Compared by value, because the order of object members depends on features of serde_json that other crates enable.
    let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).expect("JSON");
    let text = std::fs::read_to_string(PATH).expect("docs/handoff-vectors.json");
    let fresh = vectors::to_json(&vectors::generate());
    assert!(
        value(&text) == value(&fresh),
        "docs/handoff-vectors.json is stale; run: cargo run -p frontage-handoff --bin handoff-vectors > docs/handoff-vectors.json"
    );
}

#[test]
fn vectors_decode_to_their_messages_and_errors() {
    let vectors = vectors();
    let both = [
        ("to_server", &vectors.to_server),
        ("to_balancer", &vectors.to_balancer),
    ];
    for (direction, cases) in both {
        for case in cases {
            let wire = vectors::bytes(&case.wire);
            let message = vectors::read(direction, &wire).unwrap();
            assert_eq!(message.as_ref(), Some(&case.message));
        }
    }
    for case in &vectors.invalid {
        let error = vectors::read(&case.direction, &vectors::bytes(&case.wire)).unwrap_err();
        assert_eq!(error.name(), case.reason, "{case:?}");
    }
}

/// The length is checked first, so a peer cannot make this side buffer megabytes.
#[test]
fn too_long_body_is_rejected_before_it_arrives() {
    let mut wire = BytesMut::from(&[0x02, 0xbf, 0xff, 0xff, 0xff][..]);
    assert_eq!(
        ToServer::decode(&mut wire),
        Err(Error::TooLong(0x3fff_ffff))
    );
}

fn integer() -> impl Strategy<Value = u64> {
    prop_oneof![0..64u64, 0..1u64 << 62]
}

fn stream() -> impl Strategy<Value = u64> {
    (0..1u64 << 60).prop_map(|n| n * 4)
}

fn bytes(length: impl Into<proptest::collection::SizeRange>) -> impl Strategy<Value = Bytes> {
    vec(any::<u8>(), length).prop_map(Bytes::from)
}

fn keys(length: usize) -> impl Strategy<Value = Keys> {
    (any::<u32>(), bytes(length)).prop_map(|(generation, secret)| Keys { generation, secret })
}

fn connection_id() -> impl Strategy<Value = ConnectionId> {
    bytes(0..=20).prop_map(|id| ConnectionId::new(&id))
}

fn grant() -> impl Strategy<Value = Grant> {
    let suites = prop_oneof![Just((0x1301, 32)), Just((0x1302, 48)), Just((0x1303, 32))];
    let secrets =
        suites.prop_flat_map(|(suite, length)| (Just(suite), bytes(length), keys(length)).boxed());
    let path = (any::<u32>(), integer(), connection_id());
    let limits = (bytes(0..200), integer(), integer());
    (path, secrets, limits, any::<[std::net::SocketAddr; 2]>()).prop_map(
        |(path, secrets, limits, [server, client])| Grant {
            path: path.0,
            first: path.1,
            connection_id: path.2,
            suite: secrets.0,
            header_secret: secrets.1,
            keys: secrets.2,
            client_parameters: limits.0,
            server: plain(server),
            client: plain(client),
            credit: limits.1,
            rtt: Duration::from_micros(limits.2),
        },
    )
}

/// Remove flow label and scope, which are local to the sender.
fn plain(address: std::net::SocketAddr) -> std::net::SocketAddr {
    (address.ip(), address.port()).into()
}

fn cookie() -> impl Strategy<Value = Cookie> {
    (any::<u16>(), any::<u64>(), any::<Option<u32>>()).prop_map(|(sid, prefix, epoch)| Cookie {
        sid,
        prefix,
        epoch,
    })
}

fn to_server() -> impl Strategy<Value = ToServer> {
    let addresses = any::<[std::net::SocketAddr; 2]>();
    prop_oneof![
        (grant(), option::of(cookie()), integer()).prop_map(|(grant, cookie, min_size)| {
            ToServer::Open {
                grant,
                cookie,
                min_size,
            }
        }),
        (stream(), option::of(integer()), bytes(0..300)).prop_map(
            |(stream, max_stream_data, http3)| ToServer::Request {
                stream,
                max_stream_data,
                http3
            }
        ),
        bytes(0..300).prop_map(ToServer::Feedback),
        prop_oneof![keys(32), keys(48)].prop_map(ToServer::Keys),
        addresses.prop_map(|[client, server]| ToServer::Moved {
            client: plain(client),
            server: plain(server)
        }),
        connection_id().prop_map(ToServer::ConnectionId),
        Just(ToServer::Stop),
        prop::collection::vec((0..1u64 << 61, 0..1u64 << 61), 0..5).prop_map(|ranges| {
            let ranges = ranges.into_iter();
            ToServer::Numbers(ranges.map(|(first, count)| first..first + count).collect())
        }),
        (any::<u32>(), 0..1u64 << 61, 0..1u64 << 61).prop_map(|(generation, first, count)| {
            ToServer::NumbersAhead {
                generation,
                numbers: first..first + count,
            }
        }),
        integer().prop_map(ToServer::NumbersExpired),
    ]
}

fn to_balancer() -> impl Strategy<Value = ToBalancer> {
    let reason = prop::sample::select(&RejectReason::ALL[..]);
    prop_oneof![
        stream().prop_map(|stream| ToBalancer::Accepted { stream }),
        (stream(), reason).prop_map(|(stream, reason)| ToBalancer::Rejected { stream, reason }),
        (stream(), integer(), 200..600u16, integer()).prop_map(
            |(stream, final_size, status, bytes)| ToBalancer::Sent {
                stream,
                final_size,
                status,
                bytes
            }
        ),
        stream().prop_map(|stream| ToBalancer::Acknowledged { stream }),
        (stream(), integer(), integer()).prop_map(|(stream, code, final_size)| {
            ToBalancer::Aborted {
                stream,
                code,
                final_size,
            }
        }),
        integer().prop_map(|credit| ToBalancer::Blocked { credit }),
        integer().prop_map(|code| ToBalancer::Failed { code }),
        integer().prop_map(|next| ToBalancer::Returned { next }),
        (integer(), integer())
            .prop_map(|(count, ahead)| ToBalancer::NumbersNeeded { count, ahead }),
        (integer(), integer())
            .prop_map(|(shortest, limiting)| ToBalancer::RoundTrips { shortest, limiting }),
        (integer(), integer(), any::<bool>()).prop_map(|(elapsed, next, has_probed)| {
            ToBalancer::NoAckReport {
                elapsed,
                next,
                has_probed,
            }
        }),
    ]
}

/// Decode all messages of `wire`, which arrives in pieces of `piece` bytes.
fn decode_all<T>(
    wire: &[u8],
    piece: usize,
    decode: impl Fn(&mut BytesMut) -> Result<Option<T>, Error>,
) -> Vec<T> {
    let (mut waiting, mut read) = (BytesMut::new(), Vec::new());
    for piece in wire.chunks(piece) {
        waiting.extend_from_slice(piece);
        while let Some(message) = decode(&mut waiting).expect("valid message") {
            read.push(message);
        }
    }
    assert!(waiting.is_empty());
    read
}

proptest! {
    #[test]
    fn messages_survive_round_trip_in_pieces(
        to_server in vec(to_server(), 1..6),
        to_balancer in vec(to_balancer(), 1..6),
        piece in 1..600usize,
    ) {
        let mut wire = BytesMut::new();
        to_server.iter().for_each(|message| message.encode(&mut wire));
        prop_assert_eq!(decode_all(&wire, piece, ToServer::decode), to_server);
        wire.clear();
        to_balancer.iter().for_each(|message| message.encode(&mut wire));
        prop_assert_eq!(decode_all(&wire, piece, ToBalancer::decode), to_balancer);
    }

    /// An incomplete message stays in the buffer.
    #[test]
    fn truncated_message_is_incomplete(message in to_server(), keep in any::<prop::sample::Index>()) {
        let mut wire = BytesMut::new();
        message.encode(&mut wire);
        wire.truncate(keep.index(wire.len()));
        let before = wire.clone();
        prop_assert_eq!(ToServer::decode(&mut wire), Ok(None));
        prop_assert_eq!(wire, before);
    }

    #[test]
    fn random_bytes_do_not_panic(noise in vec(any::<u8>(), 0..300)) {
        let mut wire = BytesMut::from(&noise[..]);
        while let Ok(Some(_)) = ToServer::decode(&mut wire) {}
        let mut wire = BytesMut::from(&noise[..]);
        while let Ok(Some(_)) = ToBalancer::decode(&mut wire) {}
    }
}
