// SPDX-License-Identifier: Apache-2.0
//! Packets per second and memory by number of connections, in process.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde::Serialize;

use crate::clock::core_time;
use crate::pipeline::Device;
use crate::site::Site;
use crate::traffic::Traffic;

/// Packets that are created at once, outside the measured time.
const BATCH: u64 = 10_000;
/// The smallest number of packets for a result.
const MIN_PACKETS: u64 = 1_000_000;

/// The cost of a number of connections.
#[derive(Debug, Serialize)]
pub struct Cost {
    connections: u64,
    /// Acknowledgments per second of one core's time.
    packets_per_second: f64,
    /// Memory that the process has needed since the start of the measurement.
    bytes: u64,
}

/// Measures acknowledgments of so many established connections in turn.
pub fn measure(site: &Site, counts: &[u64]) -> Result<Vec<Cost>> {
    let mut device = Device::new(site.pipeline()?);
    // The first batch also allocates the memory for packets.
    time_of(site, &mut device, 0, BATCH)?;
    let before = resident()?;
    let costs = counts.iter().map(|&connections| {
        let mut time = Duration::ZERO;
        let batch = BATCH.min(connections);
        let batches = connections.max(MIN_PACKETS).div_ceil(batch);
        for number in 0..batches {
            time += time_of(site, &mut device, number * batch % connections, batch)?;
        }
        let packets = batches * batch;
        Ok(Cost {
            connections,
            packets_per_second: packets as f64 / time.as_secs_f64(),
            bytes: resident()?.saturating_sub(before),
        })
    });
    costs.collect()
}

/// Sends `count` acknowledgments, beginning with that of connection `first`, and returns the core time.
fn time_of(site: &Site, device: &mut Device, first: u64, count: u64) -> Result<Duration> {
    let Traffic::Frontage(traffic) = &site.traffic else {
        bail!("connections are measured with TCP: use the site `frontage`");
    };
    let packets = traffic.acknowledgments(first..first + count)?;
    let packets: Vec<_> = packets.iter().collect();
    let start = core_time();
    let transmitted = device.transmit(&packets);
    let time = core_time() - start;
    ensure!(
        transmitted == count,
        "{transmitted} of {count} packets were transmitted"
    );
    Ok(time)
}

/// Returns the memory of this process in bytes.
fn resident() -> Result<u64> {
    let status = fs::read_to_string("/proc/self/status").context("/proc/self/status")?;
    let value = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:")?.strip_suffix("kB"));
    let kilobytes: u64 = value
        .context("/proc/self/status: no VmRSS")?
        .trim()
        .parse()?;
    Ok(kilobytes * 1024)
}
