// SPDX-License-Identifier: Apache-2.0
//! Checks statements.

use super::Checker;
use crate::ast::{BinOp, Block, Expr, ExprKind, Stmt, StmtKind, SwitchCase};
use crate::diag::Span;
use crate::types::{Const, Type};

impl<'a> Checker<'a> {
    pub(super) fn block(&mut self, b: &'a Block) {
        self.scoped(|c| c.stmts(&b.stmts));
    }

    pub(super) fn stmts(&mut self, stmts: &'a [Stmt]) {
        for s in stmts {
            self.stmt(s);
        }
    }

    fn stmt(&mut self, s: &'a Stmt) {
        match &s.kind {
            StmtKind::Empty => {}
            StmtKind::Block(b) => self.block(b),
            StmtKind::Decl(d) => self.local(d),
            StmtKind::Assign { lhs, op, rhs } => self.assign(s.span, lhs, *op, rhs),
            StmtKind::Call(e) => {
                self.expr(e, None);
            }
            StmtKind::If {
                cond,
                then,
                otherwise,
            } => {
                self.expr_as(cond, &Type::Bool);
                if let Some(value) = self.const_value(cond) {
                    self.constants.insert(cond.id, value);
                }
                self.branch(then);
                if let Some(o) = otherwise {
                    self.branch(o);
                }
            }
            StmtKind::Return(value) => self.return_stmt(s.span, value.as_ref()),
            StmtKind::Exit => {
                if self.context.in_parser {
                    self.error(s.span, "'exit' cannot be used in a parser");
                }
                if self.context.returns.is_some() {
                    self.error(s.span, "'exit' cannot be used in a function");
                }
            }
            StmtKind::Switch { subject, cases } => {
                if self.context.in_parser {
                    self.diags.error_hint(
                        s.span,
                        "'switch' cannot be used in a parser",
                        "write transition select (...) { ... }",
                    );
                }
                self.switch(subject, cases);
            }
            StmtKind::For {
                init,
                cond,
                update,
                body,
            } => self.scoped(|c| {
                c.stmts(init);
                c.expr_as(cond, &Type::Bool);
                c.stmts(update);
                c.loop_body(body);
            }),
            StmtKind::ForIn { var, over, body } => self.scoped(|c| c.for_in(var, over, body)),
            StmtKind::Break | StmtKind::Continue => {
                if !self.context.in_loop {
                    self.error(s.span, "'break' and 'continue' are allowed only in a loop");
                }
            }
        }
    }

    fn branch(&mut self, s: &'a Stmt) {
        self.scoped(|c| c.stmt(s));
    }

    fn loop_body(&mut self, body: &'a Stmt) {
        let before = std::mem::replace(&mut self.context.in_loop, true);
        self.scoped(|c| c.stmt(body));
        self.context.in_loop = before;
    }

    fn for_in(&mut self, var: &'a crate::ast::Decl, over: &'a Expr, body: &'a Stmt) {
        let crate::ast::DeclKind::Var { ty, .. } = &var.kind else {
            return;
        };
        let declared = self.type_ref(ty);
        let over_ty = self.expr(over, Some(&Type::Set(Box::new(declared.clone()))));
        match self.resolve(&over_ty) {
            Type::Set(t) => {
                if let ExprKind::Range(a, b) = &over.kind {
                    let (ta, tb) = (self.type_of(a.id), self.type_of(b.id));
                    self.expect(a, &ta, &declared);
                    self.expect(b, &tb, &declared);
                } else {
                    self.unify(&t, &declared);
                }
            }
            Type::Stack(t, _) | Type::List(t) => {
                if !self.unify(&t, &declared) {
                    self.error(
                        over.span,
                        format!("expected elements of type {}", self.show(&declared)),
                    );
                }
            }
            Type::Tuple(_) | Type::Unknown => {}
            other => self.error(
                over.span,
                format!("a loop cannot iterate over {}", self.show(&other)),
            ),
        }
        self.set_type(var.id, declared);
        self.declare(&var.name, var.id);
        self.loop_body(body);
    }

    fn assign(&mut self, span: Span, lhs: &'a Expr, op: Option<BinOp>, rhs: &'a Expr) {
        let lt = self.expr(lhs, None);
        if let Err(why) = self.lvalue(lhs) {
            self.error(lhs.span, why);
        }
        let lt = self.resolve(&lt);
        if let Type::Named(id, _) = &lt
            && !matches!(
                self.decl(*id).map(|d| &d.kind),
                Some(
                    crate::ast::DeclKind::Composite { .. }
                        | crate::ast::DeclKind::Enum { .. }
                        | crate::ast::DeclKind::NewType(_)
                )
            )
        {
            self.error(span, format!("{} cannot be assigned", self.show(&lt)));
        }
        match op {
            None => {
                let rt = self.expr(rhs, Some(&lt));
                self.expect(rhs, &rt, &lt);
            }
            Some(BinOp::Shl | BinOp::Shr) => {
                let rt = self.expr(rhs, None);
                let ok = matches!(self.resolve(&rt), Type::Bit(_) | Type::Int | Type::Unknown)
                    && matches!(lt, Type::Bit(_) | Type::SInt(_) | Type::Unknown);
                if !ok {
                    self.error(
                        span,
                        format!("{} cannot be shifted by {}", self.show(&lt), self.show(&rt)),
                    );
                }
            }
            Some(op) => {
                let rt = self.expr(rhs, Some(&lt));
                let ok = match op {
                    BinOp::Div | BinOp::Mod => matches!(lt, Type::Bit(_) | Type::Unknown),
                    BinOp::Concat => false,
                    _ => matches!(lt, Type::Bit(_) | Type::SInt(_) | Type::Unknown),
                };
                if !ok {
                    self.error(
                        span,
                        format!(
                            "operator {}= does not work on {}",
                            super::binary::symbol(op),
                            self.show(&lt)
                        ),
                    );
                }
                self.expect(rhs, &rt, &lt);
            }
        }
    }

    fn return_stmt(&mut self, span: Span, value: Option<&'a Expr>) {
        match (self.context.returns.clone(), value) {
            (Some(Type::Void) | None, None) => {
                if self.context.in_parser {
                    self.error(span, "'return' cannot be used in a parser");
                }
            }
            (Some(Type::Void), Some(v)) => {
                self.expr(v, None);
                self.error(v.span, "the function does not return a value");
            }
            (None, Some(v)) => {
                self.expr(v, None);
                self.error(v.span, "a value can be returned only from a function");
            }
            (Some(ty), Some(v)) => self.expr_as(v, &ty),
            (Some(ty), None) => self.error(
                span,
                format!("a value of type {} must be returned", self.show(&ty)),
            ),
        }
    }

    fn switch(&mut self, subject: &'a Expr, cases: &'a [SwitchCase]) {
        self.context.in_subject = true;
        let ty = self.expr(subject, None);
        self.context.in_subject = false;
        let ty = self.resolve(&ty);
        let mut seen: Vec<String> = Vec::new();
        for (i, case) in cases.iter().enumerate() {
            match &case.label {
                None => {
                    if i + 1 != cases.len() {
                        self.error(case.span, "'default' must be the last case");
                    }
                }
                Some(label) => {
                    let key = self.switch_label(&ty, label);
                    if let Some(key) = key {
                        if seen.contains(&key) {
                            self.error(label.span, format!("duplicate case '{key}'"));
                        }
                        seen.push(key);
                    }
                }
            }
            if let Some(b) = &case.body {
                self.block(b);
            }
        }
        if ty == Type::Int {
            self.diags.error_hint(
                subject.span,
                "the width of the number is unknown",
                "write it, for example 8w1",
            );
        } else if !matches!(
            ty,
            Type::Bit(_) | Type::SInt(_) | Type::ActionRun(_) | Type::Error | Type::Unknown
        ) && !self.is_enum(&ty)
            && self.newtype_base(&ty).is_none()
        {
            self.error(
                subject.span,
                format!("a switch cannot be on {}", self.show(&ty)),
            );
        }
        if self.context.in_action && matches!(ty, Type::ActionRun(_)) {
            self.error(
                subject.span,
                "a table can be applied only in the body of a control",
            );
        }
    }

    /// Checks one label; returns a text that is the same for equal labels.
    fn switch_label(&mut self, subject: &Type, label: &'a Expr) -> Option<String> {
        if let Type::ActionRun(table) = subject {
            let ExprKind::Name { name, .. } = &label.kind else {
                self.error(label.span, "expected an action of the table");
                return None;
            };
            let id = self.lookup(name, false).and_then(|v| v.first().copied());
            let listed = id.is_some_and(|id| self.table_actions(*table).contains(&id));
            if !listed {
                self.error(
                    label.span,
                    format!("'{name}' is not an action of the table"),
                );
                return None;
            }
            if let Some(id) = id {
                self.names.insert(label.id, id);
                self.set_type(label.id, Type::Action(id));
            }
            return Some(name.to_string());
        }
        self.expr_as(label, subject);
        match self.const_value(label) {
            Some(Const::Int(v, _)) => Some(v.to_string()),
            Some(Const::Bool(b)) => Some(b.to_string()),
            _ => match &label.kind {
                ExprKind::Member(base, n) if matches!(self.type_of(base.id), Type::Meta(_)) => {
                    Some(n.name.to_string())
                }
                _ => {
                    if !subject.is_unknown() && !self.type_of(label.id).is_unknown() {
                        self.error(label.span, "a case must be known at compile time");
                    }
                    None
                }
            },
        }
    }
}
