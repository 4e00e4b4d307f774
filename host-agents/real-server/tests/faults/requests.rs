// SPDX-License-Identifier: Apache-2.0
//! Requests of a real server to its balancer, and rejections. This test acts as the balancer.

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

    pub async fn say(&mut self, message: &ToServer) {
        let mut wire = BytesMut::new();
        message.encode(&mut wire);
        self.send.write_all(&wire).await.unwrap();
    }

    pub async fn ask(&mut self, stream: u64, name: &str, max_stream_data: u64) {
        let request = Request::get(format!("https://lb.test/{name}"));
        let http3 = http3::request(&request.body(()).unwrap(), &[]);
        let max_stream_data = Some(max_stream_data);
        let request = ToServer::Request {
            stream,
            max_stream_data,
            http3,
        };
        self.say(&request).await;
    }

    pub async fn hear(&mut self) -> ToBalancer {
        let hearing = async {
            loop {
                if let Some(message) = ToBalancer::decode(&mut self.wire).unwrap() {
                    return message;
                }
                let chunk = self.receive.read_chunk(1 << 16).await.unwrap();
                self.wire
                    .extend_from_slice(&chunk.expect("the stream goes on"));
            }
        };
        let heard = tokio::time::timeout(frontage_testkit::TEST_TIMEOUT, hearing).await;
        heard.expect("a message")
    }
}

/// The real server requests more credit as its streams need it, and reports that the absent client acknowledges
/// nothing.
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
        // Its room is in the share.
        balancer.ask(0, "small", 0).await;
        assert_eq!(balancer.hear().await, ToBalancer::Accepted { stream: 0 });
        balancer.ask(4, "large", 10_000).await;
        assert_eq!(balancer.hear().await, ToBalancer::Accepted { stream: 4 });
        let ToBalancer::Blocked { credit } = balancer.hear().await else {
            panic!("it has {CREDIT} and needs more");
        };
        // Headers and heads of frames are a few kilobytes.
        let bytes = (small + large) as u64;
        assert!((bytes..bytes + 10_000).contains(&credit), "{credit}");
        let silent = balancer.hear().await;
        assert!(
            matches!(
                silent,
                ToBalancer::NoAckReport {
                    elapsed: 100_000..,
                    ..
                }
            ),
            "{silent:?}"
        );
        balancer.say(&ToServer::Stop).await;
        loop {
            match balancer.hear().await {
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
            balancer.ask(stream, "small", 10_000).await;
            let reason = RejectReason::Path;
            assert_eq!(
                balancer.hear().await,
                ToBalancer::Rejected { stream, reason }
            );
        }
        balancer.say(&ToServer::Stop).await;
        assert_eq!(balancer.hear().await, ToBalancer::Returned { next: FIRST });
    });
    assert_eq!(testbed.server_metric(0, "failed_grants_total"), 1);
    assert_eq!(
        testbed.server_metric(0, "rejected_total{reason=\"path\"}"),
        2
    );
}
