// SPDX-License-Identifier: Apache-2.0
//! Compiled expressions.
//!
//! BMv2 computes with unbounded signed integers and truncates the result on assignment. For each operation, the loader
//! determines how many bits matter or can occur, and chooses the narrowest of three kinds of arithmetic that gives the
//! same result: 64 bits, 128 bits, or unbounded.

use num_bigint::BigInt;

use super::layout::HeaderId;
use crate::phv::{Field, Word};

/// A header, known at load time or computed.
#[derive(Debug, Clone)]
pub(crate) enum HeaderRef {
    Static(HeaderId),
    /// An element of a stack.
    Element(Box<(u32, Node<u64>)>),
    /// The last filled element of a stack.
    Last(u32),
    /// A member of a union.
    Member(UnionRef, u32),
}

/// A header union, known at load time or computed.
#[derive(Debug, Clone)]
pub(crate) enum UnionRef {
    Static(u32),
    /// An element of a stack of unions.
    Element(Box<(u32, Node<u64>)>),
    /// The last filled element of a stack of unions.
    Last(u32),
}

/// A field of a computed header.
#[derive(Debug, Clone)]
pub(crate) struct DynField {
    pub(crate) header: HeaderRef,
    pub(crate) index: usize,
}

/// An expression in arithmetic of kind `W`.
#[derive(Debug, Clone)]
pub(crate) enum Node<W> {
    Const(W),
    /// An unsigned field of up to 64 bits.
    Word(Word),
    Field(Field),
    Dyn(Box<DynField>),
    /// The byte at an offset: the fill count of a stack.
    Byte(u32),
    /// Argument of the action: first 64-bit limb and number of limbs.
    Arg(u32, u32),
    Register(Box<(u32, Node<u64>)>),
    /// The same value in another kind of arithmetic.
    Cast(Box<Num>),
    Add(Box<[Node<W>; 2]>),
    Sub(Box<[Node<W>; 2]>),
    Mul(Box<[Node<W>; 2]>),
    Div(Box<[Node<W>; 2]>),
    Mod(Box<[Node<W>; 2]>),
    And(Box<[Node<W>; 2]>),
    Or(Box<[Node<W>; 2]>),
    Xor(Box<[Node<W>; 2]>),
    Not(Box<Node<W>>),
    Shl(Box<(Node<W>, Node<u64>)>),
    /// Logical shift of an unsigned value.
    Shr(Box<(Node<W>, Node<u64>)>),
    /// Arithmetic shift of a signed value.
    Sar(Box<(Node<W>, Node<u64>)>),
    Select(Box<(Cond, [Node<W>; 2])>),
    FromBool(Box<Cond>),
    /// The low bits as a signed number.
    SignExtend(Box<Node<W>>, u32),
    /// A signed value, saturated to an unsigned number of this width.
    SatUnsigned(Box<Node<W>>, u32),
    /// A signed value, saturated to a signed number of this width.
    SatSigned(Box<Node<W>>, u32),
}

/// A value, and true if its word is signed.
#[derive(Debug, Clone)]
pub(crate) enum Num {
    N64(Node<u64>, bool),
    N128(Node<u128>, bool),
    Big(Node<BigInt>),
}

/// An order between two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    Eq,
    Lt,
    Le,
}

/// A truth value.
#[derive(Debug, Clone)]
pub(crate) enum Cond {
    Const(bool),
    /// The validity byte at this offset.
    Valid(u32),
    /// An unsigned field of up to 64 bits is not zero.
    WordNonZero(Word),
    /// An unsigned field of up to 64 bits has this value.
    WordEq(Word, u64),
    ValidDyn(Box<HeaderRef>),
    ValidUnion(Box<UnionRef>),
    Eq64(Box<[Node<u64>; 2]>),
    /// 64 bits: order, signed.
    Cmp64(Order, bool, Box<[Node<u64>; 2]>),
    /// 128 bits: order, signed.
    Cmp128(Order, bool, Box<[Node<u128>; 2]>),
    CmpBig(Order, Box<[Node<BigInt>; 2]>),
    NonZero(Box<Num>),
    And(Box<[Cond; 2]>),
    Or(Box<[Cond; 2]>),
    Not(Box<Cond>),
    Same(Box<[Cond; 2]>),
    Select(Box<[Cond; 3]>),
    SameHeader(Box<[HeaderRef; 2]>),
    SameUnion(Box<[UnionRef; 2]>),
}
