// SPDX-License-Identifier: Apache-2.0
//! Generates code for values of up to 64 bits.

use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{InstBuilder, Value};

use super::generator::{Args, Gen, Result, Unsupported};
use super::runtime::{Callout, Context};
use crate::phv::mask64;
use crate::program::expr::{Node, Num};
use crate::state::view::View;

impl Gen<'_, '_> {
    pub(super) fn node(&mut self, n: &Node<u64>, a: Args) -> Result<Value> {
        Ok(match n {
            Node::Const(v) => self.int(*v),
            Node::Word(w) => self.get(*w)?,
            Node::Field(f) if self.reads(*f) => self.field64(*f)?,
            Node::Byte(off) => self.byte(*off)?,
            Node::Arg(first, count) => match count {
                0 => self.int(0),
                _ => self.argument(*first, a)?,
            },
            Node::Register(r) if self.c.info.registers[r.0 as usize].width <= 64 => {
                let index = self.node(&r.1, a)?;
                self.read_register(r.0, index)
            }
            Node::Cast(num) => match &**num {
                Num::N64(n, _) => self.node(n, a)?,
                Num::N128(n, _) => self.node128(n, a)?[0],
                Num::Big(_) => self.evaluate(n, a),
            },
            Node::Add(x) => {
                let (p, q) = (self.node(&x[0], a)?, self.node(&x[1], a)?);
                self.b.ins().iadd(p, q)
            }
            Node::Sub(x) => {
                let (p, q) = (self.node(&x[0], a)?, self.node(&x[1], a)?);
                self.b.ins().isub(p, q)
            }
            Node::Mul(x) => {
                let (p, q) = (self.node(&x[0], a)?, self.node(&x[1], a)?);
                self.b.ins().imul(p, q)
            }
            Node::And(x) => {
                let (p, q) = (self.node(&x[0], a)?, self.node(&x[1], a)?);
                self.b.ins().band(p, q)
            }
            Node::Or(x) => {
                let (p, q) = (self.node(&x[0], a)?, self.node(&x[1], a)?);
                self.b.ins().bor(p, q)
            }
            Node::Xor(x) => {
                let (p, q) = (self.node(&x[0], a)?, self.node(&x[1], a)?);
                self.b.ins().bxor(p, q)
            }
            Node::Not(x) => {
                let p = self.node(x, a)?;
                self.b.ins().bnot(p)
            }
            Node::Div(x) | Node::Mod(x) => {
                let (p, q) = (self.node(&x[0], a)?, self.node(&x[1], a)?);
                self.divide(p, q, matches!(n, Node::Div(_)))
            }
            Node::Shl(x) | Node::Shr(x) | Node::Sar(x) => {
                let p = self.node(&x.0, a)?;
                if let Node::Const(by) = x.1 {
                    let by = by.min(64) as u32;
                    match n {
                        Node::Shl(_) => self.shift_left(p, by),
                        Node::Shr(_) => self.shift_right(p, by),
                        _ => self.b.ins().sshr_imm(p, i64::from(by.min(63))),
                    }
                } else {
                    let by = self.node(&x.1, a)?;
                    self.shift(n, p, by)
                }
            }
            Node::Select(x) => {
                let (p, q) = (self.node(&x.1[0], a)?, self.node(&x.1[1], a)?);
                let c = self.truth(&x.0, a)?;
                self.b.ins().select(c, p, q)
            }
            Node::FromBool(c) => {
                let c = self.truth(c, a)?;
                self.b.ins().uextend(I64, c)
            }
            Node::SignExtend(x, width) => {
                let p = self.node(x, a)?;
                self.sign_extend(p, *width)
            }
            Node::SatUnsigned(x, width) => {
                let p = self.node(x, a)?;
                let (zero, most) = (self.int(0), self.int(mask64(*width)));
                let cut = self.b.ins().umin(p, most);
                let negative = self.compare(IntCC::SignedLessThan, p, zero);
                self.b.ins().select(negative, zero, cut)
            }
            Node::SatSigned(x, width) => {
                let p = self.node(x, a)?;
                let max = mask64(width.saturating_sub(1)) as i64 & i64::MAX;
                let (least, most) = (self.int((-max - 1) as u64), self.int(max as u64));
                let p = self.b.ins().smax(p, least);
                self.b.ins().smin(p, most)
            }
            Node::Field(_) | Node::Dyn(_) | Node::Register(_) => self.evaluate(n, a),
        })
    }

    /// Leaves a value to the interpreter.
    fn evaluate(&mut self, n: &Node<u64>, a: Args) -> Value {
        let n = self.address(n);
        let [args, count] = self.pass(a);
        self.call(Callout::Value, &[n, args, count])
    }

    /// Loads a limb of an argument.
    pub(super) fn argument(&mut self, limb: u32, a: Args) -> Result<Value> {
        match a {
            Args::Known(limbs) => {
                let v = *limbs.get(limb as usize).ok_or(Unsupported)?;
                Ok(self.int(v))
            }
            Args::At(at, n) if limb < n => {
                Ok(self.b.ins().load(I64, Self::other(), at, limb as i32 * 8))
            }
            Args::At(..) => Err(Unsupported),
        }
    }

    /// As in the interpreter, division by zero gives zero.
    fn divide(&mut self, p: Value, q: Value, quotient: bool) -> Value {
        let (zero, one) = (self.int(0), self.int(1));
        let by_zero = self.compare(IntCC::Equal, q, zero);
        let safe = self.b.ins().select(by_zero, one, q);
        let v = if quotient {
            self.b.ins().udiv(p, safe)
        } else {
            self.b.ins().urem(p, safe)
        };
        self.b.ins().select(by_zero, zero, v)
    }

    /// Compiles a shift by an amount that is known only at run time.
    fn shift(&mut self, n: &Node<u64>, p: Value, by: Value) -> Value {
        let (zero, last) = (self.int(0), self.int(63));
        let small = self.compare(IntCC::UnsignedLessThanOrEqual, by, last);
        match n {
            Node::Shl(_) => {
                let v = self.b.ins().ishl(p, by);
                self.b.ins().select(small, v, zero)
            }
            Node::Shr(_) => {
                let v = self.b.ins().ushr(p, by);
                self.b.ins().select(small, v, zero)
            }
            _ => {
                let by = self.b.ins().select(small, by, last);
                self.b.ins().sshr(p, by)
            }
        }
    }

    /// Loads the address and the number of an array's cells.
    pub(super) fn cells(&mut self, views: usize, array: u32) -> [Value; 2] {
        let views = self.context(views);
        let at = array as usize * size_of::<View>();
        let mut load = |field: usize| {
            self.b
                .ins()
                .load(I64, Self::other(), views, (at + field) as i32)
        };
        [load(offset_of!(View, cells)), load(offset_of!(View, len))]
    }

    /// Computes the address of cell `index` of `size` bytes.
    pub(super) fn cell(&mut self, cells: Value, index: Value, size: usize) -> Value {
        let at = self.b.ins().imul_imm(index, size as i64);
        self.b.ins().iadd(cells, at)
    }

    /// Loads a cell of a register of up to 64 bits; zero beyond its end.
    fn read_register(&mut self, register: u32, index: Value) -> Value {
        let [cells, len] = self.cells(offset_of!(Context, registers), register);
        let (inside, after) = (self.b.create_block(), self.b.create_block());
        let v = self.b.append_block_param(after, I64);
        let fits = self.compare(IntCC::UnsignedLessThan, index, len);
        let zero = self.int(0);
        let known = self.known.clone();
        self.b.ins().brif(fits, inside, &[], after, &[zero.into()]);
        self.b.switch_to_block(inside);
        let cell = self.cell(cells, index, 8);
        let read = self.b.ins().load(I64, Self::other(), cell, 0);
        self.b.ins().jump(after, &[read.into()]);
        self.b.switch_to_block(after);
        self.known = known;
        v
    }
}
