// SPDX-License-Identifier: Apache-2.0
//! Packet processing: ingress before the queues, egress behind them.

use std::collections::BTreeSet;

use crate::Nanos;
use crate::action::Externs;
use crate::calculation::BitBuffer;
use crate::core::{Core, MICRO, Pool, set};
use crate::entry::CounterValue;
use crate::extern_state::Register;
use crate::extern_state::meter::Meter;
use crate::native::Views;
use crate::packet::{
    Descriptor, EgressOutcome, EgressOutput, IngressOutcome, MAX_FRAME, QueueInfo, Recirculated,
    State,
};
use crate::pre::Pre;
use crate::program::Program;
use crate::rng::Rng;
use crate::table::Profile;

/// The execution engine. Both give the same results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Engine {
    /// Machine code of the host, compiled with the first pipeline that uses it. The interpreter runs the parts that cannot be
    /// compiled, and everything while tracing is on.
    #[default]
    Native,
    /// The interpreter, which is the reference.
    Interpreter,
}

/// Properties of a pipeline that the program does not define.
#[derive(Debug, Clone)]
pub struct Options {
    /// The execution engine.
    pub engine: Engine,
    /// Seed of the `random` extern.
    pub seed: u64,
    /// The port number that means "drop": `simple_switch`'s `--drop-port`.
    pub drop_port: u32,
    /// Maximum number of resubmissions of a packet, which is then dropped.
    pub max_resubmits: u32,
    /// Maximum number of parser states per packet, which is then rejected with `ParserTimeout`.
    pub max_parser_states: u32,
    /// Keep the lines of `log_msg` for [`Pipeline::take_log`].
    pub keep_log: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            engine: Engine::default(),
            seed: 0,
            drop_port: 511,
            max_resubmits: 16,
            max_parser_states: 1024,
            keep_log: false,
        }
    }
}

/// A program with its state.
#[derive(Debug)]
pub struct Pipeline {
    pub(crate) program: Program,
    pub(crate) core: Core,
}

impl Pipeline {
    /// Creates a pipeline in the program's initial state, with const entries and default actions.
    pub fn new(program: Program, options: Options) -> Self {
        let native = options.engine == Engine::Native;
        if native {
            program.compile();
        }
        let c = &program.0;
        let meter = |size| vec![Meter::default(); size];
        let mut externs = Externs {
            registers: c
                .info
                .registers
                .iter()
                .map(|r| Register::new(r.width, r.size))
                .collect(),
            counters: c
                .info
                .counters
                .iter()
                .map(|i| vec![CounterValue::default(); i.size])
                .collect(),
            meters: c
                .info
                .meters
                .iter()
                .map(|i| (i.unit, meter(i.size)))
                .collect(),
            rng: Rng::new(options.seed),
            digests: Vec::new(),
            log: Vec::new(),
            keep_log: options.keep_log,
            trace: None,
            round_robin: 0,
            scratch: BitBuffer::default(),
            drop_port: options.drop_port,
        };
        let core = Core {
            native,
            views: Views::new(&mut externs),
            tables: Vec::new(),
            profiles: c
                .info
                .profiles
                .iter()
                .map(|p| Profile::new(&p.name, p.size))
                .collect(),
            externs,
            value_sets: vec![Vec::new(); c.info.value_sets.len()],
            pre: Pre::default(),
            ports_down: BTreeSet::new(),
            pool: Pool::default(),
            key: Vec::new(),
            options,
        };
        let mut pipeline = Self { program, core };
        pipeline.install_program_entries();
        pipeline
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
        if frame.len() > MAX_FRAME {
            return IngressOutcome::TooLong;
        }
        let mut pkt = self.core.pool.get();
        pkt.reset(&self.program.0.layout.blank, frame);
        self.receive(port, pkt, now, out)
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
        let mut pkt = self.core.pool.get();
        std::mem::swap(&mut pkt.frame, frame);
        pkt.begin(&self.program.0.layout.blank);
        self.receive(port, pkt, now, out)
    }

    /// Returns an unparsed packet.
    fn receive(
        &mut self,
        port: u32,
        mut pkt: Box<State>,
        now: Nanos,
        out: &mut Vec<Descriptor>,
    ) -> IngressOutcome {
        let c = &*self.program.0;
        let length = pkt.frame.len();
        let s = &c.layout.standard;
        s.ingress_port.set64(&mut pkt.mem, u64::from(port));
        s.packet_length.set64(&mut pkt.mem, length as u64);
        set(s.ingress_timestamp, &mut pkt.mem, now / MICRO);
        let first = out.len();
        self.core.trace_ingress(c, 0, &pkt.mem, port, length, now);
        let outcome = self.core.run_ingress(c, pkt, u64::from(port), now, out);
        self.core.trace_ingress_end(c, outcome, &mut out[first..]);
        outcome
    }

    /// Runs ingress for a recirculated packet. As in BMv2, its metadata, including the ingress port, is zero
    /// except for the fields that the program preserved.
    pub fn ingress_recirculated(
        &mut self,
        packet: Recirculated,
        now: Nanos,
        out: &mut Vec<Descriptor>,
    ) -> IngressOutcome {
        let c = &*self.program.0;
        let port = c.layout.standard.ingress_port.get64(&packet.state.mem);
        let (first, state) = (out.len(), &packet.state);
        let (length, number) = (state.frame.len(), state.number);
        self.core
            .trace_ingress(c, number, &state.mem, port as u32, length, now);
        let outcome = self.core.run_ingress(c, packet.state, port, now, out);
        self.core.trace_ingress_end(c, outcome, &mut out[first..]);
        outcome
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
        let first = out.clones.len();
        self.core.trace_egress(&d, now);
        let mut outcome = self.core.run_egress(&self.program.0, d, queue, now, out);
        let (length, clones) = (out.frame.len(), &mut out.clones[first..]);
        self.core.trace_egress_end(&mut outcome, length, clones);
        outcome
    }

    /// Takes back a packet that a queue dropped, for reuse of its buffers.
    pub fn recycle(&mut self, d: Descriptor) {
        self.core.trace_tail_drop(&d);
        self.core.pool.put(d.state);
    }
}
