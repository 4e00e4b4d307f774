// SPDX-License-Identifier: Apache-2.0
//! Chunked responses of unknown size (RFC 9112, section 7.1) from an origin behind a real server.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use frontage_handoff::message::{ToBalancer, ToServer};
use frontage_quic_wire::write_varint;
use frontage_testkit::privileged;
use noq::crypto::rustls::QuicClientConfig;
use noq::{Endpoint, TransportConfig};

use crate::common::client::{Client, tls};
use crate::common::{Testbed, content, run, two_senders};
use crate::requests::Stream;

/// Length of the response in bytes.
const LENGTH: usize = 3_000_000;
/// Route of the real servers to their origin.
const ROUTE: &str = "[[route]]\npath = '/chunks'\norigin = 'http://127.0.0.1:9000'\n";

/// Start a testbed in which each real server has such an origin.
fn testbed(name: &str, servers: usize, policy: &str, body: &Arc<Vec<u8>>) -> Testbed {
    let files = [("file".to_owned(), content(2, 500_000))];
    let testbed = Testbed::with_server_config(name, servers, policy, "", ROUTE, &files);
    for server in &testbed.servers {
        server.run(|| {
            let listener = TcpListener::bind("127.0.0.1:9000").unwrap();
            let body = body.clone();
            thread::spawn(move || {
                for stream in listener.incoming() {
                    let body = body.clone();
                    thread::spawn(move || respond(stream.unwrap(), &body));
                }
            });
        });
    }
    testbed
}

/// Read a request, and send `body` in chunks.
fn respond(mut stream: TcpStream, body: &[u8]) {
    let (mut request, mut octet) = (Vec::new(), [0]);
    while !request.ends_with(b"\r\n\r\n") && stream.read_exact(&mut octet).is_ok() {
        request.extend(octet);
    }
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n";
    let mut wire = head.as_bytes().to_vec();
    for chunk in body.chunks(10_000) {
        wire.extend(format!("{:x}\r\n", chunk.len()).bytes());
        wire.extend(chunk);
        wire.extend(b"\r\n");
    }
    wire.extend(b"0\r\n\r\n");
    // The peer may close the connection early.
    let _ = stream.write_all(&wire);
}

/// A real server first requests 64 KiB of credit, then doubles the credit of the response (docs/handoff.md, flow control).
#[test]
fn credit_grows_with_response_of_unknown_size() {
    /// Additional bytes for headers and frame headers.
    const OVERHEAD: u64 = 10_000;
    if !privileged() {
        return;
    }
    let body = Arc::new(content(1, LENGTH));
    let testbed = testbed("grows", 1, "round-robin", &body);
    run(&testbed, async || {
        let mut balancer = Stream::open(&testbed, None, 0).await;
        balancer.send_request(0, "chunks", 1 << 30).await;
        assert_eq!(
            balancer.receive_message().await,
            ToBalancer::Accepted { stream: 0 }
        );
        let (mut granted, mut requests, mut released) = (0, 0, false);
        loop {
            match balancer.receive_message().await {
                // The response is written and needs no more than its size.
                ToBalancer::Blocked { credit } if credit < granted => {
                    assert!((LENGTH as u64..LENGTH as u64 + OVERHEAD).contains(&credit));
                    released = true;
                }
                ToBalancer::Blocked { credit } => {
                    let max = granted + granted.max(64 << 10) + OVERHEAD;
                    assert!(
                        (granted + 1..=max).contains(&credit),
                        "{credit} after {granted}"
                    );
                    (granted, requests) = (credit, requests + 1);
                    let mut limit = Vec::new();
                    write_varint(&mut limit, 0x10);
                    write_varint(&mut limit, granted);
                    balancer
                        .send_message(&ToServer::Feedback(limit.into()))
                        .await;
                }
                ToBalancer::Sent { status, bytes, .. } => {
                    assert_eq!((status, bytes), (200, LENGTH as u64));
                    break;
                }
                // This test has no client that acknowledges packets.
                ToBalancer::NoAckReport { .. } => {}
                other => panic!("{other:?}"),
            }
        }
        assert!(
            released,
            "idle credit is released before the client acknowledges the response"
        );
        // With 64 KiB per request, there would be 45.
        assert!((2..30).contains(&requests), "{requests} requests");
        assert!(granted < 2 * LENGTH as u64 + OVERHEAD, "{granted}");
    });
}

/// Connect a client with a small MAX_DATA.
async fn connect_with_small_window(testbed: &Testbed, paths: u32) -> Client {
    let session = Arc::new(QuicClientConfig::try_from(tls(testbed)).unwrap());
    let mut transport = TransportConfig::default();
    transport.receive_window(200_000_u32.into());
    transport.stream_receive_window(200_000_u32.into());
    let endpoint = Endpoint::client("0.0.0.0:0".parse().unwrap()).unwrap();
    Client::connect_with(endpoint, session, transport, testbed.address(), paths).await
}

/// Download sized and unsized responses concurrently, and check that all are complete and both real servers send.
fn download_unsized_responses(name: &str, paths: u32) {
    if !privileged() {
        return;
    }
    let body = Arc::new(content(1, LENGTH));
    let testbed = testbed(name, 2, two_senders(paths), &body);
    let file = content(2, 500_000);
    run(&testbed, async || {
        let client = connect_with_small_window(&testbed, paths).await;
        let names = ["chunks", "chunks", "file", "file", "chunks"];
        let requests = names.map(|name| (name, client.get(name)));
        for (name, got) in requests {
            let got = tokio::time::timeout(6 * frontage_testkit::TEST_TIMEOUT, got).await;
            let (status, body_received) = got.expect(name).unwrap().unwrap();
            assert_eq!(status, 200, "{name}");
            let expected = if name == "file" { &file } else { &*body };
            assert!(
                body_received == *expected,
                "{name}: {} bytes",
                body_received.len()
            );
        }
        assert!(client.quic.close_reason().is_none());
        client.close().await;
    });
    assert_eq!(testbed.balancer_metric("body_bytes_total"), 0);
    assert!((0..2).all(|i| testbed.server_metric(i, "body_bytes_total") > 0));
}

#[test]
fn unsized_responses_complete_with_paths() {
    download_unsized_responses("chunks", 3);
}

#[test]
fn unsized_responses_complete_with_single_path() {
    download_unsized_responses("chunks-one", 1);
}
