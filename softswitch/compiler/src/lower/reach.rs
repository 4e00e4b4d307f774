// SPDX-License-Identifier: Apache-2.0
//! Code that never runs.
//!
//! The control plane sees the tables and actions in some of it. p4c removes unreachable code in two steps: before and after
//! it writes P4Info. The first step precedes the unrolling of loops, and knows of calls only what constant arguments tell.
//! The rules here are those of the first step, so that both compilers write the same P4Info.

use super::Lower;
use super::value::Val;
use crate::ast::{BinOp, DeclKind, Direction, Expr, ExprKind, Stmt, StmtKind, UnOp};
use crate::ir::{Ex, St, StKind, Then};
use crate::types::Def;

/// The code after a statement.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    Runs,
    /// It never runs, but the control plane sees it.
    NeverRuns,
    /// It never runs, and the control plane does not see it.
    Hidden,
}

impl<'a> Lower<'a> {
    /// Returns the value of a scalar expression, and whether its evaluation runs statements.
    pub(super) fn condition(&mut self, e: &'a Expr) -> (Ex, bool) {
        let before = self.out.len();
        let value = self.scalar(e);
        (value, self.out.len() > before)
    }

    /// Lowers code that never runs, for the control plane.
    pub(super) fn unreached(&mut self, f: impl FnOnce(&mut Self)) {
        self.collect(f);
    }

    /// Lowers what `cond`, known at compile time, keeps from running, if the control plane sees it. `ran`: the evaluation
    /// of `cond` runs statements.
    pub(super) fn never_runs(&mut self, cond: &'a Expr, ran: bool, f: impl FnOnce(&mut Self)) {
        if ran || self.is_bound_here(cond) && self.folded(cond).is_none() {
            self.unreached(f);
        }
    }

    /// Returns true if `e` depends on a parameter or a variable of an unrolled loop, whose values are of this call or
    /// iteration only.
    pub(super) fn is_bound_here(&self, e: &Expr) -> bool {
        self.names_any(e, |def, value| match def {
            Def::Param(p) => matches!(p.dir, Direction::None | Direction::In),
            _ => is_counter(def, value),
        })
    }

    /// Returns the value of a condition that constants alone decide, from left to right. Parameters count as constants if
    /// they are bound to one, variables of loops do not.
    fn folded(&mut self, cond: &'a Expr) -> Option<bool> {
        match &cond.kind {
            ExprKind::Unary(UnOp::Not, x) => self.folded(x).map(|value| !value),
            ExprKind::Binary(op @ (BinOp::And | BinOp::Or), l, r) => {
                let left = self.folded(l)?;
                if left == (*op == BinOp::And) {
                    self.folded(r)
                } else {
                    Some(left)
                }
            }
            ExprKind::Ternary(c, a, b) => {
                let chosen = if self.folded(c)? { a } else { b };
                self.folded(chosen)
            }
            _ if self.is_fixed(cond) => self.scalar(cond).as_bool(),
            _ => None,
        }
    }

    /// Returns true if the expression consists of constants.
    fn is_fixed(&self, e: &Expr) -> bool {
        let varies = |def: &Def, value: Option<&Val>| match def {
            Def::Param(_) => value.is_none_or(|v| !v.is_const()),
            Def::Decl(d) => matches!(d.kind, DeclKind::Var { .. }),
            _ => false,
        };
        !self.has_effects(e) && !self.names_any(e, varies)
    }

    /// Returns true if a name in `e` denotes a definition, with its value if it has one, that satisfies `test`.
    fn names_any(&self, e: &Expr, test: impl Fn(&Def, Option<&Val>) -> bool) -> bool {
        let mut any = false;
        e.visit(&mut |x| {
            any |= self.t.names.get(&x.id).is_some_and(|id| {
                let def = self.t.defs.get(*id);
                def.is_some_and(|def| test(&def, self.frame.find(*id).as_ref()))
            });
        });
        any
    }

    /// Returns what happens to the code after the statement, which was lowered last. p4c removes it only in controls that
    /// return, and only if it sees the end before it inlines calls.
    pub(super) fn after(&mut self, s: &'a Stmt) -> After {
        if goes_on(&self.out) {
            return After::Runs;
        }
        match self.returns.last().map(|r| r.body) {
            Some(body) if self.ends(s) && self.has_return(&body.stmts) => After::Hidden,
            _ => After::NeverRuns,
        }
    }

    /// Returns true if the statement itself ends all paths, whatever the calls in it do. It was lowered last.
    fn ends(&mut self, s: &'a Stmt) -> bool {
        match &s.kind {
            StmtKind::Return(_) | StmtKind::Exit | StmtKind::Break | StmtKind::Continue => true,
            StmtKind::Block(b) => b.stmts.iter().any(|s| self.ends(s)),
            StmtKind::If {
                cond,
                then,
                otherwise,
            } => {
                let then = self.ends(then);
                let otherwise = otherwise.as_deref().is_some_and(|s| self.ends(s));
                match self.folded(cond) {
                    Some(true) => then,
                    Some(false) => otherwise,
                    None => then && otherwise || (then || otherwise) && !branches(&self.out),
                }
            }
            StmtKind::Switch { subject, .. } => self.is_fixed(subject),
            _ => false,
        }
    }

    /// Returns true if a `return` remains after the removal of the branches that constants rule out.
    fn has_return(&mut self, stmts: &'a [Stmt]) -> bool {
        stmts.iter().any(|s| match &s.kind {
            StmtKind::Return(_) => true,
            StmtKind::Block(b) => self.has_return(&b.stmts),
            StmtKind::If {
                cond,
                then,
                otherwise,
            } => {
                let value = self.folded(cond);
                let branches = [(true, Some(then)), (false, otherwise.as_ref())];
                branches.into_iter().any(|(taken_if, branch)| {
                    value != Some(!taken_if)
                        && branch.is_some_and(|s| self.has_return(std::slice::from_ref(s)))
                })
            }
            StmtKind::Switch { cases, .. } => {
                let mut bodies = cases.iter().filter_map(|c| c.body.as_ref());
                bodies.any(|b| self.has_return(&b.stmts))
            }
            StmtKind::For { body, .. } | StmtKind::ForIn { body, .. } => {
                self.has_return(std::slice::from_ref(body))
            }
            _ => false,
        })
    }
}

/// Returns true for a variable that a loop gives a constant in each iteration.
fn is_counter(def: &Def, value: Option<&Val>) -> bool {
    matches!(def, Def::Decl(d) if matches!(d.kind, DeclKind::Var { .. }))
        && value.is_some_and(Val::is_const)
}

/// Returns true if a path through the statements leads to what follows them.
fn goes_on(stmts: &[St]) -> bool {
    match stmts.last().map(|s| &s.kind) {
        Some(StKind::Exit | StKind::Leave(_)) => false,
        Some(
            StKind::If(_, a, b)
            | StKind::Apply {
                then: Then::HitMiss(a, b),
                ..
            },
        ) => goes_on(a) || goes_on(b),
        _ => true,
    }
}

/// Returns true if the last statement branches.
fn branches(stmts: &[St]) -> bool {
    matches!(
        stmts.last().map(|s| &s.kind),
        Some(StKind::If(..) | StKind::Apply { .. })
    )
}
