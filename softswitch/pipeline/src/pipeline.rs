//! Packets through the pipeline: ingress up to the queues, egress behind them.

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

/// What runs a program. Both give the same results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Engine {
    /// Machine code of the host, made when the first such pipeline is. The interpreter runs what it has no
    /// code for, and everything while tracing is on.
    #[default]
    Native,
    /// The interpreter alone: the reference.
    Interpreter,
}

/// How a pipeline behaves where the program leaves it open.
#[derive(Debug, Clone)]
pub struct Options {
    /// What runs the program.
    pub engine: Engine,
    /// Seed of the `random` extern.
    pub seed: u64,
    /// The port that means "drop": `simple_switch`'s `--drop-port`.
    pub drop_port: u32,
    /// A packet that is resubmitted more often is dropped.
    pub max_resubmits: u32,
    /// A packet that visits more parser states is rejected with `ParserTimeout`.
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
    /// A pipeline with the program's initial state: const entries and default actions are in place.
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

    /// The program it runs.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Parser, checksum verification and ingress for a frame received on `port` at time `now`.
    /// Appends what is to be enqueued to `out`, clones first.
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

    /// The same without a copy of the frame: its buffer is kept, and `frame` becomes another with anything in it.
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

    /// A packet that is not parsed yet.
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

    /// The same for a packet that egress recirculated. As in BMv2 its metadata, the ingress port
    /// included, is zero but for the fields that the program preserved.
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

    /// Egress, checksum update and deparser for a packet that left its queue at time `now`.
    /// `out.frame` is overwritten, `out.clones` is appended to.
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

    /// Takes back a packet that a queue dropped.
    pub fn recycle(&mut self, d: Descriptor) {
        self.core.trace_queue_full(&d);
        self.core.pool.put(d.state);
    }
}
