// SPDX-License-Identifier: Apache-2.0
//! Generates code for the control flow: tables, conditions, action calls.

use std::collections::BTreeMap;
use std::mem::offset_of;

use cranelift_codegen::ir::types::I8;
use cranelift_codegen::ir::{Block, InstBuilder};

use super::action::may_exit;
use super::generator::{Args, Gen, Result, Unsupported};
use crate::packet::Packet;
use crate::program::control::{CompiledTable, ControlNode, Next};

/// Returns a node's successors.
fn successors(n: &ControlNode, tables: &[CompiledTable]) -> Vec<u32> {
    match n {
        ControlNode::Condition { then, other, .. } => vec![*then, *other],
        ControlNode::Call { next, .. } => vec![*next],
        ControlNode::Table(t) => match &tables[*t as usize].next {
            Next::Always(n) => vec![*n],
            Next::HitMiss(h, m) => vec![*h, *m],
            Next::ByAction(list, none) => list.iter().map(|&(_, n)| n).chain([*none]).collect(),
        },
    }
}

/// Returns the nodes reachable from `first` in topological order; `None` if there is a loop.
fn order(nodes: &[ControlNode], tables: &[CompiledTable], first: u32) -> Result<Vec<u32>> {
    #[derive(Clone, Copy, PartialEq)]
    enum Seen {
        No,
        Open,
        Done,
    }
    let mut seen = vec![Seen::No; nodes.len()];
    let mut order = Vec::new();
    let mut stack = vec![(first, false)];
    while let Some((n, leaving)) = stack.pop() {
        let Some(state) = seen.get_mut(n as usize) else {
            continue;
        };
        if leaving {
            *state = Seen::Done;
            order.push(n);
            continue;
        }
        match state {
            Seen::Done => continue,
            Seen::Open => return Err(Unsupported),
            Seen::No => *state = Seen::Open,
        }
        stack.push((n, true));
        let next = successors(&nodes[n as usize], tables);
        stack.extend(next.iter().rev().map(|&n| (n, false)));
    }
    order.reverse();
    Ok(order)
}

impl Gen<'_, '_> {
    /// Compiles the control flow that begins at a node, up to its return.
    pub(super) fn control(&mut self, first: u32) -> Result<()> {
        let order = order(&self.c.nodes, &self.c.tables, first)?;
        let end = self.b.create_block();
        let blocks: BTreeMap<u32, Block> =
            order.iter().map(|&n| (n, self.b.create_block())).collect();
        let to = |n: u32| blocks.get(&n).copied().unwrap_or(end);
        self.leave_if_exited(end, to(first));
        let c = self.c;
        for n in &order {
            self.enter(blocks[n])?;
            match &c.nodes[*n as usize] {
                ControlNode::Condition { cond, then, other } => {
                    self.branch(cond, Args::Known(&[]), to(*then), to(*other))?;
                }
                ControlNode::Call { call, next } => {
                    let ops = &c.actions[call.action as usize].ops;
                    self.action(ops, Args::Known(&call.args))?;
                    self.leave(may_exit(ops), end, to(*next));
                }
                ControlNode::Table(t) => self.table(*t, end, &to)?,
            }
        }
        self.enter(end)?;
        let zero = self.int(0);
        self.b.ins().return_(&[zero]);
        Ok(())
    }

    /// Branches to `end` if the packet has left the control flow, else to `next`.
    pub(super) fn leave_if_exited(&mut self, end: Block, next: Block) {
        let exited = self.load_state(I8, offset_of!(Packet, exit));
        self.brif(exited, end, next);
    }

    pub(super) fn leave(&mut self, may_exit: bool, end: Block, next: Block) {
        if may_exit {
            self.leave_if_exited(end, next);
        } else {
            self.jump(next);
        }
    }
}
