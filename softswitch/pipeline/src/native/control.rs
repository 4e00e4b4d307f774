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
use crate::paths::Paths;
use crate::phv::Field;
use crate::program::control::{ControlNode, END, order};
use crate::program::locks::LockSet;

/// An edge on which a lane releases locks.
struct Edge {
    block: Block,
    locks: LockSet,
    to: Block,
}

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

    /// Compiles the control flow that begins at a node, up to its return: copies for the frequent paths, then the common code.
    pub(super) fn control(&mut self, first: u32, paths: &Paths) -> Result<()> {
        let order = order(&self.c.nodes, &self.c.tables, first).nodes;
        let end = self.b.create_block();
        let blocks: BTreeMap<u32, Block> =
            order.iter().map(|&n| (n, self.b.create_block())).collect();
        let entry = |n: u32| blocks.get(&n).copied().unwrap_or(end);
        let copies: Vec<Block> = paths
            .branches()
            .iter()
            .map(|_| self.b.create_block())
            .collect();
        self.leave_if_exited(end, copies.first().copied().unwrap_or_else(|| entry(first)));
        self.copies(paths, &copies, end, &entry)?;
        self.begin_common_code();
        for &n in &order {
            if self.c.loop_heads[n as usize] {
                self.enter_loop(blocks[&n])?;
                self.count_iteration(end)?;
            } else if self.is_reached(blocks[&n]) {
                self.enter(blocks[&n])?;
            } else {
                continue;
            }
            if !copies.is_empty() {
                self.b.set_cold_block(blocks[&n]);
            }
            self.control_node(n, end, None, &|_, next| entry(next))?;
        }
        self.enter(end)?;
        let zero = self.int(0);
        self.b.ins().return_(&[zero]);
        Ok(())
    }

    /// Compiles a copy of the node of each branch, which only one path reaches, so more is known about the packet than where
    /// paths meet. Rare paths and loops continue at the node's `entry` in the common code.
    fn copies(
        &mut self,
        paths: &Paths,
        copies: &[Block],
        end: Block,
        entry: &impl Fn(u32) -> Block,
    ) -> Result<()> {
        for (i, (branch, &copy)) in paths.branches().iter().zip(copies).enumerate() {
            if !self.is_reached(copy) {
                continue;
            }
            self.enter(copy)?;
            self.forget_slots();
            let is_loop = self.c.loop_heads.get(branch.node as usize);
            if branch.node == END || is_loop == Some(&true) || !self.has_room_for_copies() {
                self.jump(entry(branch.node));
                continue;
            }
            let likely = paths.likely_action(i);
            self.control_node(branch.node, end, likely, &|action, next| {
                let copy = paths.next(i, action, next);
                copy.map_or_else(|| entry(next), |copy| copies[copy])
            })?;
        }
        Ok(())
    }

    /// Compiles a node, with the likely action if it is a table. `to` returns the block that follows an action of a table and
    /// leads to a node.
    fn control_node(
        &mut self,
        number: u32,
        end: Block,
        likely: Option<u32>,
        to: &impl Fn(Option<u32>, u32) -> Block,
    ) -> Result<()> {
        let c = self.c;
        let mut edges = Vec::new();
        let mut to = |g: &mut Self, action: Option<u32>, next: u32| {
            g.edge(number, next, to(action, next), &mut edges)
        };
        match &c.nodes[number as usize] {
            ControlNode::Condition { cond, then, other } => {
                let (then, other) = (to(self, None, *then), to(self, None, *other));
                self.branch(cond, Args::Known(&[]), then, other)?;
            }
            ControlNode::Call { call, next } => {
                let ops = &c.actions[call.action as usize].ops;
                self.take_locks(call.action);
                self.action(ops, Args::Known(&call.args))?;
                let next = to(self, None, *next);
                self.leave(may_exit(ops), end, next);
            }
            ControlNode::Table(t) => self.table(*t, end, likely, &mut to)?,
        }
        for Edge { block, locks, to } in edges {
            if self.is_reached(block) {
                self.enter(block)?;
                let locks = self.int(locks);
                self.call(Callout::ReleaseLocks, &[locks]);
                self.jump(to);
            }
        }
        Ok(())
    }

    /// Returns the block that leads from a node to that of the next one. It is a new one if a lane does not take some locks
    /// any more, which it releases there.
    fn edge(&mut self, node: u32, next: u32, to: Block, edges: &mut Vec<Edge>) -> Block {
        let locks = self.c.locks.ahead(node) & !self.c.locks.ahead(next);
        if !self.is_for_lanes || locks == 0 || next == END {
            return to;
        }
        let same = edges.iter().find(|edge| edge.to == to);
        same.map(|edge| edge.block).unwrap_or_else(|| {
            let block = self.b.create_block();
            edges.push(Edge { block, locks, to });
            block
        })
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
