// SPDX-License-Identifier: Apache-2.0
//! Shutdown of a real server and of a balancer, which complete active responses first.

use frontage_testkit::privileged;

use tokio::task::JoinHandle;

use crate::common::client::{Client, Response};
use crate::common::{Testbed, content, run, wait_until};

type Files = [(String, Vec<u8>); 2];

/// Call `act` with the client and the response while a real server sends the first file.
fn during_response(
    name: &str,
    act: impl AsyncFnOnce(&Testbed, &Files, Client, JoinHandle<Response>) + Send,
) {
    if !privileged() {
        return;
    }
    let files = [
        ("long".to_owned(), content(1, 30_000_000)),
        ("short".to_owned(), content(2, 100_000)),
    ];
    let testbed = Testbed::new(name, 1, "round-robin", "", &files);
    run(&testbed, async || {
        let client = Client::connect(&testbed, 2).await;
        let long = client.get("long");
        wait_until("the real server sends", || {
            testbed.server_metric(0, "body_bytes_total") > 0
        })
        .await;
        act(&testbed, &files, client, long).await;
    });
}

#[test]
fn draining_real_server_completes_its_responses() {
    during_response("ends", async |testbed, files, client, long| {
        // SAFETY: the namespace started this process and has not waited for it.
        unsafe { libc::kill(testbed.processes[0] as i32, libc::SIGTERM) };
        let rejected = "real_server_rejected_total{server=\"rs0.test\",reason=\"busy\"}";
        // The balancer itself responds to rejected requests.
        while testbed.balancer_metric(rejected) == 0 {
            let got = client.get("short").await.unwrap();
            assert!(got == Ok((200, files[1].1.clone())));
        }
        assert!(long.await.unwrap() == Ok((200, files[0].1.clone())));
        client.close().await;
    });
}

#[test]
fn draining_balancer_waits_for_delegated_responses() {
    during_response("lbends", async |testbed, files, client, long| {
        testbed.shut_down();
        assert!(long.await.unwrap() == Ok((200, files[0].1.clone())));
        // The balancer sends GOAWAY, and closes the connection after the response.
        let closed = client.quic.closed().await;
        assert!(
            matches!(closed, noq::ConnectionError::ApplicationClosed(_)),
            "{closed}"
        );
    });
}
