// SPDX-License-Identifier: Apache-2.0
//! A client that acknowledges unsent packets (RFC 9000, section 13.1). Its connection is closed, and others continue.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use frontage_quic::session::{Config, Nonce, Observer, Outgoing, Packet};
use frontage_quic_wire::frames::{self, Frame};
use frontage_quic_wire::read_varint;
use frontage_testkit::privileged;
use noq::{ConnectionError, Endpoint, TransportConfig, TransportErrorCode};

use crate::common::client::{Client, start_on_both_servers, tls};
use crate::common::{Testbed, long_and_short, run, two_senders, wait_until};

/// Observer that falsifies the ACKs of a noq client while it is enabled.
struct FalseAckObserver {
    is_enabled: AtomicBool,
    /// True to falsify ACKs of the real servers' paths, false for those of the single path.
    on_paths: bool,
}

impl FalseAckObserver {
    /// Return whether to falsify this ACK. Excludes packet numbers of one octet, whose false value could be valid.
    fn selects(&self, frame: &Frame<'_>) -> bool {
        matches!(frame, Frame::Ack(ack) if (ack.path > 0) == self.on_paths && ack.largest > 63)
    }
}

impl Observer for FalseAckObserver {
    fn on_sent(&self, _: &Packet<'_>) {}

    fn on_received(&self, _: &Packet<'_>) {}

    fn seal(&self, outgoing: &mut Outgoing<'_>) -> Nonce {
        if self.is_enabled.load(Relaxed) {
            let spans = frames::read_with_spans(outgoing.payload);
            let acks: Vec<_> = spans.filter(|(_, frame)| self.selects(frame)).collect();
            let acks: Vec<_> = acks.into_iter().map(|(span, _)| span).collect();
            for ack in acks {
                falsify(&mut outgoing.payload[ack]);
            }
        }
        Nonce {
            path: outgoing.path,
            number: outgoing.number,
        }
    }
}

/// Replace the largest acknowledged number by the largest that fits into its encoding.
fn falsify(ack: &mut [u8]) {
    /// Type of PATH_ACK, which starts with a path id.
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

fn send_false_acks(name: &str, paths: u32) {
    if !privileged() {
        return;
    }
    let files = long_and_short();
    let testbed = Testbed::new(name, 2, two_senders(paths), "", &files);
    run(&testbed, async || {
        let falsifier = Arc::new(FalseAckObserver {
            is_enabled: AtomicBool::new(false),
            on_paths: paths > 1,
        });
        let observer = falsifier.clone();
        let session = Config::client(tls(&testbed), vec![], move || observer.clone()).unwrap();
        let (endpoint, transport) = (endpoint(), TransportConfig::default());
        let to = testbed.address();
        let client = Client::connect_with(endpoint, Arc::new(session), transport, to, paths).await;
        let honest = Client::connect(&testbed, paths).await;
        let failing = start_on_both_servers(&testbed, &client).await;
        let succeeding = start_on_both_servers(&testbed, &honest).await;
        falsifier.is_enabled.store(true, Relaxed);
        let closed =
            tokio::time::timeout(frontage_testkit::TEST_TIMEOUT, client.quic.closed()).await;
        let closed = closed.expect("the balancer closes the connection");
        assert!(
            matches!(&closed, ConnectionError::ConnectionClosed(close)
                if close.error_code == TransportErrorCode::PROTOCOL_VIOLATION),
            "{closed:?}"
        );
        for response in failing {
            assert!(response.await.unwrap().is_err());
        }
        for response in succeeding {
            assert!(response.await.unwrap() == Ok((200, files[0].1.clone())));
        }
        // Both real servers still serve existing and new clients.
        let new = Client::connect(&testbed, paths).await;
        for client in [honest, new] {
            for _ in 0..4 {
                let got = client.get("short").await.unwrap();
                assert!(got == Ok((200, files[1].1.clone())));
            }
            client.close().await;
        }
        wait_until("all delegations of the closed connection end", || {
            (0..2).all(|i| testbed.server_metric(i, "active_flows") == 0)
        })
        .await;
    });
    for i in 0..2 {
        assert_eq!(testbed.metric_for(i, "up"), 1);
        assert_eq!(testbed.metric_for(i, "unreachable_total"), 0);
    }
}

fn endpoint() -> Endpoint {
    Endpoint::client("0.0.0.0:0".parse().unwrap()).unwrap()
}

#[test]
fn false_ack_on_a_path_closes_connection() {
    send_false_acks("lies", 3);
}

#[test]
fn false_ack_of_single_path_client_closes_connection() {
    send_false_acks("lies-one", 1);
}
