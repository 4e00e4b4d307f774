// SPDX-License-Identifier: Apache-2.0
//! Fewer paths than real servers.

use frontage_testkit::privileged;

use crate::common::client::Client;
use crate::common::{Testbed, content, run, wait_until};

/// Real servers use the path in turn. Each returns it, so the packet numbers continue.
#[test]
fn real_servers_use_one_path_in_turn() {
    if !privileged() {
        return;
    }
    let files = [("file".to_owned(), content(1, 300_000))];
    let testbed = Testbed::new("turns", 3, "round-robin", "", &files);
    let sum = |name| {
        (0..3)
            .map(|server| testbed.metric_for(server, name))
            .sum::<u64>()
    };
    run(&testbed, async || {
        let client = Client::connect(&testbed, 2).await;
        for done in 1..=12 {
            let got = client.get("file").await.unwrap();
            assert!(got == Ok((200, files[0].1.clone())));
            // Until then, the path is still delegated.
            wait_until("the response is counted", || {
                sum("answers_total") + testbed.balancer_metric("handoff_local_total") == done
            })
            .await;
        }
        assert!(client.quic.close_reason().is_none());
        client.close().await;
    });
    for server in 0..3 {
        assert!(
            testbed.completed_responses(server) >= 3,
            "{server}: {}",
            testbed.completed_responses(server)
        );
    }
    assert_eq!(sum("aborted_total"), 0);
    assert!(sum("returned_paths_total") >= 9);
}
