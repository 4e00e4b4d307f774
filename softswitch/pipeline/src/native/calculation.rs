// SPDX-License-Identifier: Apache-2.0
//! Generates code for the inputs of calculations, and for hashes of them. Rare hashes are functions that it calls, as is the
//! one that puts an input in front of a copy.

use std::collections::BTreeSet;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{InstBuilder, Value};

use super::generator::{Args, Gen, Result};
use super::key::put;
use super::runtime::Callout;
use crate::phv::{Field, Place};
use crate::program::calculation::{Calculation, Input};
use crate::program::crc_bytes::CrcBytes;
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

/// Returns the CRC that a calculation is of an input of `bytes` bytes, if native code computes it itself.
fn crc(c: &Calculation, bytes: usize) -> Option<CrcBytes> {
    if c.dynamic.is_some() {
        return None;
    }
    CrcBytes::new(c.hash, bytes)
}

/// Words that are filled from the first bit on.
#[derive(Default)]
struct Filling {
    full: Vec<Value>,
    word: Option<Value>,
    /// Number of bits of the last word that are filled.
    used: u32,
}

impl Filling {
    /// Ends the last word, if it is not empty.
    fn end_word(&mut self) {
        self.full.extend(self.word.take());
    }
}

/// An input of a calculation: words in wire format, and the number of bytes that count.
struct Filled {
    words: Vec<Value>,
    bytes: usize,
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
            |g, input| {
                if let Some(crc) = crc(calculation, input.bytes) {
                    return g.crc(crc, &input);
                }
                let [data, len] = g.store_input(&input);
                g.call(Callout::Hash, &[number_value, data, len])
            },
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
            |g, input| {
                let [data, len] = g.store_input(&input);
                g.call(Callout::Mirror, &[session, data, len])
            },
            |g| g.step(op, a),
        )?;
        Ok(())
    }

    /// Compiles the use of an input, or `other` if native code does not build the input. Both return a value.
    fn with_input(
        &mut self,
        calculation: &Calculation,
        finish: impl FnOnce(&mut Self, Filled) -> Value,
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
        let words = self.fill(&calculation.inputs)?;
        let value = finish(self, Filled { words, bytes });
        self.jump_with(after, value);
        self.enter(slow)?;
        let value = other(self);
        self.jump_with(after, value);
        self.enter(after)?;
        Ok(result)
    }

    /// Compiles the CRC of an input as the exclusive or of what its bytes add.
    fn crc(&mut self, crc: CrcBytes, input: &Filled) -> Value {
        let parts = self.address(crc.parts);
        let mut sum = self.b.ins().iconst(I32, i64::from(crc.of_zeros));
        for n in 0..input.bytes {
            let byte = self.byte_of(input.words[n / 8], n % 8);
            let part = self.cell(parts, byte, size_of::<u32>());
            let behind = input.bytes - 1 - n;
            let offset = (behind * size_of_val(&crc.parts[0])) as i32;
            let part = self.b.ins().load(I32, Self::other(), part, offset);
            sum = self.b.ins().bxor(sum, part);
        }
        self.b.ins().uextend(I64, sum)
    }

    /// Returns byte `n` of a word, counted from the most significant one.
    fn byte_of(&mut self, word: Value, n: usize) -> Value {
        let last = self.shift_right(word, WORD - 8 - n as u32 * 8);
        match n {
            0 => last,
            _ => self.mask(last, 0xff),
        }
    }

    /// Stores an input on the stack, and returns its address and its length.
    fn store_input(&mut self, input: &Filled) -> [Value; 2] {
        let slot = self.buffer(MAX_INPUT as u32);
        for (i, &word) in input.words.iter().enumerate() {
            let word = self.swap(word);
            self.b.ins().stack_store(word, slot, i as i32 * 8);
        }
        let data = self.b.ins().stack_addr(I64, slot, 0);
        [data, self.int(input.bytes as u64)]
    }

    /// Compiles the words of an input: its pieces without gaps, and zeros up to the end of the last word.
    fn fill(&mut self, inputs: &[Input]) -> Result<Vec<Value>> {
        let mut filling = Filling::default();
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
        filling.end_word();
        Ok(filling.full)
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
            filling.end_word();
            filling.used = rest;
            if rest > 0 {
                filling.word = Some(self.shift_left(v, WORD - rest));
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
