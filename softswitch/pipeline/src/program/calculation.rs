// SPDX-License-Identifier: Apache-2.0
//! Calculations: a hash over a list of fields, headers, constants and possibly the payload.

use crate::phv::{Field, Place, Word, copy_bits, mask64};
use crate::program::hash::{Hash, HashParameters, HashState, sum16};
use crate::program::layout::{HeaderId, Layout};

/// One piece of a calculation's input. A piece of an invalid header is left out.
#[derive(Debug, Clone)]
pub(crate) enum Input {
    Field(HeaderId, Field),
    /// Adjacent bits in wire format: first bit and number of bits.
    Span(HeaderId, u32, u32),
    /// Big-endian bytes, of which the low `bits` count.
    Const(Vec<u8>, usize),
}

/// A named calculation.
#[derive(Debug, Clone)]
pub(crate) struct Calculation {
    pub(crate) hash: Hash,
    /// Number of the parameters that can replace input and algorithm of the hash.
    pub(crate) dynamic: Option<u32>,
    pub(crate) inputs: Vec<Input>,
    pub(crate) payload: bool,
    /// Pieces of invalid headers are zeros, instead of being left out.
    pub(crate) keeps_invalid: bool,
    /// Result of [`Calculation::is_summable`], computed when the program is loaded.
    pub(crate) summable: bool,
}

/// Bytes that are filled bit by bit.
#[derive(Debug, Default)]
pub(crate) struct BitBuffer {
    pub(crate) bytes: Vec<u8>,
    bits: usize,
}

impl BitBuffer {
    fn clear(&mut self) {
        self.bytes.clear();
        self.bits = 0;
    }

    #[inline]
    fn push(&mut self, value: u64, width: usize) {
        let used = self.bits % 8;
        let bytes = (used + width).div_ceil(8);
        let last = if used == 0 { None } else { self.bytes.pop() };
        let before = last.map_or(0, |byte| u128::from(byte >> (8 - used)));
        let value = u128::from(value & mask64(width as u32));
        let all = (before << width | value) << (bytes * 8 - used - width);
        self.bytes
            .extend_from_slice(&all.to_be_bytes()[16 - bytes..]);
        self.bits += width;
    }

    #[inline]
    fn push_span(&mut self, mem: &[u8], bit: usize, bits: usize) {
        if (self.bits | bit | bits).is_multiple_of(8) {
            self.bytes
                .extend_from_slice(&mem[bit / 8..(bit + bits) / 8]);
            self.bits += bits;
        } else {
            self.push_bits(mem, bit, bits);
        }
    }

    fn push_zeros(&mut self, count: usize) {
        self.bits += count;
        self.bytes.resize(self.bits.div_ceil(8), 0);
    }

    fn push_bits(&mut self, from: &[u8], first: usize, count: usize) {
        let end = self.bits + count;
        self.bytes.resize(end.div_ceil(8), 0);
        copy_bits(from, first, &mut self.bytes, self.bits, count);
        self.bits = end;
    }
}

impl Calculation {
    /// Adds a field to the input; adjacent fields become one span.
    pub(crate) fn push_field(&mut self, h: HeaderId, f: Field) {
        let bit = match (f.place, f.first_bit() as u32) {
            (Place::Word(Word::Slot(..)) | Place::Varbit { .. }, _) => {
                self.inputs.push(Input::Field(h, f));
                return;
            }
            (_, bit) => bit,
        };
        match self.inputs.last_mut() {
            Some(Input::Span(last, first, bits)) if *last == h && *first + *bits == bit => {
                *bits += f.width;
            }
            _ => self.inputs.push(Input::Span(h, bit, f.width)),
        }
    }

    /// Fills the first byte with zeros in front, as PSA's hashes in BMv2 do, instead of the last one behind.
    pub(crate) fn pad_in_front(&mut self) {
        let bits = self.inputs.iter().map(|i| match i {
            Input::Field(_, f) => f.width as usize,
            Input::Span(_, _, bits) => *bits as usize,
            Input::Const(_, bits) => *bits,
        });
        let excess = bits.sum::<usize>() % 8;
        if excess != 0 {
            self.inputs.insert(0, Input::Const(vec![0], 8 - excess));
            self.summable = self.is_summable();
        }
    }

    /// Returns true if the input consists of whole 16-bit words in wire format, so that its Internet checksum can be
    /// summed in place.
    pub(crate) fn is_summable(&self) -> bool {
        let whole =
            |i: &Input| matches!(i, Input::Span(_, bit, bits) if bit % 8 == 0 && bits % 16 == 0);
        self.hash.is_sum() && self.inputs.iter().all(whole)
    }

    /// Returns the Internet checksum of a [summable](Self::is_summable) input.
    pub(crate) fn sum(&self, layout: &Layout, mem: &[u8], payload: &[u8]) -> u64 {
        let mut sum = 0;
        for input in &self.inputs {
            if let Input::Span(h, bit, bits) = input
                && layout.headers[*h as usize].is_valid(mem)
            {
                let first = *bit as usize / 8;
                sum += sum16(&mem[first..first + *bits as usize / 8]);
            }
        }
        if self.payload {
            sum += sum16(payload);
        }
        self.hash.of_sum(sum)
    }

    /// Returns the hash of collected input bytes.
    pub(crate) fn compute(&self, data: &[u8], state: &mut HashState<'_>) -> u64 {
        if let Some(number) = self.dynamic
            && let HashParameters::Dynamic(hash) = &state.parameters[number as usize]
        {
            return hash.compute(self.hash, data, state);
        }
        self.hash.compute(data, state)
    }

    /// Collects the input bytes.
    pub(crate) fn collect(&self, layout: &Layout, mem: &[u8], payload: &[u8], out: &mut BitBuffer) {
        out.clear();
        for input in &self.inputs {
            match input {
                Input::Field(h, f) => {
                    if layout.headers[*h as usize].is_valid(mem) {
                        push_field(f, mem, out);
                    } else if self.keeps_invalid {
                        out.push_zeros(f.width as usize);
                    }
                }
                Input::Span(h, bit, bits) => {
                    if layout.headers[*h as usize].is_valid(mem) {
                        out.push_span(mem, *bit as usize, *bits as usize);
                    } else if self.keeps_invalid {
                        out.push_zeros(*bits as usize);
                    }
                }
                Input::Const(bytes, bits) => {
                    out.push_bits(bytes, bytes.len() * 8 - bits, *bits);
                }
            }
        }
        if self.payload {
            out.bytes.extend_from_slice(payload);
        }
    }
}

#[inline]
fn push_field(f: &Field, mem: &[u8], out: &mut BitBuffer) {
    match f.place {
        Place::Word(w) => out.push(w.get(mem), f.width as usize),
        Place::Bits(bit) => out.push_bits(mem, bit as usize, f.width as usize),
        Place::Varbit { off, .. } => out.push_bits(mem, off as usize * 8, f.varbit_len(mem) * 8),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_packed_without_gaps() {
        let mut b = BitBuffer::default();
        b.push(0b101, 3);
        b.push(0x1ff, 9);
        b.push(0xab, 8);
        assert_eq!(b.bytes, [0b1011_1111, 0b1111_1010, 0b1011_0000]);
        b.clear();
        b.push(0x1234, 16);
        assert_eq!(b.bytes, [0x12, 0x34]);
    }
}
