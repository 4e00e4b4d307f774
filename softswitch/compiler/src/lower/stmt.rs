// SPDX-License-Identifier: Apache-2.0
//! Statements.

use super::reach::After;
use super::value::Val;
use super::{Lower, MAX_SIZE, Place, fold};
use crate::ast::{BinOp, Decl, DeclKind, Expr, ExprKind, Stmt, StmtKind, UnOp};
use crate::ir::{Ex, Label, St, StKind, Then};

impl<'a> Lower<'a> {
    pub(super) fn stmts(&mut self, stmts: &'a [Stmt]) {
        for (i, s) in stmts.iter().enumerate() {
            self.stmt(s);
            let rest = &stmts[i + 1..];
            if rest.is_empty() {
                break;
            }
            match self.after(s) {
                After::Runs => {}
                After::NeverRuns => {
                    self.unreached(|d| d.stmts(rest));
                    break;
                }
                After::Hidden => break,
            }
        }
    }

    pub(super) fn stmt(&mut self, s: &'a Stmt) {
        if self.size > MAX_SIZE {
            return;
        }
        let outer = std::mem::replace(&mut self.span, s.span);
        match &s.kind {
            StmtKind::Empty => {}
            StmtKind::Block(b) => self.stmts(&b.stmts),
            StmtKind::Decl(d) => self.declaration(d),
            StmtKind::Assign { lhs, op, rhs } => self.assignment(lhs, *op, rhs),
            StmtKind::Call(e) => {
                self.eval(e);
            }
            StmtKind::If {
                cond,
                then,
                otherwise,
            } => self.if_stmt(cond, then, otherwise.as_deref()),
            StmtKind::Return(value) => {
                if let Some(v) = value {
                    let v = self.eval(v);
                    if let Some(target) = self.returns.last().and_then(|r| r.value.clone()) {
                        self.assign(&target, v);
                    }
                }
                if let Some(label) = self.returns.last().map(|r| r.label) {
                    self.emit(StKind::Leave(label));
                }
            }
            StmtKind::Exit => self.exit(),
            StmtKind::Switch { subject, cases } => self.switch(subject, cases),
            StmtKind::For {
                init,
                cond,
                update,
                body,
            } => self.for_loop(s.span, init, cond, update, body),
            StmtKind::ForIn { var, over, body } => self.for_in(s.span, var, over, body),
            StmtKind::Break => {
                if let Some((label, _)) = self.loops.last() {
                    self.emit(StKind::Leave(*label));
                }
            }
            StmtKind::Continue => {
                if let Some((_, label)) = self.loops.last() {
                    self.emit(StKind::Leave(*label));
                }
            }
        }
        self.span = outer;
    }

    fn declaration(&mut self, d: &'a Decl) {
        match &d.kind {
            DeclKind::Var { ty, init } => {
                let ty = self.type_of(ty.id);
                let name = self.local_name(d);
                let place = self.allocate(&ty, &name);
                match init {
                    Some(i) => {
                        let v = self.eval(i);
                        let v = self.convert(v, &ty);
                        self.assign(&place, v);
                    }
                    None => self.invalidate(&place),
                }
                self.frame.set(d.id, place);
            }
            DeclKind::Const { ty, init } => {
                let v = self.eval(init);
                let ty = self.type_of(ty.id);
                let v = self.convert(v, &ty);
                self.frame.set(d.id, v);
            }
            DeclKind::Instance { .. } => self.instantiate_local(d),
            _ => {}
        }
    }

    /// Name of a variable in storage: the block it is in, and its own.
    pub(super) fn local_name(&self, d: &Decl) -> String {
        if self.frame.prefix.is_empty() {
            d.name.name.to_string()
        } else {
            format!("{}.{}", self.frame.prefix, d.name.name)
        }
    }

    fn assignment(&mut self, lhs: &'a Expr, op: Option<BinOp>, rhs: &'a Expr) {
        if let (ExprKind::PlusSlice(base, lo, width), None) = (&lhs.kind, op) {
            let low = self.scalar(lo);
            if fold::to_u32(&low).is_none() {
                self.assign_plus_slice(base, low, width, rhs);
                return;
            }
        }
        let place = if self.has_effects(rhs) {
            self.eval(lhs)
        } else {
            Val::Unit
        };
        let value = self.eval(rhs);
        let place = if place == Val::Unit {
            self.eval(lhs)
        } else {
            place
        };
        let Some(op) = op else {
            self.assign(&place, value);
            return;
        };
        let old = self.scalar_from(place.clone());
        let mut right = self.scalar_from(value);
        if !matches!(op, BinOp::Shl | BinOp::Shr) {
            right = fold::cast(right, old.ty());
        }
        let result = self.operate(op, old, right, lhs.span.to(rhs.span));
        self.assign(&place, Val::Scalar(result));
    }

    /// `base[lo +: w] = rhs` where `lo` is computed at run time.
    fn assign_plus_slice(&mut self, base: &'a Expr, low: Ex, width: &'a Expr, rhs: &'a Expr) {
        use crate::ir::Scalar;
        use num_traits::ToPrimitive;
        let value = self.scalar(rhs);
        let place = self.eval(base);
        let whole = self.scalar_from(place.clone());
        let Some(w) = self.number(width).and_then(|w| w.to_u32()) else {
            return;
        };
        let ty = Scalar::Bit(whole.ty().width());
        let ones = fold::constant(&super::fold::ones(w), ty);
        let mask = fold::binary(BinOp::Shl, ones, low.clone());
        let kept = fold::binary(
            BinOp::BitAnd,
            fold::cast(whole.clone(), ty),
            fold::unary(UnOp::BitNot, mask),
        );
        let moved = fold::binary(
            BinOp::Shl,
            fold::cast(fold::cast(value, Scalar::Bit(w)), ty),
            low,
        );
        let result = fold::binary(BinOp::BitOr, kept, moved);
        self.assign(&place, Val::Scalar(fold::cast(result, whole.ty())));
    }

    fn if_stmt(&mut self, cond: &'a Expr, then: &'a Stmt, otherwise: Option<&'a Stmt>) {
        let (c, ran) = self.condition(cond);
        let lower = |s: &mut Self, stmt: Option<&'a Stmt>| {
            if let Some(stmt) = stmt {
                s.stmt(stmt);
            }
        };
        match c.as_bool() {
            Some(known) => {
                let (taken, other) = if known {
                    (Some(then), otherwise)
                } else {
                    (otherwise, Some(then))
                };
                self.never_runs(cond, ran, |s| lower(s, other));
                lower(self, taken);
            }
            None => {
                let yes = self.collect(|s| s.stmt(then));
                let no = self.collect(|s| lower(s, otherwise));
                // The target's logs show the text of the condition.
                self.span = cond.span;
                self.branch(c, yes, no);
            }
        }
    }

    /// Emits a branch. If the last statement applies a table only to store the condition, the table's outcome is the
    /// branch.
    pub(super) fn branch(&mut self, cond: Ex, yes: Vec<St>, no: Vec<St>) {
        if let Some(StKind::Apply {
            then: Then::HitMiss(hit, miss),
            ..
        }) = self.out.last_mut().map(|s| &mut s.kind)
            && let Some(on_hit) = stored_condition(hit, &cond)
            && stored_condition(miss, &cond) == Some(!on_hit)
        {
            hit.pop();
            miss.pop();
            let (after_hit, after_miss) = if on_hit { (yes, no) } else { (no, yes) };
            hit.extend(after_hit);
            miss.extend(after_miss);
            return;
        }
        self.emit(StKind::If(cond, yes, no));
    }

    /// Runs what the declarations of a block do when it is applied.
    pub(super) fn start_locals(&mut self, locals: &'a [Decl]) {
        for d in locals {
            let DeclKind::Var { ty, init } = &d.kind else {
                continue;
            };
            let Some(place) = self.frame.find(d.id) else {
                continue;
            };
            self.span = d.span;
            match init {
                Some(i) => {
                    let v = self.eval(i);
                    let ty = self.type_of(ty.id);
                    let v = self.convert(v, &ty);
                    self.assign(&place, v);
                }
                None => self.invalidate(&place),
            }
        }
    }

    pub(super) fn in_action(&self) -> bool {
        self.place == Place::Action
    }
}

/// Returns the value of the condition after the statements, if the last one stores it.
fn stored_condition(stmts: &[St], cond: &Ex) -> Option<bool> {
    if let Ex::Unary(UnOp::Not, inner, _) = cond {
        return stored_condition(stmts, inner).map(|value| !value);
    }
    match &stmts.last()?.kind {
        StKind::Assign(place, value) if place == cond => value.as_bool(),
        _ => None,
    }
}

/// Removes a jump to the end of the list from the list's end, also inside a last `if`.
pub(super) fn drop_tail_leave(stmts: &mut Vec<St>, label: Label) {
    match stmts.last_mut().map(|s| &mut s.kind) {
        Some(StKind::Leave(l)) if *l == label => {
            stmts.pop();
        }
        Some(StKind::If(_, a, b)) => {
            drop_tail_leave(a, label);
            drop_tail_leave(b, label);
        }
        Some(StKind::Apply {
            then: Then::HitMiss(a, b),
            ..
        }) => {
            drop_tail_leave(a, label);
            drop_tail_leave(b, label);
        }
        Some(StKind::Apply {
            then: Then::Switch { cases, default },
            ..
        }) => {
            cases
                .iter_mut()
                .for_each(|(_, c)| drop_tail_leave(c, label));
            drop_tail_leave(default, label);
        }
        _ => {}
    }
}

/// Whether some statement jumps to the label.
pub(super) fn leaves(stmts: &[St], label: Label) -> bool {
    stmts.iter().any(|s| match &s.kind {
        StKind::Leave(l) => *l == label,
        StKind::If(_, a, b) => leaves(a, label) || leaves(b, label),
        StKind::Labelled(_, b) => leaves(b, label),
        StKind::Loop { head, body, .. } => leaves(head, label) || leaves(body, label),
        StKind::Apply {
            then: Then::HitMiss(a, b),
            ..
        } => leaves(a, label) || leaves(b, label),
        StKind::Apply {
            then: Then::Switch { cases, default },
            ..
        } => cases.iter().any(|(_, c)| leaves(c, label)) || leaves(default, label),
        _ => false,
    })
}
