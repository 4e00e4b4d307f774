// SPDX-License-Identifier: Apache-2.0
//! Messages of a real server to its balancer: credit requests and rejections. The tests act as the balancer.

use bytes::BytesMut;
use frontage_handoff::http3;
use frontage_handoff::message::{Cookie, Message as _, RejectReason, ToBalancer, ToServer};
use frontage_testkit::privileged;
use http::Request;
use noq::{RecvStream, SendStream};

use crate::common::{Testbed, content, run};
use crate::invalid_grants::{CREDIT, FIRST, link, open};

/// A stream of a link.
pub struct Stream {
    send: SendStream,
    receive: RecvStream,
    _link: noq::Connection,
    wire: BytesMut,
}

impl Stream {
    /// Open a stream with a grant of `credit` bytes.
    pub async fn open(testbed: &Testbed, cookie: Option<Cookie>, credit: u64) -> Self {
        let link = link(testbed, "lb.test", "ca.pem").await.unwrap();
        let (mut send, receive) = link.open_bi().await.unwrap();
        send.write_all(&open(cookie, credit)).await.unwrap();
        let wire = BytesMut::new();
        Self {
            send,
            receive,
            _link: link,
            wire,
        }
    }

    pub async fn send_message(&mut self, message: &ToServer) {
        let mut wire = BytesMut::new();
        message.encode(&mut wire);
        self.send.write_all(&wire).await.unwrap();
    }

    pub async fn send_request(&mut self, stream: u64, name: &str, max_stream_data: u64) {
        let request = Request::get(format!("https://lb.test/{name}"));
        let http3 = http3::request(&request.body(()).unwrap(), &[]);
        let max_stream_data = Some(max_stream_data);
        let request = ToServer::Request {
            stream,
            max_stream_data,
            http3,
        };
        self.send_message(&request).await;
    }

    /// Receive the next message, except for those that serve to resume a response.
    pub async fn receive_message(&mut self) -> ToBalancer {
        let message = async {
            loop {
                match ToBalancer::decode(&mut self.wire).unwrap() {
                    Some(ToBalancer::Resumable { .. } | ToBalancer::Progress { .. }) => continue,
                    Some(message) => return message,
                    None => {}
                }
                let chunk = self.receive.read_chunk(1 << 16).await.unwrap();
                self.wire
                    .extend_from_slice(&chunk.expect("the stream continues"));
            }
        };
        let message = tokio::time::timeout(frontage_testkit::TEST_TIMEOUT, message).await;
        message.expect("a message")
    }
}

/// The real server requests more credit as its streams need it, and reports missing ACKs of the absent client.
#[test]
fn credit_is_requested_as_needed() {
    if !privileged() {
        return;
    }
    let (small, large) = (300_000, 2_000_000);
    let files = [
        ("small".to_owned(), content(1, small)),
        ("large".to_owned(), content(2, large)),
    ];
    let testbed = Testbed::new("asked", 1, "round-robin", "", &files);
    run(&testbed, async || {
        let mut balancer = Stream::open(&testbed, None, CREDIT).await;
        // The credit includes this response.
        balancer.send_request(0, "small", 0).await;
        assert_eq!(
            balancer.receive_message().await,
            ToBalancer::Accepted { stream: 0 }
        );
        balancer.send_request(4, "large", 10_000).await;
        assert_eq!(
            balancer.receive_message().await,
            ToBalancer::Accepted { stream: 4 }
        );
        let ToBalancer::Blocked { credit } = balancer.receive_message().await else {
            panic!("the response needs more credit than {CREDIT}");
        };
        // Header fields and frame headers need a few kilobytes.
        let bytes = (small + large) as u64;
        assert!((bytes..bytes + 10_000).contains(&credit), "{credit}");
        let report = balancer.receive_message().await;
        assert!(
            matches!(
                report,
                ToBalancer::NoAckReport {
                    elapsed: 100_000..,
                    ..
                }
            ),
            "{report:?}"
        );
        balancer.send_message(&ToServer::Stop).await;
        loop {
            match balancer.receive_message().await {
                ToBalancer::NoAckReport { .. } => {}
                ToBalancer::Returned { next } => break assert!(next > FIRST),
                other => panic!("{other:?}"),
            }
        }
    });
}

/// Without cookie keys, the real server rejects requests, and the balancer responds.
#[test]
fn missing_cookie_key_rejects_requests() {
    if !privileged() {
        return;
    }
    let files = [("small".to_owned(), content(1, 1000))];
    let testbed = Testbed::new("keyless", 1, "round-robin", "", &files);
    run(&testbed, async || {
        let cookie = Cookie {
            sid: 7,
            prefix: 0x2001_0db8_0000_0007,
            epoch: Some(1),
        };
        let mut balancer = Stream::open(&testbed, Some(cookie), CREDIT).await;
        for stream in [0, 4] {
            balancer.send_request(stream, "small", 10_000).await;
            let reason = RejectReason::Path;
            assert_eq!(
                balancer.receive_message().await,
                ToBalancer::Rejected { stream, reason }
            );
        }
        balancer.send_message(&ToServer::Stop).await;
        assert_eq!(
            balancer.receive_message().await,
            ToBalancer::Returned { next: FIRST }
        );
    });
    assert_eq!(testbed.server_metric(0, "failed_grants_total"), 1);
    assert_eq!(
        testbed.server_metric(0, "rejected_total{reason=\"path\"}"),
        2
    );
}
