// SPDX-License-Identifier: Apache-2.0
//! Generates code for tables: the lookup, and the actions that it selects.

use std::collections::BTreeMap;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, InstBuilder};
use cranelift_frontend::Switch;

use super::action::may_exit;
use super::generator::{Args, Gen, Result, Unsupported};
use super::runtime::Callout;
use crate::entry::EntryAction;
use crate::program::control::Next;
use crate::state::table::NO_ACTION;

impl Gen<'_, '_> {
    /// Compiles a table's lookup and its actions, with jumps to their successors. A likely action is compared first. `to`
    /// returns the block that follows an action and leads to a node.
    pub(super) fn table(
        &mut self,
        number: u32,
        end: Block,
        likely: Option<u32>,
        to: &mut impl FnMut(&mut Self, Option<u32>, u32) -> Block,
    ) -> Result<()> {
        let c = self.c;
        let table = &c.tables[number as usize];
        let found = self.lookup(number)?;
        let mut after = |g: &mut Self, action: Option<u32>, may_exit: bool| {
            let next = match &table.next {
                Next::HitMiss(h, m) => {
                    let (h, m) = (to(g, action, *h), to(g, action, *m));
                    if may_exit {
                        let choose = g.b.create_block();
                        g.leave_if_exited(end, choose);
                        // Its only predecessor is a later block.
                        if g.enter(choose).is_err() {
                            return Err(Unsupported);
                        }
                    }
                    g.brif(found.hit, h, m);
                    return Ok(());
                }
                next => to(g, action, next.after(true, action)),
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
        if let Some((id, block)) = likely.and_then(|id| actions.get_key_value(&id)) {
            let is_likely = self
                .b
                .ins()
                .icmp_imm(IntCC::Equal, found.action, i64::from(*id));
            let unlikely = self.b.create_block();
            self.b.ins().brif(is_likely, *block, &[], unlikely, &[]);
            self.b.switch_to_block(unlikely);
        }
        switch.emit(&mut self.b, found.action, other);
        for (id, block) in actions {
            self.enter(block)?;
            let ops = &c.actions[id as usize].ops;
            let limbs = c.info.actions[id as usize].params.iter();
            let limbs = limbs.map(|(_, width)| width.div_ceil(64).max(1)).sum();
            let args = if limbs == 0 {
                Args::Known(&[])
            } else {
                Args::At(found.args, limbs)
            };
            self.take_locks(id);
            self.action(ops, args)?;
            after(self, Some(id), may_exit(ops))?;
        }
        self.enter(none)?;
        after(self, None, false)?;
        // An action of the profile that this table does not allow.
        self.enter(other)?;
        self.call(Callout::Chosen, &[found.action]);
        after(self, None, true)
    }
}
