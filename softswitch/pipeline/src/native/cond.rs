// SPDX-License-Identifier: Apache-2.0
//! Generates code for truth values and branches.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I8;
use cranelift_codegen::ir::{Block, InstBuilder, Value};

use super::generator::{Args, Gen, Result};
use super::runtime::Callout;
use crate::phv::Word;
use crate::program::expr::{Cond, Num, Order};

fn code(order: Order, signed: bool) -> IntCC {
    match (order, signed) {
        (Order::Eq, _) => IntCC::Equal,
        (Order::Lt, true) => IntCC::SignedLessThan,
        (Order::Lt, false) => IntCC::UnsignedLessThan,
        (Order::Le, true) => IntCC::SignedLessThanOrEqual,
        (Order::Le, false) => IntCC::UnsignedLessThanOrEqual,
    }
}

impl Gen<'_, '_> {
    /// Compiles a truth value, 0 or 1. Operands have no side effects, so there is no short-circuit evaluation.
    pub(super) fn truth(&mut self, c: &Cond, a: Args) -> Result<Value> {
        if let Some(holds) = self.decided(c) {
            return Ok(self.b.ins().iconst(I8, i64::from(holds)));
        }
        Ok(match c {
            Cond::Const(v) => self.b.ins().iconst(I8, i64::from(*v)),
            Cond::Valid(off) => {
                let v = self.byte(*off)?;
                self.b.ins().icmp_imm(IntCC::NotEqual, v, 0)
            }
            Cond::WordNonZero(w) => {
                let v = self.get(*w)?;
                self.b.ins().icmp_imm(IntCC::NotEqual, v, 0)
            }
            Cond::WordEq(w, than) => {
                let (v, than) = (self.get(*w)?, self.int(*than));
                self.compare(IntCC::Equal, v, than)
            }
            Cond::Eq64(x) => {
                let (p, q) = (self.node(&x[0], a)?, self.node(&x[1], a)?);
                self.compare(IntCC::Equal, p, q)
            }
            Cond::Cmp64(order, signed, x) => {
                let (p, q) = (self.node(&x[0], a)?, self.node(&x[1], a)?);
                self.compare(code(*order, *signed), p, q)
            }
            Cond::Cmp128(order, signed, x) => {
                let (p, q) = (self.node128(&x[0], a)?, self.node128(&x[1], a)?);
                let low = self.compare(code(*order, false), p[0], q[0]);
                let same = self.compare(IntCC::Equal, p[1], q[1]);
                let both = self.b.ins().band(same, low);
                if *order == Order::Eq {
                    return Ok(both);
                }
                let above = self.compare(code(Order::Lt, *signed), p[1], q[1]);
                self.b.ins().bor(above, both)
            }
            Cond::NonZero(num) => match &**num {
                Num::N64(n, _) => {
                    let v = self.node(n, a)?;
                    self.b.ins().icmp_imm(IntCC::NotEqual, v, 0)
                }
                Num::N128(n, _) => {
                    let v = self.node128(n, a)?;
                    let v = self.b.ins().bor(v[0], v[1]);
                    self.b.ins().icmp_imm(IntCC::NotEqual, v, 0)
                }
                Num::Big(_) => self.decide(c, a),
            },
            Cond::And(x) => {
                let (p, q) = (self.truth(&x[0], a)?, self.truth(&x[1], a)?);
                self.b.ins().band(p, q)
            }
            Cond::Or(x) => {
                let (p, q) = (self.truth(&x[0], a)?, self.truth(&x[1], a)?);
                self.b.ins().bor(p, q)
            }
            Cond::Same(x) => {
                let (p, q) = (self.truth(&x[0], a)?, self.truth(&x[1], a)?);
                self.compare(IntCC::Equal, p, q)
            }
            Cond::Not(x) => {
                let p = self.truth(x, a)?;
                self.b.ins().bxor_imm(p, 1)
            }
            Cond::Select(x) => {
                let c = self.truth(&x[0], a)?;
                let (p, q) = (self.truth(&x[1], a)?, self.truth(&x[2], a)?);
                self.b.ins().select(c, p, q)
            }
            Cond::ValidDyn(_)
            | Cond::ValidUnion(_)
            | Cond::CmpBig(..)
            | Cond::SameHeader(_)
            | Cond::SameUnion(_) => self.decide(c, a),
        })
    }

    /// Returns the outcome of a condition if the known numbers of fields decide it.
    fn decided(&self, c: &Cond) -> Option<bool> {
        match c {
            Cond::Const(holds) => Some(*holds),
            Cond::Valid(off) => Some(self.known_number(Word::byte(*off))? != 0),
            Cond::WordNonZero(w) => Some(self.known_number(*w)? != 0),
            Cond::WordEq(w, than) => Some(self.known_number(*w)? == *than),
            Cond::Not(x) => Some(!self.decided(x)?),
            Cond::And(x) => match (self.decided(&x[0]), self.decided(&x[1])) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (p, q) => Some(p? && q?),
            },
            Cond::Or(x) => match (self.decided(&x[0]), self.decided(&x[1])) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (p, q) => Some(p? || q?),
            },
            _ => None,
        }
    }

    /// Returns a field, and its numbers where a condition is true and where it is false, as far as the condition implies
    /// them.
    fn implied(&self, c: &Cond) -> Option<(Word, Option<u64>, Option<u64>)> {
        match c {
            Cond::Valid(off) => Some((Word::byte(*off), Some(1), Some(0))),
            Cond::WordNonZero(w) => Some((*w, self.is_bit(*w).then_some(1), Some(0))),
            Cond::WordEq(w, than) => {
                let other = (*than <= 1 && self.is_bit(*w)).then(|| 1 - *than);
                Some((*w, Some(*than), other))
            }
            _ => None,
        }
    }

    /// Leaves a condition to the interpreter.
    fn decide(&mut self, c: &Cond, a: Args) -> Value {
        let c = self.address(c);
        let [args, count] = self.pass(a);
        let v = self.call(Callout::Condition, &[c, args, count]);
        self.b.ins().ireduce(I8, v)
    }

    /// Compiles a branch to `then` or `other`.
    pub(super) fn branch(&mut self, c: &Cond, a: Args, then: Block, other: Block) -> Result<()> {
        if let Some(holds) = self.decided(c) {
            self.jump(if holds { then } else { other });
            return Ok(());
        }
        match c {
            Cond::Not(x) => self.branch(x, a, other, then),
            Cond::And(x) | Cond::Or(x) => {
                let second = self.b.create_block();
                if matches!(c, Cond::And(_)) {
                    self.branch(&x[0], a, second, other)?;
                } else {
                    self.branch(&x[0], a, then, second)?;
                }
                self.enter(second)?;
                self.branch(&x[1], a, then, other)
            }
            _ => {
                let v = self.truth(c, a)?;
                match self.implied(c) {
                    Some((w, yes, no)) => self.brif_knowing(v, (then, yes), (other, no), w),
                    None => self.brif(v, then, other),
                }
                Ok(())
            }
        }
    }
}
