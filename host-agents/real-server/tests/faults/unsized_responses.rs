// SPDX-License-Identifier: Apache-2.0
//! Responses of unknown size, from an origin behind a real server, in chunks (RFC 9112, section 7.1).

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
use crate::common::{Testbed, content, run};
use crate::requests::Stream;

/// Length of the response in bytes.
const LENGTH: usize = 3_000_000;
/// Address of the origin.
const ROUTE: &str = "[[route]]\npath = '/chunks'\norigin = 'http://127.0.0.1:9000'\n";

/// Start a testbed whose real servers have such an origin each.
fn testbed(name: &str, servers: usize, body: &Arc<Vec<u8>>) -> Testbed {
    let files = [("file".to_owned(), content(2, 500_000))];
    let testbed = Testbed::of(name, servers, "round-robin", "", ROUTE, &files);
    for server in &testbed.servers {
        server.run(|| {
            let listener = TcpListener::bind("127.0.0.1:9000").unwrap();
            let body = body.clone();
            thread::spawn(move || {
                for stream in listener.incoming() {
                    let body = body.clone();
                    thread::spawn(move || answer(stream.unwrap(), &body));
                }
            });
        });
    }
    testbed
}

/// Read one request.
fn answer(mut stream: TcpStream, body: &[u8]) {
    let (mut asked, mut octet) = (Vec::new(), [0]);
    while !asked.ends_with(b"\r\n\r\n") && stream.read_exact(&mut octet).is_ok() {
        asked.extend(octet);
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

/// A real server requests 64 KiB first, and then as much again as the response has sent (docs/handoff.md, flow
/// control).
#[test]
fn credit_grows_with_response_of_unknown_size() {
    /// Additional bytes for headers and frame headers.
    const OVERHEAD: u64 = 10_000;
    if !privileged() {
        return;
    }
    let body = Arc::new(content(1, LENGTH));
    let testbed = testbed("grows", 1, &body);
    run(&testbed, async || {
        let mut balancer = Stream::open(&testbed, None, 0).await;
        balancer.ask(0, "chunks", 1 << 30).await;
        assert_eq!(balancer.hear().await, ToBalancer::Accepted { stream: 0 });
        let (mut share, mut times) = (0, 0);
        loop {
            match balancer.hear().await {
                ToBalancer::Blocked { credit } => {
                    let most = share + share.max(64 << 10) + OVERHEAD;
                    assert!(
                        (share + 1..=most).contains(&credit),
                        "{credit} after {share}"
                    );
                    (share, times) = (credit, times + 1);
                    let mut limit = Vec::new();
                    write_varint(&mut limit, 0x10);
                    write_varint(&mut limit, share);
                    balancer.say(&ToServer::Feedback(limit.into())).await;
                }
                ToBalancer::Sent { status, bytes, .. } => {
                    assert_eq!((status, bytes), (200, LENGTH as u64));
                    break;
                }
                // The client says nothing.
                ToBalancer::NoAckReport { .. } => {}
                other => panic!("{other:?}"),
            }
        }
        // By 64 KiB each time, these were 45.
        assert!((2..30).contains(&times), "asked {times} times");
        assert!(share < 2 * LENGTH as u64 + OVERHEAD, "{share}");
    });
}

/// Connect a client with a small MAX_DATA.
async fn thrifty(testbed: &Testbed, paths: u32) -> Client {
    let session = Arc::new(QuicClientConfig::try_from(tls(testbed)).unwrap());
    let mut transport = TransportConfig::default();
    transport.receive_window(200_000_u32.into());
    transport.stream_receive_window(200_000_u32.into());
    let endpoint = Endpoint::client("0.0.0.0:0".parse().unwrap()).unwrap();
    Client::with(endpoint, session, transport, testbed.address(), paths).await
}

/// Check that responses are complete, next to others, from any real server.
fn they_come_whole(name: &str, paths: u32) {
    if !privileged() {
        return;
    }
    let body = Arc::new(content(1, LENGTH));
    let testbed = testbed(name, 2, &body);
    let file = content(2, 500_000);
    run(&testbed, async || {
        let client = thrifty(&testbed, paths).await;
        let names = ["chunks", "chunks", "file", "file", "chunks"];
        let asked = names.map(|name| (name, client.get(name)));
        for (name, got) in asked {
            let got = tokio::time::timeout(6 * frontage_testkit::TEST_TIMEOUT, got).await;
            let (status, came) = got.expect(name).unwrap().unwrap();
            assert_eq!(status, 200, "{name}");
            let whole = if name == "file" { &file } else { &*body };
            assert!(came == *whole, "{name}: {} bytes", came.len());
        }
        assert!(client.quic.close_reason().is_none());
        client.close().await;
    });
    assert_eq!(testbed.balancer_metric("body_bytes_total"), 0);
    assert!((0..2).all(|i| testbed.server_metric(i, "body_bytes_total") > 0));
}

#[test]
fn unsized_responses_complete_with_paths() {
    they_come_whole("chunks", 3);
}

#[test]
fn unsized_responses_complete_with_single_path() {
    they_come_whole("chunks-one", 1);
}
