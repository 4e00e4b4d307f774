// SPDX-License-Identifier: Apache-2.0
//! Summary of a run.

use std::collections::BTreeMap;

use serde::Serialize;
use softswitch_pipeline::{Nanos, Pipeline};

use crate::host::HostDrops;
use crate::switch::SwitchCounts;

/// Summary of a run. The same scenario always gives the same summary, because it includes nothing about the machine.
#[derive(Debug, Serialize)]
pub struct Summary {
    /// End of the run in nanoseconds of simulated time.
    pub end: Nanos,
    /// Number of processed events.
    pub events: u64,
    /// Flow counters.
    pub flows: FlowCounts,
    /// Packet counters.
    pub packets: Packets,
    /// Packet counters of each switch.
    pub switches: BTreeMap<String, SwitchCounts>,
    /// Packets dropped by hosts, for each host with drops.
    pub hosts_dropped: BTreeMap<String, HostDrops>,
    /// Frames lost on links, for each sending end with losses.
    pub lost: BTreeMap<String, u64>,
    /// Nonzero packet counts by switch, counter of the program, and index.
    pub counters: BTreeMap<String, BTreeMap<String, BTreeMap<usize, u64>>>,
}

/// Flow counters: begun = ended + failed + active.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct FlowCounts {
    /// Flows that a client has started.
    pub begun: u64,
    /// Flows whose response is complete.
    pub ended: u64,
    /// Flows that failed.
    pub failed: u64,
    /// Flows that were active at the end.
    pub active: u64,
}

/// Packet counters: sent + copied = delivered + dropped + to_controller + in_flight.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Packets {
    /// Packets that hosts sent.
    pub sent: u64,
    /// Copies that switches made.
    pub copied: u64,
    /// Packets that reached a host's connection.
    pub delivered: u64,
    /// Packets dropped by switches, by hosts, or lost on links.
    pub dropped: u64,
    /// Packets sent to controllers.
    pub to_controller: u64,
    /// Packets in a queue or on a link at the end.
    pub in_flight: u64,
    /// Frames that crossed a link, over all links.
    pub hops: u64,
    /// Passes through a switch's ingress, including those of recirculated packets.
    pub p4: u64,
}

/// Returns the nonzero packet counts of a program by counter and index.
pub fn counters(pipeline: &Pipeline) -> BTreeMap<String, BTreeMap<usize, u64>> {
    let info = pipeline.program().info();
    let mut counters = BTreeMap::new();
    for counter in &info.counters {
        let Some(id) = info.counter(&counter.name) else {
            continue;
        };
        let values = (0..counter.size).filter_map(|index| {
            let packets = pipeline.counter(id, index).ok()?.packets;
            (packets > 0).then_some((index, packets))
        });
        let values: BTreeMap<_, _> = values.collect();
        if !values.is_empty() {
            counters.insert(counter.name.clone(), values);
        }
    }
    counters
}
