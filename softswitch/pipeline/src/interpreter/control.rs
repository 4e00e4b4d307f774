// SPDX-License-Identifier: Apache-2.0
//! The interpreter of control flows: tables, conditions, action calls.

use super::machine::Machine;
use crate::Nanos;
use crate::packet::Packet;
use crate::paths::Step;
use crate::program::Compiled;
use crate::program::call::CallRef;
use crate::program::control::{CompiledTable, ControlNode, DirectMeter};
use crate::state::State;
use crate::state::meter::{Color, Meter};
use crate::state::shared::Shared;
use crate::state::table::{Profile, Table, Target};

impl State {
    /// Runs a control flow from node `first` to its end.
    pub(crate) fn apply(&mut self, c: &Compiled, control: usize, pkt: &mut Packet, now: Nanos) {
        if let Some(trace) = &mut self.externs.trace {
            trace.look(&pkt.mem);
        }
        let mut node = c.controls[control];
        while let Some(n) = c.nodes.get(node as usize).filter(|_| !pkt.exit) {
            if c.loop_heads[node as usize] && !pkt.iterate(self.externs.max_iterations) {
                return;
            }
            let (next, action) = match n {
                ControlNode::Table(t) => self.apply_table(c, *t, pkt, now),
                ControlNode::Condition { cond, then, other } => {
                    let m = self.machine(c, pkt, now);
                    let holds = cond.eval(&m.env(&[]));
                    if let Some(trace) = &mut m.externs.trace {
                        trace.condition(c, node, holds);
                    }
                    if let Some(coverage) = &mut m.externs.coverage {
                        coverage.condition(node, holds);
                    }
                    (if holds { *then } else { *other }, None)
                }
                ControlNode::Call { call, next } => {
                    let mut m = self.machine(c, pkt, now);
                    if let Some(trace) = &mut m.externs.trace {
                        trace.action(c, call.into());
                    }
                    m.call(&c.actions, call.into());
                    m.trace_changes(false);
                    (*next, None)
                }
            };
            if let Some(path) = &mut self.externs.path {
                path.push(Step { node, action, next });
            }
            node = next;
            // A lane does not need other locks any more.
            self.externs.release_locks(!c.locks.ahead(node));
        }
    }

    pub(crate) fn machine<'a>(
        &'a mut self,
        c: &'a Compiled,
        pkt: &'a mut Packet,
        now: Nanos,
    ) -> Machine<'a> {
        Machine::new(c, &mut self.externs, pkt, now)
    }

    /// Returns the next node and the action that ran.
    #[inline]
    fn apply_table(
        &mut self,
        c: &Compiled,
        number: u32,
        pkt: &mut Packet,
        now: Nanos,
    ) -> (u32, Option<u32>) {
        let fixed = &c.tables[number as usize];
        let tables = &mut self.tables;
        let mut m = Machine::new(c, &mut self.externs, pkt, now);
        let len = m.pkt.ingress_len;
        let slot = if tables[number as usize].len() == 0 && m.externs.trace.is_none() {
            tables.miss(number, len, &mut m.externs.entry_counters);
            None
        } else {
            fixed.load_key(&m.env(&[]), &mut self.key);
            tables.lookup(number, &self.key, len, now, &mut m.externs.entry_counters)
        };
        if fixed.has_direct_state {
            (m.pkt.entry, m.pkt.entry_table) = (slot, number);
        }
        meter(fixed, slot, (&mut *tables, number), &mut m);
        let table = &tables[number as usize];
        let (call, member) = choose(c, fixed, slot, table, &self.profiles, &mut m);
        if let Some(trace) = &mut m.externs.trace {
            let key = table.shape.key_values(&self.key);
            let profile = fixed.profile.map(|p| &self.profiles[p as usize]);
            let member = profile.zip(member).and_then(|(p, m)| p.member_id(m));
            trace.table(
                c,
                number,
                &key,
                slot.map(|s| (s, table.key(s))),
                (call, member),
            );
        }
        if let Some(coverage) = &mut m.externs.coverage {
            let entry = slot.map(|slot| table.handle(slot));
            coverage.table(c, number, entry, call.map(|call| call.action));
        }
        if let Some(call) = call {
            m.call(&c.actions, call);
        }
        m.trace_changes(false);
        let action = call.map(|c| c.action);
        (fixed.next.after(slot.is_some(), action), action)
    }
}

/// Meters a hit, and a miss if the default entry's meter is configured. v1model meters hits only, so without that
/// configuration a miss leaves the colour unchanged.
#[inline]
pub(crate) fn meter(
    fixed: &CompiledTable,
    slot: Option<u32>,
    (tables, number): (&mut Shared<Vec<Table>>, u32),
    m: &mut Machine,
) {
    let Some(DirectMeter { unit, to, codes }) = &fixed.meter else {
        return;
    };
    let (bytes, now) = (m.pkt.ingress_len, m.now);
    let execute = |meter: &mut Meter| {
        let runs = slot.is_some() || meter.config().is_some();
        runs.then(|| meter.execute(unit.amount(bytes), bytes, now, Color::Green))
    };
    let color = match tables.get_mut() {
        Some(tables) => tables[number as usize].meter_mut(slot).and_then(execute),
        None => {
            let cell = tables[number as usize].meter_cell(slot);
            cell.and_then(|cell| execute(&mut cell.lock()))
        }
    };
    if let Some(color) = color {
        m.set64(to, &[], codes[color as usize].into());
    }
}

/// Returns the action to run after a hit or a miss, and the slot of its action profile member, if any.
#[inline]
pub(crate) fn choose<'a>(
    c: &Compiled,
    fixed: &CompiledTable,
    slot: Option<u32>,
    table: &'a Table,
    profiles: &'a [Profile],
    m: &mut Machine,
) -> (Option<CallRef<'a>>, Option<u32>) {
    let target = match slot {
        Some(slot) => Some(table.target(slot)),
        None => table.default(),
    };
    let (target, p) = match (target, fixed.profile) {
        (Some(Target::Call(call)), _) => return (Some(call), None),
        (Some(target), Some(p)) => (target, p),
        _ => return (None, None),
    };
    let profile = &profiles[p as usize];
    let member = match target {
        Target::Call(_) => None,
        Target::Member(member) => Some(member),
        Target::Group(group) => {
            let selection = profile.selection(group);
            let hash = match &c.selectors[p as usize] {
                _ if selection.is_random() => m.externs.rng.next(),
                Some(selector) => m.externs.hash(selector, &c.layout, m.pkt),
                None => 0,
            };
            selection.choose(hash)
        }
    };
    (member.map(|member| profile.call(member).into()), member)
}
