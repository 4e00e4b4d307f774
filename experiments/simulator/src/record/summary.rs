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
    /// When it ended, in nanoseconds.
    pub end: Nanos,
    /// Events that happened.
    pub events: u64,
    /// Flow counters.
    pub flows: FlowCounts,
    /// Packet counters.
    pub packets: Packets,
    /// By switch.
    pub switches: BTreeMap<String, SwitchCounts>,
    /// Packets dropped by hosts, for each host with drops.
    pub hosts_dropped: BTreeMap<String, HostDrops>,
    /// Frames lost on links, for each sending end with losses.
    pub lost: BTreeMap<String, u64>,
    /// By switch and counter of the program: packets by index, where it is not nothing.
    pub counters: BTreeMap<String, BTreeMap<String, BTreeMap<usize, u64>>>,
}

/// Flow counters: begun = ended + failed + active.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct FlowCounts {
    /// Begun by a client.
    pub begun: u64,
    /// Received whole.
    pub ended: u64,
    /// Given up.
    pub failed: u64,
    /// Under way at the end.
    pub active: u64,
}

/// Packet counters: sent + copied = delivered + dropped + to_controller + in_flight.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Packets {
    /// By hosts.
    pub sent: u64,
    /// Copies that switches made.
    pub copied: u64,
    /// To a host's connection.
    pub delivered: u64,
    /// By switches, hosts, and on links.
    pub dropped: u64,
    /// To controllers.
    pub to_controller: u64,
    /// In a queue or on a link at the end.
    pub in_flight: u64,
    /// Frames that crossed a link, over all links.
    pub hops: u64,
    /// Passes through a switch's ingress, those of recirculated packets included.
    pub p4: u64,
}

/// The packets that a program has counted, where it is not nothing.
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
