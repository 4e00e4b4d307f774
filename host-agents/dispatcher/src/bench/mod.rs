//! What a first flight costs a core, and what it waits: rows for `bench/run.py`.

mod flights;
mod latency;
mod process;
mod rate;
mod worker;

use std::mem::zeroed;
use std::time::Duration;

use anyhow::Result;
use latency::{Latency, Load};
use serde::Serialize;

/// What the paper's dispatcher adds to a handshake at 1,000 concurrent connections (Artemis, 5.1).
const PAPER: (&str, f64) = ("Artemis' own dispatcher, as its paper has it", 20_900.0);

/// One figure, beside a peer's if there is one.
#[derive(Debug, Serialize)]
struct Row {
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

/// What the dispatcher adds at this quantile, beside the paper's figure.
fn added(name: &'static str, latency: &Latency, at: f64) -> Row {
    let [through, direct] =
        [&latency.through, &latency.direct].map(|took| micros(quantile(took, at)));
    let row = row(name, through - direct, "us");
    Row {
        ratio: Some((row.value / PAPER.1 * 1e6).round() / 1e6),
        peer: Some(PAPER.0),
        peer_value: Some(PAPER.1),
        ..row
    }
}

/// Measures everything and prints it, as JSON for programs or as lines.
///
/// # Errors
/// If sockets of this machine's loopback addresses cannot be had.
pub fn run(json: bool) -> Result<()> {
    let packet_rate = |name, rate| row(name, rate, "packets/s of a core");
    let mut rows = vec![
        packet_rate("dispatcher_parse", process::parse()),
        packet_rate(
            "dispatcher_one_packet_flights",
            process::engine(flights::Kind::One),
        ),
        packet_rate(
            "dispatcher_two_packet_flights",
            process::engine(flights::Kind::Two),
        ),
        packet_rate(
            "dispatcher_refused_flights",
            process::engine(flights::Kind::Unknown),
        ),
        row(
            "dispatcher_memory_growth",
            process::memory_growth()?,
            "KiB, 1 to 100,000 flights",
        ),
        packet_rate("dispatcher_sockets_singly", rate::rate(true)?),
        packet_rate("dispatcher_sockets_trains", rate::rate(false)?),
    ];
    let in_progress = latency::measure(Load::InProgress, 4)?;
    rows.push(added("dispatcher_added_latency_p50", &in_progress, 0.5));
    rows.push(added("dispatcher_added_latency_p99", &in_progress, 0.99));
    rows.push(row(
        "dispatcher_handshakes_offered",
        in_progress.offered,
        "handshakes/s",
    ));
    rows.push(row(
        "dispatcher_waited_for_core",
        micros(in_progress.waited),
        "us a handshake, mean",
    ));
    let at_once = latency::measure(Load::AtOnce, 8)?;
    rows.push(added("dispatcher_at_once_p50", &at_once, 0.5));
    rows.push(added("dispatcher_at_once_p99", &at_once, 0.99));
    if json {
        println!("{}", serde_json::to_string_pretty(&rows)?);
    } else {
        for row in rows {
            println!("{:32} {:>12.1} {}", row.name, row.value, row.unit);
        }
    }
    Ok(())
}

/// The value below which the share `at` of sorted `values` lies.
fn quantile(values: &[Duration], at: f64) -> Duration {
    let last = values.len().saturating_sub(1);
    values
        .get((last as f64 * at).round() as usize)
        .copied()
        .unwrap_or_default()
}

/// The time for which a core has worked by `clock`.
fn core_time(clock: libc::clockid_t) -> Duration {
    // SAFETY: all zeros are a valid time, and the call writes no more than that.
    let time = unsafe {
        let mut time: libc::timespec = zeroed();
        libc::clock_gettime(clock, &raw mut time);
        time
    };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
