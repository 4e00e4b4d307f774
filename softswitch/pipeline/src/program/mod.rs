// SPDX-License-Identifier: Apache-2.0
//! A loaded program, with all names resolved to indices and offsets. It never changes after loading; registers,
//! counters and table entries are in [`crate::state`].

pub(crate) mod architecture;
pub(crate) mod calculation;
pub(crate) mod call;
pub(crate) mod changeable_hash;
pub(crate) mod control;
pub(crate) mod crc_bytes;
pub(crate) mod criteria;
pub(crate) mod dynamic_hash;
pub(crate) mod expr;
pub(crate) mod hash;
pub(crate) mod hash_parameters;
pub(crate) mod key;
pub(crate) mod key_part;
pub(crate) mod layout;
pub(crate) mod locks;
pub(crate) mod math_unit;
pub(crate) mod op;
pub(crate) mod parallelism;
pub(crate) mod parser;
pub(crate) mod pipelines;
pub(crate) mod source;
pub(crate) mod tna;

use std::collections::HashMap;
use std::sync::Arc;

use crate::info::Info;
use crate::phv::{Field, Word};
use architecture::Architecture;
use calculation::Calculation;
use changeable_hash::ChangeableHash;
use control::{CompiledTable, ControlNode};
use expr::Cond;
use hash::HashParameters;
use layout::{HeaderId, Layout};
use locks::{LockSet, Locks};
use op::{Op, Target};
use parser::Parser;
use source::SourceMap;
use tna::IntrinsicHeader;

/// The fixed part of an action.
#[derive(Debug, Clone)]
pub(crate) struct Action {
    pub(crate) ops: Vec<Op>,
    /// The locks that the action takes in a lane.
    pub(crate) locks: LockSet,
}

/// A checksum in a header.
#[derive(Debug, Clone)]
pub(crate) struct Checksum {
    pub(crate) header: HeaderId,
    pub(crate) field: Field,
    pub(crate) calculation: u32,
    pub(crate) condition: Option<Cond>,
    pub(crate) verify: bool,
    pub(crate) update: bool,
}

/// The steps before headers are emitted, and the headers in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Deparser {
    pub(crate) ops: Vec<Op>,
    pub(crate) headers: Vec<HeaderId>,
}

/// A program in executable form.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub(crate) info: Arc<Info>,
    pub(crate) layout: Layout,
    pub(crate) architecture: Architecture,
    pub(crate) parser: Parser,
    pub(crate) nodes: Vec<ControlNode>,
    /// For each node, whether a loop of the control flow begins there.
    pub(crate) loop_heads: Vec<bool>,
    /// The first node of each control, in the architecture's order.
    pub(crate) controls: Vec<u32>,
    pub(crate) tables: Vec<CompiledTable>,
    pub(crate) actions: Vec<Action>,
    /// The calculations with names are first.
    pub(crate) calculations: Vec<Calculation>,
    /// The initial parameters of the named calculations, then those of the hashes of externs.
    pub(crate) hash_parameters: Vec<HashParameters>,
    /// The hashes that the control plane can change.
    pub(crate) hashes: Vec<ChangeableHash>,
    /// Number of Internet checksums.
    pub(crate) sums: u32,
    /// The fields that get residual checksums when a parser ends.
    pub(crate) deposits: Vec<Target>,
    /// The selector hash of each action profile.
    pub(crate) selectors: Vec<Option<Calculation>>,
    pub(crate) checksums: Vec<Checksum>,
    /// In the architecture's order.
    pub(crate) deparsers: Vec<Deparser>,
    pub(crate) field_lists: HashMap<u32, Vec<Field>>,
    pub(crate) digests: Vec<Vec<Field>>,
    /// The locks of registers in lanes.
    pub(crate) locks: Locks,
    /// Metadata that is zero in each packet when the first control begins.
    pub(crate) zero_at_ingress: Vec<Word>,
    /// There are expressions that read registers.
    pub(crate) has_register_expressions: bool,
    pub(crate) source: SourceMap,
}

impl Compiled {
    /// Returns the chip's header, if a parser always extracts it first.
    pub(crate) fn received_header(&self, parser: usize) -> Option<&IntrinsicHeader> {
        let Architecture::Tna(m) = &self.architecture else {
            return None;
        };
        let header = &m.gress_of(parser).intrinsic;
        let is_first = |id| self.parser.begins_with(parser, id);
        header.id.is_some_and(is_first).then_some(header)
    }

    /// Returns metadata that is zero in each packet when a control begins.
    pub(crate) fn zero_before(&self, control: usize) -> &[Word] {
        match control {
            0 => &self.zero_at_ingress,
            _ => &[],
        }
    }

    /// Returns the fields of a list; none if it does not exist.
    pub(crate) fn field_list(&self, id: u32) -> &[Field] {
        self.field_lists.get(&id).map_or(&[], Vec::as_slice)
    }
}
