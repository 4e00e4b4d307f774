// SPDX-License-Identifier: Apache-2.0
//! Expressions of the lowered program.

use num_bigint::BigInt;
use num_traits::{One, Zero};

use crate::ast::{BinOp, UnOp};
use crate::types::Type;

/// Type of a scalar value. Errors and enums without an underlying type are 32 bits wide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalar {
    Bool,
    Bit(u32),
    Int(u32),
    Varbit(u32),
}

impl Scalar {
    pub fn width(self) -> u32 {
        match self {
            Scalar::Bool => 1,
            Scalar::Bit(w) | Scalar::Int(w) | Scalar::Varbit(w) => w,
        }
    }

    pub fn as_type(self) -> Type {
        match self {
            Scalar::Bool => Type::Bool,
            Scalar::Bit(w) => Type::Bit(w),
            Scalar::Int(w) => Type::SInt(w),
            Scalar::Varbit(w) => Type::Varbit(w),
        }
    }
}

/// A header in storage.
#[derive(Clone, Debug, PartialEq)]
pub enum HeaderRef {
    Static(String),
    /// Element of a stack at a computed index.
    Elem {
        stack: String,
        index: Box<Ex>,
    },
    /// `stack.next` and `stack.last` in parsers.
    Next(String),
    Last(String),
    /// Member of `stack.next` / `stack.last` of a stack of unions.
    UnionNext {
        stack: String,
        member: String,
    },
    UnionLast {
        stack: String,
        member: String,
    },
    /// Member of the union at a computed index of a stack of unions.
    UnionElem {
        stack: String,
        index: Box<Ex>,
        member: usize,
    },
}

impl HeaderRef {
    /// `stack.next` by its index, which the target needs if the header is copied or set valid.
    pub fn by_index(self) -> HeaderRef {
        let HeaderRef::Next(stack) = self else {
            return self;
        };
        let last = Box::new(Ex::LastIndex(stack.clone()));
        let one = Box::new(Ex::bit(1, 32));
        let index = Box::new(Ex::Binary(BinOp::Add, last, one, Scalar::Bit(32)));
        HeaderRef::Elem { stack, index }
    }
}

/// A scalar expression; those of the first group also name storage.
#[derive(Clone, Debug, PartialEq)]
pub enum Ex {
    Field {
        header: String,
        field: String,
        ty: Scalar,
    },
    /// Field of a computed header; `index` is its position in the header.
    FieldOf {
        header: HeaderRef,
        field: String,
        index: usize,
        ty: Scalar,
    },
    Slice {
        base: Box<Ex>,
        hi: u32,
        lo: u32,
    },

    Const(BigInt, Scalar),
    /// Run-time parameter of the action around.
    Param(usize, Scalar),
    Valid(HeaderRef),
    /// True if any member of the union is valid.
    UnionValid(String),
    Unary(UnOp, Box<Ex>, Scalar),
    Binary(BinOp, Box<Ex>, Box<Ex>, Scalar),
    Cond(Box<Ex>, Box<Ex>, Box<Ex>, Scalar),
    Cast(Box<Ex>, Scalar),
    /// Bits of the packet ahead (parser only).
    Lookahead {
        offset: u32,
        width: u32,
        ty: Scalar,
    },
    /// `stack.lastIndex`
    LastIndex(String),
}

impl Ex {
    pub fn bit(value: impl Into<BigInt>, width: u32) -> Ex {
        Ex::Const(value.into(), Scalar::Bit(width))
    }

    pub fn bool(b: bool) -> Ex {
        Ex::Const(if b { BigInt::one() } else { BigInt::zero() }, Scalar::Bool)
    }

    pub fn ty(&self) -> Scalar {
        match self {
            Ex::Field { ty, .. }
            | Ex::FieldOf { ty, .. }
            | Ex::Const(_, ty)
            | Ex::Param(_, ty)
            | Ex::Unary(_, _, ty)
            | Ex::Binary(_, _, _, ty)
            | Ex::Cond(_, _, _, ty)
            | Ex::Cast(_, ty)
            | Ex::Lookahead { ty, .. } => *ty,
            Ex::Slice { hi, lo, .. } => Scalar::Bit(hi - lo + 1),
            Ex::Valid(_) | Ex::UnionValid(_) => Scalar::Bool,
            Ex::LastIndex(_) => Scalar::Bit(32),
        }
    }

    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Ex::Const(v, Scalar::Bool) => Some(!v.is_zero()),
            _ => None,
        }
    }

    pub fn is_const(&self) -> bool {
        matches!(self, Ex::Const(..))
    }

    /// Calls `f` on this expression and all inside it.
    pub fn visit(&self, f: &mut dyn FnMut(&Ex)) {
        f(self);
        let header = |h: &HeaderRef, f: &mut dyn FnMut(&Ex)| match h {
            HeaderRef::Elem { index, .. } | HeaderRef::UnionElem { index, .. } => index.visit(f),
            _ => {}
        };
        match self {
            Ex::FieldOf { header: h, .. } | Ex::Valid(h) => header(h, f),
            Ex::Slice { base, .. } | Ex::Unary(_, base, _) | Ex::Cast(base, _) => base.visit(f),
            Ex::Binary(_, a, b, _) => {
                a.visit(f);
                b.visit(f);
            }
            Ex::Cond(a, b, c, _) => {
                a.visit(f);
                b.visit(f);
                c.visit(f);
            }
            _ => {}
        }
    }
}
