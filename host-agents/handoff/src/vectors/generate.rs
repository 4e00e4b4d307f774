// SPDX-License-Identifier: Apache-2.0
//! Cases of the test vectors.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use noq::ConnectionId;

use super::{Invalid, Message, Vectors, describe, hex, read};
use crate::grant::{Grant, Keys};
use crate::message::{
    Cookie, MAX_FEEDBACK, MAX_REQUEST, Message as _, RejectReason, Resumable, ToBalancer, ToServer,
};

/// Generate all vectors.
pub fn generate() -> Vectors {
    Vectors {
        to_server: messages_to_server().map(case_to_server).collect(),
        to_balancer: messages_to_balancer().map(case_to_balancer).collect(),
        invalid: invalid(),
    }
}

fn case_to_server(message: ToServer) -> Message {
    let mut wire = BytesMut::new();
    message.encode(&mut wire);
    Message {
        message: describe::to_server(&message),
        wire: hex(&wire),
    }
}

fn case_to_balancer(message: ToBalancer) -> Message {
    let mut wire = BytesMut::new();
    message.encode(&mut wire);
    Message {
        message: describe::to_balancer(&message),
        wire: hex(&wire),
    }
}

fn secret(length: usize, first: u8) -> Bytes {
    (first..).take(length).collect()
}

/// Return a grant over IPv6, and one over IPv4 with every field different.
fn grants() -> [Grant; 2] {
    let small = Grant {
        path: 1,
        first: 0,
        connection_id: ConnectionId::new(&[0xc1; 8]),
        suite: 0x1301,
        header_secret: secret(32, 0),
        keys: Keys {
            generation: 0,
            secret: secret(32, 0),
        },
        client_parameters: Bytes::from_static(&[0x04, 0x04, 0x80, 0x10, 0x00, 0x00]),
        server: "[2001:db8::1]:443".parse().expect("an address"),
        client: "[2001:db8::2]:50000".parse().expect("an address"),
        credit: 1 << 20,
        rtt: Duration::from_millis(30),
    };
    let large = Grant {
        path: 70_000,
        first: (1 << 40) + 1,
        connection_id: ConnectionId::new(&[]),
        suite: 0x1302,
        header_secret: secret(48, 1),
        keys: Keys {
            generation: 3,
            secret: secret(48, 2),
        },
        client_parameters: Bytes::new(),
        server: "192.0.2.1:443".parse().expect("an address"),
        client: "192.0.2.2:50000".parse().expect("an address"),
        credit: 1 << 40,
        rtt: Duration::from_micros(1),
    };
    [small, large]
}

/// Return messages of every type, with each optional field present and absent.
pub(super) fn messages_to_server() -> impl Iterator<Item = ToServer> {
    let [small, large] = grants();
    let shared = Grant {
        path: 0,
        first: 77,
        ..small.clone()
    };
    let cookie = |epoch| Cookie {
        sid: 0x0123,
        prefix: 0x2001_0db8_0000_0007,
        epoch,
    };
    let open = |grant: &Grant, cookie, min_size| ToServer::Open {
        grant: grant.clone(),
        cookie,
        min_size,
    };
    [
        open(&small, None, 0),
        open(&small, Some(cookie(None)), 16_384),
        open(&large, Some(cookie(Some(5))), 0),
        open(&shared, None, 0),
        ToServer::Request {
            stream: 0,
            max_stream_data: None,
            http3: Bytes::from_static(&[0x01, 0x03, 0x00, 0x00, 0xd1]),
        },
        ToServer::Request {
            stream: 1 << 20,
            max_stream_data: Some(1 << 24),
            http3: Bytes::new(),
        },
        // ACK of 7 after 0 with a delay of 8, MAX_DATA of 16384.
        ToServer::Feedback(Bytes::from_static(&[
            0x02, 0x07, 0x01, 0x00, 0x07, 0x10, 0x80, 0x00, 0x40, 0x00,
        ])),
        ToServer::Keys(small.keys.clone()),
        ToServer::Keys(large.keys.clone()),
        ToServer::Moved {
            client: large.client,
            server: small.server,
        },
        ToServer::ConnectionId(ConnectionId::new(&[0xa5; 20])),
        ToServer::Stop,
        ToServer::Numbers(vec![77..93, 94..100]),
        ToServer::Numbers(std::iter::once(1 << 40..1 << 40).collect()),
        ToServer::Numbers(vec![]),
        ToServer::NumbersAhead {
            generation: 3,
            numbers: 93..103,
        },
        ToServer::NumbersExpired(103),
        ToServer::RequestPart {
            stream: 8,
            http3: Bytes::from_static(&[0x01, 0x03, 0x00]),
        },
    ]
    .into_iter()
}

pub(super) fn messages_to_balancer() -> impl Iterator<Item = ToBalancer> {
    let stream = 4;
    let rejected = RejectReason::ALL.map(|reason| ToBalancer::Rejected { stream, reason });
    let others = [
        ToBalancer::Accepted { stream },
        ToBalancer::Sent {
            stream,
            final_size: 1_000_100,
            status: 200,
            bytes: 1_000_000,
        },
        ToBalancer::Acknowledged { stream: 1 << 30 },
        ToBalancer::Aborted {
            stream,
            code: 0x102,
            final_size: 77,
        },
        ToBalancer::Blocked { credit: 1 << 21 },
        ToBalancer::Failed { code: 0x0a },
        ToBalancer::Returned {
            next: (1 << 40) + 9,
        },
        ToBalancer::NumbersNeeded {
            count: 26,
            ahead: 300,
        },
        ToBalancer::RoundTrips {
            shortest: 61_250,
            limiting: 17,
        },
        ToBalancer::NoAckReport {
            elapsed: 435_000,
            next: 26,
            has_probed: true,
        },
        ToBalancer::Progress {
            stream,
            acknowledged: 1 << 17,
        },
        ToBalancer::Resumable {
            stream,
            response: Resumable {
                tag: Bytes::from_static(b"\"5-a\""),
                from: 0,
                size: 1 << 20,
                head: Bytes::from_static(&[0x01, 0x02, 0x00, 0x00, 0x00, 0x80, 0x10, 0x00, 0x00]),
            },
        },
    ];
    rejected.into_iter().chain(others)
}

/// Return one case for each error. Decoding it yields the name of the error.
fn invalid() -> Vec<Invalid> {
    let [grant, _] = grants();
    let open = ToServer::Open {
        grant,
        cookie: None,
        min_size: 0,
    };
    let open = case_to_server(open).wire;
    // Replace digits of the grant: type and length take six, followed by version, path, first, connection id, suite, secret.
    let with = |at: usize, digits: &str| {
        let mut wire = open.clone();
        wire.replace_range(at..at + digits.len(), digits);
        wire
    };
    let head = |kind: &str, length: usize| format!("{kind}{:08x}", 0x8000_0000 | length);
    let to_server = [
        "2000".to_owned(),
        head("00", 8193),
        head("01", MAX_REQUEST + 33),
        head("08", MAX_REQUEST + 33),
        head("02", MAX_FEEDBACK + 1),
        "06c000000100000000".to_owned(),
        "060100".to_owned(),
        with(6, "02"),
        "000901c000000100000000".to_owned(),
        with(12, "15"),
        with(30, "1304"),
        with(34, "30"),
        with(34, "21"),
        // Length of the parameters: 4097.
        with(open.find("06040480").expect("parameters"), "5001"),
        "030100".to_owned(),
        "03020003".to_owned(),
        format!("0329c00000010000000020{}", "00".repeat(32)),
        "040105".to_owned(),
        format!("0515{}", "a5".repeat(21)),
        "01020200".to_owned(),
        "01020002".to_owned(),
        "0101c0".to_owned(),
        "0709ffffffffffffffff02".to_owned(),
    ];
    let to_balancer = [
        "0600",
        "200101",
        "2000",
        "21020400",
        "21020405",
        "2204040140c7",
        "23020404",
        "2801c0",
        "28011a",
        "290105",
        "290305091a02",
        "2d00",
        "2b1204c000000000000000ffffffffffffffff00",
    ];
    let cases = to_server.iter().map(|wire| ("to_server", wire.as_str()));
    let cases = cases.chain(to_balancer.iter().map(|wire| ("to_balancer", *wire)));
    cases.map(invalid_case).collect()
}

fn invalid_case((direction, wire): (&str, &str)) -> Invalid {
    let error = read(direction, &super::bytes(wire));
    let error = error.expect_err("invalid case");
    Invalid {
        direction: direction.into(),
        wire: wire.into(),
        reason: error.name().into(),
    }
}
