// SPDX-License-Identifier: Apache-2.0
//! Key updates: before the first delegation, and during delegated streams with BBR.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use frontage_quic::session::{Config, Observer, Packet};
use frontage_testkit::privileged;
use noq::{ClientConfig, Endpoint, PathId, TransportConfig};

use crate::common::client::{Client, tls};
use crate::common::{Testbed, content, run, wait_until};

/// Number of 1-RTT packets, and the latest key generation of those received.
#[derive(Default)]
struct Updates {
    generation: AtomicU32,
    sent: AtomicU32,
    received: AtomicU32,
}

impl Observer for Updates {
    fn on_sent(&self, _: &Packet<'_>) {
        self.sent.fetch_add(1, Relaxed);
    }

    fn on_received(&self, packet: &Packet<'_>) {
        self.received.fetch_add(1, Relaxed);
        self.generation.fetch_max(packet.generation, Relaxed);
    }
}

#[test]
fn balancer_updates_keys_once_handshake_is_confirmed() {
    if !privileged() {
        return;
    }
    let testbed = Testbed::new("renewed", 1, "round-robin", "", &[]);
    run(&testbed, async || {
        let updates = Arc::<Updates>::default();
        let observer = updates.clone();
        let session = Config::client(tls(&testbed), Vec::new(), move || observer.clone()).unwrap();
        let mut config = ClientConfig::new(Arc::new(session));
        let mut transport = TransportConfig::default();
        transport.mtu_discovery_config(None);
        config.transport_config(Arc::new(transport));
        let endpoint = Endpoint::client("0.0.0.0:0".parse().unwrap()).unwrap();
        let connecting = endpoint.connect_with(config, testbed.address(), "lb.test");
        let quic = connecting.unwrap().await.unwrap();
        let path = quic.path(PathId::ZERO).unwrap();
        let pings = async {
            // The balancer uses its new keys as soon as it has something to send. The pauses grow, so that few packets suffice.
            for pause in (0..).map(|i| Duration::from_millis(50 << i)) {
                tokio::time::sleep(pause).await;
                path.ping().unwrap();
            }
        };
        tokio::select! {
            () = pings => {}
            () = wait_until("keys are updated", || updates.generation.load(Relaxed) == 1) => {}
        }
        // noq itself updates keys after it has sent ten packets at the earliest. Those of the handshake do not count.
        let counts = [&updates.sent, &updates.received].map(|count| count.load(Relaxed));
        assert!(counts.iter().all(|count| *count < 10), "{counts:?}");
    });
}

#[test]
fn key_updates_do_not_disturb_delegated_streams() {
    if !privileged() {
        return;
    }
    let files: Vec<_> = (0..4)
        .map(|i| (format!("{i}"), content(i, 2_000_000)))
        .collect();
    let testbed =
        Testbed::with_server_config("keys", 2, "round-robin", "", "congestion = 'bbr'", &files);
    run(&testbed, async || {
        let client = Client::connect(&testbed, 3).await;
        for round in 0..3 {
            let requests: Vec<_> = files.iter().map(|(name, _)| client.get(name)).collect();
            // Wait until each round has responses in flight.
            let sent = || (0..2).map(|i| testbed.server_metric(i, "body_bytes_total"));
            let before = round * 8_000_000;
            wait_until("real servers send", || {
                sent().sum::<u64>() > before + 500_000
            })
            .await;
            client.quic.force_key_update();
            for ((name, content), got) in files.iter().zip(requests) {
                assert!(got.await.unwrap() == Ok((200, content.clone())), "{name}");
            }
        }
        assert!(client.quic.close_reason().is_none());
        client.close().await;
    });
    assert!((0..2).all(|i| testbed.completed_responses(i) > 0
        && testbed.server_metric(i, "invalid_feedback_total") == 0));
    assert_eq!(testbed.balancer_metric("handoff_local_total"), 0);
}
