//! Control flow: tables, conditions, action calls.

use std::collections::BTreeMap;
use std::mem::offset_of;

use cranelift_codegen::ir::types::{I8, I64};
use cranelift_codegen::ir::{Block, InstBuilder, Value};
use cranelift_frontend::Switch;

use super::action::may_exit;
use super::generator::{Args, Gen, Known, Result, Unsupported};
use super::runtime::{Callout, Context, HIT, NO_ACTION};
use crate::entry::EntryAction;
use crate::packet::State;
use crate::phv::{Field, Place};
use crate::program::{CompiledTable, ControlNode, Next};
use crate::table::KeyPart;

/// A node's successors.
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

/// The nodes that `first` leads to, each before those that it leads to; none if there is a loop.
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
    /// Compiles the control flow that begins at a node, and returns.
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

    /// Goes to `end` if the packet has left the control flow, else to `next`.
    fn leave_if_exited(&mut self, end: Block, next: Block) {
        let exited = self.load_state(I8, offset_of!(State, exit));
        self.brif(exited, end, next);
    }

    fn leave(&mut self, may_exit: bool, end: Block, next: Block) {
        if may_exit {
            self.leave_if_exited(end, next);
        } else {
            self.jump(next);
        }
    }

    fn table(&mut self, number: u32, end: Block, to: &impl Fn(u32) -> Block) -> Result<()> {
        let c = self.c;
        let table = &c.tables[number as usize];
        let at = self.key(table)?;
        let n = self.int(number.into());
        let found = self.call(Callout::Apply, &[n, at]);
        if table.meter.is_some() {
            self.known = Known::default();
        }
        let hit = self.b.ins().band_imm(found, HIT as i64);
        let action = self.b.ins().ushr_imm(found, 32);
        let after = |g: &mut Self, action: Option<u32>, may_exit: bool| {
            let next = match &table.next {
                Next::HitMiss(h, m) => {
                    let (h, m) = (to(*h), to(*m));
                    if may_exit {
                        let choose = g.b.create_block();
                        g.leave_if_exited(end, choose);
                        // Its only predecessor is behind it.
                        if g.enter(choose).is_err() {
                            return Err(Unsupported);
                        }
                    }
                    g.brif(hit, h, m);
                    return Ok(());
                }
                next => to(next.after(true, action)),
            };
            g.leave(may_exit, end, next);
            Ok(())
        };
        let mut actions = BTreeMap::new();
        for (_, id) in &c.info.tables[number as usize].actions {
            actions.insert(id.0, self.b.create_block());
        }
        let calls = table.entries.iter().filter_map(|e| match &e.action {
            EntryAction::Direct(call) => Some(call.action.0),
            _ => None,
        });
        for id in calls.chain(table.default.as_ref().map(|d| d.action)) {
            actions.entry(id).or_insert_with(|| self.b.create_block());
        }
        let (none, other) = (self.b.create_block(), self.b.create_block());
        let mut switch = Switch::new();
        switch.set_entry(NO_ACTION.into(), none);
        for (id, block) in &actions {
            switch.set_entry((*id).into(), *block);
        }
        self.arrive_at(actions.values().copied().chain([none, other]));
        switch.emit(&mut self.b, action, other);
        for (id, block) in actions {
            self.enter(block)?;
            let ops = &c.actions[id as usize].ops;
            let limbs = c.info.actions[id as usize].params.iter();
            let limbs = limbs.map(|(_, width)| width.div_ceil(64).max(1)).sum();
            let args = if limbs == 0 {
                Args::Known(&[])
            } else {
                Args::At(self.context(offset_of!(Context, args)), limbs)
            };
            self.action(ops, args)?;
            after(self, Some(id), may_exit(ops))?;
        }
        self.enter(none)?;
        after(self, None, false)?;
        // An action of a profile that this table does not have.
        self.enter(other)?;
        self.call(Callout::Chosen, &[action]);
        after(self, None, true)
    }

    /// The address of a table's lookup key; 0 if it is left to the interpreter.
    fn key(&mut self, table: &CompiledTable) -> Result<Value> {
        if !table.computed_key.is_empty() || !table.key.iter().all(|p| self.loads(p)) {
            return Ok(self.int(0));
        }
        let mut key = vec![None; table.shape.words];
        for part in &table.key {
            self.key_part(part, &mut key)?;
        }
        let zero = self.int(0);
        let key: Vec<Value> = key.into_iter().map(|v| v.unwrap_or(zero)).collect();
        self.store_key(&key)
    }

    /// Puts a key where a call finds it.
    pub(super) fn store_key(&mut self, key: &[Value]) -> Result<Value> {
        let bytes = u32::try_from(key.len() * 8).map_err(|_| Unsupported)?;
        let slot = self.buffer(bytes.max(64));
        for (i, &v) in key.iter().enumerate() {
            self.b.ins().stack_store(v, slot, i as i32 * 8);
        }
        Ok(self.b.ins().stack_addr(I64, slot, 0))
    }

    /// Whether native code loads this part of a key.
    pub(super) fn loads(&self, part: &KeyPart) -> bool {
        self.reads(Field {
            signed: false,
            ..part.field
        })
    }

    /// Puts a part that native code [loads](Self::loads) into the key.
    pub(super) fn key_part(&mut self, part: &KeyPart, key: &mut [Option<Value>]) -> Result<()> {
        // Least significant first.
        let limbs = match part.field.place {
            Place::Word(w) => vec![self.get(w)?],
            _ => self
                .field128(Field {
                    signed: false,
                    ..part.field
                })?
                .to_vec(),
        };
        for (i, limb) in limbs.iter().enumerate() {
            let mask = part.mask.as_ref();
            let mask = mask.map_or(u64::MAX, |m| m.get(i).copied().unwrap_or(0));
            let v = self.mask(*limb, mask);
            let v = self.shift_left(v, part.shift);
            put(self, &mut key[part.word + limbs.len() - 1 - i], v);
        }
        Ok(())
    }
}

/// Adds bits to a word of a key.
pub(super) fn put(g: &mut Gen, word: &mut Option<Value>, v: Value) {
    *word = Some(match *word {
        Some(old) => g.b.ins().bor(old, v),
        None => v,
    });
}
