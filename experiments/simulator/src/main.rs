// SPDX-License-Identifier: Apache-2.0
//! `frontage-simulator run RESOLVED.json --out DIR`.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use frontage_simulator::{Scenario, Simulation};
use nix::time::{ClockId, clock_gettime};
use serde_json::json;

/// Simulates a data centre with its compiled P4 programs in the loop.
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Runs a resolved scenario. The same scenario gives the same flows.csv, queues.csv, loads.csv, throughput.csv and
    /// summary.json; timing.json says how long this machine took.
    Run {
        /// The scenario; - reads it from standard input.
        scenario: PathBuf,
        /// The folder for the results, which is made if need be.
        #[arg(long)]
        out: PathBuf,
        /// Write now and then how many seconds are simulated, a number a line.
        #[arg(long)]
        progress: bool,
    },
}

fn main() -> Result<()> {
    let Command::Run {
        scenario,
        out,
        progress,
    } = Cli::parse().command;
    let simulation = Simulation::new(&Scenario::read(&scenario)?, &out)?;
    let begun = Instant::now();
    let begun_core = cpu_time()?;
    let summary = simulation.run(|p| {
        if progress {
            println!("{:.6}", p.now as f64 / 1e9);
        }
    })?;
    let seconds = (cpu_time()? - begun_core).as_secs_f64();
    let timing = json!({
        "wall_seconds": begun.elapsed().as_secs_f64(),
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

/// The most that this process has had in memory at a time, since it began: getrusage's would be that of who began it, if that is more.
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
