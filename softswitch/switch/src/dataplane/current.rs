// SPDX-License-Identifier: Apache-2.0
//! The pipeline of a thread's packets, and the thread inside it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use softswitch_pipeline::{Lane, Turn};

use super::SharedPipeline;
use super::shared::Shared;

/// The pipeline of a thread's packets.
#[derive(Debug, Default)]
pub(super) struct Current {
    pipeline: Option<SharedPipeline>,
    /// The thread's lane; `None` if packets of all threads run one after the other.
    lane: Option<Lane>,
    version: u64,
}

impl Current {
    /// Takes over changes of the data plane: a new pipeline, other ports, traces. Returns true if there may be one.
    pub(super) fn refresh(&mut self, shared: &Shared, thread: usize) -> bool {
        let version = shared.handle.version.load(Ordering::Acquire);
        if version == self.version {
            return false;
        }
        self.version = version;
        let new = shared.handle.pipeline();
        let mut both = self.pipeline.iter().zip(&new);
        if !both.any(|(old, new)| Arc::ptr_eq(old, new)) {
            self.lane = new.as_ref().and_then(|pipeline| pipeline.lane(thread));
            self.pipeline = new;
        }
        if let Some(pipeline) = &self.pipeline {
            shared.prepare(pipeline);
        }
        true
    }

    /// Returns true if there is a pipeline.
    pub(super) fn is_some(&self) -> bool {
        self.pipeline.is_some()
    }

    /// Enters the pipeline, if there is one: with other threads if the program allows it, otherwise alone.
    pub(super) fn enter<'a>(&'a mut self, shared: &'a Shared) -> Option<Entered<'a>> {
        let pipeline = self.pipeline.as_ref()?;
        let turn = match &mut self.lane {
            Some(lane) => lane.begin(),
            None => Turn::Alone(pipeline.lock()),
        };
        Some(Entered {
            shared,
            pipeline,
            turn,
        })
    }
}

/// A thread that is inside a pipeline. To avoid deadlocks, it must be in no other pipeline, and hold no port's queue, when it waits
/// for this one.
pub(super) struct Entered<'a> {
    pub(super) shared: &'a Shared,
    pub(super) pipeline: &'a SharedPipeline,
    pub(super) turn: Turn<'a>,
}

impl<'a> Entered<'a> {
    /// Enters a pipeline alone.
    pub(super) fn alone(shared: &'a Shared, pipeline: &'a SharedPipeline) -> Self {
        Self {
            shared,
            pipeline,
            turn: Turn::Alone(pipeline.lock()),
        }
    }

    /// Writes the traces of packets, if enabled. Traced packets run one after the other.
    pub(super) fn write_trace(&mut self) {
        if let Some(pipeline) = self.turn.alone() {
            self.shared.handle.write_trace(pipeline);
        }
    }

    /// Leaves the pipeline, and passes the packets' digests to the control plane.
    pub(super) fn leave(mut self) {
        self.write_trace();
        let digests = self.turn.take_digests();
        // A waiting control plane is next.
        drop(self.turn);
        self.shared.send_digests(self.pipeline, digests);
    }
}
