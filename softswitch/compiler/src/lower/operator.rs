// SPDX-License-Identifier: Apache-2.0
//! Operators, and equality of values of any type.

use num_bigint::BigInt;
use num_traits::Zero;

use super::value::Val;
use super::{Lower, fold};
use crate::ast::{BinOp, Expr};
use crate::check::fold_binary;
use crate::diag::{Span, Warning};
use crate::ir::{Ex, StKind};
use crate::types::{Const, Type};

impl<'a> Lower<'a> {
    pub(super) fn eval_binary(&mut self, op: BinOp, l: &'a Expr, r: &'a Expr) -> Val {
        if matches!(op, BinOp::And | BinOp::Or) && self.has_effects(r) {
            return self.short_circuit(op, l, r);
        }
        let mut values = self.eval_in_order(&[l, r]);
        let (Some(rv), Some(lv)) = (values.pop(), values.pop()) else {
            return Val::Unit;
        };
        match (lv, rv) {
            (Val::Int(a), Val::Int(b)) => match fold_binary(op, &a, &b, &Type::Int) {
                Some(Const::Int(v, _)) => Val::Int(v),
                Some(Const::Bool(b)) => Val::Scalar(Ex::bool(b)),
                _ => {
                    self.error(l.span.to(r.span), "this cannot be computed at compile time");
                    Val::Int(BigInt::zero())
                }
            },
            (Val::Str(a), Val::Str(b)) if op == BinOp::Concat => Val::Str(a + &b),
            (lv @ (Val::Scalar(_) | Val::Int(_)), rv @ (Val::Scalar(_) | Val::Int(_))) => {
                let (mut a, mut b) = (self.scalar_from(lv.clone()), self.scalar_from(rv.clone()));
                let shift = matches!(op, BinOp::Shl | BinOp::Shr);
                // An untyped number takes the type of the other side.
                if matches!(rv, Val::Int(_)) && !shift {
                    b = fold::cast(b, a.ty());
                } else if matches!(lv, Val::Int(_)) && !shift {
                    a = fold::cast(a, b.ty());
                }
                Val::Scalar(self.operate(op, a, b, l.span.to(r.span)))
            }
            (a, b) => {
                let equal = self.equal(&a, &b);
                Val::Scalar(if op == BinOp::Ne {
                    fold::not(equal)
                } else {
                    equal
                })
            }
        }
    }

    /// Applies an operator to values of one type.
    pub(super) fn operate(&mut self, op: BinOp, a: Ex, b: Ex, span: Span) -> Ex {
        let result = fold::binary(op, a, b);
        if let Ex::Binary(BinOp::Div | BinOp::Mod, ..) = result {
            self.diags.warn(
                Warning::Unsupported,
                span,
                "a division at run time: p4c accepts constants and powers of two only",
            );
        }
        result
    }

    /// `l && f(x)`: the right side runs only if it decides.
    fn short_circuit(&mut self, op: BinOp, l: &'a Expr, r: &'a Expr) -> Val {
        let (left, ran) = self.condition(l);
        if let Some(known) = left.as_bool() {
            if known == (op == BinOp::And) {
                return Val::Scalar(self.scalar(r));
            }
            self.never_runs(l, ran, |s| {
                s.eval(r);
            });
            return Val::Scalar(left);
        }
        let mut right = Ex::bool(false);
        let mut more = self.collect(|s| right = s.scalar(r));
        if more.is_empty() {
            return Val::Scalar(fold::binary(op, left, right));
        }
        let result = self.stored(left);
        more.extend(self.collect(|s| s.emit(StKind::Assign(result.clone(), right))));
        let (yes, no) = if op == BinOp::And {
            (more, Vec::new())
        } else {
            (Vec::new(), more)
        };
        self.emit(StKind::If(result.clone(), yes, no));
        Val::Scalar(result)
    }

    pub(super) fn eval_ternary(
        &mut self,
        e: &'a Expr,
        c: &'a Expr,
        a: &'a Expr,
        b: &'a Expr,
    ) -> Val {
        let (cond, ran) = self.condition(c);
        if let Some(known) = cond.as_bool() {
            let (chosen, other) = if known { (a, b) } else { (b, a) };
            self.never_runs(c, ran, |s| {
                s.eval(other);
            });
            return self.eval(chosen);
        }
        let (mut va, mut vb) = (Val::Unit, Val::Unit);
        let mut yes = self.collect(|s| va = s.eval(a));
        let mut no = self.collect(|s| vb = s.eval(b));
        if yes.is_empty()
            && no.is_empty()
            && let (Val::Scalar(x), Val::Scalar(y)) = (&va, &vb)
        {
            return Val::Scalar(fold::cond(cond, x.clone(), y.clone()));
        }
        let ty = self.type_of(e.id);
        let target = self.allocate(&ty, "tmp");
        yes.extend(self.collect(|s| s.assign(&target, va)));
        no.extend(self.collect(|s| s.assign(&target, vb)));
        self.branch(cond, yes, no);
        target
    }

    /// `a == b` for values of any type.
    pub(super) fn equal(&mut self, a: &Val, b: &Val) -> Ex {
        match (a, b) {
            _ if a == b => Ex::bool(true),
            (Val::Scalar(x), Val::Scalar(y)) => {
                fold::binary(BinOp::Eq, x.clone(), fold::cast(y.clone(), x.ty()))
            }
            (Val::Scalar(x), Val::Int(v)) | (Val::Int(v), Val::Scalar(x)) => {
                fold::binary(BinOp::Eq, x.clone(), fold::constant(v, x.ty()))
            }
            (Val::Header(_) | Val::HeaderLit { .. }, _) => {
                let (va, vb) = (self.validity(a), self.validity(b));
                let fields = self.equal_fields(a, b);
                let both_invalid = fold::and(fold::not(va.clone()), fold::not(vb.clone()));
                fold::or(both_invalid, fold::and(fold::and(va, vb), fields))
            }
            (Val::Struct(_) | Val::Tuple(_) | Val::Union(_), _) => self.equal_fields(a, b),
            (Val::Stack(x), Val::Stack(y)) => {
                let mut all = Ex::bool(true);
                for i in 0..x.size {
                    let (p, q) = (
                        self.stack_element(x, &Ex::bit(i, 32)),
                        self.stack_element(y, &Ex::bit(i, 32)),
                    );
                    let same = self.equal(&p, &q);
                    all = fold::and(all, same);
                }
                all
            }
            _ => Ex::bool(true),
        }
    }

    pub(super) fn equal_fields(&mut self, a: &Val, b: &Val) -> Ex {
        let list = |v: &Val| -> Vec<Val> {
            match v {
                Val::Struct(f) | Val::HeaderLit { fields: f, .. } => {
                    f.iter().map(|(_, v)| v.clone()).collect()
                }
                Val::Header(h) => h.fields.iter().map(|(_, v)| v.clone()).collect(),
                Val::Union(u) => u.members.iter().map(|(_, v)| v.clone()).collect(),
                Val::Tuple(items) => items.clone(),
                _ => Vec::new(),
            }
        };
        let mut all = Ex::bool(true);
        for (x, y) in list(a).iter().zip(list(b).iter()) {
            let same = self.equal(x, y);
            all = fold::and(all, same);
        }
        all
    }

    pub(super) fn validity(&self, v: &Val) -> Ex {
        match v {
            Val::Header(h) => Ex::Valid(h.at.clone()),
            Val::HeaderLit { valid, .. } => valid.clone(),
            Val::Union(u) => match &u.name {
                Some(n) => Ex::UnionValid(n.clone()),
                None => u.members.iter().fold(Ex::bool(false), |all, (_, m)| {
                    fold::or(all, self.validity(m))
                }),
            },
            _ => Ex::bool(true),
        }
    }
}
