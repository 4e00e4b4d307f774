// SPDX-License-Identifier: Apache-2.0
//! A client behind a NAT that changes its address.

use frontage_testkit::{Nat, privileged};
use noq::Endpoint;

use crate::common::client::Client;
use crate::common::{Testbed, content, run};

#[test]
fn real_servers_follow_moving_client() {
    if !privileged() {
        return;
    }
    let files = [("file".to_owned(), content(1, 2_000_000))];
    let testbed = Testbed::new("moves", 2, "round-robin", "", &files);
    testbed.client.sh("ip addr add 10.0.0.77/24 dev br0");
    run(&testbed, async || {
        let nat = Nat::new(testbed.address(), [10, 0, 0, 1].into()).await;
        let endpoint = Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
        let client = Client::connect_from(endpoint, &testbed, nat.address, 3).await;
        let download_both = async || {
            let responses = [client.get("file"), client.get("file")];
            for got in responses {
                assert!(got.await.unwrap() == Ok((200, files[0].1.clone())));
            }
        };
        download_both().await;
        // Use another port, then another address, then the first address again.
        for last in [1, 77, 1] {
            nat.rebind([10, 0, 0, last].into()).await;
            download_both().await;
        }
        assert!(client.quic.close_reason().is_none());
        client.close().await;
    });
    for server in 0..2 {
        assert!(testbed.completed_responses(server) > 0);
        assert_eq!(testbed.server_metric(server, "invalid_feedback_total"), 0);
    }
}
