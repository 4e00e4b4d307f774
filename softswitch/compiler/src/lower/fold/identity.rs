// SPDX-License-Identifier: Apache-2.0
//! Algebraic identities: operations with a simpler result, because an operand is a special constant or both are equal.
//!
//! p4c applies the same ones before it writes P4Info, so that both see the same conditions as constant. An expression has
//! no side effects here, therefore equal expressions have equal values.

use num_bigint::BigInt;
use num_traits::{One, Signed, Zero};

use super::ones;
use crate::ast::{BinOp, UnOp};
use crate::ir::{Ex, Scalar};

/// Returns `l op r` of type `ty`, simplified. At most one of the operands is constant.
pub(super) fn reduce(op: BinOp, l: Ex, r: Ex, ty: Scalar) -> Ex {
    match op {
        BinOp::Eq | BinOp::Ne => equality(op, l, r),
        BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge => comparison(op, l, r),
        BinOp::Add | BinOp::Mul | BinOp::BitAnd | BinOp::BitOr | BinOp::BitXor | BinOp::SatAdd => {
            // A constant is the right operand.
            let (l, r) = if l.is_const() { (r, l) } else { (l, r) };
            commutative(op, l, r, ty)
        }
        BinOp::Sub | BinOp::SatSub => difference(op, l, r, ty),
        BinOp::Shl | BinOp::Shr if is_zero(&r) || is_zero(&l) => l,
        BinOp::Shl | BinOp::Shr => regroup(op, l, r, ty),
        BinOp::Div | BinOp::Mod if is_zero(&l) => l,
        _ => plain(op, l, r, ty),
    }
}

fn equality(op: BinOp, l: Ex, r: Ex) -> Ex {
    let equal = op == BinOp::Eq;
    if l == r {
        return Ex::bool(equal);
    }
    match (l.as_bool(), r.as_bool()) {
        (Some(value), _) if value == equal => r,
        (Some(_), _) => super::not(r),
        (_, Some(value)) if value == equal => l,
        (_, Some(_)) => super::not(l),
        _ => plain(op, l, r, Scalar::Bool),
    }
}

/// No number is below the smallest of its type, or above the largest.
fn comparison(op: BinOp, l: Ex, r: Ex) -> Ex {
    let or_equal = matches!(op, BinOp::Le | BinOp::Ge);
    let (low, high) = match op {
        BinOp::Lt | BinOp::Ge => (&r, &l),
        _ => (&l, &r),
    };
    if l == r || is_smallest(low) || is_largest(high) {
        return Ex::bool(or_equal);
    }
    plain(op, l, r, Scalar::Bool)
}

fn commutative(op: BinOp, l: Ex, r: Ex, ty: Scalar) -> Ex {
    let same = l == r;
    match op {
        BinOp::Add | BinOp::SatAdd | BinOp::BitOr | BinOp::BitXor if is_zero(&r) => return l,
        BinOp::Mul if is_one(&r) => return l,
        BinOp::BitAnd if is_all_ones(&r) => return l,
        BinOp::Mul | BinOp::BitAnd if is_zero(&r) => return r,
        BinOp::BitAnd | BinOp::BitOr if same => return l,
        BinOp::BitXor if same => return Ex::Const(BigInt::zero(), ty),
        BinOp::SatAdd => return plain(op, l, r, ty),
        _ => {}
    }
    match (op, l, r) {
        // De Morgan
        (
            BinOp::BitAnd | BinOp::BitOr,
            Ex::Unary(UnOp::BitNot, a, _),
            Ex::Unary(UnOp::BitNot, b, _),
        ) => {
            let other = if op == BinOp::BitAnd {
                BinOp::BitOr
            } else {
                BinOp::BitAnd
            };
            super::unary(UnOp::BitNot, super::binary(other, *a, *b))
        }
        (_, l, r) => regroup(op, l, r, ty),
    }
}

fn difference(op: BinOp, l: Ex, r: Ex, ty: Scalar) -> Ex {
    let unsigned = matches!(ty, Scalar::Bit(_));
    if is_zero(&r) || (op == BinOp::SatSub && unsigned && is_zero(&l)) {
        l
    } else if l == r {
        Ex::Const(BigInt::zero(), ty)
    } else if op == BinOp::Sub && is_zero(&l) {
        super::unary(UnOp::Neg, r)
    } else {
        plain(op, l, r, ty)
    }
}

/// `(x op a) op b` with constants is `x op (a op b)`; `(x - a) + b` is `x + (b - a)`; shifts add up.
fn regroup(op: BinOp, l: Ex, r: Ex, ty: Scalar) -> Ex {
    match l {
        Ex::Binary(inner, x, a, inner_ty) => match joined(inner, &a, op, &r, ty) {
            Some(joined) => super::binary(op, *x, joined),
            None => plain(op, Ex::Binary(inner, x, a, inner_ty), r, ty),
        },
        l => plain(op, l, r, ty),
    }
}

/// Returns the constant `c` for which `(x inner a) op b` is `x op c`, if `a` and `b` are constants and there is one.
fn joined(inner: BinOp, a: &Ex, op: BinOp, b: &Ex, ty: Scalar) -> Option<Ex> {
    let (Ex::Const(a, _), Ex::Const(b, _)) = (a, b) else {
        return None;
    };
    let value = match (inner, op) {
        (BinOp::Add, BinOp::Add) => a + b,
        (BinOp::Sub, BinOp::Add) => b - a,
        (BinOp::Mul, BinOp::Mul) => a * b,
        (BinOp::BitAnd, BinOp::BitAnd) => a & b,
        (BinOp::BitOr, BinOp::BitOr) => a | b,
        (BinOp::BitXor, BinOp::BitXor) => a ^ b,
        (BinOp::Shl, BinOp::Shl) | (BinOp::Shr, BinOp::Shr) => {
            let sum = a + b;
            let is_valid = !a.is_negative() && !b.is_negative() && sum.bits() <= 32;
            return is_valid.then(|| Ex::bit(sum, 32));
        }
        _ => return None,
    };
    Some(super::constant(&value, ty))
}

fn plain(op: BinOp, l: Ex, r: Ex, ty: Scalar) -> Ex {
    Ex::Binary(op, Box::new(l), Box::new(r), ty)
}

fn is_zero(e: &Ex) -> bool {
    matches!(e, Ex::Const(v, _) if v.is_zero())
}

fn is_one(e: &Ex) -> bool {
    matches!(e, Ex::Const(v, _) if v.is_one())
}

fn is_all_ones(e: &Ex) -> bool {
    match e {
        Ex::Const(v, Scalar::Bit(w)) => *v == ones(*w),
        Ex::Const(v, Scalar::Int(_)) => *v == -BigInt::one(),
        _ => false,
    }
}

fn is_smallest(e: &Ex) -> bool {
    match e {
        Ex::Const(v, Scalar::Bit(_)) => v.is_zero(),
        Ex::Const(v, Scalar::Int(w)) if *w > 0 => *v == -(BigInt::one() << (w - 1)),
        _ => false,
    }
}

fn is_largest(e: &Ex) -> bool {
    match e {
        Ex::Const(v, Scalar::Bit(w)) => *v == ones(*w),
        Ex::Const(v, Scalar::Int(w)) if *w > 0 => *v == ones(w - 1),
        _ => false,
    }
}
