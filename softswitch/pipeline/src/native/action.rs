// SPDX-License-Identifier: Apache-2.0
//! Generates code for actions.

use std::collections::BTreeMap;
use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I8, I32, I64};
use cranelift_codegen::ir::{Block, InstBuilder, Value};

use super::generator::{Args, Gen, Result, Unsupported};
use super::runtime::{Callout, Context};
use crate::entry::CounterValue;
use crate::packet::Packet;
use crate::phv::{Place, mask64};
use crate::program::expr::{HeaderRef, Node};
use crate::program::op::{Op, Target};

/// Returns the steps that a step may jump to.
fn destination(op: &Op) -> Option<usize> {
    match op {
        Op::Jump(to) | Op::JumpUnless(_, to) => Some(*to),
        _ => None,
    }
}

/// Returns true if an action has a backward jump.
fn has_loop(ops: &[Op]) -> bool {
    let backward = |(i, op)| destination(op).is_some_and(|to| to <= i);
    ops.iter().enumerate().any(backward)
}

/// Returns true if an action can end the control flow, which a loop does with too many iterations.
pub(super) fn may_exit(ops: &[Op]) -> bool {
    ops.iter().any(|op| matches!(op, Op::Exit)) || has_loop(ops)
}

impl Gen<'_, '_> {
    /// Compiles an action and continues behind it.
    pub(super) fn action(&mut self, ops: &[Op], a: Args) -> Result<()> {
        if has_loop(ops) {
            let (at, n) = (ops.as_ptr() as u64, ops.len() as u64);
            let (at, n) = (self.int(at), self.int(n));
            let [args, count] = self.pass(a);
            self.call(Callout::Steps, &[at, n, args, count]);
            return Ok(());
        }
        let mut blocks: BTreeMap<usize, Block> = BTreeMap::new();
        for to in ops.iter().filter_map(destination) {
            let to = to.min(ops.len());
            blocks.entry(to).or_insert_with(|| self.b.create_block());
        }
        let mut open = true;
        let mut done = 0;
        for (i, op) in ops.iter().enumerate() {
            self.arrive_open(&mut open, blocks.get(&i).copied())?;
            if !open || i < done {
                continue;
            }
            if blocks.is_empty() {
                done = i + self.remove_many(&ops[i..])?;
                if i < done {
                    continue;
                }
            }
            match op {
                Op::Jump(to) => {
                    self.jump(blocks[&(*to).min(ops.len())]);
                    open = false;
                }
                Op::JumpUnless(c, to) => {
                    let next = self.b.create_block();
                    self.branch(c, a, next, blocks[&(*to).min(ops.len())])?;
                    self.enter(next)?;
                }
                op => self.op(op, a)?,
            }
        }
        self.arrive_open(&mut open, blocks.get(&ops.len()).copied())
    }

    /// Begins the block of a jump target, if there is one here.
    fn arrive_open(&mut self, open: &mut bool, block: Option<Block>) -> Result<()> {
        if let Some(block) = block {
            if *open {
                self.jump(block);
            }
            self.enter(block)?;
            *open = true;
        }
        Ok(())
    }

    fn op(&mut self, op: &Op, a: Args) -> Result<()> {
        match op {
            Op::SetConst(to, v) => {
                let v = self.int(*v);
                self.set(*to, v)?;
            }
            Op::SetWord(to, mask, from) => {
                let v = self.get(*from)?;
                let v = self.mask(v, *mask);
                self.set(*to, v)?;
            }
            Op::SetArg(to, mask, limb) => {
                let v = self.argument(*limb, a)?;
                let v = self.mask(v, *mask);
                self.set(*to, v)?;
            }
            Op::Set64(to, v) if self.writes(to) => {
                let v = self.node(v, a)?;
                self.set_target(to, v)?;
            }
            Op::Set128(Target::Field(f), v) if self.writes(&Target::Field(*f)) => {
                let v = self.node128(v, a)?;
                self.set_field128(*f, v)?;
            }
            Op::ReadRegister {
                to,
                register,
                index,
            } if self.narrow(*register) && self.writes(to) => {
                let index = self.node(index, a)?;
                let array = self.cells(offset_of!(Context, registers), *register);
                let (after, cell) = self.within(array, index, 8)?;
                let v = self.b.ins().load(I64, Self::other(), cell, 0);
                self.set_target(to, v)?;
                self.jump(after);
                self.enter(after)?;
            }
            Op::WriteRegister64 {
                register,
                index,
                value,
            } if self.narrow(*register) => {
                let index = self.node(index, a)?;
                let v = self.node(value, a)?;
                let width = self.c.info.registers[*register as usize].width;
                let v = self.mask(v, mask64(width));
                let array = self.cells(offset_of!(Context, registers), *register);
                let (after, cell) = self.within(array, index, 8)?;
                self.b.ins().store(Self::other(), v, cell, 0);
                self.jump(after);
                self.enter(after)?;
            }
            Op::Count { counter, index } => {
                let index = self.node(index, a)?;
                let array = self.cells(offset_of!(Context, counters), *counter);
                let (after, cell) = self.within(array, index, size_of::<CounterValue>())?;
                self.count(cell);
                self.jump(after);
                self.enter(after)?;
            }
            Op::Hash {
                to,
                calculation,
                range,
            } if self.writes(to) => {
                let mut v = self.calculation(*calculation)?;
                if let Some(range) = range {
                    let base = self.node(&range[0], a)?;
                    let size = self.node(&range[1], a)?;
                    let hash = match self.number(size) {
                        // Dividing takes longer.
                        Some(size) if size.is_power_of_two() => self.mask(v, size - 1),
                        _ => {
                            let one = self.int(1);
                            let size = self.b.ins().umax(size, one);
                            self.b.ins().urem(v, size)
                        }
                    };
                    v = self.b.ins().iadd(base, hash);
                }
                self.set_target(to, v)?;
            }
            Op::Sum(number, step) => {
                if !self.sum_step(*number, step)? {
                    self.step(op, a);
                }
            }
            Op::MarkToDrop(spec, group) => {
                let (spec, group) = (Target::Field(*spec), group.map(Target::Field));
                if !self.writes(&spec) || !group.as_ref().is_none_or(|g| self.writes(g)) {
                    self.step(op, a);
                    return Ok(());
                }
                let port = self.context(offset_of!(Context, drop_port));
                self.set_target(&spec, port)?;
                if let Some(group) = group {
                    let zero = self.int(0);
                    self.set_target(&group, zero)?;
                }
            }
            Op::Exit => {
                let yes = self.b.ins().iconst(I8, 1);
                self.store_state(yes, offset_of!(Packet, exit));
            }
            Op::AddHeader(HeaderRef::Static(h)) if self.is_simple(*h) => self.add_header(*h)?,
            Op::RemoveHeader(HeaderRef::Static(h)) if self.is_simple(*h) => {
                self.remove_header(*h)?;
            }
            Op::Resubmit(list) => self.request(list, a, offset_of!(Packet, resubmit))?,
            Op::Recirculate(list) => self.request(list, a, offset_of!(Packet, recirculate))?,
            Op::Mirror(session, fields) => self.mirror(op, session, *fields, a)?,
            Op::Nop => {}
            op => {
                self.step(op, a);
            }
        }
        Ok(())
    }

    /// Stores the field list of a resubmitted or recirculated packet.
    fn request(&mut self, list: &Node<u64>, a: Args, at: usize) -> Result<()> {
        let list = self.node(list, a)?;
        let list = self.mask(list, 0xffff);
        let list = self.b.ins().ireduce(I32, list);
        self.store_state(list, at);
        Ok(())
    }

    /// Leaves a step to the interpreter.
    pub(super) fn step(&mut self, op: &Op, a: Args) -> Value {
        let (op, one) = (self.address(op), self.int(1));
        let [args, count] = self.pass(a);
        self.call(Callout::Steps, &[op, one, args, count])
    }

    fn narrow(&self, register: u32) -> bool {
        self.c.info.registers[register as usize].width <= 64
    }

    /// Returns true if native code writes this target.
    pub(super) fn writes(&self, to: &Target) -> bool {
        match to {
            Target::Word(..) => true,
            Target::Field(f) => match f.place {
                Place::Word(_) => true,
                Place::Bits(bit) => {
                    f.width > 64 && f.width <= 128 && (bit | f.width).is_multiple_of(8)
                }
                Place::Varbit { .. } => false,
            },
            Target::Dyn(_) => false,
        }
    }

    /// Writes the low bits of `v` to a target that native code [writes](Self::writes).
    pub(super) fn set_target(&mut self, to: &Target, v: Value) -> Result<()> {
        match to {
            Target::Word(w, mask) => {
                let v = self.mask(v, *mask);
                self.set(*w, v)
            }
            Target::Field(f) => {
                let zero = self.int(0);
                self.set_field128(*f, [v, zero])
            }
            Target::Dyn(_) => Err(Unsupported),
        }
    }

    /// Branches on whether `index` is within an array. Continues with the address of its cell in the first case; the second
    /// case goes directly to the returned block, where both continue.
    fn within(
        &mut self,
        [cells, len]: [Value; 2],
        index: Value,
        size: usize,
    ) -> Result<(Block, Value)> {
        let (inside, after) = (self.b.create_block(), self.b.create_block());
        let fits = self.compare(IntCC::UnsignedLessThan, index, len);
        self.brif(fits, inside, after);
        self.enter(inside)?;
        Ok((after, self.cell(cells, index, size)))
    }

    /// Counts the packet.
    pub(super) fn count(&mut self, counter: Value) {
        let bytes = self.load_state(I32, offset_of!(Packet, ingress_len));
        let bytes = self.b.ins().uextend(I64, bytes);
        self.add_to(counter, offset_of!(CounterValue, bytes), bytes);
        let one = self.int(1);
        self.add_to(counter, offset_of!(CounterValue, packets), one);
    }

    fn add_to(&mut self, cell: Value, at: usize, v: Value) {
        let old = self.b.ins().load(I64, Self::other(), cell, at as i32);
        let new = self.b.ins().iadd(old, v);
        self.b.ins().store(Self::other(), new, cell, at as i32);
    }
}
