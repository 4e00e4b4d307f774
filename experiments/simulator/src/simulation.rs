// SPDX-License-Identifier: Apache-2.0
//! A run: nodes, the network between them, and the events in order.

mod build;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use softswitch_pipeline::Nanos;

use crate::agenda::Event;
use crate::agent::GivenRpt;
use crate::flows::{Effort, Flow};
use crate::host::Host;
use crate::network::Network;
use crate::record::{FlowCounts, Packets, Record, Series, Summary, counters};
use crate::scenario::{self, ConnectionUse, Scenario};
use crate::switch::Switch;
use crate::workload::{Lengths, Servers, Starts};

/// A scenario that runs.
#[derive(Debug)]
pub struct Simulation {
    end: Option<Nanos>,
    nodes: Vec<Node>,
    network: Network,
    workloads: Vec<Workload>,
    samples: Vec<Sample>,
    record: Record,
    events: u64,
    /// Workloads that have flows to begin yet.
    beginning: usize,
}

#[derive(Debug)]
enum Node {
    Switch(Box<Switch>),
    Host(Box<Host>),
}

/// A series, how often it is sampled, and when next.
#[derive(Debug)]
struct Sample {
    series: Series,
    interval: Nanos,
    at: Nanos,
}

#[derive(Debug)]
struct Workload {
    scenario: scenario::Workload,
    /// The client's number.
    client: u32,
    starts: Starts,
    servers: Servers,
    lengths: Lengths,
    rpt: Option<GivenRpt>,
}

/// How far a run has come.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    /// Simulated time.
    pub now: Nanos,
    /// Packets that switches have processed.
    pub p4: u64,
    /// Flows that have begun.
    pub flows: u64,
    /// Those of them that are under way.
    pub active: u64,
}

impl Simulation {
    /// Puts a scenario together; its results will be in this folder.
    ///
    /// # Errors
    /// If a program or an entry is wrong, or a file cannot be written.
    pub fn new(scenario: &Scenario, folder: &Path) -> Result<Self> {
        build::build(scenario, folder)
    }

    /// Runs to the end. `progress` is called now and then.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn run(mut self, progress: impl Fn(Progress)) -> Result<Summary> {
        /// Events between two calls of `progress`.
        const EVENTS: u64 = 1 << 20;
        for workload in 0..self.workloads.len() {
            self.plan_flow(workload as u32);
        }
        while self.goes_on()
            && let Some((at, event)) = self.network.agenda.take()
            && self.end.is_none_or(|end| at < end)
        {
            self.sample_until(at)?;
            self.network.now = at;
            self.happen(event)?;
            while let Some((flow, spent)) = self.network.flows.take_ended() {
                self.note(&flow, spent)?;
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

    /// Without an end the run is over when no flow is under way or to come.
    fn goes_on(&self) -> bool {
        self.end.is_some() || self.beginning > 0 || self.network.flows.active_count() > 0
    }

    fn happen(&mut self, event: Event) -> Result<()> {
        let network = &mut self.network;
        match event {
            Event::Arrival { channel } => {
                let it = &network.channels[channel as usize];
                let (to, port) = (it.to, it.to_port);
                if let Some(frame) = network.arrive(channel) {
                    match &mut self.nodes[to as usize] {
                        Node::Switch(switch) => switch.receive(port, frame, network),
                        Node::Host(host) => host.receive(frame, network),
                    }
                }
            }
            Event::Free { channel } => {
                network.freed(channel);
                match &mut self.nodes[network.channels[channel as usize].from as usize] {
                    Node::Switch(switch) => switch.free(channel, network),
                    Node::Host(host) => host.free(network),
                }
            }
            Event::Timer { host, connection } => {
                if let Node::Host(host) = &mut self.nodes[host as usize] {
                    host.timer(connection, network);
                }
            }
            Event::Flow { workload } => self.begin_flow(workload),
        }
        Ok(())
    }

    fn plan_flow(&mut self, workload: u32) {
        match self.workloads[workload as usize].starts.next() {
            Some(at) => self.network.agenda.plan(at, Event::Flow { workload }),
            None => self.beginning -= 1,
        }
    }

    fn begin_flow(&mut self, number: u32) {
        let workload = &mut self.workloads[number as usize];
        let (server, size) = (workload.servers.draw(), workload.lengths.draw());
        let scenario = &workload.scenario;
        let last = scenario.connection == ConnectionUse::OneAFlow;
        let network = &mut self.network;
        let (request, rpt) = (scenario.request_bytes, workload.rpt.clone());
        let flow = network
            .flows
            .begin(number, network.now, request, size, last, rpt);
        if let Node::Host(host) = &mut self.nodes[workload.client as usize] {
            host.ask(flow, number, scenario, server, network);
        }
        self.plan_flow(number);
    }

    /// Writes down a flow that has ended, with what both ends spent on it.
    fn note(&mut self, flow: &Flow, mut spent: Effort) -> Result<()> {
        let Some((host, socket)) = flow.server.filter(|_| flow.received >= flow.size) else {
            return Ok(());
        };
        let Node::Host(server) = &self.nodes[host as usize] else {
            return Ok(());
        };
        if let Some(effort) = server.effort(socket) {
            spent += effort - flow.effort;
        }
        let workload = &self.workloads[flow.workload as usize].scenario;
        self.record
            .flow(flow, workload, &server.name, self.network.now, spent)
    }

    /// Takes the samples that are due up to a time, before what happens then.
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
        let (tally, flows) = (self.network.tally, &self.network.flows);
        let mut packets = Packets {
            sent: tally.sent,
            delivered: tally.delivered,
            hops: tally.hops,
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
