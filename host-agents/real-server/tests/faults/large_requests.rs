// SPDX-License-Identifier: Apache-2.0
//! Requests with long bodies, to an origin behind a real server that returns them.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread;

use frontage_testkit::privileged;

use crate::common::client::Client;
use crate::common::{Testbed, content, run};

/// Route of the real server to its origin.
const ROUTE: &str = "[[route]]\npath = '/echo'\norigin = 'http://127.0.0.1:9000'\n";
/// Lengths of bodies that are delegated, in bytes, and of one that is not.
const DELEGATED: [usize; 5] = [65_536, 65_537, 144 << 10, 300_000, 1 << 20];
const PROXIED: usize = (1 << 20) + 1;

/// Read a request with `Content-Length`, and return its body.
fn echo(stream: TcpStream) {
    let mut reader = BufReader::new(stream);
    let (mut length, mut line) = (0, String::new());
    while reader.read_line(&mut line).unwrap() > 2 {
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        line.clear();
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let mut stream = reader.into_inner();
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(&body).unwrap();
}

#[test]
fn requests_with_long_bodies_are_delegated() {
    if !privileged() {
        return;
    }
    let testbed = Testbed::with_server_config("bodies", 1, "round-robin", "", ROUTE, &[]);
    testbed.servers[0].run(|| {
        let listener = TcpListener::bind("127.0.0.1:9000").unwrap();
        thread::spawn(move || {
            for stream in listener.incoming() {
                thread::spawn(move || echo(stream.unwrap()));
            }
        });
    });
    run(&testbed, async || {
        let client = Client::connect(&testbed, 2).await;
        let lengths = || DELEGATED.into_iter().chain([PROXIED]);
        let posts: Vec<_> = lengths()
            .map(|length| client.post("echo", content(length, length)))
            .collect();
        for (length, got) in lengths().zip(posts) {
            let got = tokio::time::timeout(frontage_testkit::TEST_TIMEOUT, got).await;
            let (status, body) = got.expect("a response in time").unwrap().unwrap();
            assert_eq!(status, 200);
            assert!(
                body == content(length, length),
                "{length}: {} bytes",
                body.len()
            );
        }
        client.close().await;
    });
    assert_eq!(
        testbed.server_metric(0, "answers_total"),
        DELEGATED.len() as u64
    );
    assert_eq!(
        testbed.balancer_metric("handoff_local_total{reason=\"large\"}"),
        1
    );
    assert_eq!(testbed.balancer_metric("handoff_local_total"), 1);
}
