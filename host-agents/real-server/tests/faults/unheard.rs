//! The way from a real server to the client is cut, and no other: the client hears the balancer (QDSR, section 6.2).

use std::time::{Duration, Instant};

use frontage_testkit::{Impairment, privileged};

use crate::common::client::{Client, all, both_send};
use crate::common::{PORT, World, content, long_and_short, run, until};

/// What comes to the client by these bridge's ports, of the service, is dropped, until [`heal`].
fn cut(world: &World, ports: &[&str]) {
    let chain = |port| {
        format!(
            "nft 'add chain netdev cut {port} {{ type filter hook ingress device {port} priority 0; }}' && \
             nft add rule netdev cut {port} udp sport {PORT} drop"
        )
    };
    let chains: Vec<_> = ports.iter().map(chain).collect();
    let chains = chains.join(" && ");
    world
        .client
        .sh(&format!("nft add table netdev cut && {chains}"));
}

fn heal(world: &World) {
    world.client.sh("nft delete table netdev cut");
}

/// The ports of the bridge at which the balancer and the first real servers are.
const PORTS: [&str; 3] = ["p2", "p3", "p4"];

/// Two streams come from two real servers, and the first one's packets do not arrive any more.
fn a_server_is_not_heard(name: &str, paths: u32) {
    if !privileged() {
        return;
    }
    let files = long_and_short();
    let world = World::new(name, 2, "round-robin", "", &files);
    run(&world, async || {
        let client = Client::connect(&world, paths).await;
        let long = both_send(&world, &client).await;
        cut(&world, &PORTS[1..2]);
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
        let before = world.server_metric(0, "grants_total");
        for _ in 0..4 {
            let got = client.get("short").await.unwrap();
            assert!(got == Ok((200, files[1].1.clone())));
        }
        assert_eq!(world.server_metric(0, "grants_total"), before);
        assert!(client.quic.close_reason().is_none());
        client.close().await;
    });
    assert_eq!(world.says_of(0, "unheard_total"), 1);
    assert_eq!(world.says_of(1, "unheard_total"), 0);
    assert_eq!(world.says_of(0, "aborted_total"), 1);
}

#[test]
fn a_server_with_a_path_is_not_heard() {
    a_server_is_not_heard("unheard", 3);
}

#[test]
fn a_server_without_a_path_of_its_own_is_not_heard() {
    a_server_is_not_heard("unheard-one", 1);
}

/// Nothing comes to the client for some time, from nobody: it is to have all of it afterwards.
fn a_client_is_away(name: &str, paths: u32) {
    if !privileged() {
        return;
    }
    let files = long_and_short();
    let world = World::new(name, 2, "round-robin", "", &files);
    run(&world, async || {
        let client = Client::connect(&world, paths).await;
        let long = [client.get("long"), client.get("long")];
        for away in [310, 440, 610, 930, 2200] {
            let sent = |i| world.server_metric(i, "body_bytes_total");
            let before = [sent(0), sent(1)];
            let over = || long.iter().any(tokio::task::JoinHandle::is_finished);
            until("both servers send", || {
                over() || (0..2).all(|i| sent(i) > before[i] + 100_000)
            })
            .await;
            cut(&world, &PORTS);
            tokio::time::sleep(Duration::from_millis(away)).await;
            heal(&world);
        }
        for answer in long {
            assert!(answer.await.unwrap() == Ok((200, files[0].1.clone())));
        }
        client.close().await;
    });
    for i in 0..2 {
        assert_eq!(world.says_of(i, "unheard_total"), 0);
    }
}

#[test]
fn a_client_with_paths_is_away() {
    a_client_is_away("away", 3);
}

#[test]
fn a_client_of_one_path_is_away() {
    a_client_is_away("away-one", 1);
}

/// Of a hundred packets five are lost each way, and some reordering: probes and answers among them.
fn nobody_is_given_up_for_losses(name: &str, paths: u32) {
    const SEED: u64 = 11;
    if !privileged() {
        return;
    }
    // Where one ends, a loss shows by a probe alone.
    let files: Vec<_> = (0..400)
        .map(|i| (i.to_string(), content(i, 20_000 * (1 + i % 4))))
        .collect();
    let world = World::new(name, 2, "round-robin", "", &files);
    let impairment = Impairment {
        loss: 5,
        reordering: 2,
        seed: SEED,
    };
    run(&world, async || {
        let client = Client::connect_roughly(&world, paths, impairment).await;
        for some in files.chunks(2) {
            for ((name, content), got) in some.iter().zip(all(&client, some).await) {
                assert!(got == Ok((200, content.clone())), "seed {SEED}: {name}");
            }
        }
        client.close().await;
    });
    for i in 0..2 {
        assert_eq!(world.says_of(i, "unheard_total"), 0, "seed {SEED}");
        assert!(world.answers(i) > 0);
    }
}

#[test]
fn losses_are_no_silence_by_paths() {
    nobody_is_given_up_for_losses("losses", 3);
}

#[test]
fn losses_are_no_silence_by_one_path() {
    nobody_is_given_up_for_losses("losses-one", 1);
}
