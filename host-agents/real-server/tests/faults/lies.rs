//! A client that acknowledges packets which nobody sent (RFC 9000, section 13.1): its connection ends, and no other.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use frontage_quic::session::{Config, Nonce, Observer, Outgoing, Packet};
use frontage_quic_wire::frames::{self, Frame};
use frontage_quic_wire::read_varint;
use frontage_testkit::privileged;
use noq::{ConnectionError, Endpoint, TransportConfig, TransportErrorCode};

use crate::common::client::{Client, both_send, tls};
use crate::common::{World, long_and_short, run, until};

/// Noq's packets, whose acknowledgements are false from the time on that it lies.
struct Liar {
    lies: AtomicBool,
    /// Of packets by real servers' paths, or by the only one.
    of_paths: bool,
}

impl Liar {
    /// Whether that is to be a lie. What fits into one octet could be true.
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

/// The largest number becomes the largest that has room in its octets.
fn lie(ack: &mut [u8]) {
    /// PATH_ACK, which names the path before.
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
    let world = World::new(name, 2, "round-robin", "", &files);
    run(&world, async || {
        let liar = Arc::new(Liar {
            lies: AtomicBool::new(false),
            of_paths: paths > 1,
        });
        let observer = liar.clone();
        let session = Config::client(tls(&world), vec![], move || observer.clone()).unwrap();
        let (endpoint, transport) = (endpoint(), TransportConfig::default());
        let to = world.address();
        let client = Client::with(endpoint, Arc::new(session), transport, to, paths).await;
        let honest = Client::connect(&world, paths).await;
        let false_ones = both_send(&world, &client).await;
        let goods = both_send(&world, &honest).await;
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
        let newcomer = Client::connect(&world, paths).await;
        for client in [honest, newcomer] {
            for _ in 0..4 {
                let got = client.get("short").await.unwrap();
                assert!(got == Ok((200, files[1].1.clone())));
            }
            client.close().await;
        }
        until("nobody sends to who lied", || {
            (0..2).all(|i| world.server_metric(i, "active_flows") == 0)
        })
        .await;
    });
    for i in 0..2 {
        assert_eq!(world.says_of(i, "up"), 1);
        assert_eq!(world.says_of(i, "unheard_total"), 0);
    }
}

fn endpoint() -> Endpoint {
    Endpoint::client("0.0.0.0:0".parse().unwrap()).unwrap()
}

#[test]
fn a_client_lies_about_a_path() {
    a_client_lies("lies", 3);
}

#[test]
fn a_client_of_one_path_lies() {
    a_client_lies("lies-one", 1);
}
