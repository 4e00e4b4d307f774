// SPDX-License-Identifier: Apache-2.0
//! Dispatcher benchmark: packets per second of one core, and the latency that the dispatcher adds to first flights.

mod in_process;
mod latency;
mod throughput;
mod worker;
mod workload;

use std::mem::zeroed;
use std::time::Duration;

use anyhow::Result;
use latency::{Latency, Load};
use serde::Serialize;

/// Latency in microseconds that the paper's dispatcher adds to a handshake at 1,000 concurrent connections (Artemis, section
/// 5.1).
const PAPER: (&str, f64) = ("Artemis' own dispatcher, from its paper", 20_900.0);

/// One result, with that of a peer for comparison.
#[derive(Debug, Serialize)]
pub struct Row {
    name: &'static str,
    value: f64,
    unit: &'static str,
    peer: Option<&'static str>,
    peer_value: Option<f64>,
    ratio: Option<f64>,
}

fn row(name: &'static str, value: f64, unit: &'static str) -> Row {
    Row {
        name,
        value: (value * 10.0).round() / 10.0,
        unit,
        peer: None,
        peer_value: None,
        ratio: None,
    }
}

fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

/// Returns the latency that the dispatcher adds at a quantile, with the paper's result.
fn added_latency(name: &'static str, latency: &Latency, q: f64) -> Row {
    let [through, direct] =
        [&latency.through, &latency.direct].map(|took| micros(quantile(took, q)));
    let row = row(name, through - direct, "us");
    Row {
        ratio: Some((row.value / PAPER.1 * 1e6).round() / 1e6),
        peer: Some(PAPER.0),
        peer_value: Some(PAPER.1),
        ..row
    }
}

/// Runs all measurements.
///
/// # Errors
/// Returns an error if sockets on loopback addresses cannot be opened, or if packets are lost.
pub fn measure() -> Result<Vec<Row>> {
    let packet_rate = |name, rate| row(name, rate, "packets/s of a core");
    let mut rows = vec![
        packet_rate("dispatcher_parse", in_process::parse()),
        packet_rate(
            "dispatcher_one_packet_flights",
            in_process::engine(workload::Kind::One),
        ),
        packet_rate(
            "dispatcher_two_packet_flights",
            in_process::engine(workload::Kind::Two),
        ),
        packet_rate(
            "dispatcher_refused_flights",
            in_process::engine(workload::Kind::Unknown),
        ),
        row(
            "dispatcher_memory_growth",
            in_process::memory_growth()?,
            "KiB, 1 to 100,000 flights",
        ),
        packet_rate("dispatcher_sockets_singly", throughput::rate(false)?),
        packet_rate("dispatcher_sockets_trains", throughput::rate(true)?),
    ];
    let poisson = latency::measure(Load::Poisson, 4)?;
    rows.push(added_latency("dispatcher_added_latency_p50", &poisson, 0.5));
    rows.push(added_latency(
        "dispatcher_added_latency_p99",
        &poisson,
        0.99,
    ));
    rows.push(row(
        "dispatcher_handshakes_offered",
        poisson.offered,
        "handshakes/s",
    ));
    rows.push(row(
        "dispatcher_waited_for_core",
        micros(poisson.scheduling_delay),
        "us a handshake, mean",
    ));
    let burst = latency::measure(Load::Burst, 8)?;
    rows.push(added_latency("dispatcher_at_once_p50", &burst, 0.5));
    rows.push(added_latency("dispatcher_at_once_p99", &burst, 0.99));
    Ok(rows)
}

/// Returns the quantile `q` of sorted `values`.
fn quantile(values: &[Duration], q: f64) -> Duration {
    let last = values.len().saturating_sub(1);
    values
        .get((last as f64 * q).round() as usize)
        .copied()
        .unwrap_or_default()
}

/// Returns the CPU time of `clock`.
fn cpu_time(clock: libc::clockid_t) -> Duration {
    // SAFETY: timespec is plain data, for which zeros are valid, and it outlives the call.
    let time = unsafe {
        let mut time: libc::timespec = zeroed();
        libc::clock_gettime(clock, &raw mut time);
        time
    };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
