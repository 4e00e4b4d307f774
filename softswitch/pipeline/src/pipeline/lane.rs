// SPDX-License-Identifier: Apache-2.0
//! Lanes: pipelines that run packets with the state of another one, each in its own thread.

use super::{PipeSet, Pipeline, Programs};
use crate::executable::Adaptive;
use crate::options::Engine;
use crate::state::lane::LaneCounters;
use crate::state::serial::RegisterLocks;

impl Pipeline {
    /// Returns true if lanes of this pipeline can run packets now. Traces, coverage and the log have one order of packets.
    pub(crate) fn can_have_lanes(&self) -> bool {
        let is_observed = self.core.state.externs.is_observed() || self.core.options.keep_log;
        !is_observed && self.programs.is_single() && self.program.parallelism().is_parallel()
    }

    /// Creates a lane, which may only run packets.
    ///
    /// # Safety
    ///
    /// As for [`Shared::lane`](crate::state::shared::Shared::lane): this pipeline is not used while a lane runs packets.
    pub(crate) unsafe fn lane(&self, number: usize, locks: RegisterLocks) -> Self {
        let native = match self.core.options.engine {
            Engine::Native => Adaptive::new(self.program.executable(), true, &self.core.options),
            Engine::Interpreter => None,
        };
        // SAFETY: by the contract.
        let core = unsafe {
            self.core
                .lane(self.program.compiled(), native, number, locks)
        };
        Self {
            program: self.program.clone(),
            core,
            scope: PipeSet::one(0),
            programs: Programs::default(),
            lanes: Vec::new(),
        }
    }

    /// Returns true if another pipeline is a lane of this one.
    pub(crate) fn has_lane(&self, lane: &Self) -> bool {
        self.core.state.has_lane(&lane.core.state)
    }

    /// Exchanges the counters of a lane with those that the pipeline keeps for it, while the control plane has the
    /// pipeline.
    pub(crate) fn swap_counters(&mut self, number: usize, lane: &mut Self) {
        if self.lanes.len() <= number {
            self.lanes.resize_with(number + 1, LaneCounters::default);
        }
        self.lanes[number].swap(&mut lane.core.state.externs);
    }

    /// Prepares a lane for the entries that the control plane has added to tables.
    pub(crate) fn adapt_lane(&mut self) {
        self.core.state.add_entry_counters();
    }
}
