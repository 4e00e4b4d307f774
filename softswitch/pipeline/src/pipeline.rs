//! Packets through the pipeline: ingress up to the queues, egress behind them.

use std::collections::BTreeSet;

use crate::Nanos;
use crate::action::{Externs, Machine};
use crate::calculation::BitBuffer;
use crate::digest::Digest;
use crate::entry::CounterValue;
use crate::extern_state::Register;
use crate::extern_state::meter::Meter;
use crate::info::DigestId;
use crate::layout::Layout;
use crate::packet::{
    Descriptor, EgressOutcome, EgressOutput, IngressOutcome, InstanceType, MAX_FRAME, QueueInfo,
    Recirculated, State,
};
use crate::parser::SetMember;
use crate::phv::{Field, Place};
use crate::pre::{CloneSession, Pre, Replica};
use crate::program::{Compiled, ControlNode, Program};
use crate::rng::Rng;
use crate::table::{Call, Profile, Table, Target};
use crate::value::Value;

/// How a pipeline behaves where the program leaves it open.
#[derive(Debug, Clone)]
pub struct Options {
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
        Self { seed: 0, drop_port: 511, max_resubmits: 16, max_parser_states: 1024, keep_log: false }
    }
}

/// A program with its state.
#[derive(Debug)]
pub struct Pipeline {
    pub(crate) program: Program,
    pub(crate) core: Core,
}

/// The state, apart from the program that drives it.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) options: Options,
    pub(crate) tables: Vec<Table>,
    pub(crate) profiles: Vec<Profile>,
    pub(crate) externs: Externs,
    pub(crate) value_sets: Vec<Vec<SetMember>>,
    pub(crate) pre: Pre,
    pub(crate) ports_down: BTreeSet<u32>,
    pool: Pool,
    key: Vec<u64>,
    masked: Vec<u64>,
}

/// Buffers of packets that have left, for those that come.
#[derive(Debug, Default)]
#[expect(clippy::vec_box, reason = "descriptors hand the boxes out and back")]
struct Pool(Vec<Box<State>>);

/// More are given back to the allocator.
const MAX_POOL: usize = 1 << 14;

impl Pool {
    fn get(&mut self) -> Box<State> {
        self.0.pop().unwrap_or_default()
    }

    fn put(&mut self, state: Box<State>) {
        if self.0.len() < MAX_POOL {
            self.0.push(state);
        }
    }
}

const MICRO: Nanos = 1000;

fn set(field: Option<Field>, mem: &mut [u8], v: u64) {
    if let Some(f) = field {
        f.set64(mem, v);
    }
}

/// Copies the fields of a field list, which are metadata, from one packet to another.
fn preserve(list: Option<&Vec<Field>>, from: &[u8], to: &mut [u8]) {
    for f in list.into_iter().flatten() {
        match f.place {
            Place::Word(w) => w.set(to, w.get(from)),
            _ => f.set_big(to, &f.get_big(from)),
        }
    }
}

impl Pipeline {
    /// A pipeline with the program's initial state: const entries and default actions are in place.
    pub fn new(program: Program, options: Options) -> Self {
        let c = &program.0;
        let meter = |size| vec![Meter::default(); size];
        let externs = Externs {
            registers: c.info.registers.iter().map(|r| Register::new(r.width, r.size)).collect(),
            counters: c.info.counters.iter().map(|i| vec![CounterValue::default(); i.size]).collect(),
            meters: c.info.meters.iter().map(|i| (i.unit, meter(i.size))).collect(),
            rng: Rng::new(options.seed),
            digests: Vec::new(),
            log: Vec::new(),
            keep_log: options.keep_log,
            round_robin: 0,
            scratch: BitBuffer::default(),
            drop_port: options.drop_port,
        };
        let core = Core {
            tables: Vec::new(),
            profiles: c.info.profiles.iter().map(|p| Profile::new(&p.name, p.size)).collect(),
            externs,
            value_sets: vec![Vec::new(); c.info.value_sets.len()],
            pre: Pre::default(),
            ports_down: BTreeSet::new(),
            pool: Pool::default(),
            key: Vec::new(),
            masked: Vec::new(),
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
        let c = &*self.program.0;
        let layout = &c.layout;
        let mut pkt = self.core.pool.get();
        pkt.reset(&layout.blank, frame);
        let s = &layout.standard;
        s.ingress_port.set64(&mut pkt.mem, u64::from(port));
        s.packet_length.set64(&mut pkt.mem, frame.len() as u64);
        set(s.ingress_timestamp, &mut pkt.mem, now / MICRO);
        self.core.run_ingress(c, pkt, u64::from(port), now, out)
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
        self.core.run_ingress(c, packet.state, port, now, out)
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
        self.core.run_egress(&self.program.0, d, queue, now, out)
    }

    /// Takes back a packet that a queue dropped.
    pub fn recycle(&mut self, d: Descriptor) {
        self.core.pool.put(d.state);
    }
}

impl Core {
    fn run_ingress(
        &mut self,
        c: &Compiled,
        mut pkt: Box<State>,
        port: u64,
        now: Nanos,
        out: &mut Vec<Descriptor>,
    ) -> IngressOutcome {
        let s = &c.layout.standard;
        let mut resubmits = 0;
        loop {
            self.parse(c, &mut pkt, now);
            self.apply(c, c.ingress, &mut pkt, now);
            if pkt.assertion_failed {
                self.pool.put(pkt);
                return IngressOutcome::AssertionFailed;
            }
            if let Some((session, list)) = pkt.clone_to.take() {
                self.clone_at_ingress(c, &pkt, port, session, list, now, out);
            }
            self.digest(c, &pkt);
            if pkt.resubmit == 0 {
                break;
            }
            resubmits += 1;
            if resubmits > self.options.max_resubmits {
                self.pool.put(pkt);
                return IngressOutcome::TooManyResubmits;
            }
            let list = c.field_lists.get(&pkt.resubmit);
            let mut next = self.pool.get();
            next.reset(&c.layout.blank, &pkt.frame);
            preserve(list, &pkt.mem, &mut next.mem);
            s.instance_type.set64(&mut next.mem, InstanceType::Resubmitted as u64);
            s.packet_length.set64(&mut next.mem, u64::from(next.ingress_len));
            self.pool.put(std::mem::replace(&mut pkt, next));
        }
        pkt.exit = false;
        let group = s.mcast_grp.map_or(0, |f| f.get64(&pkt.mem)) as u32;
        if group != 0 {
            let copies = self.multicast(c, pkt, group, out);
            return IngressOutcome::Multicast(copies);
        }
        let egress_port = s.egress_spec.get64(&pkt.mem) as u32;
        if egress_port == self.options.drop_port {
            self.pool.put(pkt);
            return IngressOutcome::Dropped;
        }
        s.instance_type.set64(&mut pkt.mem, InstanceType::Normal as u64);
        out.push(descriptor(&c.layout, pkt, egress_port, InstanceType::Normal));
        IngressOutcome::Unicast
    }

    /// Runs the parser and verifies checksums.
    fn parse(&mut self, c: &Compiled, pkt: &mut State, now: Nanos) {
        let mut m = Machine {
            layout: &c.layout,
            calculations: &c.calculations,
            externs: &mut self.externs,
            pkt,
            now,
        };
        let error = c.parser.parse(&mut m, &self.value_sets, self.options.max_parser_states, &mut self.key);
        let mut bad_checksum = false;
        for sum in c.checksums.iter().filter(|s| s.verify) {
            let env = m.env(&[]);
            let header = &c.layout.headers[sum.header as usize];
            if header.is_valid(env.mem) && sum.condition.as_ref().is_none_or(|c| c.eval(env)) {
                let expected = sum.field.get64(env.mem);
                let calculation = &c.calculations[sum.calculation as usize];
                bad_checksum |= m.externs.hash(calculation, &c.layout, m.pkt) != expected;
            }
        }
        set(c.layout.standard.parser_error, &mut pkt.mem, error);
        set(c.layout.standard.checksum_error, &mut pkt.mem, u64::from(bad_checksum));
    }

    /// Runs a control flow from node `first` to its end.
    fn apply(&mut self, c: &Compiled, first: u32, pkt: &mut State, now: Nanos) {
        let mut node = first;
        // A control flow has no loops: more steps than nodes mean a broken program.
        for _ in 0..=c.nodes.len() {
            let Some(n) = c.nodes.get(node as usize).filter(|_| !pkt.exit) else { return };
            node = match n {
                ControlNode::Table(t) => self.apply_table(c, *t, pkt, now),
                ControlNode::Condition { cond, then, other } => {
                    let m = self.machine(c, pkt, now);
                    if cond.eval(m.env(&[])) { *then } else { *other }
                }
                ControlNode::Call { call, next } => {
                    let mut m = self.machine(c, pkt, now);
                    m.run(&c.actions[call.action as usize].ops, &call.args);
                    *next
                }
            };
        }
        pkt.assertion_failed = true;
    }

    fn machine<'a>(&'a mut self, c: &'a Compiled, pkt: &'a mut State, now: Nanos) -> Machine<'a> {
        Machine {
            layout: &c.layout,
            calculations: &c.calculations,
            externs: &mut self.externs,
            pkt,
            now,
        }
    }

    #[inline]
    fn apply_table(&mut self, c: &Compiled, number: u32, pkt: &mut State, now: Nanos) -> u32 {
        let fixed = &c.tables[number as usize];
        let table = &mut self.tables[number as usize];
        let mut m = Machine {
            layout: &c.layout,
            calculations: &c.calculations,
            externs: &mut self.externs,
            pkt,
            now,
        };
        let slot = if table.len() == 0 {
            None
        } else {
            self.key.clear();
            self.key.resize(fixed.shape.words, 0);
            for part in &fixed.key {
                part.load(&m.pkt.mem, &mut self.key);
            }
            table.lookup(&self.key, &mut self.masked, m.pkt.ingress_len, now)
        };
        if let (Some(slot), Some((unit, to))) = (slot, &fixed.meter)
            && let Some(meter) = table.meter_mut(slot)
        {
            let color = meter.execute(m.pkt.amount(*unit), now);
            m.set64(to, &[], color as u64);
        }
        let target = match slot {
            Some(slot) => Some(table.target(slot)),
            None => table.default.as_ref(),
        };
        let call: Option<&Call> = match target {
            Some(Target::Call(call)) => Some(call),
            Some(Target::Member(member)) => {
                fixed.profile.map(|p| self.profiles[p as usize].call(*member))
            }
            Some(Target::Group(group)) => fixed.profile.and_then(|p| {
                let profile = &self.profiles[p as usize];
                let hash = match &c.selectors[p as usize] {
                    Some(selector) => m.externs.hash(selector, &c.layout, m.pkt),
                    None => 0,
                };
                profile.selection(*group).choose(hash).map(|member| profile.call(member))
            }),
            None => None,
        };
        if let Some(call) = call {
            m.run(&c.actions[call.action as usize].ops, &call.args);
        }
        fixed.next.after(slot.is_some(), call.map(|c| c.action))
    }

    /// Keeps the digest that the program asked for.
    fn digest(&mut self, c: &Compiled, pkt: &State) {
        let Some(d) = pkt.digest else { return };
        let value = |f: &Field| Value::from_be_bytes(&unsigned_bytes(f, &pkt.mem));
        let fields = c.digests[d as usize].iter().map(value).collect();
        self.externs.digests.push(Digest { id: DigestId(d), fields });
    }

    /// A clone has the frame as it came in, parsed again, and only the preserved metadata.
    #[expect(clippy::too_many_arguments, reason = "all of it is the packet's context")]
    fn clone_at_ingress(
        &mut self,
        c: &Compiled,
        pkt: &State,
        port: u64,
        session: u32,
        list: u32,
        now: Nanos,
        out: &mut Vec<Descriptor>,
    ) {
        let Some(session) = self.pre.session(session).cloned() else { return };
        let mut copy = self.pool.get();
        copy.reset(&c.layout.blank, &pkt.frame);
        c.layout.standard.ingress_port.set64(&mut copy.mem, port);
        self.parse(c, &mut copy, now);
        copy.clear_requests();
        self.enqueue_clones(c, copy, pkt, &session, list, InstanceType::IngressClone, out);
    }

    #[expect(clippy::too_many_arguments, reason = "all of it is the packet's context")]
    fn enqueue_clones(
        &mut self,
        c: &Compiled,
        mut copy: Box<State>,
        original: &State,
        session: &CloneSession,
        list: u32,
        kind: InstanceType,
        out: &mut Vec<Descriptor>,
    ) {
        c.layout.clear_metadata(&mut copy.mem);
        preserve(c.field_lists.get(&list), &original.mem, &mut copy.mem);
        c.layout.standard.instance_type.set64(&mut copy.mem, kind as u64);
        if session.truncate_to != 0 {
            copy.truncate_to = session.truncate_to;
            copy.len = copy.len.min(session.truncate_to);
        }
        let first = out.len();
        self.replicate(c, copy, &session.replicas, kind, out);
        for d in &mut out[first..] {
            d.priority = session.class_of_service;
        }
    }

    fn multicast(&mut self, c: &Compiled, mut pkt: Box<State>, group: u32, out: &mut Vec<Descriptor>) -> usize {
        let kind = InstanceType::Replication;
        c.layout.standard.instance_type.set64(&mut pkt.mem, kind as u64);
        pkt.clear_requests();
        let before = out.len();
        // The replicas are lent out while the pool is in use.
        let replicas = self.pre.take_group(group);
        self.replicate(c, pkt, &replicas, kind, out);
        self.pre.give_back_group(group, replicas);
        out.len() - before
    }

    /// One descriptor a replica.
    fn replicate(
        &mut self,
        c: &Compiled,
        pkt: Box<State>,
        replicas: &[Replica],
        kind: InstanceType,
        out: &mut Vec<Descriptor>,
    ) {
        let Some((last, others)) = replicas.split_last() else {
            self.pool.put(pkt);
            return;
        };
        let rid = c.layout.standard.egress_rid;
        for r in others {
            let mut copy = self.pool.get();
            copy.copy_from(&pkt);
            set(rid, &mut copy.mem, u64::from(r.instance));
            out.push(descriptor(&c.layout, copy, r.port, kind));
        }
        let mut pkt = pkt;
        set(rid, &mut pkt.mem, u64::from(last.instance));
        out.push(descriptor(&c.layout, pkt, last.port, kind));
    }

    fn run_egress(
        &mut self,
        c: &Compiled,
        d: Descriptor,
        queue: QueueInfo,
        now: Nanos,
        out: &mut EgressOutput,
    ) -> EgressOutcome {
        let s = &c.layout.standard;
        let mut pkt = d.state;
        let drop_port = u64::from(self.options.drop_port);
        let mem = &mut pkt.mem;
        set(s.egress_timestamp, mem, now / MICRO);
        set(s.enq_timestamp, mem, queue.enq_timestamp / MICRO);
        set(s.enq_qdepth, mem, u64::from(queue.enq_qdepth));
        set(s.deq_timedelta, mem, queue.deq_timedelta / MICRO);
        set(s.deq_qdepth, mem, u64::from(queue.deq_qdepth));
        set(s.qid, mem, u64::from(queue.qid));
        s.egress_port.set64(mem, u64::from(d.egress_port));
        s.egress_spec.set64(mem, drop_port + 1);
        s.packet_length.set64(mem, u64::from(pkt.len));
        pkt.clear_requests();
        self.apply(c, c.egress, &mut pkt, now);
        if pkt.assertion_failed {
            self.pool.put(pkt);
            return EgressOutcome::AssertionFailed;
        }
        if let Some((session, list)) = pkt.clone_to.take()
            && let Some(session) = self.pre.session(session).cloned()
        {
            let mut copy = self.pool.get();
            copy.copy_from(&pkt);
            let kind = InstanceType::EgressClone;
            self.enqueue_clones(c, copy, &pkt, &session, list, kind, &mut out.clones);
        }
        if s.egress_spec.get64(&pkt.mem) == drop_port {
            self.pool.put(pkt);
            return EgressOutcome::Dropped;
        }
        self.deparse(c, &mut pkt, now, &mut out.frame);
        if pkt.recirculate != 0 {
            return EgressOutcome::Recirculate(self.recirculate(c, pkt, &out.frame));
        }
        self.pool.put(pkt);
        EgressOutcome::Transmit { port: d.egress_port }
    }

    fn deparse(&mut self, c: &Compiled, pkt: &mut State, now: Nanos, frame: &mut Vec<u8>) {
        let mut m = self.machine(c, pkt, now);
        for sum in c.checksums.iter().filter(|s| s.update) {
            if sum.condition.as_ref().is_none_or(|c| c.eval(m.env(&[]))) {
                let calculation = &c.calculations[sum.calculation as usize];
                let v = m.externs.hash(calculation, &c.layout, m.pkt);
                sum.field.set64(&mut m.pkt.mem, v);
            }
        }
        m.run(&c.deparser_ops, &[]);
        frame.clear();
        for &h in &c.deparser {
            let header = &c.layout.headers[h as usize];
            if header.is_valid(&pkt.mem) {
                header.emit(&pkt.mem, frame);
            }
        }
        frame.extend_from_slice(&pkt.frame[pkt.start..]);
        frame.truncate(pkt.truncate_to as usize);
    }

    fn recirculate(&mut self, c: &Compiled, pkt: Box<State>, frame: &[u8]) -> Recirculated {
        let s = &c.layout.standard;
        let ingress_port = s.ingress_port.get64(&pkt.mem) as u32;
        let mut next = self.pool.get();
        next.reset(&c.layout.blank, frame);
        preserve(c.field_lists.get(&pkt.recirculate), &pkt.mem, &mut next.mem);
        s.instance_type.set64(&mut next.mem, InstanceType::Recirculated as u64);
        s.packet_length.set64(&mut next.mem, frame.len() as u64);
        self.pool.put(pkt);
        Recirculated { ingress_port, state: next }
    }
}

fn descriptor(layout: &Layout, state: Box<State>, egress_port: u32, instance_type: InstanceType) -> Descriptor {
    let priority = layout.standard.priority.map_or(0, |f| f.get64(&state.mem)) as u8;
    Descriptor { egress_port, priority, instance_type, len: state.len, state }
}

/// A field's bits as an unsigned number.
fn unsigned_bytes(f: &Field, mem: &[u8]) -> Vec<u8> {
    let unsigned = Field { signed: false, ..*f };
    unsigned.get_big(mem).magnitude().to_bytes_be()
}
