// SPDX-License-Identifier: Apache-2.0
//! A network cut between a real server and the client only: the client still receives the balancer (QDSR, section
//! 6.2).

use std::time::{Duration, Instant};

use frontage_testkit::{Impairment, privileged};

use crate::common::client::{Client, all, both_send};
use crate::common::{PORT, Testbed, content, long_and_short, run, until};

/// Drop the service's packets to the client that enter by these bridge ports, until [`heal`].
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

fn heal(testbed: &Testbed) {
    testbed.client.sh("nft delete table netdev cut");
}

/// Bridge ports of the balancer and the first real servers.
const PORTS: [&str; 3] = ["p2", "p3", "p4"];

/// Two real servers send one stream each, and the packets of the first one are dropped.
fn abandon_unreachable_server(name: &str, paths: u32) {
    if !privileged() {
        return;
    }
    let files = long_and_short();
    let testbed = Testbed::new(name, 2, "round-robin", "", &files);
    run(&testbed, async || {
        let client = Client::connect(&testbed, paths).await;
        let long = both_send(&testbed, &client).await;
        cut(&testbed, &PORTS[1..2]);
        let cut = Instant::now();
        let ended = long.map(|answer| async {
            let answer = tokio::time::timeout(frontage_testkit::TEST_TIMEOUT, answer).await;
            (answer.expect("an end").unwrap(), cut.elapsed())
        });
        let results = futures_util::future::join_all(ended).await;
        let (whole, lost): (Vec<_>, Vec<_>) = results.iter().partition(|(got, _)| got.is_ok());
        assert_eq!(
            (whole.len(), lost.len()),
            (1, 1),
            "the other does not suffer"
        );
        assert!(whole[0].0 == Ok((200, files[0].1.clone())));
        assert!(
            lost[0]
                .0
                .as_ref()
                .unwrap_err()
                .contains("H3_INTERNAL_ERROR")
        );
        println!("the client hears of it after {:?}", lost[0].1);
        // Though the first real server is there, and would be next.
        let before = testbed.server_metric(0, "grants_total");
        for _ in 0..4 {
            let got = client.get("short").await.unwrap();
            assert!(got == Ok((200, files[1].1.clone())));
        }
        assert_eq!(testbed.server_metric(0, "grants_total"), before);
        assert!(client.quic.close_reason().is_none());
        client.close().await;
    });
    assert_eq!(testbed.metric_about(0, "unreachable_total"), 1);
    assert_eq!(testbed.metric_about(1, "unreachable_total"), 0);
    assert_eq!(testbed.metric_about(0, "aborted_total"), 1);
}

#[test]
fn unreachable_server_with_path_is_abandoned() {
    abandon_unreachable_server("unreachable", 3);
}

#[test]
fn unreachable_server_of_single_path_client_is_abandoned() {
    abandon_unreachable_server("unreachable-1", 1);
}

/// All packets to the client are dropped for some time. Afterwards the client must receive everything.
fn a_client_is_away(name: &str, paths: u32) {
    if !privileged() {
        return;
    }
    let files = long_and_short();
    let testbed = Testbed::new(name, 2, "round-robin", "", &files);
    run(&testbed, async || {
        let client = Client::connect(&testbed, paths).await;
        let long = [client.get("long"), client.get("long")];
        for away in [310, 440, 610, 930, 2200] {
            let sent = |i| testbed.server_metric(i, "body_bytes_total");
            let before = [sent(0), sent(1)];
            let over = || long.iter().any(tokio::task::JoinHandle::is_finished);
            until("both servers send", || {
                over() || (0..2).all(|i| sent(i) > before[i] + 100_000)
            })
            .await;
            cut(&testbed, &PORTS);
            tokio::time::sleep(Duration::from_millis(away)).await;
            heal(&testbed);
        }
        for answer in long {
            assert!(answer.await.unwrap() == Ok((200, files[0].1.clone())));
        }
        client.close().await;
    });
    for i in 0..2 {
        assert_eq!(testbed.metric_about(i, "unreachable_total"), 0);
    }
}

#[test]
fn offline_client_with_paths_keeps_its_servers() {
    a_client_is_away("away", 3);
}

#[test]
fn offline_single_path_client_keeps_its_servers() {
    a_client_is_away("away-one", 1);
}

/// With 5 % loss each way and some reordering, no real server becomes unreachable, although probes and responses are
/// lost.
fn keep_servers_despite_losses(name: &str, paths: u32) {
    const SEED: u64 = 11;
    if !privileged() {
        return;
    }
    // Where one ends, a loss shows by a probe alone.
    let files: Vec<_> = (0..400)
        .map(|i| (i.to_string(), content(i, 20_000 * (1 + i % 4))))
        .collect();
    let testbed = Testbed::new(name, 2, "round-robin", "", &files);
    let impairment = Impairment {
        loss: 5,
        reordering: 2,
        seed: SEED,
    };
    run(&testbed, async || {
        let client = Client::connect_impaired(&testbed, paths, impairment).await;
        for some in files.chunks(2) {
            for ((name, content), got) in some.iter().zip(all(&client, some).await) {
                assert!(got == Ok((200, content.clone())), "seed {SEED}: {name}");
            }
        }
        client.close().await;
    });
    for i in 0..2 {
        assert_eq!(
            testbed.metric_about(i, "unreachable_total"),
            0,
            "seed {SEED}"
        );
        assert!(testbed.answers(i) > 0);
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
