// SPDX-License-Identifier: Apache-2.0
//! Packets of one pipeline in several threads.
//!
//! A [`ParallelPipeline`] has a [`Pipeline`], which the control plane reads and writes, and a number of [`Lane`]s, one per
//! thread. A lane has the state that only its own packets change: headers and metadata, buffers, digests, counters, and a
//! sequence of random numbers. It reads the state that only the control plane changes where the pipeline has it: tables,
//! action profiles, value sets, multicast groups and clone sessions. Nothing is copied when the control plane writes.
//!
//! ```text
//!            thread 0              thread 1            control plane
//!               |                     |                     |
//!           Lane::begin           Lane::begin     ParallelPipeline::lock
//!               |                     |                     |
//!   ------------+---------------------+----- gate ----------+------------
//!               |  lanes pass together, the control plane alone
//!               v                     v                     v
//!            counters,             counters,            Pipeline:
//!            digests, ...          digests, ...         tables, registers, meters, ...
//! ```
//!
//! - **Tables** have no locks inside the gate. A batch of packets costs two accesses to a cache line of its lane. A
//!   change waits for the batches that lanes have begun, and packets wait for the change, so both should be short.
//! - **Counters** of a lane are its own. The control plane gets the sum.
//! - **Registers** that a packet both reads and writes have locks. A packet holds one from its first access until its
//!   control can no longer access a register of this lock. Registers that a packet accesses once need no lock, because the
//!   access is atomic.
//! - **Meters** have a lock per cell.
//! - **Order**: a lane processes its packets one after the other. Packets of a flow stay in order if they have the same
//!   lane.
//!
//! A program with a state that threads cannot share runs one packet after the other; [`Parallelism`] names the reasons.
//! So does each program while packets are traced, or coverage is measured. A lane's thread then waits for the whole
//! pipeline.
//!
//! [`Parallelism`]: crate::Parallelism

mod gate;

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::Nanos;
use crate::digest::Digest;
use crate::packet::{
    Descriptor, EgressOutcome, EgressOutput, IngressOutcome, QueueInfo, Recirculated,
};
use crate::pipeline::Pipeline;
use crate::state::serial::RegisterLocks;
use gate::{Closed, Gate, Padded, Passing};

/// A pipeline whose packets run in several threads.
#[derive(Debug)]
pub struct ParallelPipeline {
    gate: Gate,
    main: UnsafeCell<Main>,
    lanes: Box<[Padded<UnsafeCell<LaneState>>]>,
    /// Whether each lane has an owner.
    is_owned: Box<[AtomicBool]>,
    register_locks: RegisterLocks,
}

/// The pipeline of the control plane.
#[derive(Debug)]
struct Main {
    pipeline: Pipeline,
    /// Lanes run packets; otherwise, the pipeline does.
    has_lanes: bool,
    /// The number of times that the control plane had the pipeline.
    version: u64,
}

/// The state of a lane.
#[derive(Debug, Default)]
struct LaneState {
    /// `None` until packets can run in lanes.
    pipeline: Option<Pipeline>,
    /// The version for which the lane is prepared.
    version: u64,
}

// SAFETY: threads access `main` and `lanes` inside the gate: a lane reads `main` and changes its own state, which only the
// owner of its `Lane` can enter; the control plane is alone.
unsafe impl Sync for ParallelPipeline where Pipeline: Send + Sync {}

impl ParallelPipeline {
    /// Creates a pipeline with this number of lanes, one for each thread. Without lanes, all packets run one after the other.
    pub fn new(pipeline: Pipeline, lanes: usize) -> Self {
        let main = Main {
            pipeline,
            has_lanes: false,
            version: 0,
        };
        let states = (0..lanes).map(|_| Padded::default());
        let this = Self {
            gate: Gate::new(lanes),
            main: UnsafeCell::new(main),
            lanes: states.collect(),
            is_owned: (0..lanes).map(|_| AtomicBool::default()).collect(),
            register_locks: RegisterLocks::default(),
        };
        // Makes the lanes.
        drop(this.lock());
        this
    }

    /// Returns a lane; `None` if it has an owner, or there is no lane with this number.
    pub fn lane(self: &Arc<Self>, number: usize) -> Option<Lane> {
        let was_owned = self.is_owned.get(number)?.swap(true, Ordering::Acquire);
        (!was_owned).then(|| Lane {
            shared: Arc::clone(self),
            number,
        })
    }

    /// Waits until no packet is in the pipeline, and returns it. Packets wait until it is dropped; then those that have
    /// arrived in the meantime are next.
    pub fn lock(&self) -> Exclusive<'_> {
        let closed = self.gate.close();
        // SAFETY: the gate is closed.
        let main = unsafe { &mut *self.main.get() };
        let mut exclusive = Exclusive {
            shared: self,
            main,
            _closed: closed,
        };
        exclusive.swap_counters();
        exclusive
    }
}

/// The pipeline without packets, for the control plane.
#[derive(Debug)]
pub struct Exclusive<'a> {
    shared: &'a ParallelPipeline,
    main: &'a mut Main,
    /// Dropped last.
    _closed: Closed<'a>,
}

impl<'a> Exclusive<'a> {
    /// Returns the states of all lanes.
    fn lanes(&mut self) -> impl Iterator<Item = &'a mut LaneState> + use<'a> {
        // SAFETY: the gate is closed, and the reference to the guard is unique.
        self.shared
            .lanes
            .iter()
            .map(|lane| unsafe { &mut *lane.0.get() })
    }

    /// Moves the counters of lanes to the pipeline, or back.
    fn swap_counters(&mut self) {
        for (number, lane) in self.lanes().enumerate() {
            if let Some(lane) = &mut lane.pipeline {
                self.main.pipeline.swap_counters(number, lane);
            }
        }
    }

    /// Replaces the lanes that do not have the state of the pipeline, because it was reset or replaced.
    fn renew_lanes(&mut self) {
        let has_lanes = self.main.has_lanes;
        for (number, state) in self.lanes().enumerate() {
            let pipeline = &self.main.pipeline;
            if !state
                .pipeline
                .as_ref()
                .is_some_and(|lane| pipeline.has_lane(lane))
            {
                let locks = self.shared.register_locks.clone();
                // SAFETY: the lane runs packets only inside the gate, and the pipeline is used only while the gate is
                // closed. If the pipeline leaves this guard, its lanes do not remain.
                state.pipeline = has_lanes.then(|| unsafe { pipeline.lane(number, locks) });
                state.version = 0;
            }
        }
    }
}

impl Deref for Exclusive<'_> {
    type Target = Pipeline;

    fn deref(&self) -> &Pipeline {
        &self.main.pipeline
    }
}

impl DerefMut for Exclusive<'_> {
    fn deref_mut(&mut self) -> &mut Pipeline {
        &mut self.main.pipeline
    }
}

impl Drop for Exclusive<'_> {
    fn drop(&mut self) {
        self.swap_counters();
        self.main.version += 1;
        self.main.has_lanes = self.main.pipeline.can_have_lanes();
        self.renew_lanes();
    }
}

/// The part of a pipeline that belongs to one thread, which runs packets in it.
#[derive(Debug)]
pub struct Lane {
    shared: Arc<ParallelPipeline>,
    number: usize,
}

impl Drop for Lane {
    fn drop(&mut self) {
        self.shared.is_owned[self.number].store(false, Ordering::Release);
    }
}

impl Lane {
    /// Begins a batch of packets, which should be short: the control plane waits for its end.
    pub fn begin(&mut self) -> Turn<'_> {
        let shared = &*self.shared;
        let passing = shared.gate.pass(self.number);
        // SAFETY: inside the gate, `main` does not change.
        let main = unsafe { &*shared.main.get() };
        if !main.has_lanes {
            drop(passing);
            return Turn::Alone(shared.lock());
        }
        // SAFETY: inside the gate, only the owner of this lane accesses its state, and the reference to it is unique.
        let state = unsafe { &mut *shared.lanes[self.number].0.get() };
        let pipeline = state.pipeline.as_mut().expect("lanes were made");
        if state.version != main.version {
            state.version = main.version;
            pipeline.adapt_lane();
        }
        Turn::Beside(Beside {
            pipeline,
            _passing: passing,
        })
    }
}

/// A batch of packets in a lane.
#[derive(Debug)]
pub enum Turn<'a> {
    /// Other lanes run packets, too.
    Beside(Beside<'a>),
    /// No other packet runs.
    Alone(Exclusive<'a>),
}

/// A batch of packets beside those of other lanes.
#[derive(Debug)]
pub struct Beside<'a> {
    pipeline: &'a mut Pipeline,
    _passing: Passing<'a>,
}

impl Turn<'_> {
    #[inline]
    fn pipeline(&mut self) -> &mut Pipeline {
        match self {
            Self::Beside(beside) => beside.pipeline,
            Self::Alone(exclusive) => exclusive,
        }
    }

    /// Returns true if packets of other lanes run at the same time.
    pub fn is_parallel(&self) -> bool {
        matches!(self, Self::Beside(_))
    }

    /// Returns the whole pipeline if no other packet runs.
    #[inline]
    pub fn alone(&mut self) -> Option<&mut Pipeline> {
        match self {
            Self::Beside(_) => None,
            Self::Alone(exclusive) => Some(exclusive),
        }
    }

    /// Runs ingress, as [`Pipeline::ingress`] does.
    #[inline]
    pub fn ingress(
        &mut self,
        port: u32,
        frame: &[u8],
        now: Nanos,
        out: &mut Vec<Descriptor>,
    ) -> IngressOutcome {
        self.pipeline().ingress(port, frame, now, out)
    }

    /// Runs ingress for a recirculated packet, as [`Pipeline::ingress_recirculated`] does.
    pub fn ingress_recirculated(
        &mut self,
        packet: Recirculated,
        now: Nanos,
        out: &mut Vec<Descriptor>,
    ) -> IngressOutcome {
        self.pipeline().ingress_recirculated(packet, now, out)
    }

    /// Runs egress, as [`Pipeline::egress`] does.
    #[inline]
    pub fn egress(
        &mut self,
        d: Descriptor,
        queue: QueueInfo,
        now: Nanos,
        out: &mut EgressOutput,
    ) -> EgressOutcome {
        self.pipeline().egress(d, queue, now, out)
    }

    /// Runs a packet through the whole pipeline, as [`Pipeline::process`] does.
    pub fn process(&mut self, port: u32, frame: &[u8], now: Nanos) -> Vec<(u32, Vec<u8>)> {
        self.pipeline().process(port, frame, now)
    }

    /// Compiles the lanes' native code for the paths that were noted since the last time, as [`Pipeline::adapt`] does.
    pub fn adapt(&mut self) {
        self.pipeline().adapt();
    }

    /// Takes back a packet that a queue dropped, for reuse of its buffers.
    pub fn recycle(&mut self, d: Descriptor) {
        self.pipeline().recycle(d);
    }

    /// Returns the digests that the packets of this lane generated since the last call, oldest first.
    pub fn take_digests(&mut self) -> Vec<Digest> {
        self.pipeline().take_digests()
    }
}
