// SPDX-License-Identifier: Apache-2.0
//! Generates code for hashes: it builds the input on the stack and calls the hash function.

use std::collections::BTreeSet;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{InstBuilder, StackSlot, Value};

use super::generator::{Gen, Result};
use super::memory::{kind, pieces};
use super::runtime::Callout;
use crate::phv::Place;
use crate::program::calculation::{Calculation, Input};

/// Maximum size in bytes of an input that native code builds.
const MAX_INPUT: usize = 256;

/// Returns the size of an input that consists of whole bytes and always has the same length.
fn input_bytes(c: &Calculation) -> Option<usize> {
    let bits = |i: &Input| match i {
        Input::Field(_, f) => match f.place {
            Place::Word(_) => Some(f.width as usize),
            _ => None,
        },
        Input::Span(_, bit, bits) if bit.is_multiple_of(8) => Some(*bits as usize),
        Input::Span(..) => None,
        Input::Const(bytes, bits) => (bytes.len() * 8 == *bits).then_some(*bits),
    };
    let bytes = c
        .inputs
        .iter()
        .map(|i| bits(i).filter(|b| b % 8 == 0).map(|b| b / 8));
    let total = bytes.sum::<Option<usize>>()?;
    (!c.payload && total <= MAX_INPUT).then_some(total)
}

impl Gen<'_, '_> {
    /// Compiles the hash of a calculation over the packet.
    pub(super) fn calculation(&mut self, number: u32) -> Result<Value> {
        let number_value = self.int(number.into());
        let calculation = &self.c.calculations[number as usize];
        if let Some(sum) = self.checksum(calculation)? {
            return Ok(sum);
        }
        let Some(bytes) = input_bytes(calculation) else {
            return Ok(self.call(Callout::Calculate, &[number_value]));
        };
        // A piece of an invalid header is omitted; this is rare, so the interpreter handles it.
        let headers: BTreeSet<u32> = calculation.inputs.iter().filter_map(header).collect();
        let (fast, slow, after) = (
            self.b.create_block(),
            self.b.create_block(),
            self.b.create_block(),
        );
        let result = self.b.append_block_param(after, I64);
        for h in headers {
            let valid = self.byte(self.c.layout.headers[h as usize].valid)?;
            let valid = self.b.ins().icmp_imm(IntCC::NotEqual, valid, 0);
            let next = self.b.create_block();
            self.brif(valid, next, slow);
            self.enter(next)?;
        }
        self.jump(fast);
        self.enter(fast)?;
        let slot = self.buffer(MAX_INPUT as u32);
        let mut at = 0;
        for input in &calculation.inputs {
            at += self.lay_out(input, slot, at)?;
        }
        let data = self.b.ins().stack_addr(I64, slot, 0);
        let len = self.int(bytes as u64);
        let hash = self.call(Callout::Hash, &[number_value, data, len]);
        self.jump_with(after, hash);
        self.enter(slow)?;
        let hash = self.call(Callout::Calculate, &[number_value]);
        self.jump_with(after, hash);
        self.enter(after)?;
        Ok(result)
    }

    /// Stores a piece of the input and returns its length in bytes.
    fn lay_out(&mut self, input: &Input, slot: StackSlot, at: i32) -> Result<i32> {
        match input {
            Input::Field(_, f) => {
                let (Place::Word(w), bytes) = (f.place, f.width / 8) else {
                    return Ok(0);
                };
                let v = self.get(w)?;
                for (first, size) in pieces(bytes) {
                    let piece = self.shift_right(v, (bytes - first - size) * 8);
                    let piece = if size < 8 {
                        self.b.ins().ireduce(kind(size), piece)
                    } else {
                        piece
                    };
                    let piece = self.swap(piece);
                    self.b.ins().stack_store(piece, slot, at + first as i32);
                }
                Ok(bytes as i32)
            }
            Input::Span(_, bit, bits) => {
                let from = self.inside(bit / 8, bits / 8)?;
                for (first, size) in pieces(bits / 8) {
                    let off = from + first as i32;
                    let v = self.b.ins().load(kind(size), Self::phv(), self.mem, off);
                    self.b.ins().stack_store(v, slot, at + first as i32);
                }
                Ok((bits / 8) as i32)
            }
            Input::Const(bytes, _) => {
                for (i, &byte) in bytes.iter().enumerate() {
                    let v = self.b.ins().iconst(kind(1), i64::from(byte));
                    self.b.ins().stack_store(v, slot, at + i as i32);
                }
                Ok(bytes.len() as i32)
            }
        }
    }
}

/// Returns the header that a piece of the input belongs to.
pub(super) fn header(input: &Input) -> Option<u32> {
    match input {
        Input::Field(h, _) | Input::Span(h, ..) => Some(*h),
        Input::Const(..) => None,
    }
}
