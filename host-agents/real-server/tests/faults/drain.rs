//! A real server, and a balancer, that are told to end: what is under way ends first.

use frontage_testkit::privileged;

use tokio::task::JoinHandle;

use crate::common::client::{Client, Got};
use crate::common::{World, content, run, until};

type Files = [(String, Vec<u8>); 2];

/// While a real server sends the first of the files, `act` has the client and that answer.
fn while_it_sends(
    name: &str,
    act: impl AsyncFnOnce(&World, &Files, Client, JoinHandle<Got>) + Send,
) {
    if !privileged() {
        return;
    }
    let files = [
        ("long".to_owned(), content(1, 30_000_000)),
        ("short".to_owned(), content(2, 100_000)),
    ];
    let world = World::new(name, 1, "round-robin", "", &files);
    run(&world, async || {
        let client = Client::connect(&world, 2).await;
        let long = client.get("long");
        until("it sends", || {
            world.server_metric(0, "body_bytes_total") > 0
        })
        .await;
        act(&world, &files, client, long).await;
    });
}

#[test]
fn a_real_server_finishes_what_it_sends() {
    while_it_sends("ends", async |world, files, client, long| {
        // SAFETY: a process that we started and that its namespace has not waited for.
        unsafe { libc::kill(world.processes[0] as i32, libc::SIGTERM) };
        let refused = "real_server_rejected_total{server=\"rs0.test\",reason=\"busy\"}";
        // The balancer answers what is refused.
        while world.balancer_metric(refused) == 0 {
            let got = client.get("short").await.unwrap();
            assert!(got == Ok((200, files[1].1.clone())));
        }
        assert!(long.await.unwrap() == Ok((200, files[0].1.clone())));
        client.close().await;
    });
}

#[test]
fn a_balancer_waits_for_what_real_servers_send() {
    while_it_sends("lbends", async |world, files, client, long| {
        world.end();
        assert!(long.await.unwrap() == Ok((200, files[0].1.clone())));
        // It says so (GOAWAY), and closes the connection in the end.
        let closed = client.quic.closed().await;
        assert!(
            matches!(closed, noq::ConnectionError::ApplicationClosed(_)),
            "{closed}"
        );
    });
}
