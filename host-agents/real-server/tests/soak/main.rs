// SPDX-License-Identifier: Apache-2.0
//! Soak test: many objects over many connections with three real servers, with loss, reordering and key updates.
//! Every byte is compared.
//!
//! `make soak` downloads 10,000 objects of 1 kB to 50 MB; the test downloads a part of them. `SOAK_OBJECTS`,
//! `SOAK_BYTES` (of the
//! largest), `SOAK_CONNECTIONS` and `SOAK_SEED` override the numbers.

#[allow(dead_code)]
#[path = "../common/mod.rs"]
mod common;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use bytes::Bytes;
use frontage_testkit::{Impairment, privileged};
use tokio::task::JoinSet;

use common::client::Client;
use common::{Testbed, content, run};

const SERVERS: usize = 3;
/// Length of the shortest object in bytes.
const SHORTEST: f64 = 1000.;
/// Number of different files.
const FILES: usize = 200;
/// Percentages of lost datagrams, in turn.
const LOST: [u32; 3] = [0, 1, 5];
/// Percentage of datagrams that the next one overtakes, where some are lost.
const OVERTAKEN: u32 = 2;
/// Numbers of paths of a client, in turn: one for each real server, or a single path.
const KINDS: [u32; 2] = [1 + SERVERS as u32, 1];
/// Number of concurrent connections, and of objects on each.
const CONNECTIONS: usize = 4;
const OBJECTS: usize = 6;

/// Read a number from the environment.
fn number(name: &str, default: usize) -> usize {
    let value = std::env::var(name).ok();
    value.map_or(default, |value| {
        value
            .parse()
            .unwrap_or_else(|_| panic!("{name}: invalid number {value:?}"))
    })
}

/// The downloads and their progress.
struct Soak {
    files: Vec<(String, Bytes)>,
    objects: usize,
    connections: usize,
    seed: usize,
    begun: Instant,
    /// Counts by [`KINDS`] of clients.
    done: [AtomicU64; KINDS.len()],
    bytes: AtomicU64,
}

impl Soak {
    /// Create files with log-uniform lengths and distinct contents.
    fn new(longest: usize) -> Self {
        let whole = Bytes::from(content(0, longest + 8 * FILES));
        let length = |i: usize| {
            let share = i as f64 / (FILES - 1) as f64;
            (SHORTEST * (longest as f64 / SHORTEST).powf(share)) as usize
        };
        let file = |i| (format!("{i}"), whole.slice(8 * i..8 * i + length(i)));
        Self {
            files: (0..FILES).map(file).collect(),
            objects: number("SOAK_OBJECTS", 120),
            connections: number("SOAK_CONNECTIONS", 6),
            seed: number("SOAK_SEED", 7),
            begun: Instant::now(),
            done: Default::default(),
            bytes: AtomicU64::new(0),
        }
    }

    /// Return the objects of connection `i`, in the order of the requests.
    fn of(&self, i: usize) -> VecDeque<usize> {
        let mine = (i..self.objects).step_by(self.connections);
        // A linear congruence, so that each connection has objects of all lengths.
        mine.map(|object| (object * 89 + self.seed) % FILES)
            .collect()
    }

    /// Download all objects. Returns the faults.
    async fn connection(&self, testbed: &Testbed, i: usize) -> Vec<String> {
        let lost = LOST[i % LOST.len()];
        let impairment = Impairment {
            loss: lost,
            reordering: if lost > 0 { OVERTAKEN } else { 0 },
            seed: (self.seed + i) as u64,
        };
        let kind = i / LOST.len() % KINDS.len();
        let paths = KINDS[kind];
        let client = Client::connect_impaired(testbed, paths, impairment).await;
        let mut left = self.of(i);
        let half = left.len() / 2;
        let (mut running, mut wrong) = (JoinSet::new(), Vec::new());
        loop {
            while running.len() < OBJECTS
                && let Some(object) = left.pop_front()
            {
                if left.len() == half {
                    client.quic.force_key_update();
                }
                let (name, content) = &self.files[object];
                let checked = client.check(name, content.clone());
                running.spawn(async move { (object, checked.await.expect("it does not panic")) });
            }
            let Some(ended) = running.join_next().await else {
                break;
            };
            let (object, result) = ended.expect("it does not panic");
            self.count(kind, object);
            if let Err(error) = result {
                let line = format!(
                    "connection {i}, {paths} paths, {lost} % lost, object {object}: {error}"
                );
                // Report faults at once, because the test may run for an hour.
                println!("{line}");
                wrong.push(line);
            }
        }
        client.close().await;
        wrong
    }

    fn done(&self) -> u64 {
        self.done.iter().map(|done| done.load(Relaxed)).sum()
    }

    fn count(&self, kind: usize, object: usize) {
        let length = self.files[object].1.len() as u64;
        let bytes = self.bytes.fetch_add(length, Relaxed) + length;
        self.done[kind].fetch_add(1, Relaxed);
        let done = self.done();
        if done.is_multiple_of(100) {
            let (megabytes, seconds) = (bytes / 1_000_000, self.begun.elapsed().as_secs());
            println!(
                "{done} of {} objects, {megabytes} MB, {seconds} s",
                self.objects
            );
        }
    }
}

#[test]
fn every_downloaded_byte_is_correct() {
    if !privileged() {
        return;
    }
    let soak = Soak::new(number("SOAK_BYTES", 2_000_000));
    let files: Vec<_> = soak
        .files
        .iter()
        .map(|(name, content)| (name.clone(), content.to_vec()))
        .collect();
    let testbed = Testbed::new("soak", SERVERS, "round-robin", "", &files);
    drop(files);
    let wrong = run(&testbed, async || {
        let next = AtomicU64::new(0);
        let each = async || {
            let mut wrong = Vec::new();
            loop {
                let i = next.fetch_add(1, Relaxed) as usize;
                if i >= soak.connections {
                    return wrong;
                }
                wrong.extend(soak.connection(&testbed, i).await);
            }
        };
        let all = futures_util::future::join_all((0..CONNECTIONS).map(|_| each())).await;
        all.concat()
    });
    let sent: Vec<u64> = (0..SERVERS).map(|server| testbed.answers(server)).collect();
    let kinds = KINDS.iter().zip(&soak.done).map(|(paths, done)| {
        let done = done.load(Relaxed);
        format!("{done} to clients of {paths} paths")
    });
    let kinds: Vec<_> = kinds.collect();
    let of_all = |metric| -> u64 {
        (0..SERVERS)
            .map(|server| testbed.metric_about(server, metric))
            .sum()
    };
    println!(
        "seed {}: {} objects ({}), {} MB, {} s; by real servers {sent:?}, local {}, aborted {}, unreachable {}",
        soak.seed,
        soak.done(),
        kinds.join(", "),
        soak.bytes.load(Relaxed) / 1_000_000,
        soak.begun.elapsed().as_secs(),
        testbed.balancer_metric("handoff_local_total"),
        of_all("aborted_total"),
        of_all("unreachable_total"),
    );
    assert!(wrong.is_empty(), "seed {}: {}", soak.seed, wrong.join("\n"));
    assert!(sent.iter().all(|count| *count > 0));
}
