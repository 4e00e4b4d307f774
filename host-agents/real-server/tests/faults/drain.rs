//! A real server, and a balancer, that are told to end: what is under way ends first.

use frontage_lab::privileged;

use crate::common::client::Client;
use crate::common::{World, content, run, until};

fn files() -> [(String, Vec<u8>); 2] {
    [
        ("long".to_owned(), content(1, 30_000_000)),
        ("short".to_owned(), content(2, 100_000)),
    ]
}

#[test]
fn a_real_server_finishes_what_it_sends() {
    if !privileged() {
        return;
    }
    let files = files();
    let world = World::new("ends", 1, "round-robin", "", &files);
    run(&world, async || {
        let client = Client::connect(&world, 2).await;
        let long = client.get("long");
        until("it sends", || {
            world.server_metric(0, "body_bytes_total") > 0
        })
        .await;
        // SAFETY: a process that we started and that its namespace has not waited for.
        unsafe { libc::kill(world.processes[0] as i32, libc::SIGTERM) };
        let refused = "real_server_refused_total{server=\"rs0.test\",reason=\"busy\"}";
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
    if !privileged() {
        return;
    }
    let files = files();
    let world = World::new("lbends", 1, "round-robin", "", &files);
    run(&world, async || {
        let client = Client::connect(&world, 2).await;
        let long = client.get("long");
        until("it sends", || {
            world.server_metric(0, "body_bytes_total") > 0
        })
        .await;
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
