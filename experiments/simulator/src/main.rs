// SPDX-License-Identifier: Apache-2.0
//! The program `frontage-simulator`: `frontage-simulator run RESOLVED.json --out DIR`.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use frontage_simulator::{Scenario, Simulation};
use nix::time::{ClockId, clock_gettime};
use serde_json::json;

/// Simulates a data center with its compiled P4 programs in the loop.
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Runs a resolved scenario. The same scenario gives the same flows.csv, queues.csv, loads.csv, throughput.csv and
    /// summary.json; timing.json has the run time on this machine.
    Run {
        /// The scenario file; - is standard input.
        scenario: PathBuf,
        /// The folder for the results; created if it does not exist.
        #[arg(long)]
        out: PathBuf,
        /// Number of threads. It changes timing.json only.
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
        threads: u16,
        /// Regularly print the simulated time in seconds, one number per line.
        #[arg(long)]
        progress: bool,
    },
}

fn main() -> Result<()> {
    let Command::Run {
        scenario,
        out,
        threads,
        progress,
    } = Cli::parse().command;
    let simulation = Simulation::new(&Scenario::read(&scenario)?, &out, threads.into())?;
    let started = Instant::now();
    let started_cpu = cpu_time()?;
    let summary = simulation.run(|p| {
        if progress {
            println!("{:.6}", p.now as f64 / 1e9);
        }
    })?;
    let seconds = (cpu_time()? - started_cpu).as_secs_f64();
    let timing = json!({
        "wall_seconds": started.elapsed().as_secs_f64(),
        "core_seconds": seconds,
        "peak_memory_bytes": peak_memory()?,
        "p4_packets_per_core_second": summary.packets.p4 as f64 / seconds,
        "hops_per_core_second": summary.packets.hops as f64 / seconds,
    });
    for (name, text) in [
        ("summary.json", serde_json::to_string_pretty(&summary)?),
        ("timing.json", serde_json::to_string_pretty(&timing)?),
    ] {
        let path = out.join(name);
        fs::write(&path, text + "\n").with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}

/// Returns the peak memory of this process in bytes.
///
/// getrusage would return the peak of the parent process if that is larger.
fn peak_memory() -> Result<u64> {
    let status = fs::read_to_string("/proc/self/status").context("reading /proc/self/status")?;
    let peak = status.lines().find_map(|line| {
        let kibibytes = line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?;
        kibibytes.parse::<u64>().ok()
    });
    Ok(peak.context("/proc/self/status: no VmHWM in kB")? << 10)
}

/// Returns the CPU time of this process, which hardly depends on other load of the machine.
fn cpu_time() -> Result<Duration> {
    Ok(clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID)?.into())
}
