// SPDX-License-Identifier: Apache-2.0
//! The steps that actions are compiled to.

use num_bigint::BigInt;

use super::expr::{Cond, DynField, HeaderRef, Node, UnionRef};
use super::math_unit::MathUnit;
use crate::phv::{Field, Word};

/// A field that is written to.
#[derive(Debug, Clone)]
pub(crate) enum Target {
    /// Up to 64 bits, and their mask.
    Word(Word, u64),
    Field(Field),
    Dyn(Box<DynField>),
}

/// The numbers that an architecture gives to green, yellow and red.
pub(crate) type ColorCodes = [u8; 3];

/// One method of an Internet checksum (RFC 1624).
#[derive(Debug, Clone)]
pub(crate) enum SumStep {
    Clear,
    /// Adds the input of a calculation.
    Add(u32),
    Subtract(u32),
    /// Writes the complement of the sum.
    Get(Target),
    GetState(Target),
    /// Writes whether a field contains the complement of the sum.
    Verify(Target, Node<u64>),
    SetState(Node<u64>),
    /// Writes 1 unless the complement of the sum is zero, else 0.
    IsWrong(Target),
    /// Writes the sum to a [deposit](crate::program::Compiled::deposits) when the parser ends, without the bytes that it
    /// extracts until then.
    Deposit(u32),
}

/// The result of a filter.
#[derive(Debug, Clone, Copy)]
pub(crate) enum FilterOutput {
    Level,
    /// The values that mean to drop and to keep the packet.
    Drop {
        drop: u64,
        keep: u64,
    },
}

/// The call of a filter.
#[derive(Debug, Clone)]
pub(crate) struct FilterCall {
    pub(crate) filter: u32,
    pub(crate) output: FilterOutput,
    /// The index of the cell; `None` for the cell of the matched entry.
    pub(crate) index: Option<Node<u64>>,
    pub(crate) value: Node<u64>,
    pub(crate) to: Target,
}

/// A correction of the number of bytes that a counter counts for a packet.
#[derive(Debug, Clone)]
pub(crate) struct CountCorrection {
    /// The counter and the index of its cell; `None` for the direct counter of the table.
    pub(crate) cell: Option<(u32, Node<u64>)>,
    /// The number of bytes to subtract; `None` for the difference to the packet that leaves.
    pub(crate) less: Option<Node<u64>>,
}

/// The call of a math unit.
#[derive(Debug, Clone)]
pub(crate) struct MathCall {
    pub(crate) unit: MathUnit,
    pub(crate) value: Node<u64>,
    pub(crate) to: Target,
    /// The largest result.
    pub(crate) max: u64,
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
    /// Reads the direct register of the entry that the table hit.
    ReadDirect {
        to: Target,
        register: u32,
    },
    WriteDirect {
        register: u32,
        value: Node<BigInt>,
    },
    Count {
        counter: u32,
        index: Node<u64>,
    },
    /// Changes the number of bytes that a counter counts for the packet, at the end of the gress.
    CorrectCount(Box<CountCorrection>),
    ExecuteMeter {
        meter: u32,
        index: Node<u64>,
        to: Target,
        /// The packet's colour before, if it counts.
        before: Option<Node<u64>>,
        /// Number of bytes to subtract from the packet's length.
        less: Option<Box<Node<u64>>>,
        codes: ColorCodes,
    },
    Filter(Box<FilterCall>),
    Math(Box<MathCall>),
    Digest(u32),
    Random {
        to: Target,
        bounds: Box<[Node<u64>; 2]>,
    },
    /// The hash, or `base + hash % size` with a range.
    Hash {
        to: Target,
        calculation: u32,
        range: Option<Box<[Node<u64>; 2]>>,
    },
    /// A step of an Internet checksum, by its number.
    Sum(u32, SumStep),
    /// Session and field list.
    Clone(Box<[Node<u64>; 2]>),
    Resubmit(Node<u64>),
    /// Mirrors the packet: the session, and the calculation whose input is put in front.
    Mirror(Node<u64>, u32),
    /// Resubmits the packet with the input of a calculation in front.
    ResubmitWith(u32),
    /// Starts the packet generator with the input of a calculation.
    Generate(u32),
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
    /// Returns true if the step corrects the direct counter of the table.
    pub(crate) fn corrects_entry(&self) -> bool {
        matches!(self, Self::CorrectCount(correction) if correction.cell.is_none())
    }

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
