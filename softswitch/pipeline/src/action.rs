// SPDX-License-Identifier: Apache-2.0
//! The steps that actions are compiled to.

use num_bigint::BigInt;

use crate::calculation::{BitBuffer, Calculation};
use crate::digest::Digest;
use crate::entry::CounterValue;
use crate::expr::{Cond, DynField, HeaderRef, Node, UnionRef};
use crate::extern_state::Register;
use crate::extern_state::meter::Meter;
use crate::info::MeterUnit;
use crate::layout::Layout;
use crate::packet::State;
use crate::phv::{Field, Word};
use crate::rng::Rng;
use crate::trace::Recorder;

/// A field that is written to.
#[derive(Debug, Clone)]
pub(crate) enum Target {
    /// Up to 64 bits, and their mask.
    Word(Word, u64),
    Field(Field),
    Dyn(Box<DynField>),
}

/// One step of an action.
#[derive(Debug, Clone)]
pub(crate) enum Op {
    /// A field of up to 64 bits becomes a constant that fits it.
    SetConst(Word, u64),
    /// A field of up to 64 bits becomes the masked value of another.
    SetWord(Word, u64, Word),
    /// A field of up to 64 bits becomes the masked value of an argument's limb.
    SetArg(Word, u64, u32),
    Set64(Target, Node<u64>),
    Set128(Target, Node<u128>),
    SetBig(Target, Node<BigInt>),
    SetVarbit(Field, Field),
    SetHeader(Box<[HeaderRef; 2]>),
    SetUnion(Box<[UnionRef; 2]>),
    SetStack {
        of_unions: bool,
        to: u32,
        from: u32,
    },
    AddHeader(HeaderRef),
    RemoveHeader(HeaderRef),
    ShiftStack {
        of_unions: bool,
        stack: u32,
        count: Node<u64>,
        towards_end: bool,
    },
    ReadRegister {
        to: Target,
        register: u32,
        index: Node<u64>,
    },
    WriteRegister64 {
        register: u32,
        index: Node<u64>,
        value: Node<u64>,
    },
    WriteRegisterBig {
        register: u32,
        index: Node<u64>,
        value: Node<BigInt>,
    },
    Count {
        counter: u32,
        index: Node<u64>,
    },
    ExecuteMeter {
        meter: u32,
        index: Node<u64>,
        to: Target,
    },
    Digest(u32),
    Random {
        to: Target,
        bounds: Box<[Node<u64>; 2]>,
    },
    /// `base + hash % size`.
    Hash {
        to: Target,
        calculation: u32,
        range: Box<[Node<u64>; 2]>,
    },
    /// Session and field list.
    Clone(Box<[Node<u64>; 2]>),
    Resubmit(Node<u64>),
    Recirculate(Node<u64>),
    Truncate(Node<u64>),
    /// The fields that ask for a drop: `egress_spec`, and `mcast_grp` if there is one.
    MarkToDrop(Field, Option<Field>),
    Exit,
    Assert(Cond),
    Log(Box<(String, Vec<Node<BigInt>>)>),
    Jump(usize),
    JumpUnless(Cond, usize),
    Nop,
}

impl Op {
    /// The cheapest step that writes a value of up to 64 bits.
    pub(crate) fn set64(to: Target, value: Node<u64>) -> Self {
        match (to, value) {
            (Target::Word(to, mask), Node::Const(v)) => Op::SetConst(to, v & mask),
            (Target::Word(to, mask), Node::Word(from)) => Op::SetWord(to, mask, from),
            (Target::Word(to, mask), Node::Arg(limb, 1)) => Op::SetArg(to, mask, limb),
            (to, value) => Op::Set64(to, value),
        }
    }
}

/// State that actions change and that persists between packets.
#[derive(Debug)]
pub(crate) struct Externs {
    pub(crate) registers: Vec<Register>,
    pub(crate) counters: Vec<Vec<CounterValue>>,
    pub(crate) meters: Vec<(MeterUnit, Vec<Meter>)>,
    pub(crate) rng: Rng,
    pub(crate) digests: Vec<Digest>,
    pub(crate) log: Vec<String>,
    pub(crate) keep_log: bool,
    /// The recorder, while tracing is on.
    pub(crate) trace: Option<Box<Recorder>>,
    /// Number of calls of round-robin hashes.
    pub(crate) round_robin: u64,
    pub(crate) scratch: BitBuffer,
    pub(crate) drop_port: u32,
}

impl Externs {
    /// The hash of a calculation over a packet.
    pub(crate) fn hash(&mut self, c: &Calculation, layout: &Layout, pkt: &State) -> u64 {
        if c.summable {
            return c.sum(layout, &pkt.mem, pkt.payload());
        }
        c.collect(layout, &pkt.mem, pkt.payload(), &mut self.scratch);
        c.hash
            .compute(&self.scratch.bytes, &mut self.rng, &mut self.round_robin)
    }
}
