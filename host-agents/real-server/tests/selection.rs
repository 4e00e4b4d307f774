// SPDX-License-Identifier: Apache-2.0
//! Choice of the real server for a request: weights and health.

#[allow(dead_code)]
mod common;

use common::client::{Client, get_all};
use common::{Testbed, content, run, wait_until};
use frontage_testkit::privileged;

/// Weights of the real servers of one test.
const WEIGHTS: [u32; 3] = [1, 2, 5];

fn files(count: usize) -> Vec<(String, Vec<u8>)> {
    let file = |i: usize| (i.to_string(), content(i, 20_000));
    (0..count).map(file).collect()
}

/// Download all files, and return how many responses each real server has completed since the last call.
async fn shares(
    testbed: &Testbed,
    client: &Client,
    files: &[(String, Vec<u8>)],
    before: &mut Vec<u64>,
) -> Vec<u64> {
    let completed = || {
        let servers = 0..testbed.servers.len();
        servers
            .map(|i| testbed.completed_responses(i))
            .collect::<Vec<u64>>()
    };
    before.resize(testbed.servers.len(), 0);
    for ((name, content), got) in files.iter().zip(get_all(client, files).await) {
        assert!(got == Ok((200, content.clone())), "{name}");
    }
    let all = before.iter().sum::<u64>() + files.len() as u64;
    wait_until("all responses are counted", || {
        completed().iter().sum::<u64>() == all
    })
    .await;
    let now = completed();
    let shares = now
        .iter()
        .zip(&*before)
        .map(|(now, before)| now - before)
        .collect();
    *before = now;
    shares
}

#[test]
fn real_servers_get_requests_in_ratio_of_their_weights() {
    if !privileged() {
        return;
    }
    let files = files(80);
    let testbed = Testbed::with_weights("weights", &WEIGHTS, "round-robin", "", &files);
    run(&testbed, async || {
        let client = Client::connect(&testbed, 1 + WEIGHTS.len() as u32).await;
        let shares = shares(&testbed, &client, &files, &mut Vec::new()).await;
        assert_eq!(shares, [10, 20, 50]);
        client.close().await;
    });
}

#[test]
fn connection_keeps_its_real_server() {
    if !privileged() {
        return;
    }
    let files = files(12);
    let testbed = Testbed::new("per-connection", 2, "per-connection", "", &files);
    run(&testbed, async || {
        let clients = [
            Client::connect(&testbed, 3).await,
            Client::connect(&testbed, 1).await,
        ];
        let mut before = Vec::new();
        for client in &clients {
            let first = shares(&testbed, client, &files, &mut before).await;
            assert!(first == [12, 0] || first == [0, 12], "{first:?}");
            assert_eq!(shares(&testbed, client, &files, &mut before).await, first);
        }
        for client in clients {
            client.close().await;
        }
    });
}

/// The origin of one real server does not respond, while its link is up.
#[test]
fn unhealthy_server_gets_no_requests_until_it_recovers() {
    if !privileged() {
        return;
    }
    let files = files(12);
    let health = "health = { path = '/0', interval_ms = 100, failures = 2, successes = 2 }";
    let testbed = Testbed::new("health", 2, "round-robin", health, &files);
    let is_healthy = |value| {
        let testbed = &testbed;
        move || testbed.balancer_metric("real_server_healthy{server=\"rs0.test\"}") == value
    };
    run(&testbed, async || {
        let client = Client::connect(&testbed, 3).await;
        let mut before = Vec::new();
        assert_eq!(shares(&testbed, &client, &files, &mut before).await, [6, 6]);
        testbed.servers[0].sh(
            "nft 'add table inet cut; add chain inet cut in { type filter hook input priority 0; }; \
             add rule inet cut in tcp dport 8080 drop'",
        );
        wait_until("the checks fail", is_healthy(0)).await;
        assert_eq!(
            testbed.balancer_metric("real_server_up{server=\"rs0.test\"}"),
            1
        );
        assert_eq!(
            shares(&testbed, &client, &files, &mut before).await,
            [0, 12]
        );
        testbed.servers[0].sh("nft delete table inet cut");
        wait_until("the checks succeed", is_healthy(1)).await;
        assert_eq!(shares(&testbed, &client, &files, &mut before).await, [6, 6]);
        client.close().await;
    });
    assert!(testbed.metric_for(0, "failed_checks_total") >= 2);
}
