// SPDX-License-Identifier: Apache-2.0
//! The objects visible to the control plane, in P4Info's order.

use super::value::Val;
use super::{Lower, UsedAction};
use crate::ast::DeclKind;
use crate::ir::VisibleAction;

impl<'a> Lower<'a> {
    pub(super) fn collect_visible(&mut self, blocks: &[usize]) {
        for d in &self.t.program.decls {
            if let Some(Val::Object(o)) = self.frame.find(d.id) {
                self.ir.visible_objects.push(o);
            }
        }
        for b in blocks {
            self.global_actions(*b);
            self.visible_block(*b);
        }
    }

    fn add_action(&mut self, u: &UsedAction) {
        let mut known = self.ir.visible_actions.iter_mut();
        if let Some(known) = known.find(|a| a.name == u.name && a.decl.id == u.id) {
            known.in_table |= u.in_table;
            return;
        }
        if let Some(decl) = self.t.defs.get_decl(u.id) {
            self.ir.visible_actions.push(VisibleAction {
                name: u.name.clone(),
                decl,
                in_table: u.in_table,
            });
        }
    }

    /// Returns all instances of controls in a block, the block itself first.
    fn inner_blocks(&self, block: usize, out: &mut Vec<usize>) {
        out.push(block);
        for (outer, inner) in &self.type_applied {
            if *outer == Some(block) {
                self.inner_blocks(*inner, out);
            }
        }
        let DeclKind::Control(c) = &self.blocks[block].decl.kind else {
            return;
        };
        for l in &c.locals {
            if let Some(Val::Block(b)) = self.blocks[block].frame.find(l.id)
                && self.blocks[b].applied
            {
                self.inner_blocks(b, out);
            }
        }
    }

    /// Actions of the top level belong to the pipeline that uses them, before its own; those of tables come first.
    fn global_actions(&mut self, block: usize) {
        let mut inner = Vec::new();
        self.inner_blocks(block, &mut inner);
        let (in_tables, others): (Vec<_>, Vec<_>) = self
            .used_actions
            .clone()
            .into_iter()
            .partition(|u| u.in_table);
        for u in in_tables.iter().chain(&others) {
            if u.block.is_some_and(|b| inner.contains(&b)) && self.is_global(u.id) {
                self.add_action(u);
            }
        }
    }

    fn is_global(&self, id: crate::ast::NodeId) -> bool {
        self.t.program.decls.iter().any(|d| d.id == id)
    }

    fn visible_block(&mut self, block: usize) {
        let locals: &'a [crate::ast::Decl] = match &self.blocks[block].decl.kind {
            DeclKind::Control(c) => &c.locals,
            DeclKind::Parser(p) => &p.locals,
            _ => return,
        };
        for l in locals {
            match &l.kind {
                DeclKind::Action { .. } => {
                    let used = self
                        .used_actions
                        .iter()
                        .find(|u| u.block == Some(block) && u.id == l.id)
                        .cloned();
                    if let Some(u) = used {
                        self.add_action(&u);
                    }
                }
                DeclKind::Table(_) => {
                    if let Some(t) = self.table_ids.get(&(block, l.id)) {
                        let taken = self
                            .ir
                            .visible_tables
                            .iter()
                            .any(|o| self.ir.tables[*o].name == self.ir.tables[*t].name);
                        if taken {
                            let name = &self.ir.tables[*t].name;
                            self.error(
                                l.name.span,
                                format!(
                                    "another table already has the control-plane name '{name}'"
                                ),
                            );
                        }
                        self.ir.visible_tables.push(*t);
                    }
                }
                DeclKind::Instance { .. } | DeclKind::ValueSet { .. } => {
                    match self.blocks[block].frame.find(l.id) {
                        Some(Val::Object(o)) => self.ir.visible_objects.push(o),
                        Some(Val::ValueSet(v)) => self.ir.visible_value_sets.push(v),
                        Some(Val::Block(b)) if self.blocks[b].applied => self.visible_block(b),
                        _ => {}
                    }
                }
                _ => {}
            }
        }
        for (outer, inner) in self.type_applied.clone() {
            if outer == Some(block) {
                self.visible_block(inner);
            }
        }
    }
}
