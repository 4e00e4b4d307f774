// SPDX-License-Identifier: Apache-2.0
//! Generates code for the control flow: tables, conditions, action calls.

use std::collections::BTreeMap;
use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I8, I32, I64};
use cranelift_codegen::ir::{Block, InstBuilder};

use super::action::may_exit;
use super::generator::{Args, Gen, Result};
use super::runtime::Context;
use crate::packet::Packet;
use crate::program::control::{ControlNode, order};

impl Gen<'_, '_> {
    /// Compiles the control flow that begins at a node, up to its return.
    pub(super) fn control(&mut self, first: u32) -> Result<()> {
        let order = order(&self.c.nodes, &self.c.tables, first).nodes;
        let end = self.b.create_block();
        let blocks: BTreeMap<u32, Block> =
            order.iter().map(|&n| (n, self.b.create_block())).collect();
        let to = |n: u32| blocks.get(&n).copied().unwrap_or(end);
        self.leave_if_exited(end, to(first));
        let c = self.c;
        for n in &order {
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
