// SPDX-License-Identifier: Apache-2.0
//! Expressions.

use num_bigint::BigInt;
use num_traits::{ToPrimitive, Zero};

use super::value::Val;
use super::{Lower, fold};
use crate::ast::{BinOp, Expr, ExprKind, UnOp};
use crate::check::wrap;
use crate::ir::{Ex, Scalar};
use crate::types::{Callee, Type};

impl<'a> Lower<'a> {
    /// The value of `e`, converted as the checker decided. Calls inside emit statements.
    pub(super) fn eval(&mut self, e: &'a Expr) -> Val {
        let v = self.eval_raw(e);
        match self.t.coercions.get(&e.id) {
            Some(t) => {
                let t = self.subst(t);
                self.convert(v, &t)
            }
            None => v,
        }
    }

    /// The value of a scalar expression.
    pub(super) fn scalar(&mut self, e: &'a Expr) -> Ex {
        let v = self.eval(e);
        self.scalar_from(v)
    }

    pub(super) fn scalar_from(&mut self, v: Val) -> Ex {
        match v {
            Val::Scalar(e) => e,
            Val::Int(v) => {
                let bits = (v.bits() as u32).max(32);
                if v.sign() == num_bigint::Sign::Minus {
                    Ex::Const(v, Scalar::Int(bits + 1))
                } else {
                    Ex::Const(v, Scalar::Bit(bits))
                }
            }
            // A struct with one field stands for that field.
            Val::Struct(mut f) if f.len() == 1 => {
                let (_, v) = f.remove(0);
                self.scalar_from(v)
            }
            Val::Tuple(mut f) if f.len() == 1 => {
                let v = f.remove(0);
                self.scalar_from(v)
            }
            _ => {
                if !self.diags.has_errors() {
                    self.diags
                        .error(self.span, "expected a value of a single field");
                }
                Ex::bit(0, 1)
            }
        }
    }

    /// Converts a value to a type, as implicit and explicit casts do.
    pub(super) fn convert(&mut self, v: Val, ty: &Type) -> Val {
        let scalar = self.scalar_of(ty);
        match (v, scalar) {
            (Val::Int(n), _) if *ty == Type::Int => Val::Int(n),
            (Val::Int(n), Some(Scalar::Bool)) => Val::Scalar(Ex::bool(!n.is_zero())),
            (Val::Int(n), Some(s)) => Val::Scalar(fold::constant(&n, s)),
            (Val::Scalar(e), Some(s)) if *ty != Type::Int => Val::Scalar(fold::cast(e, s)),
            (v @ (Val::Tuple(_) | Val::Struct(_) | Val::HeaderLit { .. }), _) => {
                self.convert_fields(v, ty)
            }
            (v, _) => v,
        }
    }

    /// Gives a list or record the fields of the struct or header type `ty`.
    fn convert_fields(&mut self, v: Val, ty: &Type) -> Val {
        if let (Val::Tuple(items), Type::Tuple(types)) = (&v, ty) {
            let items = items
                .iter()
                .zip(types)
                .map(|(v, t)| self.convert(v.clone(), t))
                .collect();
            return Val::Tuple(items);
        }
        if let (Val::Tuple(items), Type::Stack(elem, _) | Type::List(elem)) = (&v, ty) {
            let items = items
                .iter()
                .map(|v| self.convert(v.clone(), elem))
                .collect();
            return Val::Tuple(items);
        }
        let Some(fields) = self.fields_of(ty) else {
            return v;
        };
        let is_header = self.kind_of(ty) == Some(crate::ast::CompositeKind::Header);
        let (valid, given): (Option<Ex>, Vec<Option<Val>>) = match &v {
            Val::Tuple(items) => (
                None,
                (0..fields.len()).map(|i| items.get(i).cloned()).collect(),
            ),
            Val::HeaderLit { valid, .. } => (
                Some(valid.clone()),
                fields.iter().map(|(n, _)| v.member(n)).collect(),
            ),
            _ => (None, fields.iter().map(|(n, _)| v.member(n)).collect()),
        };
        let fields = fields
            .into_iter()
            .zip(given)
            .map(|((n, t), g)| {
                let value = match g {
                    Some(g) => self.convert(g, &t),
                    None => self.default_value(&t),
                };
                (n, value)
            })
            .collect();
        if is_header {
            return Val::HeaderLit {
                valid: valid.unwrap_or_else(|| Ex::bool(true)),
                fields,
            };
        }
        Val::Struct(fields)
    }

    fn eval_raw(&mut self, e: &'a Expr) -> Val {
        match &e.kind {
            ExprKind::Int { value, width } => match width {
                None => Val::Int(value.clone()),
                Some((w, true)) => Val::Scalar(fold::constant(value, Scalar::Int(*w))),
                Some((w, false)) => Val::Scalar(fold::constant(value, Scalar::Bit(*w))),
            },
            ExprKind::Bool(b) => Val::Scalar(Ex::bool(*b)),
            ExprKind::Str(s) => Val::Str(s.to_string()),
            ExprKind::Name { .. } => self.eval_name(e),
            ExprKind::Type(_) => Val::Unit,
            ExprKind::Member(base, name) => self.eval_member(e, base, name),
            ExprKind::Index(base, index) => self.eval_index(base, index),
            ExprKind::Slice(base, hi, lo) => {
                let b = self.eval(base);
                let (hi, lo) = (self.number(hi), self.number(lo));
                let (Some(hi), Some(lo)) =
                    (hi.and_then(|v| v.to_u32()), lo.and_then(|v| v.to_u32()))
                else {
                    return Val::Unit;
                };
                self.note_used_bits(base, hi + 1);
                if let Val::Int(v) = b {
                    let value = wrap(&(v >> lo), &Type::Bit(hi - lo + 1));
                    return Val::Scalar(Ex::Const(value, Scalar::Bit(hi - lo + 1)));
                }
                let b = self.scalar_from(b);
                Val::Scalar(fold::slice(b, hi, lo))
            }
            ExprKind::PlusSlice(base, lo, width) => {
                let b = self.scalar(base);
                let low = self.scalar(lo);
                let Some(w) = self.number(width).and_then(|v| v.to_u32()) else {
                    return Val::Unit;
                };
                if let Some(l) = fold::to_u32(&low)
                    && l + w <= b.ty().width()
                {
                    return Val::Scalar(fold::slice(b, l + w - 1, l));
                }
                let shifted = fold::binary(
                    BinOp::Shr,
                    fold::cast(b.clone(), Scalar::Bit(b.ty().width())),
                    low,
                );
                Val::Scalar(fold::cast(shifted, Scalar::Bit(w)))
            }
            ExprKind::Unary(op, x) => match (op, self.eval(x)) {
                (UnOp::Neg, Val::Int(v)) => Val::Int(-v),
                (UnOp::Plus, v) => v,
                (op, v) => {
                    let x = self.scalar_from(v);
                    Val::Scalar(fold::unary(*op, x))
                }
            },
            ExprKind::Binary(op, l, r) => self.eval_binary(*op, l, r),
            ExprKind::Ternary(c, a, b) => self.eval_ternary(e, c, a, b),
            ExprKind::Cast(t, x) => {
                let v = self.eval(x);
                let t = self.type_of(t.id);
                self.convert(v, &t)
            }
            ExprKind::Call { callee, args, .. } => self.call(e, callee, args),
            ExprKind::List { items, .. } => {
                let values = self.eval_in_order(&items.iter().collect::<Vec<_>>());
                let ty = self.type_of(e.id);
                self.convert_fields(Val::Tuple(values), &ty)
            }
            ExprKind::Record { fields, .. } => {
                let values = self.eval_in_order(&fields.iter().map(|(_, x)| x).collect::<Vec<_>>());
                let named = fields
                    .iter()
                    .map(|(n, _)| n.name.clone())
                    .zip(values)
                    .collect();
                let ty = self.type_of(e.id);
                self.convert_fields(Val::Struct(named), &ty)
            }
            ExprKind::Dots => {
                let ty = self.type_of(e.id);
                self.default_value(&ty)
            }
            ExprKind::InvalidHeader => {
                let ty = match self.t.coercions.get(&e.id) {
                    Some(t) => self.subst(t),
                    None => self.type_of(e.id),
                };
                if self.kind_of(&ty) == Some(crate::ast::CompositeKind::Union) {
                    let members = self.fields_of(&ty).unwrap_or_default();
                    let members = members
                        .into_iter()
                        .map(|(n, t)| (n, self.default_value(&t)))
                        .collect();
                    return Val::Union(super::value::Union {
                        name: None,
                        members,
                    });
                }
                match self.default_value(&ty) {
                    Val::HeaderLit { fields, .. } => Val::HeaderLit {
                        valid: Ex::bool(false),
                        fields,
                    },
                    v => v,
                }
            }
            ExprKind::DontCare | ExprKind::Default => Val::Ignore,
            ExprKind::Mask(..) | ExprKind::Range(..) => Val::Unit,
        }
    }

    /// Evaluates from left to right: saves the values of expressions before one with side effects.
    pub(super) fn eval_in_order(&mut self, items: &[&'a Expr]) -> Vec<Val> {
        let last_effect = items.iter().rposition(|e| self.has_effects(e));
        let mut values = Vec::with_capacity(items.len());
        for (i, e) in items.iter().enumerate() {
            let v = self.eval(e);
            let v = if last_effect.is_some_and(|k| i < k) {
                self.materialise(v)
            } else {
                v
            };
            values.push(v);
        }
        values
    }

    /// A compile-time number.
    pub(super) fn number(&mut self, e: &'a Expr) -> Option<BigInt> {
        match self.eval(e) {
            Val::Int(v) | Val::Scalar(Ex::Const(v, _)) => Some(v),
            _ => None,
        }
    }

    /// Whether evaluating `e` runs statements.
    pub(super) fn has_effects(&self, e: &Expr) -> bool {
        match &e.kind {
            ExprKind::Call { callee, args, .. } => {
                let pure = match self.t.calls.get(&e.id).map(|c| &c.callee) {
                    Some(Callee::Builtin) => matches!(&callee.kind, ExprKind::Member(..)),
                    Some(Callee::Method(id)) => self.is_parameter_read(*id),
                    _ => false,
                };
                !pure || args.iter().any(|a| self.has_effects(&a.expr)) || self.has_effects(callee)
            }
            ExprKind::Member(b, _) | ExprKind::Unary(_, b) | ExprKind::Cast(_, b) => {
                self.has_effects(b)
            }
            ExprKind::Slice(a, b, c)
            | ExprKind::Ternary(a, b, c)
            | ExprKind::PlusSlice(a, b, c) => {
                self.has_effects(a) || self.has_effects(b) || self.has_effects(c)
            }
            ExprKind::Index(a, b)
            | ExprKind::Binary(_, a, b)
            | ExprKind::Mask(a, b)
            | ExprKind::Range(a, b) => self.has_effects(a) || self.has_effects(b),
            ExprKind::List { items, .. } => items.iter().any(|i| self.has_effects(i)),
            ExprKind::Record { fields, .. } => fields.iter().any(|(_, x)| self.has_effects(x)),
            _ => false,
        }
    }

    /// Bits of a value of the type, for `minSizeInBits` and its like.
    pub(super) fn size_in_bits(&self, ty: &Type, max: bool) -> u64 {
        match (self.scalar_of(ty), ty) {
            (Some(Scalar::Varbit(w)), _) => {
                if max {
                    u64::from(w)
                } else {
                    0
                }
            }
            (Some(s), _) => u64::from(s.width()),
            (_, Type::Tuple(items)) => items.iter().map(|t| self.size_in_bits(t, max)).sum(),
            (_, Type::Stack(t, n)) => self.size_in_bits(t, max) * u64::from(*n),
            _ => {
                let sizes = self.fields_of(ty).unwrap_or_default();
                let sizes = sizes.iter().map(|(_, t)| self.size_in_bits(t, max));
                if self.kind_of(ty) == Some(crate::ast::CompositeKind::Union) {
                    if max {
                        sizes.max().unwrap_or(0)
                    } else {
                        sizes.min().unwrap_or(0)
                    }
                } else {
                    sizes.sum()
                }
            }
        }
    }
}
