// SPDX-License-Identifier: Apache-2.0
//! Generates code that reads and writes fields.

use std::ops::Range;
use std::rc::Rc;

use cranelift_codegen::ir::types::{I8, I16, I32, I64};
use cranelift_codegen::ir::{InstBuilder, Type, Value};

use super::generator::{Fact, Gen, Known, Result, Unsupported};
use crate::phv::{Field, Place, Word, mask64};
use crate::program::op::Target;

/// The low and high half of a 128-bit value.
pub(super) type Pair = [Value; 2];

/// A packed field of up to 64 bits and the bytes that it touches.
#[derive(Clone, Copy)]
struct Packed {
    off: u32,
    /// Bits before it in its first byte.
    lead: u32,
    width: u32,
}

impl Packed {
    fn new(off: u32, bits: u32, shift: u8, mask: u64) -> Result<Self> {
        let width = mask.count_ones();
        let lead = bits.checked_sub(u32::from(shift) + width);
        match lead {
            Some(lead) if mask == mask64(width) && lead < 8 && width > 0 => {
                Ok(Self { off, lead, width })
            }
            _ => Err(Unsupported),
        }
    }

    fn bytes(self) -> u32 {
        (self.lead + self.width).div_ceil(8)
    }
}

/// Splits `bytes` into pieces that one load or store moves: offset and size.
pub(super) fn pieces(bytes: u32) -> impl Iterator<Item = (u32, u32)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let size = match bytes - at {
            0 => return None,
            1 => 1,
            2..=3 => 2,
            4..=7 => 4,
            _ => 8,
        };
        at += size;
        Some((at - size, size))
    })
}

pub(super) fn kind(bytes: u32) -> Type {
    match bytes {
        1 => I8,
        2 => I16,
        4 => I32,
        _ => I64,
    }
}

/// Returns the first bit of a word and the bit after its last.
fn extent(w: Word) -> (u32, u32) {
    let packed = |off: u32, bits: u32, shift: u8, mask: u64| {
        let end = (off * 8 + bits).saturating_sub(u32::from(shift));
        (end.saturating_sub(mask.count_ones()), end)
    };
    match w {
        Word::Slot(off, bytes) => (off * 8, (off + u32::from(bytes)) * 8),
        Word::Packed { off, shift, mask } => packed(off, 64, shift, mask),
        Word::Split { off, shift, mask } => packed(off, 128, shift, mask),
    }
}

impl Gen<'_, '_> {
    /// Returns an offset into the packet's state after a bounds check.
    pub(super) fn inside(&self, off: u32, bytes: u32) -> Result<i32> {
        let end = u64::from(off) + u64::from(bytes);
        if end <= self.c.layout.bytes as u64 {
            i32::try_from(off).map_err(|_| Unsupported)
        } else {
            Err(Unsupported)
        }
    }

    /// Discards the known values of the bits `from..to`.
    pub(super) fn forget(&mut self, from: u32, to: u32) {
        Rc::make_mut(&mut self.known).retain(|&w, _| {
            let (first, end) = extent(w);
            end <= from || to <= first
        });
    }

    /// Discards the values that a single load reads again: a register for each of them costs more.
    pub(super) fn forget_slots(&mut self) {
        let is_slot =
            |w: &Word, fact: &Fact| matches!((w, fact), (Word::Slot(..), Fact::Computed(_)));
        Rc::make_mut(&mut self.known).retain(|w, fact| !is_slot(w, fact));
    }

    /// Discards the known value of a place that a callout may have written.
    pub(super) fn forget_target(&mut self, to: &Target) {
        match to {
            Target::Word(w, _) => {
                let (first, end) = extent(*w);
                self.forget(first, end);
            }
            Target::Field(f) => {
                let Range { start, end } = f.bytes();
                self.forget(start as u32 * 8, end as u32 * 8);
            }
            Target::Dyn(_) => self.known = Known::default(),
        }
    }

    /// Converts between native and network byte order.
    pub(super) fn swap(&mut self, v: Value) -> Value {
        if cfg!(target_endian = "big") || self.b.func.dfg.value_type(v) == I8 {
            v
        } else {
            self.b.ins().bswap(v)
        }
    }

    /// Loads a big-endian number of 1, 2, 4 or 8 bytes from an address.
    pub(super) fn load_be(&mut self, at: Value, off: i32, bytes: u32) -> Value {
        let v = self.b.ins().load(kind(bytes), Self::phv(), at, off);
        let v = self.swap(v);
        if bytes < 8 {
            self.b.ins().uextend(I64, v)
        } else {
            v
        }
    }

    /// Writes the low 1, 2, 4 or 8 bytes of a number.
    pub(super) fn store_be(&mut self, v: Value, at: Value, off: i32, bytes: u32) {
        let v = if bytes < 8 {
            self.b.ins().ireduce(kind(bytes), v)
        } else {
            v
        };
        let v = self.swap(v);
        self.b.ins().store(Self::phv(), v, at, off);
    }

    /// Loads a field of up to 64 bits.
    pub(super) fn get(&mut self, w: Word) -> Result<Value> {
        match self.known.get(&w) {
            Some(&Fact::Computed(v)) => return Ok(v),
            Some(&Fact::Number(number)) => return Ok(self.int(number)),
            None => {}
        }
        let v = match w {
            Word::Slot(off, bytes) => {
                let off = self.inside(off, bytes.into())?;
                let t = kind(bytes.into());
                let v = self.b.ins().load(t, Self::phv(), self.mem, off);
                if t == I64 {
                    v
                } else {
                    self.b.ins().uextend(I64, v)
                }
            }
            Word::Packed { mask: 0, .. } | Word::Split { mask: 0, .. } => self.int(0),
            Word::Packed { off, shift, mask } => {
                let p = Packed::new(off, 64, shift, mask)?;
                let bytes = p.bytes().next_power_of_two();
                let off = self.inside(off, bytes)?;
                let v = self.load_be(self.mem, off, bytes);
                let v = self.shift_right(v, bytes * 8 - p.lead - p.width);
                if p.lead == 0 { v } else { self.mask(v, mask) }
            }
            Word::Split { off, shift, mask } => {
                let p = Packed::new(off, 128, shift, mask)?;
                let spare = 72u32.checked_sub(p.lead + p.width).ok_or(Unsupported)?;
                let off = self.inside(off, 9)?;
                let high = self.load_be(self.mem, off, 8);
                let low = self.load_be(self.mem, off + 8, 1);
                let high = self.shift_left(high, 8 - spare);
                let low = self.shift_right(low, spare);
                let v = self.b.ins().bor(high, low);
                self.mask(v, mask)
            }
        };
        self.note(w, v);
        Ok(v)
    }

    /// Writes `v`, which must fit the field's width.
    pub(super) fn set(&mut self, w: Word, v: Value) -> Result<()> {
        match w {
            Word::Slot(off, bytes) => {
                if let Some(number) = self.known_number(w)
                    && self.number(v) == Some(number)
                {
                    return Ok(());
                }
                let off = self.inside(off, bytes.into())?;
                let t = kind(bytes.into());
                let v = if t == I64 {
                    v
                } else {
                    self.b.ins().ireduce(t, v)
                };
                self.b.ins().store(Self::phv(), v, self.mem, off);
            }
            Word::Packed { mask: 0, .. } | Word::Split { mask: 0, .. } => return Ok(()),
            Word::Packed { off, shift, mask } => {
                let p = Packed::new(off, 64, shift, mask)?;
                self.set_packed(p, v)?;
            }
            Word::Split { off, shift, mask } => {
                let p = Packed::new(off, 128, shift, mask)?;
                let spare = 72u32.checked_sub(p.lead + p.width).ok_or(Unsupported)?;
                let off = self.inside(off, 9)?;
                let high = self.load_be(self.mem, off, 8);
                let high = self.mask(high, !(mask >> (8 - spare)));
                let part = self.shift_right(v, 8 - spare);
                let high = self.b.ins().bor(high, part);
                self.store_be(high, self.mem, off, 8);
                let low = self.load_be(self.mem, off + 8, 1);
                let low = self.mask(low, mask64(spare));
                let part = self.shift_left(v, spare);
                let low = self.b.ins().bor(low, part);
                self.store_be(low, self.mem, off + 8, 1);
            }
        }
        if !matches!(w, Word::Slot(..)) {
            let (first, end) = extent(w);
            self.forget(first, end);
        }
        self.note(w, v);
        Ok(())
    }

    fn set_packed(&mut self, p: Packed, v: Value) -> Result<()> {
        if p.lead == 0 && p.width.is_multiple_of(8) {
            let bytes = p.width / 8;
            let off = self.inside(p.off, bytes)?;
            for (at, size) in pieces(bytes) {
                let piece = self.shift_right(v, (bytes - at - size) * 8);
                self.store_be(piece, self.mem, off + at as i32, size);
            }
            return Ok(());
        }
        let bytes = p.bytes().next_power_of_two();
        let shift = bytes * 8 - p.lead - p.width;
        let off = self.inside(p.off, bytes)?;
        let old = self.load_be(self.mem, off, bytes);
        let old = self.mask(old, !(mask64(p.width) << shift));
        let v = self.shift_left(v, shift);
        let new = self.b.ins().bor(old, v);
        self.store_be(new, self.mem, off, bytes);
        Ok(())
    }

    /// Loads the low 64 bits of a field; sign-extended if the field is signed.
    pub(super) fn field64(&mut self, f: Field) -> Result<Value> {
        match f.place {
            Place::Word(w) if f.signed => {
                let v = self.get(w)?;
                Ok(self.sign_extend(v, f.width))
            }
            Place::Word(w) => self.get(w),
            _ => self.field128(f).map(|v| v[0]),
        }
    }

    /// Loads a field of up to 128 bits; sign-extended if the field is signed.
    pub(super) fn field128(&mut self, f: Field) -> Result<Pair> {
        let pair = match f.place {
            Place::Word(w) => {
                let low = self.get(w)?;
                [low, self.int(0)]
            }
            Place::Bits(bit) if f.width <= 128 && f.width > 64 => {
                let (off, lead) = (bit / 8, bit % 8);
                let off = self.inside(off, 17)?;
                let mut low = self.load_be(self.mem, off + 8, 8);
                let mut high = self.load_be(self.mem, off, 8);
                if lead != 0 {
                    let rest = self.load_be(self.mem, off + 16, 1);
                    let rest = self.shift_right(rest, 8 - lead);
                    [low, high] = self.pair_shl([low, high], lead);
                    low = self.b.ins().bor(low, rest);
                }
                self.pair_shr([low, high], 128 - f.width)
            }
            _ => return Err(Unsupported),
        };
        Ok(if f.signed {
            self.pair_sign_extend(pair, f.width)
        } else {
            pair
        })
    }

    /// Writes the low bits of a value to a field of up to 64 bits.
    pub(super) fn set_field64(&mut self, f: Field, v: Value) -> Result<()> {
        let Place::Word(w) = f.place else {
            return Err(Unsupported);
        };
        let v = self.mask(v, mask64(f.width));
        self.set(w, v)
    }

    /// Writes the low bits of a value to a field.
    pub(super) fn set_field128(&mut self, f: Field, [low, high]: Pair) -> Result<()> {
        match f.place {
            Place::Word(_) => self.set_field64(f, low)?,
            Place::Bits(bit)
                if f.width <= 128 && f.width > 64 && (bit | f.width).is_multiple_of(8) =>
            {
                let (first, bytes) = (bit / 8, f.width / 8);
                let off = self.inside(first, bytes)?;
                for (at, size) in pieces(bytes - 8) {
                    let piece = self.shift_right(high, (bytes - 8 - at - size) * 8);
                    self.store_be(piece, self.mem, off + at as i32, size);
                }
                self.store_be(low, self.mem, off + (bytes - 8) as i32, 8);
                self.forget(bit, bit + f.width);
            }
            _ => return Err(Unsupported),
        }
        Ok(())
    }

    /// Copies bytes of the frame into the packet's state.
    pub(super) fn copy_in(&mut self, from: Value, base: u32, bytes: u32) -> Result<()> {
        let off = self.inside(base, bytes)?;
        self.copy(from, self.mem, off, bytes);
        self.forget(base * 8, (base + bytes) * 8);
        Ok(())
    }

    /// Copies bytes of the frame to `off` behind an address within the packet's state.
    pub(super) fn copy(&mut self, from: Value, to: Value, off: i32, bytes: u32) {
        for (at, size) in pieces(bytes) {
            let v = self
                .b
                .ins()
                .load(kind(size), Self::other(), from, at as i32);
            self.b.ins().store(Self::phv(), v, to, off + at as i32);
        }
    }

    /// Loads a validity byte or fill count.
    pub(super) fn byte(&mut self, off: u32) -> Result<Value> {
        self.get(Word::byte(off))
    }

    pub(super) fn set_byte(&mut self, off: u32, v: u8) -> Result<()> {
        let v = self.int(v.into());
        self.set_fill(off, v)
    }

    pub(super) fn set_fill(&mut self, off: u32, v: Value) -> Result<()> {
        self.set(Word::byte(off), v)
    }

    pub(super) fn mask(&mut self, v: Value, mask: u64) -> Value {
        if mask == u64::MAX {
            v
        } else if let Some(number) = self.number(v) {
            self.int(number & mask)
        } else {
            self.b.ins().band_imm(v, mask as i64)
        }
    }

    pub(super) fn shift_left(&mut self, v: Value, by: u32) -> Value {
        match by {
            0 => v,
            1..64 => self.b.ins().ishl_imm(v, i64::from(by)),
            _ => self.int(0),
        }
    }

    pub(super) fn shift_right(&mut self, v: Value, by: u32) -> Value {
        match by {
            0 => v,
            1..64 => self.b.ins().ushr_imm(v, i64::from(by)),
            _ => self.int(0),
        }
    }

    /// Sign-extends the low `width` bits.
    pub(super) fn sign_extend(&mut self, v: Value, width: u32) -> Value {
        let unused = 64 - width.clamp(1, 64);
        let v = self.shift_left(v, unused);
        self.b.ins().sshr_imm(v, i64::from(unused))
    }
}
