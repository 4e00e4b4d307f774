// SPDX-License-Identifier: Apache-2.0
//! Counters of TNA's parsers.

use num_traits::ToPrimitive;

use super::tna_externs::Call;
use super::value::Val;
use super::{Lower, Place, fold};
use crate::ast::BinOp;
use crate::ir::{Architecture, Ex, Scalar, StKind};

/// Width of a parser counter in bits.
const COUNTER_WIDTH: u32 = 8;

impl<'a> Lower<'a> {
    /// Lowers the methods of `ParserCounter`; `None` if there is no such method.
    pub(super) fn parser_counter(&mut self, call: &Call<'a, '_>) -> Option<Val> {
        self.allowed_in(call, &[Place::Parser]);
        let counter = self.counter_variable(call.object);
        let width = Scalar::Bit(COUNTER_WIDTH);
        let value = match call.method() {
            "set" => self.counter_start(call),
            "increment" | "decrement" => {
                let by = self.input(call.info, call.args, 0);
                let op = match call.method() {
                    "increment" => BinOp::Add,
                    _ => BinOp::Sub,
                };
                fold::binary(op, counter.clone(), fold::cast(by, width))
            }
            "is_zero" => {
                let zero = Ex::bit(0, COUNTER_WIDTH);
                return Some(Val::Scalar(fold::binary(BinOp::Eq, counter, zero)));
            }
            "is_negative" => {
                let sign = fold::slice(counter, COUNTER_WIDTH - 1, COUNTER_WIDTH - 1);
                return Some(Val::Scalar(fold::binary(BinOp::Eq, sign, Ex::bit(1, 1))));
            }
            _ => return None,
        };
        self.emit(StKind::Assign(counter, value));
        Some(Val::Unit)
    }

    fn counter_variable(&mut self, object: usize) -> Ex {
        if let Some(known) = self.tofino.counters.get(&object) {
            return known.clone();
        }
        let name = self.ir.objects[object].name.clone();
        let variable = self.scalar_variable(&name, Scalar::Bit(COUNTER_WIDTH));
        self.tofino.counters.insert(object, variable.clone());
        variable
    }

    /// Returns the value that `set` gives a counter: a number, or a field that is limited, rotated, masked and increased.
    fn counter_start(&mut self, call: &Call<'a, '_>) -> Ex {
        let width = Scalar::Bit(COUNTER_WIDTH);
        let start = self.input(call.info, call.args, 0);
        let number = |s: &mut Self, name: &str| {
            let e = call.argument(name)?;
            let n = s.number(e).and_then(|n| n.to_u32());
            if n.is_none() {
                s.error(e.span, "this must be a number known at compile time");
            }
            n
        };
        let Some(max) = number(self, "max") else {
            return fold::cast(start, width);
        };
        let rotate = number(self, "rotate").unwrap_or(0) % COUNTER_WIDTH;
        let mask = number(self, "mask").unwrap_or(0xff);
        let add = number(self, "add").unwrap_or(0);
        let limit = Ex::bit(max, start.ty().width().max(32));
        let wide = fold::cast(start.clone(), limit.ty());
        let allowed = fold::binary(BinOp::Le, wide, limit);
        let error = self.t.errors.iter().position(|e| &**e == "CounterRange");
        let error = Ex::bit(error.unwrap_or(0), 32);
        self.emit(StKind::Verify(allowed, error));
        let start = fold::cast(start, width);
        let rotated = match rotate {
            0 => start,
            n => {
                let right = fold::binary(BinOp::Shr, start.clone(), Ex::bit(n, 32));
                let left = fold::binary(BinOp::Shl, start, Ex::bit(COUNTER_WIDTH - n, 32));
                fold::binary(BinOp::BitOr, right, left)
            }
        };
        // Tofino 1 takes the number of the mask's highest bit instead of the mask.
        let mask = match self.ir.architecture {
            Architecture::Tna => super::ones(mask % COUNTER_WIDTH + 1),
            _ => mask.into(),
        };
        let masked = fold::binary(BinOp::BitAnd, rotated, fold::constant(&mask, width));
        fold::binary(BinOp::Add, masked, Ex::bit(add & 0xff, COUNTER_WIDTH))
    }
}
