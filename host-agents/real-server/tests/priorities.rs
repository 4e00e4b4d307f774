// SPDX-License-Identifier: Apache-2.0
//! Priorities of responses (RFC 9218) at a real server.

#[allow(dead_code)]
mod common;

use std::time::Instant;

use common::client::{Client, RESPONSE_TIMEOUT};
use common::{Testbed, content, run, wait_until};
use frontage_testkit::privileged;

const LENGTH: usize = 4_000_000;
/// Rate of the client's link, so that responses wait for it, in Mbit/s.
const RATE: u32 = 100;

/// Request long responses, then an urgent one, and return which of the priorities ended in which order.
fn order(name: &str, priorities: &[&'static str]) -> Vec<&'static str> {
    let files: Vec<_> = (0..priorities.len())
        .map(|i| (i.to_string(), content(i, LENGTH)))
        .collect();
    let testbed = Testbed::new(name, 1, "round-robin", "", &files);
    // The real server's way to the bridge is the bottleneck.
    testbed.servers[0].sh(&format!(
        "tc qdisc add dev eth0 root tbf rate {RATE}mbit burst 20kb latency 50ms"
    ));
    run(&testbed, async || {
        let client = Client::connect(&testbed, 2).await;
        let mut running = Vec::new();
        for (i, priority) in priorities.iter().enumerate() {
            let got = client.get_with_priority(&i.to_string(), priority);
            let expected = &files[i].1;
            running.push(async move {
                let got = tokio::time::timeout(RESPONSE_TIMEOUT, got).await;
                assert!(got.expect("a response in time").unwrap() == Ok((200, expected.clone())));
                (Instant::now(), *priority)
            });
            if i == 0 {
                wait_until("the first response is under way", || {
                    testbed.server_metric(0, "body_bytes_total") > 0
                })
                .await;
            }
        }
        let mut ended = futures_util::future::join_all(running).await;
        ended.sort();
        client.close().await;
        assert_eq!(testbed.balancer_metric("handoff_local_total"), 0);
        ended.into_iter().map(|(_, priority)| priority).collect()
    })
}

#[test]
fn urgent_response_overtakes_earlier_ones() {
    if !privileged() {
        return;
    }
    let ended = order("urgent", &["u=5, i", "u=6, i", "u=0"]);
    assert_eq!(ended, ["u=0", "u=5, i", "u=6, i"]);
}

/// Responses that are not incremental do not share the link: the later one waits.
#[test]
fn responses_of_equal_urgency_are_sent_in_turn() {
    if !privileged() {
        return;
    }
    let ended = order("in-turn", &["u=3;n=1", "u=3;n=2", "u=3;n=3"]);
    assert_eq!(ended, ["u=3;n=1", "u=3;n=2", "u=3;n=3"]);
}
