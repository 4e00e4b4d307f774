//! Calculations: a hash over a list of fields, headers, constants and possibly the payload.

use crate::hash::Hash;
use crate::layout::{HeaderId, Layout};
use crate::phv::{Field, Place, copy_bits};

/// One piece of a calculation's input. A piece of an invalid header is left out.
#[derive(Debug, Clone)]
pub(crate) enum Input {
    Field(HeaderId, Field),
    Header(HeaderId),
    /// Big-endian bytes, of which the low `bits` count.
    Const(Vec<u8>, usize),
}

/// A named calculation.
#[derive(Debug, Clone)]
pub(crate) struct Calculation {
    pub(crate) hash: Hash,
    pub(crate) inputs: Vec<Input>,
    pub(crate) payload: bool,
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
        let end = self.bits + width;
        if self.bits % 8 == 0 && width % 8 == 0 {
            self.bytes.extend_from_slice(&value.to_be_bytes()[8 - width / 8..]);
        } else {
            self.push_bits(&value.to_be_bytes(), 64 - width, width);
        }
        self.bits = end;
    }

    fn push_bits(&mut self, from: &[u8], first: usize, count: usize) {
        let end = self.bits + count;
        self.bytes.resize(end.div_ceil(8), 0);
        copy_bits(from, first, &mut self.bytes, self.bits, count);
        self.bits = end;
    }
}

impl Calculation {
    /// Collects the input bytes.
    pub(crate) fn collect(&self, layout: &Layout, mem: &[u8], payload: &[u8], out: &mut BitBuffer) {
        out.clear();
        for input in &self.inputs {
            match input {
                Input::Field(h, f) => {
                    if layout.headers[*h as usize].is_valid(mem) {
                        push_field(f, mem, out);
                    }
                }
                Input::Header(h) => {
                    let header = &layout.headers[*h as usize];
                    if header.is_valid(mem) {
                        for f in &header.fields {
                            push_field(f, mem, out);
                        }
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
