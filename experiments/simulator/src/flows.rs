// SPDX-License-Identifier: Apache-2.0
//! Active flows: requests and the progress of their responses.

use std::net::SocketAddr;
use std::ops::{AddAssign, Sub};

use rustc_hash::FxHashMap;
use slab::Slab;
use softswitch_pipeline::Nanos;

use crate::agent::RptSchedule;

/// A request and its response.
#[derive(Debug, Clone)]
pub struct Flow {
    /// Number of the flow, in the order of their starts.
    pub id: u64,
    /// Number of its workload.
    pub workload: u32,
    /// Start time: when the client sends the request, or the SYN of a new connection.
    pub start: Nanos,
    /// Size of the request in bytes.
    pub request: u64,
    /// Size of the response in bytes.
    pub size: u64,
    /// The connection ends with this flow.
    pub last: bool,
    /// RPT that the response signals instead of its remaining bytes.
    pub rpt: Option<RptSchedule>,
    /// Bytes of the response that the client has received.
    pub received: u64,
    /// Host number and connection of the server, once it has received the request.
    pub server: Option<(u32, u32)>,
    /// Recovery counts of the server's connection before this flow.
    pub recovery: RecoveryCounts,
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

/// All active flows. A completed flow takes no memory.
#[derive(Debug, Default)]
pub struct Flows {
    active: Slab<Flow>,
    /// Current flow of each client socket. Payloads are zeros, so servers get the requests from here.
    requested: FxHashMap<SocketAddr, usize>,
    /// Flows that have ended but were not taken yet.
    ended: Vec<(usize, RecoveryCounts)>,
    begun: u64,
    failed: u64,
}

impl Flows {
    /// Starts a flow and returns its index.
    pub fn begin(
        &mut self,
        workload: u32,
        start: Nanos,
        request: u64,
        size: u64,
        last: bool,
        rpt: Option<RptSchedule>,
    ) -> usize {
        self.begun += 1;
        self.active.insert(Flow {
            id: self.begun,
            workload,
            start,
            request,
            size,
            last,
            rpt,
            received: 0,
            server: None,
            recovery: RecoveryCounts::default(),
        })
    }

    /// Makes this the current flow of a client's socket. Returns the size of the request in bytes.
    pub fn request(&mut self, socket: SocketAddr, flow: usize) -> u64 {
        self.requested.insert(socket, flow);
        self.active[flow].request
    }

    /// Ends a flow that the client cannot request.
    pub fn fail(&mut self, flow: usize) {
        self.ended.push((flow, RecoveryCounts::default()));
    }

    /// Returns the current flow of a client's socket.
    pub fn requested_by(&mut self, socket: &SocketAddr) -> Option<&mut Flow> {
        self.active.get_mut(*self.requested.get(socket)?)
    }

    /// Sets the number of bytes that the client has received. Returns true if the response is complete.
    pub fn receive(&mut self, flow: usize, bytes: u64) -> bool {
        let flow = &mut self.active[flow];
        flow.received = bytes;
        bytes >= flow.size
    }

    /// Ends a flow that is complete or has failed. `recovery` has the counts of the client's connection for this flow.
    pub fn end(&mut self, socket: &SocketAddr, flow: usize, recovery: RecoveryCounts) {
        self.requested.remove(socket);
        self.ended.push((flow, recovery));
    }

    /// Removes and returns a flow that has ended, with the client's recovery counts.
    pub fn take_ended(&mut self) -> Option<(Flow, RecoveryCounts)> {
        let (index, recovery) = self.ended.pop()?;
        let flow = self.active.remove(index);
        self.failed += u64::from(flow.received < flow.size);
        Some((flow, recovery))
    }

    /// Iterates over the active flows.
    pub fn active(&self) -> impl Iterator<Item = &Flow> {
        self.active.iter().map(|(_, flow)| flow)
    }

    /// Returns the number of active flows.
    pub fn active_count(&self) -> u64 {
        self.active.len() as u64
    }

    /// Returns the number of flows that have started.
    pub fn begun(&self) -> u64 {
        self.begun
    }

    /// Returns the number of flows that ended without the complete response.
    pub fn failed(&self) -> u64 {
        self.failed
    }
}
