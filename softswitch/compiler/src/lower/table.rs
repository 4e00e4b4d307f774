// SPDX-License-Identifier: Apache-2.0
//! Tables.

use super::Lower;
use crate::ast::{DeclKind, Expr, ExprKind, NodeId, TableDecl};
use crate::ir::{DefaultEntry, Ex, Key, St, StKind, Table, TableAction, Then};

/// Entries of a table that does not say how many it needs.
const DEFAULT_SIZE: u64 = 1024;
const DEFAULT_SIZE_TOFINO: u64 = 512;

impl<'a> Lower<'a> {
    /// Emits the application of the table that `callee` (`table.apply`) names.
    pub(super) fn apply_table(&mut self, callee: &'a Expr, then: Then) {
        let ExprKind::Member(base, _) = &callee.kind else {
            return;
        };
        let Some(&id) = self.t.names.get(&base.id) else {
            return;
        };
        if self.in_action() {
            self.error(callee.span, "a table cannot be applied in an action");
            return;
        }
        let Some(table) = self.table(id) else { return };
        let flagged = self.ir.tables[table]
            .actions
            .iter()
            .any(|a| self.flagged_actions.contains(&a.action));
        if !flagged {
            self.emit(StKind::Apply { table, then });
            return;
        }
        let flag = self.exit_flag();
        self.emit(StKind::Assign(flag.clone(), Ex::bool(false)));
        let leave = self.collect(|s| s.exit());
        let check = St {
            kind: StKind::If(flag, leave, Vec::new()),
            span: self.span,
        };
        let first = |mut stmts: Vec<St>| {
            stmts.insert(0, check.clone());
            stmts
        };
        let then = match then {
            Then::Nothing => {
                self.emit(StKind::Apply { table, then });
                self.out.push(check);
                return;
            }
            Then::HitMiss(hit, miss) => Then::HitMiss(first(hit), first(miss)),
            Then::Switch { cases, default } => Then::Switch {
                cases: cases.into_iter().map(|(a, s)| (a, first(s))).collect(),
                default: first(default),
            },
        };
        self.emit(StKind::Apply { table, then });
    }

    /// Declared actions of a table, in the order of its action list.
    pub(super) fn listed_actions(&self, table: NodeId) -> Vec<NodeId> {
        let Some(DeclKind::Table(t)) = self.t.defs.get_decl(table).map(|d| &d.kind) else {
            return Vec::new();
        };
        t.actions
            .iter()
            .flatten()
            .filter_map(|a| self.action_id(&a.expr))
            .collect()
    }

    pub(super) fn action_id(&self, e: &Expr) -> Option<NodeId> {
        let name = match &e.kind {
            ExprKind::Call { callee, .. } => callee,
            _ => e,
        };
        self.t.names.get(&name.id).copied()
    }

    /// The table's index; its keys are computed where it is applied, that is: here.
    fn table(&mut self, id: NodeId) -> Option<usize> {
        let d = self.t.defs.get_decl(id)?;
        let DeclKind::Table(t) = &d.kind else {
            return None;
        };
        let block = self.frame.block?;
        if let Some(&index) = self.table_ids.get(&(block, id)) {
            self.recompute_keys(t, index);
            return Some(index);
        }
        let index = self.ir.tables.len();
        self.table_ids.insert((block, id), index);
        let name = self.control_name(&d.name.name, &d.annos);
        self.ir.tables.push(Table {
            name,
            decl: d,
            pipeline: self.pipeline,
            keys: Vec::new(),
            actions: Vec::new(),
            default: None,
            entries: Vec::new(),
            const_entries: t.entries.as_ref().is_some_and(|e| e.is_const),
            size: match self.ir.architecture.is_tofino() {
                true => DEFAULT_SIZE_TOFINO,
                false => DEFAULT_SIZE,
            },
            support_timeout: false,
            implementation: None,
            selector_inputs: Vec::new(),
            counter: None,
            meter: None,
            attached: Vec::new(),
        });
        self.keys(t, index);
        for a in t.actions.iter().flatten() {
            if let Some((action, decl)) = self.table_action(&a.expr) {
                let actions = &self.ir.actions;
                let same = |o: &TableAction| {
                    o.decl != decl && actions[o.action].name == actions[action].name
                };
                if self.ir.tables[index].actions.iter().any(same) {
                    let message = format!(
                        "the table already has another action '{}'",
                        actions[action].name
                    );
                    let hint = "change the @name of one of them";
                    let named = self
                        .t
                        .defs
                        .get_decl(decl)
                        .map_or(a.expr.span, |d| d.name.span);
                    self.diags.error_hint(named, message, hint);
                }
                self.ir.tables[index]
                    .actions
                    .push(TableAction { action, decl });
            }
        }
        self.default_action(t, index);
        self.entries(t, index);
        self.properties(t, index);
        Some(index)
    }

    fn keys(&mut self, t: &'a TableDecl, index: usize) {
        for k in t.keys.iter().flatten() {
            let e = self.scalar(&k.expr);
            let target = self.as_key(e);
            if &*k.match_kind.name == "selector" {
                self.ir.tables[index].selector_inputs.push(target);
                continue;
            }
            let ty = self.type_of(k.expr.id);
            let name = self.key_name(k);
            let match_kind = k.match_kind.name.to_string();
            self.ir.tables[index].keys.push(Key {
                name,
                match_kind,
                target,
                ty,
            });
        }
    }

    /// Keys that are not plain fields live in variables, which must be set before each lookup.
    fn recompute_keys(&mut self, t: &'a TableDecl, index: usize) {
        let mut plain = self.ir.tables[index]
            .keys
            .iter()
            .map(|k| k.target.clone())
            .collect::<Vec<_>>()
            .into_iter();
        let mut selector = self.ir.tables[index].selector_inputs.clone().into_iter();
        for k in t.keys.iter().flatten() {
            let next = if &*k.match_kind.name == "selector" {
                selector.next()
            } else {
                plain.next()
            };
            let Some(target) = next else { return };
            let e = self.scalar(&k.expr);
            let is_variable =
                matches!(&target, Ex::Field { field, .. } if field != "$valid$") && e != target;
            if is_variable {
                self.emit(StKind::Assign(target, e));
            }
        }
    }

    fn default_action(&mut self, t: &'a TableDecl, index: usize) {
        let (position, args, is_const) = match &t.default_action {
            Some(def) => {
                let Some(id) = self.action_id(&def.expr) else {
                    return;
                };
                let Some(position) = self.ir.tables[index]
                    .actions
                    .iter()
                    .position(|a| a.decl == id)
                else {
                    return;
                };
                let args = self.action_args(&def.expr, id);
                (position, args, def.is_const)
            }
            None => {
                let Some(no_action) = self.no_action(index) else {
                    return;
                };
                (no_action, Vec::new(), false)
            }
        };
        self.ir.tables[index].default = Some(DefaultEntry {
            action: position,
            args,
            is_const,
        });
    }

    /// Position of `NoAction` in the table's list, where it is put if it is not there.
    fn no_action(&mut self, index: usize) -> Option<usize> {
        let d =
            self.t.program.decls.iter().find(|d| {
                &*d.name.name == "NoAction" && matches!(d.kind, DeclKind::Action { .. })
            })?;
        if let Some(i) = self.ir.tables[index]
            .actions
            .iter()
            .position(|a| a.decl == d.id)
        {
            return Some(i);
        }
        let root = self.action_frame(d.id);
        self.note_action(d, &root, true);
        let key = (String::from("None/NoAction"), d.id, String::new());
        let action = match self.action_ids.get(&key) {
            Some(i) => *i,
            None => {
                self.ir.actions.push(crate::ir::Action {
                    name: "NoAction".into(),
                    params: Vec::new(),
                    body: Vec::new(),
                    decl: d,
                });
                self.action_ids.insert(key, self.ir.actions.len() - 1);
                self.ir.actions.len() - 1
            }
        };
        self.ir.tables[index]
            .actions
            .push(TableAction { action, decl: d.id });
        Some(self.ir.tables[index].actions.len() - 1)
    }
}
