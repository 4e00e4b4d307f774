// SPDX-License-Identifier: Apache-2.0
//! Soak test: many objects over many connections with three real servers, with loss, reordering and key updates.
//! Every byte is compared.
//!
//! `make soak` downloads 10,000 objects of 1 kB to 50 MB; the test downloads a part of them. `SOAK_OBJECTS`,
//! `SOAK_BYTES` (size of the largest object), `SOAK_CONNECTIONS` and `SOAK_SEED` override the defaults.

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
/// Size of the smallest object in bytes.
const MIN_SIZE: f64 = 1000.;
/// Number of different files.
const FILES: usize = 200;
/// Percentages of lost datagrams, by connection in turn.
const LOSS_PERCENT: [u32; 3] = [0, 1, 5];
/// Percentage of datagrams that swap with the next one, on connections with loss.
const REORDERED_PERCENT: u32 = 2;
/// Policies, by seed: with the first one, a client with a single path has one sender at a time, and with the second one several.
const POLICIES: [&str; 2] = ["round-robin", "consistent-hash"];
/// Numbers of paths of a client, in turn: the balancer's and one for each real server, or a single path.
const PATHS: [u32; 2] = [1 + SERVERS as u32, 1];
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
    start: Instant,
    /// Completed downloads by the client's number of paths, as in [`PATHS`].
    done: [AtomicU64; PATHS.len()],
    bytes: AtomicU64,
}

impl Soak {
    /// Create files with log-uniform sizes up to `max_size` and distinct contents.
    fn new(max_size: usize) -> Self {
        let bytes = Bytes::from(content(0, max_size + 8 * FILES));
        let length = |i: usize| {
            let share = i as f64 / (FILES - 1) as f64;
            (MIN_SIZE * (max_size as f64 / MIN_SIZE).powf(share)) as usize
        };
        let file = |i| (format!("{i}"), bytes.slice(8 * i..8 * i + length(i)));
        Self {
            files: (0..FILES).map(file).collect(),
            objects: number("SOAK_OBJECTS", 120),
            connections: number("SOAK_CONNECTIONS", 6),
            seed: number("SOAK_SEED", 7),
            start: Instant::now(),
            done: Default::default(),
            bytes: AtomicU64::new(0),
        }
    }

    /// Return the objects of connection `i` in the order of their requests.
    fn objects_of(&self, i: usize) -> VecDeque<usize> {
        let numbers = (i..self.objects).step_by(self.connections);
        // The linear congruence gives each connection objects of all sizes.
        numbers
            .map(|object| (object * 89 + self.seed) % FILES)
            .collect()
    }

    /// Download all objects of connection `i`. Returns the faults.
    async fn run_connection(&self, testbed: &Testbed, i: usize) -> Vec<String> {
        let loss = LOSS_PERCENT[i % LOSS_PERCENT.len()];
        let impairment = Impairment {
            loss,
            reordering: if loss > 0 { REORDERED_PERCENT } else { 0 },
            seed: (self.seed + i) as u64,
        };
        let kind = i / LOSS_PERCENT.len() % PATHS.len();
        let paths = PATHS[kind];
        let client = Client::connect_impaired(testbed, paths, impairment).await;
        let mut remaining = self.objects_of(i);
        let half = remaining.len() / 2;
        let (mut running, mut faults) = (JoinSet::new(), Vec::new());
        loop {
            while running.len() < OBJECTS
                && let Some(object) = remaining.pop_front()
            {
                if remaining.len() == half {
                    client.quic.force_key_update();
                }
                let (name, content) = &self.files[object];
                let checked = client.check(name, content.clone());
                running.spawn(async move {
                    (object, checked.await.expect("the download does not panic"))
                });
            }
            let Some(ended) = running.join_next().await else {
                break;
            };
            let (object, result) = ended.expect("the download does not panic");
            self.count(kind, object);
            if let Err(error) = result {
                let line = format!(
                    "connection {i}, {paths} paths, {loss} % loss, object {object}: {error}"
                );
                // Report faults at once, because the test may run for an hour.
                println!("{line}");
                faults.push(line);
            }
        }
        client.close().await;
        faults
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
            let (megabytes, seconds) = (bytes / 1_000_000, self.start.elapsed().as_secs());
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
    let policy = POLICIES[soak.seed % POLICIES.len()];
    let testbed = Testbed::new("soak", SERVERS, policy, "", &files);
    drop(files);
    let faults = run(&testbed, async || {
        let next = AtomicU64::new(0);
        let worker = async || {
            let mut faults = Vec::new();
            loop {
                let i = next.fetch_add(1, Relaxed) as usize;
                if i >= soak.connections {
                    return faults;
                }
                faults.extend(soak.run_connection(&testbed, i).await);
            }
        };
        let all = futures_util::future::join_all((0..CONNECTIONS).map(|_| worker())).await;
        all.concat()
    });
    let responses: Vec<u64> = (0..SERVERS)
        .map(|server| testbed.completed_responses(server))
        .collect();
    let kinds = PATHS.iter().zip(&soak.done).map(|(paths, done)| {
        let done = done.load(Relaxed);
        format!("{done} to clients with {paths} paths")
    });
    let kinds: Vec<_> = kinds.collect();
    let sum = |metric| -> u64 {
        (0..SERVERS)
            .map(|server| testbed.metric_for(server, metric))
            .sum()
    };
    println!(
        "seed {}: {} objects ({}), {} MB, {} s; by real servers {responses:?}, local {}, aborted {}, unreachable {}",
        soak.seed,
        soak.done(),
        kinds.join(", "),
        soak.bytes.load(Relaxed) / 1_000_000,
        soak.start.elapsed().as_secs(),
        testbed.balancer_metric("handoff_local_total"),
        sum("aborted_total"),
        sum("unreachable_total"),
    );
    assert!(
        faults.is_empty(),
        "seed {}: {}",
        soak.seed,
        faults.join("\n")
    );
    assert!(responses.iter().all(|count| *count > 0));
}
