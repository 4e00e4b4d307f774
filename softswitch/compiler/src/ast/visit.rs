// SPDX-License-Identifier: Apache-2.0
//! Traversal of all expressions.

use super::{DeclKind, Expr, ExprKind, Stmt, StmtKind};

/// Calls `f` on all expressions in the statements, outermost first.
pub fn visit_exprs<'a>(stmts: &'a [Stmt], f: &mut dyn FnMut(&'a Expr)) {
    for s in stmts {
        match &s.kind {
            StmtKind::Block(b) => visit_exprs(&b.stmts, f),
            StmtKind::Decl(d) => {
                if let DeclKind::Var { init: Some(e), .. } | DeclKind::Const { init: e, .. } =
                    &d.kind
                {
                    e.visit(f);
                }
            }
            StmtKind::Assign { lhs, rhs, .. } => {
                lhs.visit(f);
                rhs.visit(f);
            }
            StmtKind::Call(e) => e.visit(f),
            StmtKind::If {
                cond,
                then,
                otherwise,
            } => {
                cond.visit(f);
                visit_exprs(std::slice::from_ref(then), f);
                if let Some(o) = otherwise {
                    visit_exprs(std::slice::from_ref(o), f);
                }
            }
            StmtKind::Return(Some(e)) => e.visit(f),
            StmtKind::Switch { subject, cases } => {
                subject.visit(f);
                for c in cases {
                    if let Some(l) = &c.label {
                        l.visit(f);
                    }
                    if let Some(b) = &c.body {
                        visit_exprs(&b.stmts, f);
                    }
                }
            }
            StmtKind::For {
                init,
                cond,
                update,
                body,
            } => {
                visit_exprs(init, f);
                cond.visit(f);
                visit_exprs(update, f);
                visit_exprs(std::slice::from_ref(body), f);
            }
            StmtKind::ForIn { over, body, .. } => {
                over.visit(f);
                visit_exprs(std::slice::from_ref(body), f);
            }
            _ => {}
        }
    }
}

impl Expr {
    /// Calls `f` on this expression and all inside it.
    pub fn visit<'a>(&'a self, f: &mut dyn FnMut(&'a Expr)) {
        f(self);
        match &self.kind {
            ExprKind::Member(a, _) | ExprKind::Unary(_, a) | ExprKind::Cast(_, a) => a.visit(f),
            ExprKind::Index(a, b)
            | ExprKind::Binary(_, a, b)
            | ExprKind::Mask(a, b)
            | ExprKind::Range(a, b) => {
                a.visit(f);
                b.visit(f);
            }
            ExprKind::Slice(a, b, c)
            | ExprKind::PlusSlice(a, b, c)
            | ExprKind::Ternary(a, b, c) => {
                a.visit(f);
                b.visit(f);
                c.visit(f);
            }
            ExprKind::Call { callee, args, .. } => {
                callee.visit(f);
                args.iter().for_each(|a| a.expr.visit(f));
            }
            ExprKind::List { items, .. } => items.iter().for_each(|i| i.visit(f)),
            ExprKind::Record { fields, .. } => fields.iter().for_each(|(_, x)| x.visit(f)),
            _ => {}
        }
    }
}
