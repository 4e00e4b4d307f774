// SPDX-License-Identifier: Apache-2.0
//! Generates code for Internet checksums over the packet's state, and for the methods of those that parsers keep.

use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I16, I64};
use cranelift_codegen::ir::{InstBuilder, Value};

use super::calculation::header;
use super::generator::{Gen, Result, Unsupported};
use super::runtime::Context;
use crate::phv::{Field, Place, Word};
use crate::program::calculation::{Calculation, Input};
use crate::program::hash::Hash;
use crate::program::op::SumStep;

/// The highest sum, which is that of data with a right checksum.
const ALL_ONES: u64 = 0xffff;
/// Number of bits that checksums add at once.
const WORD: usize = 16;
/// Maximum number of bits of the parts into which a piece of the input is split. It is a whole number of words, so all parts
/// of a piece have the same distance from the end of a word.
const PART: usize = 32;
/// Maximum number of parts, so that their sum fits 64 bits.
const MAX_PARTS: usize = 1 << 12;

/// Returns the number of bits of a piece of the input.
fn bits(input: &Input) -> usize {
    match input {
        Input::Field(_, f) => f.width as usize,
        Input::Span(_, _, bits) => *bits as usize,
        Input::Const(_, bits) => *bits,
    }
}

/// Returns true if the checksum is the sum of its pieces, each at a known position within a word.
fn adds_up(c: &Calculation) -> bool {
    let parts = c.inputs.iter().map(|i| bits(i).div_ceil(PART));
    let is_fixed = |i: &Input| match i {
        Input::Field(_, f) => matches!(f.place, Place::Word(_)),
        Input::Span(..) | Input::Const(..) => true,
    };
    // Without the pieces of invalid headers, the others keep their position if all are whole words.
    let stays = |i: &Input| c.keeps_invalid || bits(i).is_multiple_of(WORD);
    c.hash.is_sum()
        && !c.payload
        && parts.sum::<usize>() <= MAX_PARTS
        && c.inputs.iter().all(|i| is_fixed(i) && stays(i))
}

/// Returns the sum of a constant's words, of which the last ends `shift` bits behind the constant.
fn constant_sum(bytes: &[u8], bits: usize, shift: usize) -> u64 {
    let byte = |(i, &byte): (usize, &u8)| {
        let used = bits.saturating_sub(i * 8).min(8);
        let value = u64::from(byte) & ((1 << used) - 1);
        value << (i * 8 % WORD + shift)
    };
    bytes.iter().rev().enumerate().map(byte).sum()
}

impl Gen<'_, '_> {
    /// Compiles the Internet checksum of an input; `None` if its pieces have no known positions.
    pub(super) fn checksum(&mut self, calculation: &Calculation) -> Result<Option<Value>> {
        if !adds_up(calculation) {
            return Ok(None);
        }
        let mut sum = self.int(0);
        let mut end = 0;
        for pieces in calculation.inputs.chunk_by(|a, b| header(a) == header(b)) {
            let mut part = self.int(0);
            for input in pieces {
                end += bits(input);
                let shift = end.next_multiple_of(WORD) - end;
                let piece = self.piece(input, shift)?;
                part = self.b.ins().iadd(part, piece);
            }
            if let Some(header) = header(&pieces[0]) {
                let valid = self.byte(self.c.layout.headers[header as usize].valid)?;
                let zero = self.int(0);
                part = self.b.ins().select(valid, part, zero);
            }
            sum = self.b.ins().iadd(sum, part);
        }
        let sum = self.fold(sum);
        let sum = self.b.ins().bxor_imm(sum, ALL_ONES as i64);
        if calculation.hash != Hash::Csum16AsOnes {
            return Ok(Some(sum));
        }
        let ones = self.int(ALL_ONES);
        Ok(Some(self.b.ins().select(sum, sum, ones)))
    }

    /// Adds up the parts of a piece of the input whose end is `shift` bits before the end of a word.
    fn piece(&mut self, input: &Input, shift: usize) -> Result<Value> {
        let sum = match input {
            Input::Const(bytes, bits) => return Ok(self.int(constant_sum(bytes, *bits, shift))),
            Input::Field(_, f) => {
                let Place::Word(word) = f.place else {
                    return Err(Unsupported);
                };
                let v = self.get(word)?;
                if f.width as usize <= PART {
                    v
                } else {
                    let low = self.mask(v, u64::from(u32::MAX));
                    let high = self.shift_right(v, PART as u32);
                    self.b.ins().iadd(low, high)
                }
            }
            Input::Span(_, bit, bits) => {
                let mut sum = self.int(0);
                let mut first = *bit;
                // A shorter part comes first, so that all others end at whole words before the end.
                let mut width = bits % PART as u32;
                while first < bit + bits {
                    if width > 0 {
                        let word = word(first, width)?;
                        let v = self.get(word)?;
                        sum = self.b.ins().iadd(sum, v);
                    }
                    first += width;
                    width = PART as u32;
                }
                sum
            }
        };
        Ok(self.shift_left(sum, shift as u32))
    }

    /// Folds a sum of words to 16 bits.
    fn fold(&mut self, mut sum: Value) -> Value {
        for width in [32, 16, 16, 16] {
            let low = self.mask(sum, (1 << width) - 1);
            let high = self.shift_right(sum, width);
            sum = self.b.ins().iadd(low, high);
        }
        sum
    }

    /// Compiles a method of a checksum; returns false if the interpreter must run it.
    pub(super) fn sum_step(&mut self, number: u32, step: &SumStep) -> Result<bool> {
        match step {
            SumStep::Clear => {
                let zero = self.int(0);
                self.store_sum(number, zero);
            }
            SumStep::Add(calculation) => {
                let complement = self.calculation(*calculation)?;
                let ones = self.int(ALL_ONES);
                let v = self.b.ins().bxor(complement, ones);
                self.add_to_sum(number, v);
            }
            SumStep::Subtract(calculation) => {
                let complement = self.calculation(*calculation)?;
                self.add_to_sum(number, complement);
            }
            SumStep::Get(to) if self.writes(to) => {
                let sum = self.load_sum(number);
                let ones = self.int(ALL_ONES);
                let v = self.b.ins().bxor(sum, ones);
                self.set_target(to, v)?;
            }
            SumStep::GetState(to) if self.writes(to) => {
                let sum = self.load_sum(number);
                self.set_target(to, sum)?;
            }
            SumStep::IsWrong(to) if self.writes(to) => {
                let sum = self.load_sum(number);
                let ones = self.int(ALL_ONES);
                let wrong = self.compare(IntCC::NotEqual, sum, ones);
                let wrong = self.b.ins().uextend(I64, wrong);
                self.set_target(to, wrong)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn add_to_sum(&mut self, number: u32, v: Value) {
        let old = self.load_sum(number);
        let sum = self.b.ins().iadd(old, v);
        let (low, carry) = (self.mask(sum, ALL_ONES), self.shift_right(sum, 16));
        let sum = self.b.ins().iadd(low, carry);
        self.store_sum(number, sum);
    }

    fn load_sum(&mut self, number: u32) -> Value {
        let sums = self.context(offset_of!(Context, sums));
        let off = (number * 2) as i32;
        let v = self.b.ins().load(I16, Self::other(), sums, off);
        self.b.ins().uextend(I64, v)
    }

    fn store_sum(&mut self, number: u32, v: Value) {
        let sums = self.context(offset_of!(Context, sums));
        let v = self.b.ins().ireduce(I16, v);
        let off = (number * 2) as i32;
        self.b.ins().store(Self::other(), v, sums, off);
    }
}

/// Returns the location of up to [`PART`] bits in wire format.
fn word(bit: u32, width: u32) -> Result<Word> {
    match Field::packed(bit, width, false).place {
        Place::Word(word) => Ok(word),
        _ => Err(Unsupported),
    }
}
