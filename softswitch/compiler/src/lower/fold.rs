// SPDX-License-Identifier: Apache-2.0
//! Constructors of scalar expressions that fold constants on the way.

mod identity;

use num_bigint::BigInt;
use num_traits::{One, ToPrimitive, Zero};

use crate::ast::{BinOp, UnOp};
use crate::check::{fold_binary, wrap};
use crate::ir::{Ex, Scalar};
use crate::types::Const;

pub fn constant(v: &BigInt, ty: Scalar) -> Ex {
    Ex::Const(wrap(v, &ty.as_type()), ty)
}

pub fn not(mut e: Ex) -> Ex {
    if let Ex::Binary(op, ..) = &mut e
        && let Some(opposite) = opposite(*op)
    {
        *op = opposite;
        return e;
    }
    match e {
        Ex::Const(v, Scalar::Bool) => Ex::bool(v.is_zero()),
        Ex::Unary(UnOp::Not, inner, _) => *inner,
        e => Ex::Unary(UnOp::Not, Box::new(e), Scalar::Bool),
    }
}

/// Returns the comparison with the opposite result.
fn opposite(op: BinOp) -> Option<BinOp> {
    Some(match op {
        BinOp::Eq => BinOp::Ne,
        BinOp::Ne => BinOp::Eq,
        BinOp::Lt => BinOp::Ge,
        BinOp::Ge => BinOp::Lt,
        BinOp::Gt => BinOp::Le,
        BinOp::Le => BinOp::Gt,
        _ => return None,
    })
}

pub fn and(a: Ex, b: Ex) -> Ex {
    match (a.as_bool(), b.as_bool()) {
        (Some(false), _) | (_, Some(true)) => a,
        (Some(true), _) | (_, Some(false)) => b,
        _ => Ex::Binary(BinOp::And, Box::new(a), Box::new(b), Scalar::Bool),
    }
}

pub fn or(a: Ex, b: Ex) -> Ex {
    match (a.as_bool(), b.as_bool()) {
        (Some(true), _) | (_, Some(false)) => a,
        (Some(false), _) | (_, Some(true)) => b,
        _ => Ex::Binary(BinOp::Or, Box::new(a), Box::new(b), Scalar::Bool),
    }
}

pub fn cond(c: Ex, a: Ex, b: Ex) -> Ex {
    match (c.as_bool(), a.as_bool(), b.as_bool()) {
        (Some(true), ..) => a,
        (Some(false), ..) => b,
        (None, Some(true), Some(false)) => c,
        (None, Some(false), Some(true)) => not(c),
        _ if a == b => a,
        _ => {
            let ty = a.ty();
            Ex::Cond(Box::new(c), Box::new(a), Box::new(b), ty)
        }
    }
}

pub fn unary(op: UnOp, e: Ex) -> Ex {
    let ty = e.ty();
    match (op, e) {
        (UnOp::Not, e) => not(e),
        (UnOp::Plus, e) => e,
        (UnOp::Neg, Ex::Const(v, _)) => constant(&-v, ty),
        (UnOp::BitNot, Ex::Const(v, _)) => constant(&(-v - BigInt::one()), ty),
        (UnOp::BitNot, Ex::Unary(UnOp::BitNot, inner, _)) => *inner,
        (op, e) => Ex::Unary(op, Box::new(e), ty),
    }
}

pub fn binary(op: BinOp, l: Ex, r: Ex) -> Ex {
    let ty = match op {
        BinOp::And => return and(l, r),
        BinOp::Or => return or(l, r),
        BinOp::Eq | BinOp::Ne | BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge => Scalar::Bool,
        BinOp::Concat => match l.ty() {
            Scalar::Int(w) => Scalar::Int(w + r.ty().width()),
            t => Scalar::Bit(t.width() + r.ty().width()),
        },
        _ => l.ty(),
    };
    if let (Ex::Const(a, _), Ex::Const(b, _)) = (&l, &r) {
        if op == BinOp::Concat {
            let low = r.ty().width();
            let joined = (a << low) | wrap(b, &crate::types::Type::Bit(low));
            return constant(&joined, ty);
        }
        match fold_binary(op, a, b, &l.ty().as_type()) {
            Some(Const::Int(v, _)) => return constant(&v, ty),
            Some(Const::Bool(b)) => return Ex::bool(b),
            _ => {}
        }
    }
    match (op, power_of_two(&r)) {
        (BinOp::Div, Some(n)) => binary(BinOp::Shr, l, Ex::bit(n, 32)),
        (BinOp::Mod, Some(n)) => binary(BinOp::BitAnd, l, Ex::Const(ones(n), ty)),
        _ => identity::reduce(op, l, r, ty),
    }
}

/// Returns the exponent of a constant power of two.
fn power_of_two(e: &Ex) -> Option<u32> {
    let Ex::Const(v, Scalar::Bit(_)) = e else {
        return None;
    };
    let exponent = v.trailing_zeros()?;
    (*v == BigInt::one() << exponent).then_some(exponent as u32)
}

pub fn cast(e: Ex, to: Scalar) -> Ex {
    if e.ty() == to {
        return e;
    }
    match e {
        Ex::Const(v, _) if to == Scalar::Bool => Ex::bool(!v.is_zero()),
        Ex::Const(v, _) => constant(&v, to),
        e => Ex::Cast(Box::new(e), to),
    }
}

pub fn slice(e: Ex, hi: u32, lo: u32) -> Ex {
    match e {
        e if lo == 0 && e.ty() == Scalar::Bit(hi + 1) => e,
        Ex::Const(v, ty) => {
            let unsigned = wrap(&v, &crate::types::Type::Bit(ty.width()));
            constant(&(unsigned >> lo), Scalar::Bit(hi - lo + 1))
        }
        // A slice of a slice is one slice, which keeps it assignable.
        Ex::Slice {
            base, lo: below, ..
        } => Ex::Slice {
            base,
            hi: hi + below,
            lo: lo + below,
        },
        e => Ex::Slice {
            base: Box::new(e),
            hi,
            lo,
        },
    }
}

pub fn to_u32(e: &Ex) -> Option<u32> {
    match e {
        Ex::Const(v, _) => v.to_u32(),
        _ => None,
    }
}

/// Returns `2^w - 1`.
pub(crate) fn ones(w: u32) -> BigInt {
    (BigInt::one() << w) - 1
}
