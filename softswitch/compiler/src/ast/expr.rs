// SPDX-License-Identifier: Apache-2.0
//! Expressions and type references of the syntax tree.

use std::rc::Rc;

use num_bigint::BigInt;

use super::{Ident, Name, NodeId};
use crate::diag::Span;

#[derive(Clone, Debug)]
pub struct Arg {
    pub name: Option<Ident>,
    pub expr: Expr,
}

#[derive(Clone, Debug)]
pub struct Expr {
    pub id: NodeId,
    pub span: Span,
    pub kind: ExprKind,
}

#[derive(Clone, Debug)]
pub enum ExprKind {
    Int {
        value: BigInt,
        width: Option<(u32, bool)>,
    },
    Bool(bool),
    Str(Rc<str>),
    /// A variable, constant, type, ... ; `global` if written `.name`.
    Name {
        name: Name,
        global: bool,
    },
    /// A type with arguments, used as the root of an expression.
    Type(TypeRef),
    Member(Box<Expr>, Ident),
    Index(Box<Expr>, Box<Expr>),
    Slice(Box<Expr>, Box<Expr>, Box<Expr>),
    /// `e[base +: width]`
    PlusSlice(Box<Expr>, Box<Expr>, Box<Expr>),
    Unary(UnOp, Box<Expr>),
    Binary(BinOp, Box<Expr>, Box<Expr>),
    Ternary(Box<Expr>, Box<Expr>, Box<Expr>),
    Cast(TypeRef, Box<Expr>),
    Call {
        callee: Box<Expr>,
        targs: Vec<TypeRef>,
        args: Vec<Arg>,
    },
    /// `{ a, b }`; `dots` if it ends in `...`.
    List {
        items: Vec<Expr>,
        dots: bool,
    },
    /// `{ x = a, y = b }`
    Record {
        fields: Vec<(Ident, Expr)>,
        dots: bool,
    },
    /// `{#}`
    InvalidHeader,
    /// `...`: the default value of its type
    Dots,
    /// `default` in a keyset
    Default,
    /// `_`
    DontCare,
    Mask(Box<Expr>, Box<Expr>),
    Range(Box<Expr>, Box<Expr>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnOp {
    Neg,
    Plus,
    BitNot,
    Not,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinOp {
    Add,
    Sub,
    SatAdd,
    SatSub,
    Mul,
    Div,
    Mod,
    BitAnd,
    BitOr,
    BitXor,
    Shl,
    Shr,
    And,
    Or,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    Concat,
}

#[derive(Clone, Debug)]
pub struct TypeRef {
    pub id: NodeId,
    pub span: Span,
    pub kind: TypeRefKind,
}

#[derive(Clone, Debug)]
pub enum TypeRefKind {
    Void,
    Bool,
    Error,
    String,
    MatchKind,
    /// `int` of any size
    Int,
    Bit(Box<Expr>),
    SInt(Box<Expr>),
    Varbit(Box<Expr>),
    Tuple(Vec<TypeRef>),
    List(Box<TypeRef>),
    Named {
        name: Name,
        global: bool,
        args: Vec<TypeRef>,
    },
    Stack(Box<TypeRef>, Box<Expr>),
    DontCare,
}
