// SPDX-License-Identifier: Apache-2.0
//! Compile-time evaluation of scalar expressions.

use num_bigint::BigInt;
use num_integer::Integer;
use num_traits::{One, Signed, ToPrimitive, Zero};

use super::Checker;
use crate::ast::{BinOp, DeclKind, Expr, ExprKind, UnOp};
use crate::types::{Const, Type};

/// Maximum size in bits of an intermediate result.
const MAX_BITS: u64 = 1 << 17;

/// Returns the value modulo the type's width.
pub fn wrap(v: &BigInt, ty: &Type) -> BigInt {
    match ty {
        Type::Bit(w) => v.mod_floor(&(BigInt::one() << *w)),
        Type::SInt(w) if *w > 0 => {
            let modulus = BigInt::one() << *w;
            let r = v.mod_floor(&modulus);
            if r >= (BigInt::one() << (*w - 1)) {
                r - modulus
            } else {
                r
            }
        }
        _ => v.clone(),
    }
}

fn saturate(v: BigInt, ty: &Type) -> BigInt {
    let (min, max) = match ty {
        Type::Bit(w) => (BigInt::zero(), (BigInt::one() << *w) - 1),
        Type::SInt(w) if *w > 0 => (
            -(BigInt::one() << (*w - 1)),
            (BigInt::one() << (*w - 1)) - 1,
        ),
        _ => return v,
    };
    v.clamp(min, max)
}

/// Computes `l op r` on integers of type `ty` (for comparisons, the operands' type).
pub fn fold_binary(op: BinOp, l: &BigInt, r: &BigInt, ty: &Type) -> Option<Const> {
    let int = |v: BigInt| Some(Const::Int(wrap(&v, ty), ty.clone()));
    match op {
        BinOp::Add => int(l + r),
        BinOp::Sub => int(l - r),
        BinOp::Mul if l.bits() + r.bits() <= MAX_BITS => int(l * r),
        BinOp::SatAdd => Some(Const::Int(saturate(l + r, ty), ty.clone())),
        BinOp::SatSub => Some(Const::Int(saturate(l - r, ty), ty.clone())),
        BinOp::Div if !r.is_zero() => int(l / r),
        BinOp::Mod if !r.is_zero() => int(l % r),
        BinOp::BitAnd => int(l & r),
        BinOp::BitOr => int(l | r),
        BinOp::BitXor => int(l ^ r),
        BinOp::Shl => match (r.to_u32(), ty) {
            (Some(n), _) if u64::from(n) + l.bits() <= MAX_BITS => int(l << n),
            (_, Type::Bit(_) | Type::SInt(_)) if r.is_positive() => int(BigInt::zero()),
            _ => None,
        },
        BinOp::Shr => match r.to_u32() {
            Some(n) => int(l >> n),
            None if r.is_positive() => int(if l.is_negative() {
                -BigInt::one()
            } else {
                BigInt::zero()
            }),
            None => None,
        },
        BinOp::Eq => Some(Const::Bool(l == r)),
        BinOp::Ne => Some(Const::Bool(l != r)),
        BinOp::Lt => Some(Const::Bool(l < r)),
        BinOp::Le => Some(Const::Bool(l <= r)),
        BinOp::Gt => Some(Const::Bool(l > r)),
        BinOp::Ge => Some(Const::Bool(l >= r)),
        _ => None,
    }
}

impl<'a> Checker<'a> {
    /// Returns the value of a checked expression, if it is known at compile time.
    pub(super) fn const_value(&mut self, e: &Expr) -> Option<Const> {
        let value = self.const_raw(e)?;
        match self.coercions.get(&e.id).map(|t| self.resolve(t)) {
            Some(to) => self.const_cast(value, &to),
            None => Some(value),
        }
    }

    /// Returns the value before its implicit conversion.
    pub(super) fn const_raw(&mut self, e: &Expr) -> Option<Const> {
        let ty = self.type_of(e.id);
        if ty.is_unknown() {
            return None;
        }
        match &e.kind {
            ExprKind::Int { value, .. } => Some(Const::Int(value.clone(), ty)),
            ExprKind::Bool(b) => Some(Const::Bool(*b)),
            ExprKind::Str(s) => Some(Const::Str(s.to_string())),
            ExprKind::Name { .. } => {
                let id = *self.names.get(&e.id)?;
                if let Some(v) = self.consts.get(&id) {
                    return v.clone();
                }
                let d = self.decl(id)?;
                let DeclKind::Const { init, ty } = &d.kind else {
                    return None;
                };
                let ty = self.type_of(ty.id);
                let value = self.const_value(init).and_then(|v| self.const_cast(v, &ty));
                self.consts.insert(id, value.clone());
                value
            }
            ExprKind::Member(base, name) => {
                let Type::Meta(t) = self.type_of(base.id) else {
                    return self.const_member(base, &name.name);
                };
                let Type::Named(id, _) = *t else { return None };
                let DeclKind::Enum {
                    underlying: Some(u),
                    members,
                } = &self.decl(id)?.kind
                else {
                    return None;
                };
                let value = members
                    .iter()
                    .find(|m| m.name.name == name.name)?
                    .value
                    .as_ref()?;
                let under = self.type_of(u.id);
                match self.const_value(value)? {
                    Const::Int(v, _) => Some(Const::Int(wrap(&v, &under), ty)),
                    _ => None,
                }
            }
            ExprKind::Unary(op, x) => match (op, self.const_value(x)?) {
                (UnOp::Not, Const::Bool(b)) => Some(Const::Bool(!b)),
                (UnOp::Neg, Const::Int(v, _)) => Some(Const::Int(wrap(&-v, &ty), ty)),
                (UnOp::Plus, v @ Const::Int(..)) => Some(v),
                (UnOp::BitNot, Const::Int(v, _)) => {
                    Some(Const::Int(wrap(&(-v - BigInt::one()), &ty), ty))
                }
                _ => None,
            },
            ExprKind::Binary(op, l, r) => {
                let (l, r) = (self.const_value(l)?, self.const_value(r)?);
                match (op, l, r) {
                    (BinOp::And, Const::Bool(a), Const::Bool(b)) => Some(Const::Bool(a && b)),
                    (BinOp::Or, Const::Bool(a), Const::Bool(b)) => Some(Const::Bool(a || b)),
                    (BinOp::Eq, Const::Bool(a), Const::Bool(b)) => Some(Const::Bool(a == b)),
                    (BinOp::Ne, Const::Bool(a), Const::Bool(b)) => Some(Const::Bool(a != b)),
                    (BinOp::Concat, Const::Int(a, _), Const::Int(b, tb)) => {
                        let w = match tb {
                            Type::Bit(w) | Type::SInt(w) => w,
                            _ => return None,
                        };
                        let joined = (a << w) | wrap(&b, &Type::Bit(w));
                        Some(Const::Int(wrap(&joined, &ty), ty))
                    }
                    (op, Const::Int(a, ta), Const::Int(b, _)) => fold_binary(*op, &a, &b, &ta),
                    _ => None,
                }
            }
            ExprKind::Ternary(c, a, b) => match self.const_value(c)? {
                Const::Bool(true) => self.const_value(a),
                Const::Bool(false) => self.const_value(b),
                _ => None,
            },
            ExprKind::Cast(_, x) => {
                let v = self.const_value(x)?;
                self.const_cast(v, &ty)
            }
            ExprKind::Slice(x, hi, lo) => {
                let (Const::Int(v, _), Const::Int(_, _), Const::Int(lo, _)) = (
                    self.const_value(x)?,
                    self.const_value(hi)?,
                    self.const_value(lo)?,
                ) else {
                    return None;
                };
                Some(Const::Int(wrap(&(v >> lo.to_u32()?), &ty), ty))
            }
            ExprKind::Call { callee, args, .. } => match &callee.kind {
                ExprKind::Name { name, .. } if &**name == "static_assert" => {
                    self.const_value(&args.first()?.expr)?;
                    Some(Const::Bool(true))
                }
                _ => self.const_builtin(callee),
            },
            _ => None,
        }
    }

    /// Evaluates a field of a constant struct.
    fn const_member(&mut self, base: &Expr, name: &str) -> Option<Const> {
        if name == "size"
            && let Type::Stack(_, n) = self.type_of(base.id)
        {
            return Some(Const::Int(n.into(), Type::Bit(32)));
        }
        let ExprKind::Name { .. } = &base.kind else {
            return None;
        };
        let d = self.decl(*self.names.get(&base.id)?)?;
        let DeclKind::Const { init, ty } = &d.kind else {
            return None;
        };
        let fields = self.fields(&self.type_of(ty.id))?;
        let index = fields.iter().position(|(n, _)| &**n == name)?;
        let item = match &init.kind {
            ExprKind::List { items, .. } => items.get(index)?,
            ExprKind::Record { fields, .. } => &fields.iter().find(|(n, _)| &*n.name == name)?.1,
            _ => return None,
        };
        let v = self.const_value(item)?;
        self.const_cast(v, &fields[index].1)
    }

    /// Evaluates `x.minSizeInBits()` and the like, which depend only on the type.
    fn const_builtin(&mut self, callee: &Expr) -> Option<Const> {
        let ExprKind::Member(base, name) = &callee.kind else {
            return None;
        };
        let ty = match self.type_of(base.id) {
            Type::Meta(t) => *t,
            t => t,
        };
        let (max, bytes) = match &*name.name {
            "minSizeInBits" => (false, false),
            "maxSizeInBits" => (true, false),
            "minSizeInBytes" => (false, true),
            "maxSizeInBytes" => (true, true),
            _ => return None,
        };
        let bits = self.size_in_bits(&ty, max)?;
        let n = if bytes { bits.div_ceil(8) } else { bits };
        Some(Const::Int(n.into(), Type::Int))
    }

    pub(super) fn size_in_bits(&self, ty: &Type, max: bool) -> Option<u64> {
        if let Some(base) = self.newtype_base(ty).or_else(|| self.enum_underlying(ty)) {
            return self.size_in_bits(&base, max);
        }
        match ty {
            Type::Bool => Some(1),
            Type::Bit(w) | Type::SInt(w) => Some(u64::from(*w)),
            Type::Varbit(w) => Some(if max { u64::from(*w) } else { 0 }),
            Type::Tuple(items) => items.iter().map(|t| self.size_in_bits(t, max)).sum(),
            Type::Stack(t, n) => Some(self.size_in_bits(t, max)? * u64::from(*n)),
            Type::Named(..) => {
                let sizes: Option<Vec<u64>> = self
                    .fields(ty)?
                    .iter()
                    .map(|(_, t)| self.size_in_bits(t, max))
                    .collect();
                let sizes = sizes?;
                if self.composite_kind(ty) == Some(crate::ast::CompositeKind::Union) {
                    let pick = if max {
                        sizes.iter().max()
                    } else {
                        sizes.iter().min()
                    };
                    return Some(pick.copied().unwrap_or(0));
                }
                Some(sizes.iter().sum())
            }
            _ => None,
        }
    }

    fn const_cast(&self, v: Const, ty: &Type) -> Option<Const> {
        let base = self
            .newtype_base(ty)
            .or_else(|| self.enum_underlying(ty))
            .unwrap_or_else(|| ty.clone());
        match (v, &base) {
            (Const::Int(v, _), Type::Bool) => Some(Const::Bool(!v.is_zero())),
            (Const::Int(v, _), _) => Some(Const::Int(wrap(&v, &base), ty.clone())),
            (Const::Bool(b), Type::Bit(_) | Type::Int) => {
                Some(Const::Int(u8::from(b).into(), ty.clone()))
            }
            (v, _) => Some(v),
        }
    }
}
