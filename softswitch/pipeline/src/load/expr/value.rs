// SPDX-License-Identifier: Apache-2.0
//! Compiled values in the narrowest arithmetic that can hold them.

use num_bigint::BigInt;
use num_traits::ToPrimitive;

use super::Param;
use crate::load::range::{Range, Tier};
use crate::phv::{Field, Place};
use crate::program::expr::{Cond, DynField, Node, Num};
use crate::word::Word;

/// A compiled value and its range. If only the low bits were requested, only these are correct.
pub(crate) struct Value {
    pub(super) num: Num,
    pub(super) range: Range,
}

impl Value {
    pub(super) fn of(tier: Tier, range: Range, build: impl Build) -> Self {
        let num = match tier {
            Tier::B64 => Num::N64(build.node(), range.negative),
            Tier::B128 => Num::N128(build.node(), range.negative),
            Tier::Big => Num::Big(build.node()),
        };
        Self { num, range }
    }

    pub(crate) fn into64(self) -> Node<u64> {
        match self.num {
            Num::N64(n, _) => n,
            other => Node::Cast(Box::new(other)),
        }
    }

    pub(crate) fn into128(self) -> Node<u128> {
        match self.num {
            Num::N128(n, _) => n,
            other => Node::Cast(Box::new(other)),
        }
    }

    pub(crate) fn into_big(self) -> Node<BigInt> {
        match self.num {
            Num::Big(n) => n,
            other => Node::Cast(Box::new(other)),
        }
    }

    pub(super) fn tier(&self) -> Tier {
        match self.num {
            Num::N64(..) => Tier::B64,
            Num::N128(..) => Tier::B128,
            Num::Big(_) => Tier::Big,
        }
    }
}

/// Builds one node in the chosen arithmetic.
pub(super) trait Build {
    fn node<W: Kind>(self) -> Node<W>;
}

/// The conversion of values to each kind.
pub(super) trait Kind: Word {
    fn take(v: Value) -> Node<Self>;
}

impl Kind for u64 {
    fn take(v: Value) -> Node<u64> {
        v.into64()
    }
}

impl Kind for u128 {
    fn take(v: Value) -> Node<u128> {
        v.into128()
    }
}

impl Kind for BigInt {
    fn take(v: Value) -> Node<BigInt> {
        v.into_big()
    }
}

#[derive(Clone, Copy)]
pub(super) enum Binary {
    Add,
    Sub,
    Mul,
    Div,
    Mod,
    And,
    Or,
    Xor,
}

pub(super) struct BinaryOf(pub(super) Binary, pub(super) Value, pub(super) Value);

impl Build for BinaryOf {
    fn node<W: Kind>(self) -> Node<W> {
        let x = Box::new([W::take(self.1), W::take(self.2)]);
        match self.0 {
            Binary::Add => Node::Add(x),
            Binary::Sub => Node::Sub(x),
            Binary::Mul => Node::Mul(x),
            Binary::Div => Node::Div(x),
            Binary::Mod => Node::Mod(x),
            Binary::And => Node::And(x),
            Binary::Or => Node::Or(x),
            Binary::Xor => Node::Xor(x),
        }
    }
}

pub(super) struct ShiftOf(
    pub(super) bool,
    pub(super) bool,
    pub(super) Value,
    pub(super) Node<u64>,
);

impl Build for ShiftOf {
    fn node<W: Kind>(self) -> Node<W> {
        let x = Box::new((W::take(self.2), self.3));
        match (self.0, self.1) {
            (true, _) => Node::Shl(x),
            (false, false) => Node::Shr(x),
            (false, true) => Node::Sar(x),
        }
    }
}

#[derive(Clone, Copy)]
pub(super) enum Unary {
    Not,
    SignExtend(u32),
    SatUnsigned(u32),
    SatSigned(u32),
}

pub(super) struct UnaryOf(pub(super) Unary, pub(super) Value);

impl Build for UnaryOf {
    fn node<W: Kind>(self) -> Node<W> {
        let x = Box::new(W::take(self.1));
        match self.0 {
            Unary::Not => Node::Not(x),
            Unary::SignExtend(w) => Node::SignExtend(x, w),
            Unary::SatUnsigned(w) => Node::SatUnsigned(x, w),
            Unary::SatSigned(w) => Node::SatSigned(x, w),
        }
    }
}

pub(super) struct SelectOf(pub(super) Cond, pub(super) Value, pub(super) Value);

impl Build for SelectOf {
    fn node<W: Kind>(self) -> Node<W> {
        Node::Select(Box::new((self.0, [W::take(self.1), W::take(self.2)])))
    }
}

pub(super) enum Leaf {
    Field(Field),
    Dyn(DynField),
    Arg(Param),
    Register(u32, Node<u64>),
    Const(BigInt),
    Byte(u32),
    Bool(Cond),
}

impl Build for Leaf {
    fn node<W: Kind>(self) -> Node<W> {
        match self {
            Leaf::Field(Field {
                place: Place::Word(w),
                signed: false,
                ..
            }) => Node::Word(w),
            Leaf::Field(f) => Node::Field(f),
            Leaf::Dyn(d) => Node::Dyn(Box::new(d)),
            Leaf::Arg(p) => Node::Arg(p.first, p.limbs()),
            Leaf::Register(r, index) => Node::Register(Box::new((r, index))),
            Leaf::Const(v) => {
                let limbs = crate::phv::wrap(&v, 256.max(v.bits() as u32 + 1)).to_u64_digits();
                let value = W::from_limbs(&limbs);
                // The unbounded kind keeps the sign; in the fixed kinds it has already wrapped.
                let negative = v.sign() == num_bigint::Sign::Minus;
                let width = 256.max(v.bits() as u32 + 1);
                Node::Const(if negative {
                    value.sign_extend(width)
                } else {
                    value
                })
            }
            Leaf::Byte(off) => Node::Byte(off),
            Leaf::Bool(c) => Node::FromBool(Box::new(c)),
        }
    }
}

/// Returns the value modulo `2^width`.
pub(super) fn saturated(v: Value, width: u32) -> Value {
    if !v.range.negative && v.range.bits <= width {
        return v;
    }
    let tier = v.range.signed_tier().max(v.tier());
    Value::of(
        tier,
        Range::unsigned(width),
        UnaryOf(Unary::SatUnsigned(width), v),
    )
}

pub(super) fn constant(v: &Value) -> Option<u64> {
    match &v.num {
        Num::N64(Node::Const(c), false) => Some(*c),
        Num::Big(Node::Const(c)) => c.to_u64(),
        _ => None,
    }
}
