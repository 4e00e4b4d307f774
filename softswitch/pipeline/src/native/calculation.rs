// SPDX-License-Identifier: Apache-2.0
//! Generates code for the inputs of calculations: it builds them on the stack and calls a function with them, which hashes
//! them or puts them in front of a copy.

use std::collections::BTreeSet;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{InstBuilder, StackSlot, Value};

use super::generator::{Args, Gen, Result};
use super::key::put;
use super::runtime::Callout;
use crate::phv::{Field, Place};
use crate::program::calculation::{Calculation, Input};
use crate::program::expr::Node;
use crate::program::op::Op;

/// Maximum size in bytes of an input that native code builds.
const MAX_INPUT: usize = 256;

/// Number of bits of a word.
const WORD: u32 = u64::BITS;

/// Returns the size in bytes of an input that always has the same length.
fn input_bytes(c: &Calculation) -> Option<usize> {
    let bits = |i: &Input| match i {
        Input::Field(_, f) => matches!(f.place, Place::Word(_)).then_some(f.width as usize),
        Input::Span(_, _, bits) => Some(*bits as usize),
        Input::Const(_, bits) => Some(*bits),
    };
    let bytes = c
        .inputs
        .iter()
        .map(bits)
        .sum::<Option<usize>>()?
        .div_ceil(8);
    (!c.payload && bytes <= MAX_INPUT).then_some(bytes)
}

/// Words that are filled from the first bit on.
struct Filling {
    slot: StackSlot,
    /// The offset of the current word.
    at: i32,
    word: Option<Value>,
    /// Number of bits of the current word that are filled.
    used: u32,
}

impl Gen<'_, '_> {
    /// Compiles the hash of a calculation over the packet.
    pub(super) fn calculation(&mut self, number: u32) -> Result<Value> {
        let calculation = &self.c.calculations[number as usize];
        if let Some(sum) = self.checksum(calculation)? {
            return Ok(sum);
        }
        let number_value = self.int(number.into());
        self.with_input(
            calculation,
            |g, [data, len]| g.call(Callout::Hash, &[number_value, data, len]),
            |g| g.call(Callout::Calculate, &[number_value]),
        )
    }

    /// Compiles a request to mirror the packet.
    pub(super) fn mirror(
        &mut self,
        op: &Op,
        session: &Node<u64>,
        fields: u32,
        a: Args,
    ) -> Result<()> {
        let session = self.node(session, a)?;
        let calculation = &self.c.calculations[fields as usize];
        self.with_input(
            calculation,
            |g, [data, len]| g.call(Callout::Mirror, &[session, data, len]),
            |g| g.step(op, a),
        )?;
        Ok(())
    }

    /// Compiles a call with address and length of an input, or `other` if native code does not build the input. Both
    /// return a value.
    fn with_input(
        &mut self,
        calculation: &Calculation,
        call: impl FnOnce(&mut Self, [Value; 2]) -> Value,
        other: impl FnOnce(&mut Self) -> Value,
    ) -> Result<Value> {
        let Some(bytes) = input_bytes(calculation) else {
            return Ok(other(self));
        };
        // A piece of an invalid header is omitted or zero; this is rare, so the interpreter handles it.
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
        self.fill(&calculation.inputs, slot)?;
        let data = self.b.ins().stack_addr(I64, slot, 0);
        let len = self.int(bytes as u64);
        let value = call(self, [data, len]);
        self.jump_with(after, value);
        self.enter(slow)?;
        let value = other(self);
        self.jump_with(after, value);
        self.enter(after)?;
        Ok(result)
    }

    /// Stores the pieces of an input without gaps, and zeros up to the end of the last word.
    fn fill(&mut self, inputs: &[Input], slot: StackSlot) -> Result<()> {
        let mut filling = Filling {
            slot,
            at: 0,
            word: None,
            used: 0,
        };
        for input in inputs {
            match input {
                Input::Field(_, f) => {
                    let v = self.field64(Field {
                        signed: false,
                        ..*f
                    })?;
                    self.push(&mut filling, v, f.width);
                }
                Input::Span(_, bit, bits) => {
                    let (mut first, end) = (*bit, bit + bits);
                    while first < end {
                        // Up to the end of a word.
                        let width = (WORD - first % 8).min(end - first);
                        let v = self.field64(Field::packed(first, width, false))?;
                        self.push(&mut filling, v, width);
                        first += width;
                    }
                }
                Input::Const(bytes, bits) => {
                    let unused = (bytes.len() * 8 - bits) as u32;
                    for (i, &byte) in bytes.iter().enumerate() {
                        let width = if i == 0 { 8 - unused } else { 8 };
                        let v = self.int(u64::from(byte) & ((1 << width) - 1));
                        self.push(&mut filling, v, width);
                    }
                }
            }
        }
        self.store_word(&mut filling);
        Ok(())
    }

    /// Appends a value of up to 64 bits.
    fn push(&mut self, filling: &mut Filling, v: Value, width: u32) {
        let free = WORD - filling.used;
        let upper = match width.checked_sub(free) {
            Some(rest) => self.shift_right(v, rest),
            None => self.shift_left(v, free - width),
        };
        put(self, &mut filling.word, upper);
        filling.used += width;
        if let Some(rest) = width.checked_sub(free) {
            self.store_word(filling);
            filling.used = rest;
            if rest > 0 {
                filling.word = Some(self.shift_left(v, WORD - rest));
            }
        }
    }

    /// Stores the current word, if it is not empty, and begins the next one.
    fn store_word(&mut self, filling: &mut Filling) {
        if let Some(word) = filling.word.take() {
            let word = self.swap(word);
            self.b.ins().stack_store(word, filling.slot, filling.at);
            filling.at += (WORD / 8) as i32;
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
