// SPDX-License-Identifier: Apache-2.0
//! Generates code for values of up to 128 bits, as pairs of words.

use cranelift_codegen::ir::InstBuilder;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I64;

use super::generator::{Args, Gen, Result};
use super::memory::Pair;
use super::runtime::Callout;
use crate::phv::{Field, Place};
use crate::program::expr::{Node, Num};

impl Gen<'_, '_> {
    /// Returns true if native code reads this field.
    pub(super) fn reads(&self, f: Field) -> bool {
        match f.place {
            Place::Word(_) => true,
            Place::Bits(_) => f.width > 64 && f.width <= 128,
            Place::Varbit { .. } => false,
        }
    }

    pub(super) fn node128(&mut self, n: &Node<u128>, a: Args) -> Result<Pair> {
        Ok(match n {
            Node::Const(v) => [self.int(*v as u64), self.int((*v >> 64) as u64)],
            Node::Word(w) => [self.get(*w)?, self.int(0)],
            Node::Field(f) if self.reads(*f) => self.field128(*f)?,
            Node::Byte(off) => [self.byte(*off)?, self.int(0)],
            Node::Arg(first, count) => {
                let limb = |g: &mut Self, i: u32| match i < *count {
                    true => g.argument(*first + i, a),
                    false => Ok(g.int(0)),
                };
                [limb(self, 0)?, limb(self, 1)?]
            }
            Node::Cast(num) => match &**num {
                Num::N64(n, signed) => {
                    let low = self.node(n, a)?;
                    let high = if *signed {
                        self.b.ins().sshr_imm(low, 63)
                    } else {
                        self.int(0)
                    };
                    [low, high]
                }
                Num::N128(n, _) => self.node128(n, a)?,
                Num::Big(_) => self.evaluate128(n, a),
            },
            Node::Add(x) => {
                let (p, q) = (self.node128(&x[0], a)?, self.node128(&x[1], a)?);
                let low = self.b.ins().iadd(p[0], q[0]);
                let carry = self.compare(IntCC::UnsignedLessThan, low, p[0]);
                let carry = self.b.ins().uextend(I64, carry);
                let high = self.b.ins().iadd(p[1], q[1]);
                [low, self.b.ins().iadd(high, carry)]
            }
            Node::Sub(x) => {
                let (p, q) = (self.node128(&x[0], a)?, self.node128(&x[1], a)?);
                let low = self.b.ins().isub(p[0], q[0]);
                let borrow = self.compare(IntCC::UnsignedLessThan, p[0], q[0]);
                let borrow = self.b.ins().uextend(I64, borrow);
                let high = self.b.ins().isub(p[1], q[1]);
                [low, self.b.ins().isub(high, borrow)]
            }
            Node::Mul(x) => {
                let (p, q) = (self.node128(&x[0], a)?, self.node128(&x[1], a)?);
                let low = self.b.ins().imul(p[0], q[0]);
                let high = self.b.ins().umulhi(p[0], q[0]);
                let cross = self.b.ins().imul(p[0], q[1]);
                let high = self.b.ins().iadd(high, cross);
                let cross = self.b.ins().imul(p[1], q[0]);
                [low, self.b.ins().iadd(high, cross)]
            }
            Node::And(x) => {
                let (p, q) = (self.node128(&x[0], a)?, self.node128(&x[1], a)?);
                [self.b.ins().band(p[0], q[0]), self.b.ins().band(p[1], q[1])]
            }
            Node::Or(x) => {
                let (p, q) = (self.node128(&x[0], a)?, self.node128(&x[1], a)?);
                [self.b.ins().bor(p[0], q[0]), self.b.ins().bor(p[1], q[1])]
            }
            Node::Xor(x) => {
                let (p, q) = (self.node128(&x[0], a)?, self.node128(&x[1], a)?);
                [self.b.ins().bxor(p[0], q[0]), self.b.ins().bxor(p[1], q[1])]
            }
            Node::Not(x) => {
                let p = self.node128(x, a)?;
                [self.b.ins().bnot(p[0]), self.b.ins().bnot(p[1])]
            }
            Node::Shl(x) | Node::Shr(x) if matches!(x.1, Node::Const(_)) => {
                let p = self.node128(&x.0, a)?;
                let Node::Const(by) = x.1 else {
                    unreachable!("matched above")
                };
                let by = by.min(128) as u32;
                if matches!(n, Node::Shl(_)) {
                    self.pair_shl(p, by)
                } else {
                    self.pair_shr(p, by)
                }
            }
            Node::Select(x) => {
                let (p, q) = (self.node128(&x.1[0], a)?, self.node128(&x.1[1], a)?);
                let c = self.truth(&x.0, a)?;
                [
                    self.b.ins().select(c, p[0], q[0]),
                    self.b.ins().select(c, p[1], q[1]),
                ]
            }
            Node::FromBool(c) => {
                let c = self.truth(c, a)?;
                [self.b.ins().uextend(I64, c), self.int(0)]
            }
            Node::SignExtend(x, width) => {
                let p = self.node128(x, a)?;
                self.pair_sign_extend(p, *width)
            }
            _ => self.evaluate128(n, a),
        })
    }

    /// Leaves a value to the interpreter.
    fn evaluate128(&mut self, n: &Node<u128>, a: Args) -> Pair {
        let n = self.address(n);
        let [args, count] = self.pass(a);
        let slot = self.buffer(16);
        let to = self.b.ins().stack_addr(I64, slot, 0);
        self.call(Callout::Wide, &[n, args, count, to]);
        [
            self.b.ins().stack_load(I64, slot, 0),
            self.b.ins().stack_load(I64, slot, 8),
        ]
    }

    pub(super) fn pair_shl(&mut self, [low, high]: Pair, by: u32) -> Pair {
        if by >= 64 {
            return [self.int(0), self.shift_left(low, by - 64)];
        }
        let carried = self.shift_right(low, 64 - by);
        let high = self.shift_left(high, by);
        [self.shift_left(low, by), self.b.ins().bor(high, carried)]
    }

    pub(super) fn pair_shr(&mut self, [low, high]: Pair, by: u32) -> Pair {
        if by >= 64 {
            return [self.shift_right(high, by - 64), self.int(0)];
        }
        let carried = self.shift_left(high, 64 - by);
        let low = self.shift_right(low, by);
        [self.b.ins().bor(low, carried), self.shift_right(high, by)]
    }

    /// Sign-extends the low `width` bits.
    pub(super) fn pair_sign_extend(&mut self, [low, high]: Pair, width: u32) -> Pair {
        if width > 64 {
            return [low, self.sign_extend(high, width.min(128) - 64)];
        }
        let low = self.sign_extend(low, width);
        [low, self.b.ins().sshr_imm(low, 63)]
    }
}
