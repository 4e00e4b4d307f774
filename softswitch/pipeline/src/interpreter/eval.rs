// SPDX-License-Identifier: Apache-2.0
//! Evaluates expressions, and resolves computed headers and keys.

use num_bigint::BigInt;

use crate::phv::Field;
use crate::program::control::CompiledTable;
use crate::program::expr::{Cond, DynField, HeaderRef, Node, Num, Order, UnionRef};
use crate::program::key_part::{ComputedPart, KeyPart};
use crate::program::layout::{HeaderId, Layout};
use crate::state::Register;
use crate::word::Word;

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

impl DynField {
    pub(crate) fn resolve(&self, env: &Env) -> Option<Field> {
        let header = self.header.resolve(env)?;
        env.layout.headers[header as usize]
            .fields
            .get(self.index)
            .copied()
    }
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
            Node::Cast(num) => match &**num {
                Num::N64(n, is_signed) => W::from_64(n.eval(env), *is_signed),
                Num::N128(n, is_signed) => W::from_128(n.eval(env), *is_signed),
                Num::Big(n) => W::from_big(n.eval(env)),
            },
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

impl ComputedPart {
    /// Adds the field to `key`, whose words are initially zero. They stay zero if the index is beyond the stack.
    pub(crate) fn load(&self, env: &Env, key: &mut [u64]) {
        if let Some(field) = self.field.resolve(env) {
            let part = KeyPart {
                field,
                ..self.part.clone()
            };
            part.load(env.mem, key);
        }
    }
}

impl CompiledTable {
    /// Builds a packet's lookup key.
    #[inline]
    pub(crate) fn load_key(&self, env: &Env, key: &mut Vec<u64>) {
        key.clear();
        key.resize(self.shape.words, 0);
        for part in &self.key {
            part.load(env.mem, key);
        }
        for part in &self.computed_key {
            part.load(env, key);
        }
    }
}
