// SPDX-License-Identifier: Apache-2.0
//! Benchmarks without sockets.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use frontage_first_flight::{Crypto, Reader, hello};
use frontage_tunnel::{Encapsulation, decode};

use super::cpu_time;
use super::workload::{Kind, SWITCH, flight, view};
use frontage_dispatcher::config::Limits;
use frontage_dispatcher::engine::Engine;
use frontage_dispatcher::outbox::Outbox;
use frontage_dispatcher::outcome::Counters;

const FLIGHTS: u32 = 10_000;
const ROUNDS: usize = 9;

fn now() -> Duration {
    cpu_time(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Returns the median rate, in packets per second of CPU time, of several rounds over `packets`.
fn rate(packets: &[Vec<u8>], mut round: impl FnMut(&[Vec<u8>])) -> f64 {
    let mut rates: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let before = now();
            round(packets);
            packets.len() as f64 / (now() - before).as_secs_f64()
        })
        .collect();
    rates.sort_by(f64::total_cmp);
    rates[ROUNDS / 2]
}

fn packets(kind: Kind) -> Vec<Vec<u8>> {
    let flights: Vec<_> = (0..FLIGHTS).map(|number| flight(kind, number)).collect();
    // In waves: all first packets, then all second ones, as from clients that connect at once. A wave fits into the limit of
    // unfinished flights.
    let waves = flights.chunks(1000).flat_map(|wave| {
        let parts = wave.first().map_or(0, Vec::len);
        (0..parts).flat_map(move |part| wave.iter().map(move |flight| flight[part].clone()))
    });
    waves.collect()
}

/// Measures parsing only: tunnel headers, packet protection and ClientHello.
pub fn parse() -> f64 {
    let (mut reader, mut crypto) = (Reader::default(), Crypto::default());
    rate(&packets(Kind::One), |packets| {
        for packet in packets {
            let inner = decode(Encapsulation::Vxlan, packet)
                .expect("the packet is valid")
                .inner;
            crypto.clear();
            reader
                .read(inner.payload, &mut crypto)
                .expect("the packet is valid");
            black_box(hello::read(crypto.prefix()).expect("the packet is valid"));
        }
    })
}

/// Measures all processing except receiving and sending. The flights of each round are new to its engine.
pub fn engine(kind: Kind) -> f64 {
    let view = view();
    let mut out = Outbox::default();
    let packets = packets(kind);
    let mut engines: Vec<_> = (0..ROUNDS)
        .map(|_| Engine::new(&Limits::default(), Arc::default()))
        .collect();
    rate(&packets, |packets| {
        let mut engine = engines.pop().expect("there is an engine for each round");
        for batch in packets.chunks(32) {
            for packet in batch {
                engine.process(Some(&view), SWITCH, packet, &mut out);
            }
            black_box(out.group_by_destination());
            out.clear();
        }
    })
}

/// Returns by how many KiB this process grows from the first flight to the hundred thousandth.
pub fn memory_growth() -> Result<f64> {
    let view = view();
    let mut out = Outbox::default();
    let mut engine = Engine::new(&Limits::default(), Arc::new(Counters::default()));
    let mut process = |numbers: std::ops::Range<u32>| {
        for number in numbers {
            for packet in flight(Kind::One, number) {
                engine.process(Some(&view), SWITCH, &packet, &mut out);
            }
            out.clear();
        }
    };
    process(0..1);
    let before = resident_kib()?;
    process(1..100_000);
    Ok((resident_kib()? - before) as f64)
}

/// Returns the resident set size of this process in KiB.
fn resident_kib() -> Result<i64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB"));
    kib.and_then(|kib| kib.parse().ok())
        .context("/proc/self/status has no VmRSS")
}
