// SPDX-License-Identifier: Apache-2.0
//! A broken network path between a real server and the client, while the client still reaches the balancer (QDSR, section
//! 6.2).

use std::time::{Duration, Instant};

use frontage_testkit::{Impairment, privileged};

use crate::common::client::{Client, get_all, start_on_both_servers};
use crate::common::{PORT, Testbed, content, long_and_short, run, two_senders, wait_until};

/// Drop packets of the service that enter at these bridge ports, until [`heal`].
fn cut(testbed: &Testbed, ports: &[&str]) {
    let chain = |port| {
        format!(
            "nft 'add chain netdev cut {port} {{ type filter hook ingress device {port} priority 0; }}' && \
             nft add rule netdev cut {port} udp sport {PORT} drop"
        )
    };
    let chains: Vec<_> = ports.iter().map(chain).collect();
    let chains = chains.join(" && ");
    testbed
        .client
        .sh(&format!("nft add table netdev cut && {chains}"));
}

/// Stop dropping packets.
fn heal(testbed: &Testbed) {
    testbed.client.sh("nft delete table netdev cut");
}

/// Bridge ports of the balancer and the first two real servers.
const PORTS: [&str; 3] = ["p2", "p3", "p4"];

/// Drop the packets of the first of two real servers that send one stream each, and check that the balancer
/// completes its response.
fn abandon_unreachable_server(name: &str, paths: u32) {
    if !privileged() {
        return;
    }
    let files = long_and_short();
    let testbed = Testbed::new(name, 2, two_senders(paths), "", &files);
    run(&testbed, async || {
        let client = Client::connect(&testbed, paths).await;
        let long = start_on_both_servers(&testbed, &client).await;
        cut(&testbed, &PORTS[1..2]);
        let start = Instant::now();
        for response in long {
            let response = tokio::time::timeout(frontage_testkit::TEST_TIMEOUT, response).await;
            let got = response.expect("the response ends").unwrap();
            assert!(got == Ok((200, files[0].1.clone())));
        }
        println!("both responses are complete after {:?}", start.elapsed());
        // The balancer avoids the first real server, although it is up and next in turn.
        let before = testbed.server_metric(0, "grants_total");
        for _ in 0..4 {
            let got = client.get("short").await.unwrap();
            assert!(got == Ok((200, files[1].1.clone())));
        }
        assert_eq!(testbed.server_metric(0, "grants_total"), before);
        assert!(client.quic.close_reason().is_none());
        client.close().await;
    });
    assert_eq!(testbed.metric_for(0, "unreachable_total"), 1);
    assert_eq!(testbed.metric_for(1, "unreachable_total"), 0);
    assert_eq!(
        [0, 1].map(|i| testbed.metric_for(i, "resumed_total")),
        [1, 0]
    );
}

#[test]
fn unreachable_server_with_path_is_abandoned() {
    abandon_unreachable_server("unreachable", 3);
}

#[test]
fn unreachable_server_of_single_path_client_is_abandoned() {
    abandon_unreachable_server("unreachable-1", 1);
}

/// Repeatedly drop all packets to the client for some time. The client must still receive complete responses.
fn disconnect_client(name: &str, paths: u32) {
    if !privileged() {
        return;
    }
    let files = long_and_short();
    let testbed = Testbed::new(name, 2, two_senders(paths), "", &files);
    run(&testbed, async || {
        let client = Client::connect(&testbed, paths).await;
        let long = [client.get("long2"), client.get("long")];
        for outage_ms in [310, 440, 610, 930, 2200] {
            let sent = |i| testbed.server_metric(i, "body_bytes_total");
            let before = [sent(0), sent(1)];
            let is_finished = || long.iter().any(tokio::task::JoinHandle::is_finished);
            wait_until("both servers send", || {
                is_finished() || (0..2).all(|i| sent(i) > before[i] + 100_000)
            })
            .await;
            cut(&testbed, &PORTS);
            tokio::time::sleep(Duration::from_millis(outage_ms)).await;
            heal(&testbed);
        }
        for response in long {
            let (status, body) = response.await.unwrap().unwrap();
            assert_eq!(status, 200);
            assert!(body == files[0].1, "{} bytes differ", body.len());
        }
        client.close().await;
    });
    for i in 0..2 {
        assert_eq!(testbed.metric_for(i, "unreachable_total"), 0);
    }
}

#[test]
fn offline_client_with_paths_keeps_its_servers() {
    disconnect_client("away", 3);
}

#[test]
fn offline_single_path_client_keeps_its_servers() {
    disconnect_client("away-one", 1);
}

/// Download with 5 % loss in each direction and some reordering. Real servers must stay reachable although probes and
/// responses are lost.
fn keep_servers_despite_losses(name: &str, paths: u32) {
    const SEED: u64 = 11;
    if !privileged() {
        return;
    }
    // A loss at the end of a response is detected only by a probe, so use many responses.
    let files: Vec<_> = (0..400)
        .map(|i| (i.to_string(), content(i, 20_000 * (1 + i % 4))))
        .collect();
    let testbed = Testbed::new(name, 2, two_senders(paths), "", &files);
    let impairment = Impairment {
        loss: 5,
        reordering: 2,
        seed: SEED,
    };
    run(&testbed, async || {
        let client = Client::connect_impaired(&testbed, paths, impairment).await;
        for pair in files.chunks(2) {
            for ((name, content), got) in pair.iter().zip(get_all(&client, pair).await) {
                assert!(got == Ok((200, content.clone())), "seed {SEED}: {name}");
            }
        }
        client.close().await;
    });
    for i in 0..2 {
        assert_eq!(testbed.metric_for(i, "unreachable_total"), 0, "seed {SEED}");
        assert!(testbed.completed_responses(i) > 0);
    }
}

#[test]
fn packet_loss_with_paths_abandons_no_server() {
    keep_servers_despite_losses("losses", 3);
}

#[test]
fn packet_loss_with_single_path_abandons_no_server() {
    keep_servers_despite_losses("losses-one", 1);
}
