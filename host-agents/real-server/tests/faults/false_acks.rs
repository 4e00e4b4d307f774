// SPDX-License-Identifier: Apache-2.0
//! A client that acknowledges unsent packets (RFC 9000, section 13.1): its connection is closed, and others continue.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use frontage_quic::session::{Config, Nonce, Observer, Outgoing, Packet};
use frontage_quic_wire::frames::{self, Frame};
use frontage_quic_wire::read_varint;
use frontage_testkit::privileged;
use noq::{ConnectionError, Endpoint, TransportConfig, TransportErrorCode};

use crate::common::client::{Client, both_send, tls};
use crate::common::{Testbed, long_and_short, run, until};

/// Observer that falsifies the ACKs of a noq client on request.
struct Liar {
    lies: AtomicBool,
    /// Falsify ACKs of the real servers' paths, or of the single path.
    of_paths: bool,
}

impl Liar {
    /// Return whether to falsify this ACK. A number of one octet could be true.
    fn minds(&self, frame: &Frame<'_>) -> bool {
        matches!(frame, Frame::Ack(ack) if (ack.path > 0) == self.of_paths && ack.largest > 63)
    }
}

impl Observer for Liar {
    fn on_sent(&self, _: &Packet<'_>) {}

    fn on_received(&self, _: &Packet<'_>) {}

    fn seal(&self, outgoing: &mut Outgoing<'_>) -> Nonce {
        if self.lies.load(Relaxed) {
            let spans = frames::read_with_spans(outgoing.payload);
            let acks: Vec<_> = spans.filter(|(_, frame)| self.minds(frame)).collect();
            let acks: Vec<_> = acks.into_iter().map(|(span, _)| span).collect();
            for ack in acks {
                lie(&mut outgoing.payload[ack]);
            }
        }
        Nonce {
            path: outgoing.path,
            number: outgoing.number,
        }
    }
}

/// Replace the largest number by the largest one that fits.
fn lie(ack: &mut [u8]) {
    /// PATH_ACK has the path id first.
    const PATH_ACK: u64 = 0x3e;
    let mut rest = &*ack;
    if read_varint(&mut rest).unwrap() >= PATH_ACK {
        read_varint(&mut rest).unwrap();
    }
    let at = ack.len() - rest.len();
    let length = 1 << (ack[at] >> 6);
    ack[at] |= 0x3f;
    ack[at + 1..at + length].fill(0xff);
}

fn a_client_lies(name: &str, paths: u32) {
    if !privileged() {
        return;
    }
    let files = long_and_short();
    let testbed = Testbed::new(name, 2, "round-robin", "", &files);
    run(&testbed, async || {
        let liar = Arc::new(Liar {
            lies: AtomicBool::new(false),
            of_paths: paths > 1,
        });
        let observer = liar.clone();
        let session = Config::client(tls(&testbed), vec![], move || observer.clone()).unwrap();
        let (endpoint, transport) = (endpoint(), TransportConfig::default());
        let to = testbed.address();
        let client = Client::with(endpoint, Arc::new(session), transport, to, paths).await;
        let honest = Client::connect(&testbed, paths).await;
        let false_ones = both_send(&testbed, &client).await;
        let goods = both_send(&testbed, &honest).await;
        liar.lies.store(true, Relaxed);
        let closed =
            tokio::time::timeout(frontage_testkit::TEST_TIMEOUT, client.quic.closed()).await;
        let closed = closed.expect("the balancer notices");
        assert!(
            matches!(&closed, ConnectionError::ConnectionClosed(close)
                if close.error_code == TransportErrorCode::PROTOCOL_VIOLATION),
            "{closed:?}"
        );
        for answer in false_ones {
            assert!(answer.await.unwrap().is_err());
        }
        for answer in goods {
            assert!(answer.await.unwrap() == Ok((200, files[0].1.clone())));
        }
        // Both are there still, and serve whoever comes.
        let newcomer = Client::connect(&testbed, paths).await;
        for client in [honest, newcomer] {
            for _ in 0..4 {
                let got = client.get("short").await.unwrap();
                assert!(got == Ok((200, files[1].1.clone())));
            }
            client.close().await;
        }
        until(
            "the end of all delegations to the closed connection",
            || (0..2).all(|i| testbed.server_metric(i, "active_flows") == 0),
        )
        .await;
    });
    for i in 0..2 {
        assert_eq!(testbed.metric_about(i, "up"), 1);
        assert_eq!(testbed.metric_about(i, "unreachable_total"), 0);
    }
}

fn endpoint() -> Endpoint {
    Endpoint::client("0.0.0.0:0".parse().unwrap()).unwrap()
}

#[test]
fn false_ack_on_a_path_closes_connection() {
    a_client_lies("lies", 3);
}

#[test]
fn false_ack_of_single_path_client_closes_connection() {
    a_client_lies("lies-one", 1);
}
