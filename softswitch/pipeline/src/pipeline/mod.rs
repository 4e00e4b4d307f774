// SPDX-License-Identifier: Apache-2.0
//! The public interface: packets, the control plane, traces.

mod control;
mod program;
mod unqueued;

use crate::Nanos;
use crate::options::{Engine, Options};
use crate::packet::{
    Descriptor, EgressOutcome, EgressOutput, IngressOutcome, QueueInfo, Recirculated,
};
use crate::v1model::V1Model;
pub use control::{IdleEntry, LookupKey, MeterState};
pub use program::Program;

/// A program with its state.
#[derive(Debug)]
pub struct Pipeline {
    program: Program,
    architecture: V1Model,
}

impl Pipeline {
    /// Creates a pipeline in the program's initial state, with const entries and default actions.
    pub fn new(program: Program, options: Options) -> Self {
        let native = match options.engine {
            Engine::Native => program.native(),
            Engine::Interpreter => None,
        };
        let architecture = V1Model::new(program.compiled(), native, options);
        Self {
            program,
            architecture,
        }
    }

    /// Resets all state to the program's initial state, except the parameters of hashes, whether ports are up, and whether
    /// tracing is on.
    pub fn reset_state(&mut self) {
        self.architecture.reset_state(self.program.compiled());
    }

    /// Returns the program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Runs parser, checksum verification and ingress for a frame received on `port` at time `now`.
    /// Appends the packets to enqueue to `out`, clones first.
    pub fn ingress(
        &mut self,
        port: u32,
        frame: &[u8],
        now: Nanos,
        out: &mut Vec<Descriptor>,
    ) -> IngressOutcome {
        self.architecture
            .ingress(self.program.compiled(), port, frame, now, out)
    }

    /// Runs ingress without a copy of the frame: keeps its buffer, and replaces `frame` by another with arbitrary content.
    pub fn ingress_keeping(
        &mut self,
        port: u32,
        frame: &mut Vec<u8>,
        now: Nanos,
        out: &mut Vec<Descriptor>,
    ) -> IngressOutcome {
        self.architecture
            .ingress_keeping(self.program.compiled(), port, frame, now, out)
    }

    /// Runs ingress for a recirculated packet. As in BMv2, its metadata, including the ingress port, is zero
    /// except for the fields that the program preserved.
    pub fn ingress_recirculated(
        &mut self,
        packet: Recirculated,
        now: Nanos,
        out: &mut Vec<Descriptor>,
    ) -> IngressOutcome {
        self.architecture
            .ingress_recirculated(self.program.compiled(), packet, now, out)
    }

    /// Runs egress, checksum update and deparser for a packet that left its queue at time `now`.
    /// Overwrites `out.frame` and appends to `out.clones`.
    pub fn egress(
        &mut self,
        d: Descriptor,
        queue: QueueInfo,
        now: Nanos,
        out: &mut EgressOutput,
    ) -> EgressOutcome {
        self.architecture
            .egress(self.program.compiled(), d, queue, now, out)
    }

    /// Takes back a packet that a queue dropped, for reuse of its buffers.
    pub fn recycle(&mut self, d: Descriptor) {
        self.architecture.recycle(d);
    }
}
