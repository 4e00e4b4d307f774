// SPDX-License-Identifier: Apache-2.0
//! Real servers die at random while clients download: the balancer resumes their responses.
//!
//! `LONG=1` downloads 10,000 objects. `RESUME_OBJECTS` and `RESUME_SEED` override the defaults.

#[allow(dead_code)]
mod common;

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use bytes::Bytes;
use frontage_testkit::{Namespace, privileged};

use common::client::Client;
use common::{Testbed, content, run, wait_until};

const SERVERS: usize = 3;
/// Number of different files.
const FILES: usize = 60;
/// Sizes of the smallest and the largest file in bytes.
const SIZES: [f64; 2] = [1000., 3_000_000.];
/// Objects on each connection, and how many at a time.
const OBJECTS: usize = 40;
const CONCURRENT: usize = 6;
/// Concurrent connections.
const CONNECTIONS: usize = 2;
/// Paths of a client, in turn: the balancer's and one for each real server, or a single path.
const PATHS: [u32; 2] = [1 + SERVERS as u32, 1];
/// Minimum number of deaths.
const MIN_DEATHS: u32 = 4;
/// Maximum time for everything, and with `LONG`.
const TIME_LIMITS: [Duration; 2] = [Duration::from_secs(180), Duration::from_secs(3000)];

/// A deterministic sequence of numbers (SplitMix64).
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % end
    }
}

fn number(name: &str) -> Option<usize> {
    let value = std::env::var(name).ok()?;
    Some(
        value
            .parse()
            .unwrap_or_else(|_| panic!("{name}: invalid number {value:?}")),
    )
}

/// Outcomes of the downloads.
#[derive(Default)]
struct Tally {
    started: Cell<usize>,
    complete: Cell<usize>,
    reset: Cell<usize>,
    deaths: Cell<u32>,
    wrong: RefCell<Vec<String>>,
}

impl Tally {
    fn count(&self, result: Result<(), String>) {
        match result {
            Ok(()) => self.complete.set(self.complete.get() + 1),
            Err(error) if error.contains("H3_INTERNAL_ERROR") => {
                self.reset.set(self.reset.get() + 1)
            }
            Err(error) => {
                println!("{error}");
                self.wrong.borrow_mut().push(error);
            }
        }
    }
}

/// Return the sum of the balancer's metric over all real servers.
fn sum(testbed: &Testbed, metric: &str) -> u64 {
    (0..SERVERS)
        .map(|server| testbed.metric_for(server, metric))
        .sum()
}

/// Download objects on one connection after the other, until `objects` have been requested, enough servers have died, and
/// a resumed response lacked acknowledged bytes.
async fn download(testbed: &Testbed, files: &[(String, Bytes)], objects: usize, tally: &Tally) {
    for connection in 0.. {
        let is_enough = tally.started.get() >= objects && tally.deaths.get() >= MIN_DEATHS;
        if is_enough && sum(testbed, "skipped_bytes_total") > 0 {
            return;
        }
        let client = Client::connect(testbed, PATHS[connection % PATHS.len()]).await;
        let worker = async || {
            for _ in 0..OBJECTS / CONCURRENT {
                let object = tally.started.get();
                tally.started.set(object + 1);
                // The linear congruence mixes the sizes.
                let (name, content) = &files[object * 89 % FILES];
                let result = client.check(name, content.clone()).await;
                tally.count(
                    result
                        .expect("the download does not panic")
                        .map_err(|error| format!("{name}: {error}")),
                );
            }
        };
        futures_util::future::join_all((0..CONCURRENT).map(|_| worker())).await;
        client.close().await;
    }
}

/// Kill and restart real servers at random, one at a time.
async fn kill_servers(
    testbed: &Testbed,
    hosts: &mut [Namespace],
    processes: &mut [u32],
    random: &mut Random,
    tally: &Tally,
) {
    loop {
        tokio::time::sleep(Duration::from_millis(200 + random.below(800))).await;
        let server = random.below(SERVERS as u64) as usize;
        // SAFETY: the namespace started this process and has not waited for it.
        unsafe { libc::kill(processes[server] as i32, libc::SIGKILL) };
        tally.deaths.set(tally.deaths.get() + 1);
        let up = format!("real_server_up{{server=\"rs{server}.test\"}}");
        wait_until("the balancer notices", || testbed.balancer_metric(&up) == 0).await;
        tokio::time::sleep(Duration::from_millis(random.below(500))).await;
        processes[server] = testbed.start_server(&mut hosts[server], server);
        wait_until("the link is up again", || testbed.balancer_metric(&up) == 1).await;
    }
}

#[test]
fn responses_of_dying_servers_are_resumed() {
    if !privileged() {
        return;
    }
    let is_long = std::env::var("LONG").is_ok();
    let objects = number("RESUME_OBJECTS").unwrap_or(if is_long { 10_000 } else { 200 });
    let seed = number("RESUME_SEED").unwrap_or(5);
    let length =
        |i: usize| (SIZES[0] * (SIZES[1] / SIZES[0]).powf(i as f64 / (FILES - 1) as f64)) as usize;
    let files: Vec<_> = (0..FILES)
        .map(|i| (format!("{i}"), content(i, length(i))))
        .collect();
    let mut testbed = Testbed::new("resume", SERVERS, "round-robin", "", &files);
    let files: Vec<_> = files
        .into_iter()
        .map(|(name, content)| (name, Bytes::from(content)))
        .collect();
    let (mut hosts, mut processes) = (
        std::mem::take(&mut testbed.servers),
        testbed.processes.clone(),
    );
    let start = Instant::now();
    let tally = run(&testbed, async || {
        let tally = Tally::default();
        let mut random = Random(seed as u64);
        let downloads = (0..CONNECTIONS).map(|_| download(&testbed, &files, objects, &tally));
        tokio::select! {
            _ = futures_util::future::join_all(downloads) => {}
            () = kill_servers(&testbed, &mut hosts, &mut processes, &mut random, &tally) => {}
            () = tokio::time::sleep(TIME_LIMITS[usize::from(is_long)]) => panic!("seed {seed}: not complete in time"),
        }
        tally
    });
    let [resumed, aborted, unaccepted, skipped, direct] = [
        "resumed_total",
        "aborted_total",
        "unaccepted_total",
        "skipped_bytes_total",
        "answers_total",
    ]
    .map(|metric| sum(&testbed, metric));
    println!(
        "seed {seed}: {} objects, {} complete, {} reset; {} deaths; {direct} direct responses, {resumed} resumed \
         ({skipped} bytes skipped), {aborted} aborted ({unaccepted} before they were accepted), {} local; {:.1} s",
        tally.started.get(),
        tally.complete.get(),
        tally.reset.get(),
        tally.deaths.get(),
        testbed.balancer_metric("handoff_local_total"),
        start.elapsed().as_secs_f64(),
    );
    assert_eq!(*tally.wrong.borrow(), [""; 0], "seed {seed}");
    assert!(
        resumed > 0 && skipped > 0,
        "seed {seed}: a response is resumed"
    );
    assert_eq!(
        tally.complete.get() + tally.reset.get(),
        tally.started.get()
    );
}
