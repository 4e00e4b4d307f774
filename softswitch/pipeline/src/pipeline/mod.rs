// SPDX-License-Identifier: Apache-2.0
//! The public interface: packets, the control plane, traces.

mod control;
mod ghost;
mod lane;
mod pipes;
mod program;
mod programs;
mod unqueued;

use crate::Nanos;
use crate::core::Core;
use crate::executable::Adaptive;
use crate::options::{Engine, Options};
use crate::packet::{
    Descriptor, EgressOutcome, EgressOutput, IngressOutcome, MAX_FRAME, Packet, QueueInfo,
    Recirculated,
};
use crate::program::architecture::Architecture;
use crate::psa::Psa;
use crate::state::lane::LaneCounters;
use crate::tna::Tna;
use crate::v1model::V1Model;
pub use control::{FilterCell, GeneratorSnapshot, IdleEntry, LookupKey, MeterState};
pub use pipes::PipeSet;
pub use program::Program;
use programs::Programs;

/// A program with its state.
#[derive(Debug)]
pub struct Pipeline {
    program: Program,
    core: Core,
    /// The pipes that the control plane reads and writes.
    scope: PipeSet,
    /// The programs of other pipes.
    programs: Programs,
    /// The counters of the lanes, while the control plane has the pipeline.
    lanes: Vec<LaneCounters>,
}

impl Pipeline {
    /// Creates a pipeline in the program's initial state, with const entries and default actions.
    pub fn new(program: Program, options: Options) -> Self {
        let native = match options.engine {
            Engine::Native => Adaptive::new(program.executable(), false, &options),
            Engine::Interpreter => None,
        };
        let core = Core::new(program.compiled(), native, options);
        let scope = (0..core.state.count() as u32).collect();
        Self {
            program,
            core,
            scope,
            programs: Programs::default(),
            lanes: Vec::new(),
        }
    }

    /// Resets all state to the program's initial state, except the parameters of hashes, whether ports are up, and whether
    /// tracing is on.
    pub fn reset_state(&mut self) {
        self.core.reset_state(self.program.compiled());
        self.lanes.iter_mut().for_each(LaneCounters::clear);
    }

    /// Compiles native code for the paths of packets that were noted since the last time, instead of in the background when
    /// there are enough of them.
    pub fn adapt(&mut self) {
        self.core.adapt();
    }

    /// Returns the program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Runs ingress, from the parser on, for a frame received on `port` at time `now`.
    /// Appends the packets to enqueue to `out`, clones first.
    pub fn ingress(
        &mut self,
        port: u32,
        frame: &[u8],
        now: Nanos,
        out: &mut Vec<Descriptor>,
    ) -> IngressOutcome {
        if frame.len() > MAX_FRAME {
            return IngressOutcome::TooLong;
        }
        self.select_program_of(port);
        let mut packet = self.core.pool.get();
        let room = self.program.compiled().architecture.room();
        packet.frame.set(room, frame);
        self.receive(port, packet, now, out)
    }

    /// Runs ingress without a copy of the frame: keeps its buffer, and replaces `frame` by another with arbitrary content.
    pub fn ingress_keeping(
        &mut self,
        port: u32,
        frame: &mut Vec<u8>,
        now: Nanos,
        out: &mut Vec<Descriptor>,
    ) -> IngressOutcome {
        if frame.len() > MAX_FRAME {
            return IngressOutcome::TooLong;
        }
        self.select_program_of(port);
        let mut packet = self.core.pool.get();
        std::mem::swap(packet.frame.buffer(), frame);
        self.receive(port, packet, now, out)
    }

    /// Runs ingress for a packet, of which only the frame counts.
    fn receive(
        &mut self,
        port: u32,
        packet: Box<Packet>,
        now: Nanos,
        out: &mut Vec<Descriptor>,
    ) -> IngressOutcome {
        match self.switch() {
            Switch::V1Model(mut switch) => switch.receive(port, packet, now, out),
            Switch::Psa(mut switch) => switch.receive(port, packet, now, out),
            Switch::Tna(mut switch) => switch.receive(port, packet, now, out),
        }
    }

    /// Runs ingress for a recirculated packet. As in BMv2, its metadata is zero, in v1model including the ingress port,
    /// except for the fields that the program preserved.
    pub fn ingress_recirculated(
        &mut self,
        packet: Recirculated,
        now: Nanos,
        out: &mut Vec<Descriptor>,
    ) -> IngressOutcome {
        self.select_program_of(packet.ingress_port);
        match self.switch() {
            Switch::V1Model(mut switch) => switch.ingress_recirculated(packet, now, out),
            Switch::Psa(mut switch) => switch.ingress_recirculated(packet, now, out),
            Switch::Tna(mut switch) => switch.ingress_recirculated(packet, now, out),
        }
    }

    /// Runs egress, up to the deparser, for a packet that left its queue at time `now`.
    /// Overwrites `out.frame` and appends to `out.clones`.
    pub fn egress(
        &mut self,
        d: Descriptor,
        queue: QueueInfo,
        now: Nanos,
        out: &mut EgressOutput,
    ) -> EgressOutcome {
        self.select_program_of(d.egress_port);
        let first = out.clones.len();
        let fate = self.program.compiled().architecture.egress_fate();
        if let Some(trace) = self.core.trace() {
            trace.begin_egress(&d, now, fate);
        }
        let mut outcome = match self.switch() {
            Switch::V1Model(mut switch) => switch.egress(d, queue, now, out),
            Switch::Psa(mut switch) => switch.egress(d, now, out),
            Switch::Tna(mut switch) => switch.egress(d, queue, now, out),
        };
        if let Some(trace) = self.core.trace() {
            trace.end_egress(&mut outcome, out.frame.len(), &mut out.clones[first..]);
        }
        outcome
    }

    fn switch(&mut self) -> Switch<'_> {
        let (c, core) = (self.program.compiled(), &mut self.core);
        match &c.architecture {
            Architecture::V1Model(standard) => Switch::V1Model(V1Model { core, c, standard }),
            Architecture::Psa(metadata) => Switch::Psa(Psa { core, c, metadata }),
            Architecture::Tna(metadata) => Switch::Tna(Tna {
                core,
                c,
                metadata,
                pipeline: 0,
            }),
        }
    }

    /// Takes back a packet that a queue dropped, for reuse of its buffers.
    pub fn recycle(&mut self, d: Descriptor) {
        self.core.recycle(d);
    }
}

/// A switch of the program's architecture.
enum Switch<'a> {
    V1Model(V1Model<'a>),
    Psa(Psa<'a>),
    Tna(Tna<'a>),
}
