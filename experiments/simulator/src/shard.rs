// SPDX-License-Identifier: Apache-2.0
//! A part of the simulated network: nodes that one thread simulates at a time.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

use softswitch_pipeline::Nanos;

use crate::agent::RptSchedule;
use crate::events::{Event, Timer};
use crate::flows::{Request, Update};
use crate::host::Host;
use crate::network::{Crossing, Network};
use crate::scenario::{ConnectionUse, Workload};
use crate::switch::Switch;

/// A node of the network.
#[derive(Debug)]
pub enum Node {
    /// A switch.
    Switch(Box<Switch>),
    /// A host.
    Host(Box<Host>),
}

/// The start of a flow.
#[derive(Debug)]
pub struct Start {
    /// Time of the start.
    pub at: Nanos,
    /// Number of the flow.
    pub flow: u64,
    /// Number of its workload.
    pub workload: u32,
    /// Node index of the client.
    pub client: u32,
    /// Address and port of the server.
    pub server: SocketAddr,
    /// Size of the response in bytes.
    pub size: u64,
    /// RPT that the response signals instead of its remaining bytes.
    pub rpt: Option<RptSchedule>,
}

/// Nodes, and all state that only they use.
#[derive(Debug)]
pub struct Shard {
    /// The nodes, in the scenario's order.
    pub nodes: Vec<Node>,
    /// State that the nodes share.
    pub network: Network,
    /// Flows of this window that have not started yet, in the order of their starts.
    pub starts: VecDeque<Start>,
    /// Frames that other shards have sent, one list for each shard.
    pub inboxes: Vec<Vec<Crossing>>,
    /// Changes of requests that have not been applied yet.
    pub updates: Vec<Arc<[Update]>>,
    /// Time of the next event, after a window.
    pub next: Option<Nanos>,
    /// Number of processed events.
    pub events: u64,
    /// Number of processed events of each node.
    pub events_by_node: Vec<u64>,
    workloads: Arc<[Workload]>,
}

/// The windows that shards simulate next.
#[derive(Debug, Clone, Copy)]
pub struct Windows {
    /// End of the first window.
    pub end: Nanos,
    /// Further windows may follow until this time, while no change concerns anything outside of the shard. 0 if there are other shards.
    pub until: Nanos,
    /// Length of each further window in nanoseconds.
    pub length: Nanos,
}

impl Shard {
    /// Creates a shard at time 0. `shards` is the number of shards.
    pub fn new(
        nodes: Vec<Node>,
        network: Network,
        workloads: Arc<[Workload]>,
        shards: usize,
    ) -> Self {
        Self {
            events_by_node: vec![0; nodes.len()],
            nodes,
            network,
            starts: VecDeque::new(),
            inboxes: (0..shards).map(|_| Vec::new()).collect(),
            updates: Vec::new(),
            next: None,
            events: 0,
            workloads,
        }
    }

    /// Processes all events of the windows.
    pub fn run(&mut self, windows: Windows) {
        /// Number of events after which no further window follows, so that progress is reported.
        const EVENTS: u64 = 1 << 16;
        let limit = self.events + EVENTS;
        self.run_until(windows.end);
        while self.events < limit
            && !self.network.flows.has_changes()
            && let Some(next) = self.next
            && let end = next.saturating_add(windows.length)
            && end <= windows.until
        {
            self.run_until(end);
        }
    }

    /// Processes all events before `end`. No frame of another shard may arrive before that.
    fn run_until(&mut self, end: Nanos) {
        for updates in self.updates.drain(..) {
            self.network.flows.apply(&updates);
        }
        for inbox in &mut self.inboxes {
            self.network.receive(inbox);
        }
        loop {
            let start = self.starts.front().map(|start| start.at);
            // At the same time, flows start after all events.
            let limit = start.map_or(end, |at| end.min(at + 1));
            if let Some((at, event)) = self.network.events.pop_before(limit) {
                self.network.now = at;
                self.handle(event);
            } else if let Some(start) = self.starts.pop_front() {
                self.network.now = start.at;
                self.start_flow(start);
            } else {
                break;
            }
            self.events += 1;
        }
        let crossing = self.network.take_earliest_crossing();
        let next = self.network.events.next_time();
        self.next = next.into_iter().chain(crossing).min();
    }

    /// Returns the number of frames on their way to this shard's nodes, or from them to other shards.
    pub fn in_flight(&self) -> u64 {
        let inboxes = self.inboxes.iter().map(Vec::len).sum::<usize>();
        inboxes as u64 + self.network.in_flight()
    }

    fn handle(&mut self, event: Event) {
        let network = &mut self.network;
        match event {
            Event::Free { channel } => {
                network.on_free(channel);
                let from = network.channels[channel as usize].from as usize;
                self.events_by_node[from] += 1;
                match &mut self.nodes[from] {
                    Node::Switch(switch) => switch.on_channel_free(channel, network),
                    Node::Host(host) => host.on_channel_free(network),
                }
            }
            Event::Arrival { wire } => {
                let entry = &network.wires[wire as usize];
                let (to, port) = (entry.to, entry.port);
                self.events_by_node[to as usize] += 1;
                if let Some(frame) = network.arrive(wire) {
                    match &mut self.nodes[to as usize] {
                        Node::Switch(switch) => switch.receive(port, frame, network),
                        Node::Host(host) => host.receive(frame, network),
                    }
                }
            }
            Event::Timer(Timer { host, connection }) => {
                self.events_by_node[host as usize] += 1;
                if let Node::Host(host) = &mut self.nodes[host as usize] {
                    host.timer(connection, network);
                }
            }
        }
    }

    fn start_flow(&mut self, start: Start) {
        let workload = &self.workloads[start.workload as usize];
        let network = &mut self.network;
        let request = Request {
            flow: start.flow,
            bytes: workload.request_bytes,
            response: start.size,
            last: workload.connection == ConnectionUse::OnePerFlow,
            rpt: start.rpt,
            is_answered: false,
        };
        let flow = network.flows.begin(start.workload, start.at, request);
        if let Node::Host(host) = &mut self.nodes[start.client as usize] {
            host.start_flow(flow, start.workload, workload, start.server, network);
        }
    }
}
