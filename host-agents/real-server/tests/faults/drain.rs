// SPDX-License-Identifier: Apache-2.0
//! Shutdown of a real server and of a balancer: active responses end first.

use frontage_testkit::privileged;

use tokio::task::JoinHandle;

use crate::common::client::{Client, Got};
use crate::common::{Testbed, content, run, until};

type Files = [(String, Vec<u8>); 2];

/// Call `act` with the client and the response while a real server sends the first of the files.
fn while_it_sends(
    name: &str,
    act: impl AsyncFnOnce(&Testbed, &Files, Client, JoinHandle<Got>) + Send,
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
        until("it sends", || {
            testbed.server_metric(0, "body_bytes_total") > 0
        })
        .await;
        act(&testbed, &files, client, long).await;
    });
}

#[test]
fn draining_real_server_completes_its_responses() {
    while_it_sends("ends", async |testbed, files, client, long| {
        // SAFETY: a process that we started and that its namespace has not waited for.
        unsafe { libc::kill(testbed.processes[0] as i32, libc::SIGTERM) };
        let refused = "real_server_rejected_total{server=\"rs0.test\",reason=\"busy\"}";
        // The balancer answers what is refused.
        while testbed.balancer_metric(refused) == 0 {
            let got = client.get("short").await.unwrap();
            assert!(got == Ok((200, files[1].1.clone())));
        }
        assert!(long.await.unwrap() == Ok((200, files[0].1.clone())));
        client.close().await;
    });
}

#[test]
fn draining_balancer_waits_for_delegated_responses() {
    while_it_sends("lbends", async |testbed, files, client, long| {
        testbed.end();
        assert!(long.await.unwrap() == Ok((200, files[0].1.clone())));
        // It says so (GOAWAY), and closes the connection in the end.
        let closed = client.quic.closed().await;
        assert!(
            matches!(closed, noq::ConnectionError::ApplicationClosed(_)),
            "{closed}"
        );
    });
}
