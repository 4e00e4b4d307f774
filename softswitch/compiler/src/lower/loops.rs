// SPDX-License-Identifier: Apache-2.0
//! Loops: unrolled, as the target has none.

use num_bigint::BigInt;

use super::value::Val;
use super::{Lower, fold};
use crate::ast::{BinOp, Decl, DeclKind, Expr, ExprKind, Stmt, StmtKind};
use crate::diag::Span;
use crate::ir::{Ex, Scalar, StKind};

/// Loops with more rounds than this are refused.
const MAX_ROUNDS: usize = 4096;

impl<'a> Lower<'a> {
    pub(super) fn for_loop(
        &mut self,
        span: Span,
        init: &'a [Stmt],
        cond: &'a Expr,
        update: &'a [Stmt],
        body: &'a Stmt,
    ) {
        // The variables that are constant in each round stand for their value.
        let counters: Vec<crate::ast::NodeId> = init
            .iter()
            .filter_map(|s| match &s.kind {
                StmtKind::Decl(d) if !self.writes(body, d.id) => Some(d.id),
                _ => None,
            })
            .collect();
        for s in init {
            match &s.kind {
                StmtKind::Decl(d) if counters.contains(&d.id) => {
                    let DeclKind::Var { ty, init } = &d.kind else {
                        continue;
                    };
                    let ty = self.type_of(ty.id);
                    let v = match init {
                        Some(i) => self.eval(i),
                        None => self.default_value(&ty),
                    };
                    let v = self.convert(v, &ty);
                    self.frame.set(d.id, v);
                }
                _ => self.stmt(s),
            }
        }
        let (leave, next) = (self.label(), self.label());
        let mut known = true;
        let mut rounds = 0;
        let all = self.collect(|s| {
            loop {
                match s.scalar(cond).as_bool() {
                    Some(true) => {}
                    Some(false) => break,
                    None => {
                        known = false;
                        break;
                    }
                }
                rounds += 1;
                if rounds > MAX_ROUNDS {
                    s.error(
                        span,
                        format!("the loop has more than {MAX_ROUNDS} iterations"),
                    );
                    break;
                }
                s.round(leave, next, body);
                for u in update {
                    s.update_counter(u, &counters);
                }
            }
        });
        if known {
            if rounds == 0 {
                self.unreached(|s| s.stmt(body));
            }
            self.emit_labelled(leave, all);
        } else {
            self.run_time_loop(&counters, init, cond, update, body);
        }
    }

    /// A loop whose number of rounds is not known here: its variables are stored.
    fn run_time_loop(
        &mut self,
        counters: &[crate::ast::NodeId],
        init: &'a [Stmt],
        cond: &'a Expr,
        update: &'a [Stmt],
        body: &'a Stmt,
    ) {
        for s in init {
            if matches!(&s.kind, StmtKind::Decl(d) if counters.contains(&d.id)) {
                self.stmt(s);
            }
        }
        let (leave, next) = (self.label(), self.label());
        let mut test = Ex::bool(false);
        let head = self.collect(|s| test = s.scalar(cond));
        let rounds = self.collect(|s| {
            s.round(leave, next, body);
            for u in update {
                s.stmt(u);
            }
        });
        let whole = self.collect(|s| {
            s.emit(StKind::Loop {
                head,
                cond: test,
                body: rounds,
            })
        });
        self.emit_labelled(leave, whole);
    }

    fn round(&mut self, leave: crate::ir::Label, next: crate::ir::Label, body: &'a Stmt) {
        self.loops.push((leave, next));
        let stmts = self.collect(|s| s.stmt(body));
        self.loops.pop();
        self.emit_labelled(next, stmts);
    }

    fn update_counter(&mut self, u: &'a Stmt, counters: &[crate::ast::NodeId]) {
        if let StmtKind::Assign { lhs, op, rhs } = &u.kind
            && let ExprKind::Name { .. } = &lhs.kind
            && let Some(&id) = self.t.names.get(&lhs.id)
            && counters.contains(&id)
        {
            let mut v = self.eval(rhs);
            if let Some(op) = op {
                let old = self.scalar(lhs);
                let right = self.scalar_from(v);
                let right = if matches!(op, crate::ast::BinOp::Shl | crate::ast::BinOp::Shr) {
                    right
                } else {
                    fold::cast(right, old.ty())
                };
                v = Val::Scalar(self.operate(*op, old, right, lhs.span.to(rhs.span)));
            }
            // The value of the name lives in the frame that declared it.
            let mut frame = Some(self.frame.clone());
            while let Some(f) = frame {
                if f.values.borrow().contains_key(&id) {
                    f.set(id, v);
                    return;
                }
                frame = f.parent.clone();
            }
            return;
        }
        self.stmt(u);
    }

    pub(super) fn for_in(&mut self, span: Span, var: &'a Decl, over: &'a Expr, body: &'a Stmt) {
        let DeclKind::Var { ty, .. } = &var.kind else {
            return;
        };
        let ty = self.type_of(ty.id);
        let values: Vec<Val> = match &over.kind {
            ExprKind::Range(a, b) => {
                let scalar = self.scalar_of(&ty).unwrap_or(Scalar::Bit(32));
                let bounds = [a, b].map(|e| {
                    let v = self.eval(e);
                    self.convert(v, &ty)
                });
                let [Val::Scalar(Ex::Const(a, _)), Val::Scalar(Ex::Const(b, _))] = &bounds else {
                    self.run_time_range(var, &ty, bounds, body);
                    return;
                };
                let (mut i, b) = (a.clone(), b.clone());
                let mut list = Vec::new();
                while i <= b {
                    if list.len() >= MAX_ROUNDS {
                        self.error(
                            span,
                            format!("the loop has more than {MAX_ROUNDS} iterations"),
                        );
                        return;
                    }
                    list.push(Val::Scalar(fold::constant(&i, scalar)));
                    i += BigInt::from(1);
                }
                list
            }
            _ => match self.eval(over) {
                Val::Tuple(items) => items,
                Val::Stack(s) => (0..s.size)
                    .map(|i| self.stack_element(&s, &Ex::bit(i, 32)))
                    .collect(),
                _ => {
                    self.error(over.span, "a loop cannot iterate over this");
                    return;
                }
            },
        };
        if values.is_empty() {
            self.unreached(|s| {
                let place = s.loop_variable(var, &ty);
                s.frame.set(var.id, place);
                s.stmt(body);
            });
            return;
        }
        let by_value = !self.writes(body, var.id) && values.iter().all(Val::is_const);
        let place = if by_value {
            Val::Unit
        } else {
            self.loop_variable(var, &ty)
        };
        let (leave, next) = (self.label(), self.label());
        let all = self.collect(|s| {
            for v in values {
                let v = s.convert(v, &ty);
                if by_value {
                    s.frame.set(var.id, v);
                } else {
                    s.assign(&place, v);
                    s.frame.set(var.id, place.clone());
                }
                s.round(leave, next, body);
                if matches!(
                    s.out.last().map(|x| &x.kind),
                    Some(StKind::Leave(_) | StKind::Exit)
                ) {
                    break;
                }
            }
        });
        self.emit_labelled(leave, all);
    }

    /// `for (v in first..last)` with bounds that are only known at run time. The bounds are those
    /// before the loop, and the body may write the variable without changing the rounds.
    fn run_time_range(
        &mut self,
        var: &'a Decl,
        ty: &crate::types::Type,
        bounds: [Val; 2],
        body: &'a Stmt,
    ) {
        let [first, last] = bounds.map(|v| {
            let e = self.scalar_from(v);
            self.stored(e)
        });
        let place = self.loop_variable(var, ty);
        self.frame.set(var.id, place.clone());
        let scalar = first.ty();
        // The counter stops at the last value, which may be the largest of its type.
        let going = self.temp(Scalar::Bool);
        let start = fold::binary(BinOp::Le, first.clone(), last.clone());
        self.emit(StKind::Assign(going.clone(), start));
        let (leave, next) = (self.label(), self.label());
        let rounds = self.collect(|s| {
            s.assign(&place, Val::Scalar(first.clone()));
            s.round(leave, next, body);
            let more = fold::binary(BinOp::Lt, first.clone(), last);
            s.emit(StKind::Assign(going.clone(), more));
            let one = fold::constant(&1.into(), scalar);
            let step = fold::binary(BinOp::Add, first.clone(), one);
            s.emit(StKind::Assign(first, step));
        });
        let whole = self.collect(|s| {
            s.emit(StKind::Loop {
                head: Vec::new(),
                cond: going,
                body: rounds,
            })
        });
        self.emit_labelled(leave, whole);
    }

    fn loop_variable(&mut self, var: &'a Decl, ty: &crate::types::Type) -> Val {
        let name = self.local_name(var);
        self.allocate(ty, &name)
    }

    /// Returns true if the statement may write the variable.
    fn writes(&self, s: &Stmt, id: crate::ast::NodeId) -> bool {
        let named = |e: &Expr| root_name(e).and_then(|n| self.t.names.get(&n)) == Some(&id);
        match &s.kind {
            StmtKind::Block(b) => b.stmts.iter().any(|s| self.writes(s, id)),
            StmtKind::Assign { lhs, .. } => named(lhs),
            StmtKind::Call(e) => match &e.kind {
                ExprKind::Call { args, .. } => {
                    self.t.calls.contains_key(&e.id)
                        && args.iter().any(|a| named(&a.expr) && self.is_output(e, a))
                }
                _ => false,
            },
            StmtKind::If {
                then, otherwise, ..
            } => self.writes(then, id) || otherwise.as_ref().is_some_and(|o| self.writes(o, id)),
            StmtKind::Switch { cases, .. } => cases
                .iter()
                .filter_map(|c| c.body.as_ref())
                .any(|b| b.stmts.iter().any(|s| self.writes(s, id))),
            StmtKind::For {
                init, update, body, ..
            } => init.iter().chain(update).any(|s| self.writes(s, id)) || self.writes(body, id),
            StmtKind::ForIn { body, .. } => self.writes(body, id),
            _ => false,
        }
    }

    /// Returns true if the argument is bound to an out or inout parameter.
    fn is_output(&self, call: &Expr, arg: &crate::ast::Arg) -> bool {
        use crate::ast::Direction;
        use crate::types::{Callee, Def};
        let ExprKind::Call { args, .. } = &call.kind else {
            return false;
        };
        let Some(info) = self.t.calls.get(&call.id) else {
            return false;
        };
        let params: &[crate::ast::Param] = match &info.callee {
            Callee::Function(id) | Callee::Action(id) | Callee::Apply(id) => {
                match self.t.defs.get_decl(*id).map(|d| &d.kind) {
                    Some(DeclKind::Function { sig, .. }) => &sig.params,
                    Some(DeclKind::Action { params, .. }) => params,
                    Some(DeclKind::Control(c)) => &c.params,
                    _ => return true,
                }
            }
            Callee::Method(id) => match self.t.defs.get(*id) {
                Some(Def::Method(_, m)) => &m.sig.params,
                _ => return true,
            },
            _ => return false,
        };
        info.args.iter().zip(params).any(|(k, p)| {
            k.is_some_and(|k| std::ptr::eq(&args[k], arg))
                && matches!(p.dir, Direction::Out | Direction::InOut)
        })
    }
}

fn root_name(e: &Expr) -> Option<crate::ast::NodeId> {
    match &e.kind {
        ExprKind::Name { .. } => Some(e.id),
        ExprKind::Member(b, _)
        | ExprKind::Index(b, _)
        | ExprKind::Slice(b, ..)
        | ExprKind::PlusSlice(b, ..) => root_name(b),
        _ => None,
    }
}
