// SPDX-License-Identifier: Apache-2.0
//! A run: windows of simulated time, in which shards of the network are simulated independently.
//!
//! Frames need at least a window between two shards (conservative synchronization). Between two windows, shards exchange frames, and this
//! module starts flows and records results. The windows depend on the scenario only, so the results do not depend on the shards.

mod build;
mod sharding;
mod threads;

use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::{BTreeMap, BinaryHeap};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Result;
use rustc_hash::FxHashMap;
use softswitch_pipeline::Nanos;

use crate::agent::RptSchedule;
use crate::flows::{Answer, Ended, Update};
use crate::host::Host;
use crate::network::Channel;
use crate::record::{FlowCounts, Packets, Record, Series, Summary, counters};
use crate::scenario::{self, Scenario};
use crate::shard::{Node, Shard, Start, Windows};
use crate::switch::Switch;
use crate::workload::{ArrivalTimes, ResponseSizes, ServerChoice};

/// A scenario in execution.
#[derive(Debug)]
pub struct Simulation {
    shards: Vec<Mutex<Shard>>,
    threads: usize,
    coordinator: Coordinator,
}

/// The part of a run that happens between windows.
#[derive(Debug)]
struct Coordinator {
    end: Option<Nanos>,
    /// Length of a window.
    window: Nanos,
    /// Shard and index of each node, by its number.
    nodes: Vec<Place>,
    /// Shard and index of each channel, by its number.
    channels: Vec<Place>,
    workloads: Vec<Workload>,
    /// Time and workload of the next flow of each workload that has one.
    upcoming: BinaryHeap<Reverse<(Nanos, u32)>>,
    /// Number of flows that have started.
    begun: u64,
    /// Servers of active flows, by the flow's number.
    answers: FxHashMap<u64, Answer>,
    samples: Vec<Sample>,
    record: Record,
}

/// A shard, and an index of its nodes or channels.
#[derive(Debug, Clone, Copy)]
struct Place {
    shard: u32,
    index: u32,
}

/// A sampled series with its interval and its next sampling time.
#[derive(Debug)]
struct Sample {
    series: Series,
    interval: Nanos,
    at: Nanos,
}

/// The source of a workload's flows.
#[derive(Debug)]
struct Workload {
    scenario: scenario::Workload,
    /// The client.
    client: Place,
    arrivals: ArrivalTimes,
    servers: ServerChoice,
    sizes: ResponseSizes,
    rpt: Option<RptSchedule>,
}

/// Progress of a run.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    /// Simulated time.
    pub now: Nanos,
    /// Packets that switches have processed.
    pub p4: u64,
    /// Flows that have started.
    pub flows: u64,
    /// Active flows.
    pub active: u64,
}

impl Simulation {
    /// Builds the simulation of a scenario, which writes its results to `folder`. At most `threads` threads will run it.
    ///
    /// # Errors
    /// Returns an error if a program or an entry is invalid, or a file cannot be written.
    pub fn new(scenario: &Scenario, folder: &Path, threads: usize) -> Result<Self> {
        build::build(scenario, folder, threads)
    }

    /// Simulates at least `events` events, unless the run ends before. Returns the number of events of each node, for a simulation with one
    /// shard.
    fn count_events(self, events: u64) -> Result<Vec<u64>> {
        let Self {
            shards,
            mut coordinator,
            ..
        } = self;
        threads::with_threads(&shards, 1, |simulate| {
            while coordinator
                .advance(&shards, simulate)?
                .is_some_and(|so_far| so_far < events)
            {}
            Ok(Net::lock(&shards).0[0].events_by_node.clone())
        })
    }

    /// Runs to the end, and calls `progress` regularly.
    ///
    /// # Errors
    /// Returns an error if a file cannot be written.
    pub fn run(self, progress: impl Fn(Progress)) -> Result<Summary> {
        let Self {
            shards,
            threads,
            mut coordinator,
        } = self;
        threads::with_threads(&shards, threads, |simulate| {
            coordinator.run(&shards, simulate, progress)
        })
    }
}

impl Coordinator {
    fn run(
        &mut self,
        shards: &[Mutex<Shard>],
        simulate: &dyn Fn(Windows),
        progress: impl Fn(Progress),
    ) -> Result<Summary> {
        /// Number of events between two calls of `progress`.
        const EVENTS: u64 = 1 << 20;
        let mut reported = 0;
        while let Some(events) = self.advance(shards, simulate)? {
            if events / EVENTS > reported {
                reported = events / EVENTS;
                progress(self.progress(&Net::lock(shards)));
            }
        }
        self.finish(&Net::lock(shards))
    }

    /// Simulates the next window. Returns the number of events before it, or nothing if the run is over.
    fn advance(
        &mut self,
        shards: &[Mutex<Shard>],
        simulate: &dyn Fn(Windows),
    ) -> Result<Option<u64>> {
        let mut net = Net::lock(shards);
        self.exchange(&mut net)?;
        let events = net.events();
        let Some(next) = self.next_time(&net) else {
            return Ok(None);
        };
        self.sample_until(next, &net)?;
        let limit = self.limit();
        let end = limit.min(next.saturating_add(self.window));
        self.start_flows(end, &mut net);
        let until = match shards.len() {
            1 => self.next_flow().map_or(limit, |at| limit.min(at)),
            _ => 0,
        };
        let windows = Windows {
            end,
            until,
            length: self.window,
        };
        drop(net);
        simulate(windows);
        Ok(Some(events))
    }

    /// Gives frames and changes of requests to all shards, and records the flows that have ended.
    fn exchange(&mut self, net: &mut Net<'_>) -> Result<()> {
        for from in 0..net.0.len() {
            for to in 0..net.0.len() {
                let crossings = std::mem::take(&mut net.0[from].network.outboxes[to]);
                let emptied = std::mem::replace(&mut net.0[to].inboxes[from], crossings);
                net.0[from].network.outboxes[to] = emptied;
            }
        }
        let (mut updates, mut ended) = (Vec::new(), Vec::new());
        for shard in &mut net.0 {
            updates.append(&mut shard.network.flows.take_updates());
            ended.append(&mut shard.network.flows.take_ended());
        }
        self.note_answers(&updates);
        ended.sort_unstable_by_key(|ended| (ended.end, ended.flow.request.flow));
        for ended in ended {
            self.record_flow(&ended, net)?;
        }
        if !updates.is_empty() {
            let updates: Arc<[Update]> = updates.into();
            for shard in &mut net.0 {
                shard.updates.push(updates.clone());
            }
        }
        Ok(())
    }

    /// Notes which servers answer. A flow has one server: the first one, or the one of the first host in the same window.
    fn note_answers(&mut self, updates: &[Update]) {
        let mut answers: Vec<_> = updates
            .iter()
            .filter_map(|update| match update {
                Update::Answered(_, flow, answer) => Some((*flow, *answer)),
                Update::Sent(..) | Update::Ended(..) => None,
            })
            .collect();
        answers.sort_unstable_by_key(|(flow, answer)| (*flow, answer.host, answer.socket));
        for (flow, answer) in answers {
            self.answers.entry(flow).or_insert(answer);
        }
    }

    /// Returns the time of the next event or flow, if the run continues. Without a configured end, it ends when all flows have started and
    /// ended.
    fn next_time(&self, net: &Net<'_>) -> Option<Nanos> {
        let flow = self.next_flow();
        if self.end.is_none() && flow.is_none() && net.active_flows() == 0 {
            return None;
        }
        let events = net.0.iter().filter_map(|shard| shard.next);
        let next = events.chain(flow).min()?;
        Some(next).filter(|&next| self.end.is_none_or(|end| next < end))
    }

    /// Returns the time at which a window ends in any case: that of the next sample, or the end of the run.
    fn limit(&self) -> Nanos {
        let samples = self.samples.iter().map(|sample| sample.at);
        samples.chain(self.end).min().unwrap_or(Nanos::MAX)
    }

    /// Returns the start of the next flow.
    fn next_flow(&self) -> Option<Nanos> {
        self.upcoming.peek().map(|Reverse((at, _))| *at)
    }

    /// Starts the flows before `end`.
    fn start_flows(&mut self, end: Nanos, net: &mut Net<'_>) {
        while let Some(mut upcoming) = self.upcoming.peek_mut()
            && upcoming.0.0 < end
        {
            let (at, number) = upcoming.0;
            let workload = &mut self.workloads[number as usize];
            match workload.arrivals.next() {
                Some(next) => upcoming.0.0 = next,
                None => drop(PeekMut::pop(upcoming)),
            }
            self.begun += 1;
            let start = Start {
                at,
                flow: self.begun,
                workload: number,
                client: workload.client.index,
                server: workload.servers.draw(),
                size: workload.sizes.draw(),
                rpt: workload.rpt.clone(),
            };
            net.0[workload.client.shard as usize]
                .starts
                .push_back(start);
        }
    }

    /// Records a completed flow, with the recovery counts of both ends.
    fn record_flow(&mut self, ended: &Ended, net: &Net<'_>) -> Result<()> {
        let Ended {
            flow,
            end,
            recovery,
        } = ended;
        let answer = self.answers.remove(&flow.request.flow);
        let Some(answer) = answer.filter(|_| flow.is_complete()) else {
            return Ok(());
        };
        let Node::Host(server) = net.node(self.nodes[answer.host as usize]) else {
            return Ok(());
        };
        let mut recovery = *recovery;
        if let Some(total) = server.recovery_counts(answer.socket) {
            recovery += total - answer.recovery;
        }
        let workload = &self.workloads[flow.workload as usize].scenario;
        self.record
            .flow(flow, workload, &server.name, *end, recovery)
    }

    /// Takes the samples that are due until `until`. Events at that time follow.
    fn sample_until(&mut self, until: Nanos, net: &Net<'_>) -> Result<()> {
        for i in 0..self.samples.len() {
            while self.samples[i].at <= until {
                let Sample {
                    series,
                    interval,
                    at,
                } = self.samples[i];
                self.sample(series, at, net)?;
                self.samples[i].at = at + interval;
            }
        }
        Ok(())
    }

    fn sample(&mut self, series: Series, now: Nanos, net: &Net<'_>) -> Result<()> {
        let record = &mut self.record;
        match series {
            Series::Queues => {
                for &place in &self.channels {
                    record.queue(now, net.channel(place))?;
                }
            }
            Series::Loads => {
                for &place in &self.nodes {
                    if let Node::Host(host) = net.node(place)
                        && let Some(loads) = host.loads()
                    {
                        record.loads(now, &host.name, loads)?;
                    }
                }
            }
            Series::Throughput => {
                let shards = net.0.iter();
                let mut flows: Vec<_> = shards.flat_map(|it| it.network.flows.active()).collect();
                flows.sort_unstable_by_key(|flow| flow.request.flow);
                for flow in flows {
                    record.received(now, flow)?;
                }
            }
        }
        Ok(())
    }

    fn finish(&mut self, net: &Net<'_>) -> Result<Summary> {
        if let Some(end) = self.end {
            self.sample_until(end, net)?;
        }
        self.record.close()?;
        Ok(self.summary(net))
    }

    fn switches<'a>(&'a self, net: &'a Net<'_>) -> impl Iterator<Item = &'a Switch> {
        self.nodes
            .iter()
            .filter_map(|&place| match net.node(place) {
                Node::Switch(switch) => Some(&**switch),
                Node::Host(_) => None,
            })
    }

    fn hosts<'a>(&'a self, net: &'a Net<'_>) -> impl Iterator<Item = &'a Host> {
        self.nodes
            .iter()
            .filter_map(|&place| match net.node(place) {
                Node::Switch(_) => None,
                Node::Host(host) => Some(&**host),
            })
    }

    fn progress(&self, net: &Net<'_>) -> Progress {
        Progress {
            now: net.now(),
            p4: self.switches(net).map(|it| it.counts.passes()).sum(),
            flows: self.begun,
            active: net.active_flows(),
        }
    }

    fn summary(&self, net: &Net<'_>) -> Summary {
        let mut packets = Packets::default();
        let (mut lost, mut failed) = (BTreeMap::new(), 0);
        for shard in &net.0 {
            let counts = shard.network.frame_counts;
            packets.sent += counts.sent;
            packets.delivered += counts.delivered;
            packets.hops += counts.hops;
            packets.in_flight += shard.in_flight();
            failed += shard.network.flows.failed();
        }
        for channel in self.channels.iter().map(|&place| net.channel(place)) {
            let counts = channel.queue.counts();
            packets.dropped += counts.lost;
            packets.in_flight += channel.queue.depth_packets();
            if counts.lost > 0 {
                lost.insert(channel.name.clone(), counts.lost);
            }
        }
        for counts in self.switches(net).map(|switch| switch.counts) {
            packets.copied += counts.copied;
            packets.dropped += counts.dropped.total();
            packets.to_controller += counts.to_controller;
            packets.p4 += counts.passes();
        }
        let hosts_dropped = self.hosts(net).map(|host| host.dropped.total());
        packets.dropped += hosts_dropped.sum::<u64>();
        let active = net.active_flows();
        Summary {
            end: self.end.unwrap_or_else(|| net.now()),
            events: net.events(),
            flows: FlowCounts {
                begun: self.begun,
                ended: self.begun - failed - active,
                failed,
                active,
            },
            packets,
            switches: self
                .switches(net)
                .map(|s| (s.name.clone(), s.counts))
                .collect(),
            hosts_dropped: self
                .hosts(net)
                .filter(|host| host.dropped.total() > 0)
                .map(|host| (host.name.clone(), host.dropped))
                .collect(),
            lost,
            counters: self
                .switches(net)
                .map(|s| (s.name.clone(), counters(&s.pipeline)))
                .collect(),
        }
    }
}

/// All shards between two windows.
struct Net<'a>(Vec<MutexGuard<'a, Shard>>);

impl<'a> Net<'a> {
    fn lock(shards: &'a [Mutex<Shard>]) -> Self {
        let lock = |shard: &'a Mutex<Shard>| shard.lock().unwrap_or_else(PoisonError::into_inner);
        Self(shards.iter().map(lock).collect())
    }

    fn node(&self, place: Place) -> &Node {
        &self.0[place.shard as usize].nodes[place.index as usize]
    }

    fn channel(&self, place: Place) -> &Channel {
        &self.0[place.shard as usize].network.channels[place.index as usize]
    }

    /// Returns the time of the last event.
    fn now(&self) -> Nanos {
        let times = self.0.iter().map(|shard| shard.network.now);
        times.max().unwrap_or_default()
    }

    fn events(&self) -> u64 {
        self.0.iter().map(|shard| shard.events).sum()
    }

    fn active_flows(&self) -> u64 {
        let counts = self.0.iter().map(|it| it.network.flows.active_count());
        counts.sum()
    }
}
