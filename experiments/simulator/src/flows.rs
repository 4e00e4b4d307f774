// SPDX-License-Identifier: Apache-2.0
//! The flows under way: what was asked, by whom, and how far the answer has come.

use std::net::SocketAddr;
use std::ops::{AddAssign, Sub};

use rustc_hash::FxHashMap;
use slab::Slab;
use softswitch_pipeline::Nanos;

use crate::agent::GivenRpt;

/// A request and its response.
#[derive(Debug, Clone)]
pub struct Flow {
    /// Its number, in the order of beginning.
    pub id: u64,
    /// The workload it is of.
    pub workload: u32,
    /// When the client began: with the connection's SYN, if it opened one.
    pub start: Nanos,
    /// Bytes that ask.
    pub request: u64,
    /// Bytes of the response.
    pub size: u64,
    /// The connection ends with this flow.
    pub last: bool,
    /// RPT that the response signals, if not the number of bytes left.
    pub rpt: Option<GivenRpt>,
    /// Bytes of the response that the client has.
    pub received: u64,
    /// The host that answers and its connection, once the request is there.
    pub server: Option<(u32, u32)>,
    /// Effort that the server's connection had spent before, and the client's effort for this flow once it has ended.
    pub effort: Effort,
}

/// Effort of a connection to repair losses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Effort {
    /// Segments sent again.
    pub retransmitted: u64,
    /// Retransmission time-outs.
    pub timeouts: u64,
}

impl AddAssign for Effort {
    fn add_assign(&mut self, other: Self) {
        self.retransmitted += other.retransmitted;
        self.timeouts += other.timeouts;
    }
}

impl Sub for Effort {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self {
            retransmitted: self.retransmitted - other.retransmitted,
            timeouts: self.timeouts - other.timeouts,
        }
    }
}

/// All flows under way. One that has ended takes no room.
#[derive(Debug, Default)]
pub struct Flows {
    active: Slab<Flow>,
    /// The flow that a client's socket asks for. Payloads are zeros: this is how the server knows what is asked of it.
    asked: FxHashMap<SocketAddr, usize>,
    /// Those that have ended since they were last taken.
    ended: Vec<(usize, Effort)>,
    begun: u64,
    failed: u64,
}

impl Flows {
    /// A flow begins. Gives its place.
    pub fn begin(
        &mut self,
        workload: u32,
        start: Nanos,
        request: u64,
        size: u64,
        last: bool,
        rpt: Option<GivenRpt>,
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
            effort: Effort::default(),
        })
    }

    /// From now on a client's socket asks for this flow. Gives the bytes to ask with.
    pub fn ask(&mut self, socket: SocketAddr, flow: usize) -> u64 {
        self.asked.insert(socket, flow);
        self.active[flow].request
    }

    /// The client cannot ask for it.
    pub fn fail(&mut self, flow: usize) {
        self.ended.push((flow, Effort::default()));
    }

    /// The flow that a client's socket asks for.
    pub fn asked_by(&mut self, socket: &SocketAddr) -> Option<&mut Flow> {
        self.active.get_mut(*self.asked.get(socket)?)
    }

    /// The client has so many bytes of it. Returns whether that is all.
    pub fn receive(&mut self, flow: usize, bytes: u64) -> bool {
        let flow = &mut self.active[flow];
        flow.received = bytes;
        bytes >= flow.size
    }

    /// The client has it all, or will never; `effort` is what its connection spent on it.
    pub fn end(&mut self, socket: &SocketAddr, flow: usize, effort: Effort) {
        self.asked.remove(socket);
        self.ended.push((flow, effort));
    }

    /// Takes a flow that has ended, with what the client spent on it.
    pub fn take_ended(&mut self) -> Option<(Flow, Effort)> {
        let (place, effort) = self.ended.pop()?;
        let flow = self.active.remove(place);
        self.failed += u64::from(flow.received < flow.size);
        Some((flow, effort))
    }

    /// The flows under way.
    pub fn active(&self) -> impl Iterator<Item = &Flow> {
        self.active.iter().map(|(_, flow)| flow)
    }

    /// Returns the number of active flows.
    pub fn active_count(&self) -> u64 {
        self.active.len() as u64
    }

    /// How many have begun.
    pub fn begun(&self) -> u64 {
        self.begun
    }

    /// How many ended without the whole response.
    pub fn failed(&self) -> u64 {
        self.failed
    }
}
