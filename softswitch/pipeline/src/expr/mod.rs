// SPDX-License-Identifier: Apache-2.0
//! Compiled expressions.
//!
//! BMv2 computes with unbounded signed integers and truncates the result on assignment. For each operation, the loader
//! determines how many bits matter or can occur, and chooses the narrowest of three kinds of arithmetic that gives the
//! same result: 64 bits, 128 bits, or unbounded.

mod word;

use num_bigint::BigInt;

use crate::extern_state::Register;
use crate::layout::{HeaderId, Layout};
use crate::phv::{Field, Word as FieldWord};
pub(crate) use word::Word;

/// The data that expressions read.
#[derive(Clone, Copy)]
pub(crate) struct Env<'a> {
    /// Headers and metadata.
    pub(crate) mem: &'a [u8],
    /// Arguments of the action.
    pub(crate) args: &'a [u64],
    pub(crate) layout: &'a Layout,
    pub(crate) registers: &'a [Register],
}

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

impl UnionRef {
    pub(crate) fn resolve(&self, env: &Env) -> Option<u32> {
        let stacks = &env.layout.union_stacks;
        match self {
            UnionRef::Static(u) => Some(*u),
            UnionRef::Element(e) => stacks[e.0 as usize]
                .elements
                .get(e.1.eval(env) as usize)
                .copied(),
            UnionRef::Last(s) => {
                let stack = &stacks[*s as usize];
                let last = env.mem[stack.next as usize].checked_sub(1)?;
                stack.elements.get(usize::from(last)).copied()
            }
        }
    }
}

impl HeaderRef {
    /// Returns the header; `None` if a stack index is out of range.
    #[inline]
    pub(crate) fn resolve(&self, env: &Env) -> Option<HeaderId> {
        match self {
            HeaderRef::Static(h) => Some(*h),
            HeaderRef::Element(e) => {
                let stack = &env.layout.stacks[e.0 as usize];
                stack
                    .elements
                    .get(usize::try_from(e.1.eval(env)).ok()?)
                    .copied()
            }
            HeaderRef::Last(s) => {
                let stack = &env.layout.stacks[*s as usize];
                let last = env.mem[stack.next as usize].checked_sub(1)?;
                stack.elements.get(usize::from(last)).copied()
            }
            HeaderRef::Member(u, member) => {
                let u = u.resolve(env)?;
                env.layout.unions[u as usize]
                    .members
                    .get(*member as usize)
                    .copied()
            }
        }
    }
}

/// A field of a computed header.
#[derive(Debug, Clone)]
pub(crate) struct DynField {
    pub(crate) header: HeaderRef,
    pub(crate) index: usize,
}

impl DynField {
    pub(crate) fn resolve(&self, env: &Env) -> Option<Field> {
        let header = self.header.resolve(env)?;
        env.layout.headers[header as usize]
            .fields
            .get(self.index)
            .copied()
    }
}

/// An expression in arithmetic of kind `W`.
#[derive(Debug, Clone)]
pub(crate) enum Node<W> {
    Const(W),
    /// An unsigned field of up to 64 bits.
    Word(FieldWord),
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

impl<W: Word> Node<W> {
    #[inline]
    pub(crate) fn eval(&self, env: &Env) -> W {
        match self {
            Node::Const(w) => w.clone(),
            Node::Word(f) => W::from_u64(f.get(env.mem)),
            Node::Arg(first, 1) => W::from_u64(env.args[*first as usize]),
            Node::And(x) => x[0].eval(env).and(&x[1].eval(env)),
            Node::Add(x) => x[0].eval(env).add(&x[1].eval(env)),
            _ => self.eval_rest(env),
        }
    }

    fn eval_rest(&self, env: &Env) -> W {
        match self {
            Node::Const(_) | Node::Word(_) | Node::And(_) | Node::Add(_) => self.eval(env),
            Node::Field(f) => W::from_field(f, env.mem),
            Node::Dyn(d) => match d.resolve(env) {
                Some(f) => W::from_field(&f, env.mem),
                None => W::from_u64(0),
            },
            Node::Byte(off) => W::from_u64(u64::from(env.mem[*off as usize])),
            Node::Arg(first, count) => {
                W::from_limbs(&env.args[*first as usize..(*first + *count) as usize])
            }
            Node::Register(r) => {
                let index = usize::try_from(r.1.eval(env)).unwrap_or(usize::MAX);
                env.registers[r.0 as usize].get(index)
            }
            Node::Cast(num) => W::from_num(num, env),
            Node::Sub(x) => x[0].eval(env).sub(&x[1].eval(env)),
            Node::Mul(x) => x[0].eval(env).mul(&x[1].eval(env)),
            Node::Div(x) => x[0].eval(env).div(&x[1].eval(env)),
            Node::Mod(x) => x[0].eval(env).rem(&x[1].eval(env)),
            Node::Or(x) => x[0].eval(env).or(&x[1].eval(env)),
            Node::Xor(x) => x[0].eval(env).xor(&x[1].eval(env)),
            Node::Not(x) => x.eval(env).not(),
            Node::Shl(x) => x.0.eval(env).shl(x.1.eval(env)),
            Node::Shr(x) => x.0.eval(env).shr(x.1.eval(env)),
            Node::Sar(x) => x.0.eval(env).sar(x.1.eval(env)),
            Node::Select(x) => x.1[usize::from(!x.0.eval(env))].eval(env),
            Node::FromBool(c) => W::from_u64(u64::from(c.eval(env))),
            Node::SignExtend(x, width) => x.eval(env).sign_extend(*width),
            Node::SatUnsigned(x, width) => x.eval(env).sat_unsigned(*width),
            Node::SatSigned(x, width) => x.eval(env).sat_signed(*width),
        }
    }
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
    WordNonZero(FieldWord),
    /// An unsigned field of up to 64 bits has this value.
    WordEq(FieldWord, u64),
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

fn cmp<T: Ord>(order: Order, a: &T, b: &T) -> bool {
    match order {
        Order::Eq => a == b,
        Order::Lt => a < b,
        Order::Le => a <= b,
    }
}

impl Cond {
    #[inline]
    pub(crate) fn eval(&self, env: &Env) -> bool {
        match self {
            Cond::Valid(off) => env.mem[*off as usize] != 0,
            Cond::WordNonZero(f) => f.get(env.mem) != 0,
            Cond::WordEq(f, v) => f.get(env.mem) == *v,
            Cond::Eq64(x) => x[0].eval(env) == x[1].eval(env),
            Cond::And(x) => x[0].eval(env) && x[1].eval(env),
            _ => self.eval_rest(env),
        }
    }

    fn eval_rest(&self, env: &Env) -> bool {
        match self {
            Cond::Valid(_)
            | Cond::WordNonZero(_)
            | Cond::WordEq(..)
            | Cond::Eq64(_)
            | Cond::And(_) => self.eval(env),
            Cond::Const(b) => *b,
            Cond::ValidDyn(h) => h
                .resolve(env)
                .is_some_and(|h| env.layout.headers[h as usize].is_valid(env.mem)),
            Cond::ValidUnion(u) => u.resolve(env).is_some_and(|u| {
                let members = &env.layout.unions[u as usize].members;
                members
                    .iter()
                    .any(|&h| env.layout.headers[h as usize].is_valid(env.mem))
            }),
            Cond::Cmp64(order, signed, x) => {
                let (a, b) = (x[0].eval(env), x[1].eval(env));
                if *signed {
                    cmp(*order, &(a as i64), &(b as i64))
                } else {
                    cmp(*order, &a, &b)
                }
            }
            Cond::Cmp128(order, signed, x) => {
                let (a, b) = (x[0].eval(env), x[1].eval(env));
                if *signed {
                    cmp(*order, &(a as i128), &(b as i128))
                } else {
                    cmp(*order, &a, &b)
                }
            }
            Cond::CmpBig(order, x) => cmp(*order, &x[0].eval(env), &x[1].eval(env)),
            Cond::NonZero(num) => match &**num {
                Num::N64(n, _) => n.eval(env) != 0,
                Num::N128(n, _) => n.eval(env) != 0,
                Num::Big(n) => n.eval(env) != BigInt::ZERO,
            },
            Cond::Or(x) => x[0].eval(env) || x[1].eval(env),
            Cond::Not(x) => !x.eval(env),
            Cond::Same(x) => x[0].eval(env) == x[1].eval(env),
            Cond::Select(x) => {
                if x[0].eval(env) {
                    x[1].eval(env)
                } else {
                    x[2].eval(env)
                }
            }
            Cond::SameHeader(x) => match (x[0].resolve(env), x[1].resolve(env)) {
                (Some(a), Some(b)) => same_header(env, a, b),
                _ => false,
            },
            Cond::SameUnion(x) => match (x[0].resolve(env), x[1].resolve(env)) {
                (Some(a), Some(b)) => {
                    let unions = &env.layout.unions;
                    let pairs = unions[a as usize]
                        .members
                        .iter()
                        .zip(&unions[b as usize].members);
                    pairs.into_iter().any(|(&a, &b)| same_header(env, a, b))
                }
                _ => false,
            },
        }
    }
}

/// As in BMv2: both valid, of one type, with equal fields.
fn same_header(env: &Env, a: HeaderId, b: HeaderId) -> bool {
    let (a, b) = (
        &env.layout.headers[a as usize],
        &env.layout.headers[b as usize],
    );
    a.type_name == b.type_name
        && a.is_valid(env.mem)
        && b.is_valid(env.mem)
        && a.fields.iter().zip(&b.fields).all(|(x, y)| {
            x.varbit_len(env.mem) == y.varbit_len(env.mem)
                && x.get_big(env.mem) == y.get_big(env.mem)
        })
}
