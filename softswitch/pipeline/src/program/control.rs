// SPDX-License-Identifier: Apache-2.0
//! Control flow: tables, conditions and action calls.

use std::collections::BTreeSet;

use super::call::Call;
use super::expr::Cond;
use super::key::KeyShape;
use super::key_part::{ComputedPart, KeyPart};
use super::op::{ColorCodes, Target};
use crate::entry::Entry;
use crate::info::MeterUnit;

/// The end of a pipeline.
pub(crate) const END: u32 = u32::MAX;

/// One step of a control flow.
#[derive(Debug, Clone)]
pub(crate) enum ControlNode {
    Table(u32),
    Condition { cond: Cond, then: u32, other: u32 },
    Call { call: Call, next: u32 },
}

/// The successor of a table.
#[derive(Debug, Clone)]
pub(crate) enum Next {
    Always(u32),
    HitMiss(u32, u32),
    /// By action; the last successor applies if no action runs.
    ByAction(Vec<(u32, u32)>, u32),
}

impl Next {
    #[inline]
    pub(crate) fn after(&self, hit: bool, action: Option<u32>) -> u32 {
        match self {
            Next::Always(n) => *n,
            Next::HitMiss(h, m) => *if hit { h } else { m },
            Next::ByAction(list, none) => {
                let found = list.iter().find(|(a, _)| Some(*a) == action);
                found.map_or(*none, |&(_, n)| n)
            }
        }
    }
}

/// The nodes of a control flow.
#[derive(Debug, Default)]
pub(crate) struct Order {
    /// The nodes reachable from the first one. Each node precedes its successors, except where a loop returns to its head.
    pub(crate) nodes: Vec<u32>,
    /// The nodes to which loops return.
    pub(crate) loop_heads: BTreeSet<u32>,
}

/// Orders the nodes that are reachable from `first`.
pub(crate) fn order(nodes: &[ControlNode], tables: &[CompiledTable], first: u32) -> Order {
    #[derive(Clone, Copy, PartialEq)]
    enum Seen {
        No,
        Open,
        Done,
    }
    let mut seen = vec![Seen::No; nodes.len()];
    let mut order = Order::default();
    let mut stack = vec![(first, false)];
    while let Some((n, is_leaving)) = stack.pop() {
        let Some(state) = seen.get_mut(n as usize) else {
            continue;
        };
        if is_leaving {
            *state = Seen::Done;
            order.nodes.push(n);
            continue;
        }
        match state {
            Seen::Done => continue,
            Seen::Open => {
                order.loop_heads.insert(n);
                continue;
            }
            Seen::No => *state = Seen::Open,
        }
        stack.push((n, true));
        let next = nodes[n as usize].successors(tables);
        stack.extend(next.iter().rev().map(|&n| (n, false)));
    }
    order.nodes.reverse();
    order
}

impl ControlNode {
    pub(crate) fn successors(&self, tables: &[CompiledTable]) -> Vec<u32> {
        match self {
            ControlNode::Condition { then, other, .. } => vec![*then, *other],
            ControlNode::Call { next, .. } => vec![*next],
            ControlNode::Table(t) => match &tables[*t as usize].next {
                Next::Always(n) => vec![*n],
                Next::HitMiss(h, m) => vec![*h, *m],
                Next::ByAction(list, none) => list.iter().map(|&(_, n)| n).chain([*none]).collect(),
            },
        }
    }
}

/// A table's direct meter: its unit, and the field for the colour.
#[derive(Debug, Clone)]
pub(crate) struct DirectMeter {
    pub(crate) unit: MeterUnit,
    pub(crate) to: Target,
    pub(crate) codes: ColorCodes,
}

/// The fixed part of a table.
#[derive(Debug, Clone)]
pub(crate) struct CompiledTable {
    pub(crate) shape: KeyShape,
    pub(crate) key: Vec<KeyPart>,
    /// The rest of the key: fields of headers computed at run time.
    pub(crate) computed_key: Vec<ComputedPart>,
    pub(crate) next: Next,
    pub(crate) profile: Option<u32>,
    pub(crate) meter: Option<DirectMeter>,
    /// Whether actions access direct registers or filters of the entry.
    pub(crate) has_direct_state: bool,
    /// Entries and default action that the program defines.
    pub(crate) entries: Vec<Entry>,
    pub(crate) default: Option<Call>,
}
