// SPDX-License-Identifier: Apache-2.0
//! A run: nodes, the network between them, and the event loop.

mod build;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use softswitch_pipeline::Nanos;

use crate::agent::RptSchedule;
use crate::events::Event;
use crate::flows::{Flow, RecoveryCounts};
use crate::host::Host;
use crate::network::Network;
use crate::record::{FlowCounts, Packets, Record, Series, Summary, counters};
use crate::scenario::{self, ConnectionUse, Scenario};
use crate::switch::Switch;
use crate::workload::{ArrivalTimes, ResponseSizes, ServerChoice};

/// A scenario in execution.
#[derive(Debug)]
pub struct Simulation {
    end: Option<Nanos>,
    nodes: Vec<Node>,
    network: Network,
    workloads: Vec<Workload>,
    samples: Vec<Sample>,
    record: Record,
    events: u64,
    /// Number of workloads with flows that have not started yet.
    open_workloads: usize,
}

#[derive(Debug)]
enum Node {
    Switch(Box<Switch>),
    Host(Box<Host>),
}

/// A sampled series with its interval and its next sampling time.
#[derive(Debug)]
struct Sample {
    series: Series,
    interval: Nanos,
    at: Nanos,
}

#[derive(Debug)]
struct Workload {
    scenario: scenario::Workload,
    /// Node number of the client.
    client: u32,
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
    /// Builds the simulation of a scenario, which writes its results to `folder`.
    ///
    /// # Errors
    /// Returns an error if a program or an entry is invalid, or a file cannot be written.
    pub fn new(scenario: &Scenario, folder: &Path) -> Result<Self> {
        build::build(scenario, folder)
    }

    /// Runs to the end, and calls `progress` regularly.
    ///
    /// # Errors
    /// Returns an error if a file cannot be written.
    pub fn run(mut self, progress: impl Fn(Progress)) -> Result<Summary> {
        /// Number of events between two calls of `progress`.
        const EVENTS: u64 = 1 << 20;
        for workload in 0..self.workloads.len() {
            self.schedule_flow(workload as u32);
        }
        while self.has_work()
            && let Some((at, event)) = self.network.events.pop()
            && self.end.is_none_or(|end| at < end)
        {
            self.sample_until(at)?;
            self.network.now = at;
            self.handle(event)?;
            while let Some((flow, recovery)) = self.network.flows.take_ended() {
                self.record_flow(&flow, recovery)?;
            }
            self.events += 1;
            if self.events.is_multiple_of(EVENTS) {
                progress(self.progress());
            }
        }
        if let Some(end) = self.end {
            self.sample_until(end)?;
            self.network.now = end;
        }
        let summary = self.summary();
        self.record.close()?;
        Ok(summary)
    }

    /// Returns true if the run continues. Without a configured end, it ends when all flows have started and ended.
    fn has_work(&self) -> bool {
        self.end.is_some() || self.open_workloads > 0 || self.network.flows.active_count() > 0
    }

    fn handle(&mut self, event: Event) -> Result<()> {
        let network = &mut self.network;
        match event {
            Event::Arrival { channel } => {
                let entry = &network.channels[channel as usize];
                let (to, port) = (entry.to, entry.to_port);
                if let Some(frame) = network.arrive(channel) {
                    match &mut self.nodes[to as usize] {
                        Node::Switch(switch) => switch.receive(port, frame, network),
                        Node::Host(host) => host.receive(frame, network),
                    }
                }
            }
            Event::Free { channel } => {
                network.on_free(channel);
                match &mut self.nodes[network.channels[channel as usize].from as usize] {
                    Node::Switch(switch) => switch.on_channel_free(channel, network),
                    Node::Host(host) => host.on_channel_free(network),
                }
            }
            Event::Timer { host, connection } => {
                if let Node::Host(host) = &mut self.nodes[host as usize] {
                    host.timer(connection, network);
                }
            }
            Event::Flow { workload } => self.start_flow(workload),
        }
        Ok(())
    }

    fn schedule_flow(&mut self, workload: u32) {
        match self.workloads[workload as usize].arrivals.next() {
            Some(at) => self.network.events.schedule(at, Event::Flow { workload }),
            None => self.open_workloads -= 1,
        }
    }

    fn start_flow(&mut self, number: u32) {
        let workload = &mut self.workloads[number as usize];
        let (server, size) = (workload.servers.draw(), workload.sizes.draw());
        let scenario = &workload.scenario;
        let last = scenario.connection == ConnectionUse::OnePerFlow;
        let network = &mut self.network;
        let (request, rpt) = (scenario.request_bytes, workload.rpt.clone());
        let flow = network
            .flows
            .begin(number, network.now, request, size, last, rpt);
        if let Node::Host(host) = &mut self.nodes[workload.client as usize] {
            host.start_flow(flow, number, scenario, server, network);
        }
        self.schedule_flow(number);
    }

    /// Records a completed flow, with the recovery counts of both ends. `recovery` has those of the client.
    fn record_flow(&mut self, flow: &Flow, mut recovery: RecoveryCounts) -> Result<()> {
        let Some((host, socket)) = flow.server.filter(|_| flow.received >= flow.size) else {
            return Ok(());
        };
        let Node::Host(server) = &self.nodes[host as usize] else {
            return Ok(());
        };
        if let Some(total) = server.recovery_counts(socket) {
            recovery += total - flow.recovery;
        }
        let workload = &self.workloads[flow.workload as usize].scenario;
        self.record
            .flow(flow, workload, &server.name, self.network.now, recovery)
    }

    /// Takes the samples that are due until `until`. The caller processes events at that time afterwards.
    fn sample_until(&mut self, until: Nanos) -> Result<()> {
        for i in 0..self.samples.len() {
            while self.samples[i].at <= until {
                let Sample {
                    series,
                    interval,
                    at,
                } = self.samples[i];
                self.sample(series, at)?;
                self.samples[i].at = at + interval;
            }
        }
        Ok(())
    }

    fn sample(&mut self, series: Series, now: Nanos) -> Result<()> {
        let record = &mut self.record;
        match series {
            Series::Queues => {
                for channel in &self.network.channels {
                    record.queue(now, channel)?;
                }
            }
            Series::Loads => {
                for node in &self.nodes {
                    if let Node::Host(host) = node
                        && let Some(loads) = host.loads()
                    {
                        record.loads(now, &host.name, loads)?;
                    }
                }
            }
            Series::Throughput => {
                for flow in self.network.flows.active() {
                    record.received(now, flow)?;
                }
            }
        }
        Ok(())
    }

    fn switches(&self) -> impl Iterator<Item = &Switch> {
        self.nodes.iter().filter_map(|node| match node {
            Node::Switch(switch) => Some(&**switch),
            Node::Host(_) => None,
        })
    }

    fn hosts(&self) -> impl Iterator<Item = &Host> {
        self.nodes.iter().filter_map(|node| match node {
            Node::Switch(_) => None,
            Node::Host(host) => Some(&**host),
        })
    }

    fn progress(&self) -> Progress {
        Progress {
            now: self.network.now,
            p4: self.switches().map(|switch| switch.counts.passes()).sum(),
            flows: self.network.flows.begun(),
            active: self.network.flows.active_count(),
        }
    }

    fn summary(&self) -> Summary {
        let (frame_counts, flows) = (self.network.frame_counts, &self.network.flows);
        let mut packets = Packets {
            sent: frame_counts.sent,
            delivered: frame_counts.delivered,
            hops: frame_counts.hops,
            ..Packets::default()
        };
        let mut lost = BTreeMap::new();
        for channel in &self.network.channels {
            let counts = channel.queue.counts();
            packets.dropped += counts.lost;
            packets.in_flight += channel.queue.depth_packets();
            packets.in_flight += counts.transmitted - counts.lost - counts.arrived;
            if counts.lost > 0 {
                lost.insert(channel.name.clone(), counts.lost);
            }
        }
        for counts in self.switches().map(|switch| switch.counts) {
            packets.copied += counts.copied;
            packets.dropped += counts.dropped.total();
            packets.to_controller += counts.to_controller;
            packets.p4 += counts.passes();
        }
        packets.dropped += self.hosts().map(|host| host.dropped.total()).sum::<u64>();
        let (begun, failed, active) = (flows.begun(), flows.failed(), flows.active_count());
        Summary {
            end: self.network.now,
            events: self.events,
            flows: FlowCounts {
                begun,
                ended: begun - failed - active,
                failed,
                active,
            },
            packets,
            switches: self
                .switches()
                .map(|s| (s.name.clone(), s.counts))
                .collect(),
            hosts_dropped: self
                .hosts()
                .filter(|host| host.dropped.total() > 0)
                .map(|host| (host.name.clone(), host.dropped))
                .collect(),
            lost,
            counters: self
                .switches()
                .map(|s| (s.name.clone(), counters(&s.pipeline)))
                .collect(),
        }
    }
}
