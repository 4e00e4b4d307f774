// SPDX-License-Identifier: Apache-2.0
//! Active flows: requests and the progress of their responses.
//!
//! Payloads are zeros, so servers get the requests from a table with the current request of each client socket. Each shard has a copy of it.
//! Changes are [`Update`]s, which all shards apply at the end of a window. A request takes at least a window to reach its server, so no
//! server misses it.

use std::net::SocketAddr;
use std::ops::{AddAssign, Sub};

use rustc_hash::FxHashMap;
use slab::Slab;
use softswitch_pipeline::Nanos;

use crate::agent::RptSchedule;

/// A flow, as its client knows it.
#[derive(Debug, Clone)]
pub struct Flow {
    /// Number of its workload.
    pub workload: u32,
    /// Start time: when the client sends the request, or the SYN of a new connection.
    pub start: Nanos,
    /// Request and response.
    pub request: Request,
    /// Bytes of the response that the client has received.
    pub received: u64,
}

/// A request, as servers know it.
#[derive(Debug, Clone)]
pub struct Request {
    /// Number of the flow, in the order of their starts.
    pub flow: u64,
    /// Size of the request in bytes.
    pub bytes: u64,
    /// Size of the response in bytes.
    pub response: u64,
    /// The connection ends with this flow.
    pub last: bool,
    /// RPT that the response signals instead of its remaining bytes.
    pub rpt: Option<RptSchedule>,
    /// A server answers the request.
    pub is_answered: bool,
}

/// The server of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// Number of the server's host.
    pub host: u32,
    /// Index of the connection at that host.
    pub socket: u32,
    /// Recovery counts of that connection before this flow.
    pub recovery: RecoveryCounts,
}

/// A flow that is complete or has failed.
#[derive(Debug, Clone)]
pub struct Ended {
    /// The flow.
    pub flow: Flow,
    /// Time of its end.
    pub end: Nanos,
    /// Recovery counts of the client's connection for this flow.
    pub recovery: RecoveryCounts,
}

/// A change of the table of requests.
#[derive(Debug, Clone)]
pub enum Update {
    /// A client has sent a request.
    Sent(SocketAddr, Request),
    /// A server has begun to answer the request of a client's socket and flow.
    Answered(SocketAddr, u64, Answer),
    /// The flow of a client's socket has ended.
    Ended(SocketAddr, u64),
}

/// Counters of a connection's loss recovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RecoveryCounts {
    /// Retransmitted segments.
    pub retransmitted: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
}

impl AddAssign for RecoveryCounts {
    fn add_assign(&mut self, other: Self) {
        self.retransmitted += other.retransmitted;
        self.timeouts += other.timeouts;
    }
}

impl Sub for RecoveryCounts {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self {
            retransmitted: self.retransmitted - other.retransmitted,
            timeouts: self.timeouts - other.timeouts,
        }
    }
}

/// The active flows of a shard's clients, and the requests of all clients. A completed flow takes no memory.
#[derive(Debug, Default)]
pub struct Flows {
    active: Slab<Flow>,
    /// Current request of each client socket.
    requests: FxHashMap<SocketAddr, Request>,
    updates: Vec<Update>,
    ended: Vec<Ended>,
    failed: u64,
}

impl Flows {
    /// Starts a flow and returns its index.
    pub fn begin(&mut self, workload: u32, start: Nanos, request: Request) -> usize {
        self.active.insert(Flow {
            workload,
            start,
            request,
            received: 0,
        })
    }

    /// Makes this the current flow of a client's socket. Returns the size of the request in bytes.
    pub fn request(&mut self, socket: SocketAddr, flow: usize) -> u64 {
        let request = &self.active[flow].request;
        // Links without delay may bring the request to a server of this shard before the end of the window.
        self.requests.insert(socket, request.clone());
        self.updates.push(Update::Sent(socket, request.clone()));
        request.bytes
    }

    /// Returns the current request of a client's socket.
    pub fn requested_by(&self, socket: &SocketAddr) -> Option<&Request> {
        self.requests.get(socket)
    }

    /// Notes that a server has begun to answer a request.
    pub fn answer(&mut self, socket: SocketAddr, flow: u64, answer: Answer) {
        self.updates.push(Update::Answered(socket, flow, answer));
    }

    /// Sets the number of bytes that the client has received. Returns true if the response is complete.
    pub fn receive(&mut self, flow: usize, bytes: u64) -> bool {
        let flow = &mut self.active[flow];
        flow.received = bytes;
        flow.is_complete()
    }

    /// Ends a flow that the client cannot request.
    pub fn fail(&mut self, flow: usize, now: Nanos) {
        self.remove(flow, now, RecoveryCounts::default());
    }

    /// Ends a flow that is complete or has failed. `recovery` has the counts of the client's connection for this flow.
    pub fn end(&mut self, socket: SocketAddr, flow: usize, now: Nanos, recovery: RecoveryCounts) {
        let number = self.active[flow].request.flow;
        self.updates.push(Update::Ended(socket, number));
        self.remove(flow, now, recovery);
    }

    fn remove(&mut self, flow: usize, end: Nanos, recovery: RecoveryCounts) {
        let flow = self.active.remove(flow);
        self.failed += u64::from(!flow.is_complete());
        self.ended.push(Ended {
            flow,
            end,
            recovery,
        });
    }

    /// Returns true if there are updates, or flows that have ended.
    pub fn has_changes(&self) -> bool {
        !self.updates.is_empty() || !self.ended.is_empty()
    }

    /// Removes and returns the updates of this shard.
    pub fn take_updates(&mut self) -> Vec<Update> {
        std::mem::take(&mut self.updates)
    }

    /// Applies the updates of any shard, in their order.
    pub fn apply(&mut self, updates: &[Update]) {
        for update in updates {
            match update {
                Update::Sent(socket, request) => {
                    self.requests.insert(*socket, request.clone());
                }
                Update::Answered(socket, flow, _) => {
                    if let Some(request) = self.requests.get_mut(socket)
                        && request.flow == *flow
                    {
                        request.is_answered = true;
                    }
                }
                Update::Ended(socket, flow) => {
                    if self.requests.get(socket).is_some_and(|it| it.flow == *flow) {
                        self.requests.remove(socket);
                    }
                }
            }
        }
    }

    /// Removes and returns the flows that have ended.
    pub fn take_ended(&mut self) -> Vec<Ended> {
        std::mem::take(&mut self.ended)
    }

    /// Iterates over the active flows.
    pub fn active(&self) -> impl Iterator<Item = &Flow> {
        self.active.iter().map(|(_, flow)| flow)
    }

    /// Returns the number of active flows.
    pub fn active_count(&self) -> u64 {
        self.active.len() as u64
    }

    /// Returns the number of flows that ended without the complete response.
    pub fn failed(&self) -> u64 {
        self.failed
    }
}

impl Flow {
    /// Returns true if the client has received the complete response.
    pub fn is_complete(&self) -> bool {
        self.received >= self.request.response
    }
}
