//! Real servers answer clients of a balancer straight: a whole network, real programs, and a client that knows nothing of it.

mod common;

use std::time::Duration;

use common::World;
use common::client::{Client, Got};
use frontage_lab::privileged;

/// Bytes of a file, which no two files share.
fn content(seed: usize, length: usize) -> Vec<u8> {
    let mut state = seed as u64 + 1;
    let word = || {
        // SplitMix64.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ mixed >> 27).to_be_bytes()
    };
    let mut bytes: Vec<u8> = std::iter::repeat_with(word)
        .take(length.div_ceil(8))
        .flatten()
        .collect();
    bytes.truncate(length);
    bytes
}

/// From 1 kB to 5 MB, most of them small.
fn files(count: usize) -> Vec<(String, Vec<u8>)> {
    let length = |i: usize| {
        let share = i as f64 / (count - 1) as f64;
        (1000. * 5000_f64.powf(share.powi(4))) as usize
    };
    (0..count)
        .map(|i| (format!("{i}"), content(i, length(i))))
        .collect()
}

fn run<T: Send>(world: &World, work: impl AsyncFnOnce() -> T + Send) -> T {
    world.client.run(|| {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().build().unwrap();
        runtime.block_on(work())
    })
}

async fn all(client: &Client, files: &[(String, Vec<u8>)]) -> Vec<Got> {
    let asked: Vec<_> = files.iter().map(|(name, _)| client.get(name)).collect();
    let mut got = Vec::new();
    for answer in asked {
        let answer = tokio::time::timeout(Duration::from_secs(120), answer).await;
        got.push(answer.expect("an answer in time").unwrap());
    }
    got
}

#[test]
fn many_objects_come_from_several_servers() {
    if !privileged() {
        return;
    }
    let files = files(200);
    let world = World::new("many", 2, "round-robin", "", &files);
    run(&world, async || {
        let client = Client::connect(&world, 3).await;
        let got = all(&client, &files).await;
        for ((name, content), got) in files.iter().zip(got) {
            let (status, body) = got.unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(status, 200, "{name}");
            assert!(body == *content, "{name} has other bytes");
        }
        // A client that is gone acknowledges nothing more.
        let counted = async {
            while direct(&world) < 200 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let counted = tokio::time::timeout(frontage_lab::PATIENCE, counted).await;
        let kept = world.balancer_metric("handoff_kept_total");
        counted.unwrap_or_else(|_| panic!("{} direct, {kept} kept", direct(&world)));
        client.close().await;
    });
    for i in 0..2 {
        assert!(answers(&world, i) > 0 && world.server_metric(i, "body_bytes_total") > 0);
    }
    assert_eq!(world.balancer_metric("body_bytes_total"), 0);
}

/// Requests that a real server has answered whole, as the balancer counts.
fn answers(world: &World, server: usize) -> u64 {
    let labels = format!("{{server=\"rs{server}.test\"}}");
    world.balancer_metric(&format!("real_server_answers_total{labels}"))
}

fn direct(world: &World) -> u64 {
    (0..2).map(|server| answers(world, server)).sum()
}

/// A client of one path is served as by any balancer; so are small answers.
#[test]
fn what_cannot_be_handed_over_is_proxied() {
    if !privileged() {
        return;
    }
    let files = files(20);
    let world = World::new("kept", 1, "consistent-hash", "below = '20kB'", &files);
    for paths in [1, 2] {
        run(&world, async || {
            let client = Client::connect(&world, paths).await;
            for ((name, content), got) in files.iter().zip(all(&client, &files).await) {
                assert!(
                    got == Ok((200, content.clone())),
                    "{name} over {paths} paths"
                );
            }
            client.close().await;
        });
    }
    let small = files
        .iter()
        .filter(|(_, content)| content.len() < 20_000)
        .count() as u64;
    assert_eq!(world.balancer_metric("handoff_kept_total"), 20);
    let refused = "real_server_refused_total{server=\"rs0.test\",reason=\"small\"}";
    assert_eq!(world.balancer_metric(refused), small);
}

/// The streams of a real server that dies are reset; the connection and its other streams live.
#[test]
fn a_server_dies() {
    if !privileged() {
        return;
    }
    let files = [
        ("long".to_owned(), content(1, 60_000_000)),
        ("short".to_owned(), content(2, 100_000)),
    ];
    let world = World::new("dies", 2, "round-robin", "", &files);
    run(&world, async || {
        let client = Client::connect(&world, 3).await;
        let long = [client.get("long"), client.get("long")];
        let begun = async {
            while (0..2).any(|i| world.server_metric(i, "body_bytes_total") == 0) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let begun = tokio::time::timeout(frontage_lab::PATIENCE, begun).await;
        begun.expect("both servers send");
        // SAFETY: a process that we started and that its namespace has not waited for.
        unsafe { libc::kill(world.processes[0] as i32, libc::SIGKILL) };
        let mut results = Vec::new();
        for answer in long {
            let answer = tokio::time::timeout(Duration::from_secs(120), answer).await;
            results.push(answer.expect("an end").unwrap());
        }
        let whole = results.iter().filter(|got| got.is_ok()).count();
        assert_eq!(whole, 1, "one of them dies with its server");
        let got = client.get("short").await.unwrap();
        assert!(got == Ok((200, files[1].1.clone())));
        client.close().await;
    });
}
