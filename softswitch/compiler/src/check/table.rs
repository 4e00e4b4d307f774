// SPDX-License-Identifier: Apache-2.0
//! Checks tables.

use super::Checker;
use crate::ast::{ActionRef, Decl, DeclKind, Direction, Expr, ExprKind, NodeId, TableDecl};
use crate::diag::Warning;
use crate::types::{Const, Type};

impl<'a> Checker<'a> {
    /// Returns the actions that a table lists, in order.
    pub(super) fn table_actions(&self, table: NodeId) -> Vec<NodeId> {
        let Some(DeclKind::Table(t)) = self.decl(table).map(|d| &d.kind) else {
            return Vec::new();
        };
        t.actions
            .iter()
            .flatten()
            .filter_map(|a| self.action_id(&a.expr))
            .collect()
    }

    /// Returns the action that a (checked) action reference or call names.
    fn action_id(&self, e: &Expr) -> Option<NodeId> {
        match &e.kind {
            ExprKind::Name { .. } => self.names.get(&e.id).copied(),
            ExprKind::Call { callee, .. } => self.names.get(&callee.id).copied(),
            _ => None,
        }
    }

    pub(super) fn table(&mut self, d: &'a Decl, t: &'a TableDecl) {
        let before = std::mem::replace(&mut self.context.in_table, true);
        let mut key_types = Vec::new();
        for k in t.keys.iter().flatten() {
            self.annotations(&k.annos);
            self.context.in_table = false;
            let ty = self.expr(&k.expr, None);
            self.context.in_table = true;
            let ty = self.resolve(&ty);
            if self.const_value(&k.expr).is_some() {
                self.diags
                    .warn(Warning::Mismatch, k.expr.span, "constant key");
            }
            let ok = matches!(
                ty,
                Type::Bit(_)
                    | Type::SInt(_)
                    | Type::Bool
                    | Type::Error
                    | Type::Varbit(_)
                    | Type::Unknown
                    | Type::Var(_)
                    | Type::Open(_)
            ) || self.is_enum(&ty)
                || self.newtype_base(&ty).is_some();
            if !ok {
                self.error(
                    k.expr.span,
                    format!("{} cannot be a table key", self.show(&ty)),
                );
            }
            if !names_itself(&k.expr) && !k.annos.iter().any(|a| &*a.name.name == "name") {
                self.diags.error_hint(
                    k.expr.span,
                    "this key needs a name for the control plane",
                    "add a name: ... : exact @name(\"...\");",
                );
            }
            if !self.match_kinds.contains(&k.match_kind.name) {
                let known: Vec<&str> = self.match_kinds.iter().map(|n| &**n).collect();
                self.diags.error_hint(
                    k.match_kind.span,
                    format!("unknown match kind '{}'", k.match_kind.name),
                    format!("known: {}", known.join(", ")),
                );
            }
            key_types.push(ty);
        }
        match &t.actions {
            None => self.diags.error_hint(
                d.name.span,
                format!("table '{}' has no actions", d.name.name),
                "add actions = { ... }",
            ),
            Some(list) => list.iter().for_each(|a| self.table_action(a)),
        }
        self.duplicate_actions(t);
        self.no_action_needed(t);
        if let Some(def) = &t.default_action {
            if let Some(first) = t.actions.iter().flatten().next()
                && first.expr.span.file == def.expr.span.file
                && first.expr.span.lo > def.expr.span.lo
            {
                self.error(
                    def.expr.span,
                    "the default action must follow the list of actions",
                );
            }
            self.action_use(d.id, &def.expr, "default action");
            self.not_annotated(t, &def.expr, "tableonly");
        }
        if let Some(entries) = &t.entries {
            if t.keys.as_ref().is_none_or(Vec::is_empty) && !entries.list.is_empty() {
                self.error(
                    d.name.span,
                    format!(
                        "table '{}' has no key, so it cannot have entries",
                        d.name.name
                    ),
                );
            }
            if t.keys.iter().flatten().next().is_some_and(|k| {
                k.expr.span.lo > entries.span.lo && k.expr.span.file == entries.span.file
            }) {
                self.error(entries.span, "the entries must follow the key");
            }
            self.priorities(t, entries);
            for e in &entries.list {
                self.keyset(&e.keyset, &key_types, None);
                self.action_use(d.id, &e.action, "entry's action");
                self.not_annotated(t, &e.action, "defaultonly");
                if let Some(p) = &e.priority {
                    self.expr(p, None);
                    if !matches!(self.const_value(p), Some(Const::Int(..))) {
                        self.error(
                            p.span,
                            "the priority must be a number known at compile time",
                        );
                    }
                }
            }
        }
        for (i, p) in t.properties.iter().enumerate() {
            self.annotations(&p.annos);
            if t.properties[..i].iter().any(|q| q.name.name == p.name.name) {
                self.error(
                    p.name.span,
                    format!("duplicate table property '{}'", p.name.name),
                );
            }
            let ty = self.expr(&p.value, None);
            if &*p.name.name == "size"
                && !matches!(self.resolve(&ty), Type::Int | Type::Bit(_) | Type::Unknown)
            {
                self.error(p.value.span, "the size of a table must be a number");
            }
        }
        self.context.in_table = before;
    }

    /// Checks that the action is not restricted in the action list.
    fn not_annotated(&self, t: &TableDecl, e: &Expr, annotation: &str) {
        let id = self.action_id(e);
        let listed = t
            .actions
            .iter()
            .flatten()
            .find(|a| id.is_some() && self.action_id(&a.expr) == id);
        if listed.is_some_and(|a| a.annos.iter().any(|x| &*x.name.name == annotation)) {
            self.error(
                e.span,
                format!("the action is marked @{annotation} in the action list"),
            );
        }
    }

    /// Checks that the first `n` arguments equal those of the action list.
    fn bound_arguments_agree(&mut self, table: NodeId, action: NodeId, e: &Expr, n: usize) {
        let Some(DeclKind::Table(t)) = self.decl(table).map(|d| &d.kind) else {
            return;
        };
        let listed = t
            .actions
            .iter()
            .flatten()
            .find(|a| self.action_id(&a.expr) == Some(action));
        let (Some(ExprKind::Call { args: want, .. }), ExprKind::Call { args: have, .. }) =
            (listed.map(|a| &a.expr.kind), &e.kind)
        else {
            return;
        };
        for (w, h) in want.iter().zip(have).take(n) {
            if !same_expression(&w.expr, &h.expr) {
                self.error(
                    h.expr.span,
                    "the argument differs from the one in the action list",
                );
            }
        }
    }

    /// Sets `NoAction` as the default action of a table without one.
    fn no_action_needed(&mut self, t: &TableDecl) {
        if t.default_action.is_some() {
            return;
        }
        let Some(id) = self
            .lookup("NoAction", true)
            .and_then(|ids| ids.first().copied())
        else {
            return;
        };
        let Some(d) = self.decl(id) else { return };
        if !matches!(&d.kind, DeclKind::Action { params, .. } if params.is_empty()) {
            self.diags.error_hint(
                d.name.span,
                "'NoAction' must be an action without parameters, because it is the default action of tables",
                "include core.p4, which declares it",
            );
        }
    }

    fn duplicate_actions(&mut self, t: &'a TableDecl) {
        let list: Vec<&ActionRef> = t.actions.iter().flatten().collect();
        for (i, a) in list.iter().enumerate() {
            let id = self.action_id(&a.expr);
            if id.is_some() && list[..i].iter().any(|b| self.action_id(&b.expr) == id) {
                self.error(a.expr.span, "duplicate action");
            }
        }
    }

    fn table_action(&mut self, a: &'a ActionRef) {
        self.annotations(&a.annos);
        let ty = self.expr(&a.expr, None);
        let Type::Action(id) = ty else {
            if !ty.is_unknown() {
                self.error(a.expr.span, "expected an action");
            }
            return;
        };
        let Some(DeclKind::Action { params, .. }) = self.decl(id).map(|d| &d.kind) else {
            return;
        };
        let given = self
            .calls
            .get(&a.expr.id)
            .map(|c| c.args.clone())
            .unwrap_or_default();
        for (i, p) in params.iter().enumerate() {
            let has = given.get(i).copied().flatten().is_some();
            if p.dir != Direction::None && !has {
                self.diags.error_hint(
                    a.expr.span,
                    format!("parameter '{}' with a direction must be bound in the action list", p.name.name),
                    "write the argument here, or remove the direction so that the control plane sets it",
                );
            }
            if p.dir == Direction::None && has {
                self.error(
                    a.expr.span,
                    format!(
                        "the control plane sets parameter '{}', so it cannot be bound here",
                        p.name.name
                    ),
                );
            }
        }
    }

    /// Checks a default action or an entry's action: it must be listed and have all arguments.
    fn action_use(&mut self, table: NodeId, e: &'a Expr, what: &str) {
        let ty = self.expr(e, None);
        let Type::Action(id) = ty else {
            if !ty.is_unknown() {
                self.error(e.span, format!("the {what} must be an action"));
            }
            return;
        };
        let Some(d) = self.decl(id) else { return };
        if !self.table_actions(table).contains(&id) {
            self.diags.error_hint(
                e.span,
                format!("'{}' is not in the table's action list", d.name.name),
                "add it to actions = { ... }",
            );
        }
        let DeclKind::Action { params, .. } = &d.kind else {
            return;
        };
        let given = self
            .calls
            .get(&e.id)
            .map(|c| c.args.clone())
            .unwrap_or_default();
        let args = match &e.kind {
            ExprKind::Call { args, .. } => args.len(),
            _ => 0,
        };
        let control_plane = params.iter().filter(|p| p.dir == Direction::None).count();
        let first_plane = params.len() - control_plane;
        if args == control_plane && args != params.len() {
            self.diags.error_hint(
                e.span,
                "arguments bound in the action list must be repeated here",
                "write all arguments of the action",
            );
            return;
        }
        self.bound_arguments_agree(table, id, e, first_plane);
        let missing: Vec<&str> = params
            .iter()
            .enumerate()
            // Default values apply only to calls: the control plane must set all of its arguments.
            .filter(|(i, p)| {
                given.get(*i).copied().flatten().is_none()
                    && (p.default.is_none() || p.dir == Direction::None)
            })
            .map(|(_, p)| &*p.name.name)
            .collect();
        if !missing.is_empty() {
            self.error(
                e.span,
                format!("missing argument for parameter {}", missing.join(", ")),
            );
        }
    }
}

/// Returns true if two expressions have the same text.
fn same_expression(a: &Expr, b: &Expr) -> bool {
    match (&a.kind, &b.kind) {
        (ExprKind::Name { name: x, .. }, ExprKind::Name { name: y, .. }) => x == y,
        (ExprKind::Member(x, m), ExprKind::Member(y, n)) => {
            m.name == n.name && same_expression(x, y)
        }
        (ExprKind::Index(x, i), ExprKind::Index(y, j)) => {
            same_expression(x, y) && same_expression(i, j)
        }
        (ExprKind::Slice(x, i, j), ExprKind::Slice(y, k, l)) => {
            same_expression(x, y) && same_expression(i, k) && same_expression(j, l)
        }
        (ExprKind::Int { value: x, .. }, ExprKind::Int { value: y, .. }) => x == y,
        (ExprKind::Bool(x), ExprKind::Bool(y)) => x == y,
        (ExprKind::Cast(_, x), ExprKind::Cast(_, y)) => same_expression(x, y),
        (ExprKind::Unary(o, x), ExprKind::Unary(p, y)) => o == p && same_expression(x, y),
        (ExprKind::Binary(o, x, i), ExprKind::Binary(p, y, j)) => {
            o == p && same_expression(x, y) && same_expression(i, j)
        }
        _ => false,
    }
}

/// Returns true if the expression implies the control plane's name for the key.
fn names_itself(e: &Expr) -> bool {
    match &e.kind {
        ExprKind::Name { .. } | ExprKind::Int { .. } | ExprKind::Bool(_) => true,
        ExprKind::Member(b, _) => names_itself(b),
        ExprKind::Index(b, i) => names_itself(b) && names_itself(i),
        ExprKind::Slice(b, ..) => names_itself(b),
        ExprKind::Binary(crate::ast::BinOp::BitAnd, a, b) => names_itself(a) && names_itself(b),
        ExprKind::Call { callee, .. } => match &callee.kind {
            ExprKind::Member(b, n) => &*n.name == "isValid" && names_itself(b),
            _ => false,
        },
        _ => false,
    }
}
