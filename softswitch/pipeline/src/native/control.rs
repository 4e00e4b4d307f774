// SPDX-License-Identifier: Apache-2.0
//! Generates code for the control flow: tables, conditions, action calls.

use std::collections::BTreeMap;
use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I8, I32, I64};
use cranelift_codegen::ir::{Block, InstBuilder};

use super::action::may_exit;
use super::generator::{Args, Gen, Result};
use super::runtime::{Callout, Context};
use crate::packet::Packet;
use crate::phv::Field;
use crate::program::control::{ControlNode, END, order};
use crate::program::locks::LockSet;

impl Gen<'_, '_> {
    /// Sets the inputs of a control.
    pub(super) fn inputs(&mut self, fields: &[Option<Field>]) -> Result<()> {
        let values = self.context(offset_of!(Context, input));
        for (i, field) in fields.iter().enumerate() {
            if let Some(field) = field {
                let at = (i * size_of::<u64>()) as i32;
                let value = self.b.ins().load(I64, Self::other(), values, at);
                let zero = self.int(0);
                self.set_field128(*field, [value, zero])?;
            }
        }
        Ok(())
    }

    /// Compiles the control flow that begins at a node, up to its return.
    pub(super) fn control(&mut self, first: u32) -> Result<()> {
        let order = order(&self.c.nodes, &self.c.tables, first).nodes;
        let end = self.b.create_block();
        let blocks: BTreeMap<u32, Block> =
            order.iter().map(|&n| (n, self.b.create_block())).collect();
        let entry = |n: u32| blocks.get(&n).copied().unwrap_or(end);
        self.leave_if_exited(end, entry(first));
        let c = self.c;
        for n in &order {
            let edges = self.releasing_edges(*n);
            let to = |next: u32| edges.get(&next).map_or_else(|| entry(next), |edge| edge.0);
            if c.loop_heads[*n as usize] {
                self.enter_loop(blocks[n])?;
                self.count_iteration(end)?;
            } else {
                self.enter(blocks[n])?;
            }
            match &c.nodes[*n as usize] {
                ControlNode::Condition { cond, then, other } => {
                    self.branch(cond, Args::Known(&[]), to(*then), to(*other))?;
                }
                ControlNode::Call { call, next } => {
                    let ops = &c.actions[call.action as usize].ops;
                    self.take_locks(call.action);
                    self.action(ops, Args::Known(&call.args))?;
                    self.leave(may_exit(ops), end, to(*next));
                }
                ControlNode::Table(t) => self.table(*t, end, &to)?,
            }
            for (next, (edge, locks)) in &edges {
                self.enter(*edge)?;
                let locks = self.int(*locks);
                self.call(Callout::ReleaseLocks, &[locks]);
                self.jump(entry(*next));
            }
        }
        self.enter(end)?;
        let zero = self.int(0);
        self.b.ins().return_(&[zero]);
        Ok(())
    }

    /// Creates a block for each edge from a node behind which a lane does not take some locks any more, which it releases
    /// there.
    fn releasing_edges(&mut self, node: u32) -> BTreeMap<u32, (Block, LockSet)> {
        let c = self.c;
        let mut edges = BTreeMap::new();
        for next in c.nodes[node as usize].successors(&c.tables) {
            let locks = c.locks.ahead(node) & !c.locks.ahead(next);
            if self.is_for_lanes && locks != 0 && next != END {
                let edge = || (self.b.create_block(), locks);
                edges.entry(next).or_insert_with(edge);
            }
        }
        edges
    }

    /// Counts a loop iteration, and leaves the control flow if there are too many.
    fn count_iteration(&mut self, end: Block) -> Result<()> {
        let (next, stop) = (self.b.create_block(), self.b.create_block());
        let count = self.load_state(I32, offset_of!(Packet, iterations));
        let count = self.b.ins().uextend(I64, count);
        let count = self.b.ins().iadd_imm(count, 1);
        let most = self.context(offset_of!(Context, max_iterations));
        let within = self.compare(IntCC::UnsignedLessThanOrEqual, count, most);
        let count = self.b.ins().ireduce(I32, count);
        self.store_state(count, offset_of!(Packet, iterations));
        self.brif(within, next, stop);
        self.enter(stop)?;
        let yes = self.b.ins().iconst(I8, 1);
        self.store_state(yes, offset_of!(Packet, exit));
        self.jump(end);
        self.enter(next)
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
