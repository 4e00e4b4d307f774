// SPDX-License-Identifier: Apache-2.0
//! The packet header vector: a packet's headers and metadata in one flat block of bytes, with every field at a fixed
//! offset.
//!
//! Headers keep their wire format, so extracting or emitting a header is a copy, and reading a field is a load, a shift
//! and a mask. Each metadata field of up to 64 bits has a native slot. Then follow one validity byte per header, one fill
//! count per header stack and one length per variable-length field.

use std::ops::Range;

use num_bigint::{BigInt, BigUint, Sign};

use crate::value::Value;

/// Bytes behind the last field, so that every field can be accessed by whole words.
pub(crate) const PADDING: usize = 24;

/// The location of a field of up to 64 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Word {
    /// A native number at a byte offset, of 1, 2, 4 or 8 bytes.
    Slot(u32, u8),
    /// `(big-endian u64 at off) >> shift & mask`.
    Packed { off: u32, shift: u8, mask: u64 },
    /// The same in 128 bits, for a field that touches nine bytes.
    Split { off: u32, shift: u8, mask: u64 },
}

/// The location of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) place: Place,
    /// Width in bits; 0 for a variable-length field.
    pub(crate) width: u32,
    pub(crate) signed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Word(Word),
    /// More than 64 bits, beginning at this bit.
    Bits(u32),
    /// A variable-length field: its bytes begin at `off`, its length in bytes is the `u16` at `len`.
    Varbit {
        off: u32,
        len: u32,
        max: u32,
    },
}

fn be64(mem: &[u8], off: u32) -> u64 {
    let off = off as usize;
    u64::from_be_bytes(mem[off..off + 8].try_into().expect("eight bytes"))
}

fn be128(mem: &[u8], off: u32) -> u128 {
    let off = off as usize;
    u128::from_be_bytes(mem[off..off + 16].try_into().expect("sixteen bytes"))
}

fn put_be128(mem: &mut [u8], off: u32, v: u128) {
    let off = off as usize;
    mem[off..off + 16].copy_from_slice(&v.to_be_bytes());
}

#[inline]
fn slot<const BYTES: usize>(mem: &[u8], off: u32) -> &[u8; BYTES] {
    mem[off as usize..].first_chunk().expect("within the state")
}

#[inline]
fn slot_mut<const BYTES: usize>(mem: &mut [u8], off: u32) -> &mut [u8; BYTES] {
    mem[off as usize..]
        .first_chunk_mut()
        .expect("within the state")
}

impl Word {
    /// Returns the location of a byte.
    pub(crate) fn byte(off: u32) -> Self {
        Self::Packed {
            off,
            shift: 56,
            mask: 0xff,
        }
    }

    #[inline]
    pub(crate) fn get(self, mem: &[u8]) -> u64 {
        match self {
            Word::Slot(off, 1) => mem[off as usize].into(),
            Word::Slot(off, 2) => u16::from_ne_bytes(*slot(mem, off)).into(),
            Word::Slot(off, 4) => u32::from_ne_bytes(*slot(mem, off)).into(),
            Word::Slot(off, _) => u64::from_ne_bytes(*slot(mem, off)),
            Word::Packed { off, shift, mask } => be64(mem, off) >> shift & mask,
            Word::Split { off, shift, mask } => (be128(mem, off) >> shift) as u64 & mask,
        }
    }

    /// Writes `v`, which must fit the field's width.
    #[inline]
    pub(crate) fn set(self, mem: &mut [u8], v: u64) {
        match self {
            Word::Slot(off, 1) => mem[off as usize] = v as u8,
            Word::Slot(off, 2) => *slot_mut(mem, off) = (v as u16).to_ne_bytes(),
            Word::Slot(off, 4) => *slot_mut(mem, off) = (v as u32).to_ne_bytes(),
            Word::Slot(off, _) => *slot_mut(mem, off) = v.to_ne_bytes(),
            Word::Packed { off, shift, mask } => {
                let word = be64(mem, off) & !(mask << shift) | v << shift;
                let off = off as usize;
                mem[off..off + 8].copy_from_slice(&word.to_be_bytes());
            }
            Word::Split { off, shift, mask } => {
                let word = be128(mem, off) & !(u128::from(mask) << shift) | u128::from(v) << shift;
                put_be128(mem, off, word);
            }
        }
    }
}

pub(crate) fn mask64(width: u32) -> u64 {
    if width >= 64 {
        u64::MAX
    } else {
        (1 << width) - 1
    }
}

pub(crate) fn mask128(width: u32) -> u128 {
    if width >= 128 {
        u128::MAX
    } else {
        (1 << width) - 1
    }
}

/// Sign-extends the low `width` bits.
pub(crate) fn sign_extend64(v: u64, width: u32) -> u64 {
    let unused = 64 - width.clamp(1, 64);
    ((v << unused) as i64 >> unused) as u64
}

/// Sign-extends the low `width` bits.
pub(crate) fn sign_extend128(v: u128, width: u32) -> u128 {
    let unused = 128 - width.clamp(1, 128);
    ((v << unused) as i128 >> unused) as u128
}

impl Field {
    /// Creates a field of a header in wire format, beginning at `bit`.
    pub(crate) fn packed(bit: u32, width: u32, signed: bool) -> Self {
        let (off, lead) = (bit / 8, bit % 8);
        let place = if width > 64 {
            Place::Bits(bit)
        } else if lead + width <= 64 {
            let shift = (64 - lead - width) as u8;
            Place::Word(Word::Packed {
                off,
                shift: shift.min(63),
                mask: mask64(width),
            })
        } else {
            let shift = (128 - lead - width) as u8;
            Place::Word(Word::Split {
                off,
                shift,
                mask: mask64(width),
            })
        };
        Self {
            place,
            width,
            signed,
        }
    }

    /// Returns the bytes of the packet's state that contain the field, with the length of a variable-length field behind it.
    pub(crate) fn bytes(&self) -> Range<usize> {
        match self.place {
            Place::Word(Word::Slot(off, bytes)) => off as usize..off as usize + usize::from(bytes),
            Place::Varbit { off, len, .. } => off as usize..len as usize + size_of::<u16>(),
            Place::Word(_) | Place::Bits(_) => {
                let first = self.first_bit();
                first / 8..(first + self.width as usize).div_ceil(8)
            }
        }
    }

    /// Returns the first bit in wire format.
    pub(crate) fn first_bit(&self) -> usize {
        match self.place {
            Place::Bits(bit) => bit as usize,
            Place::Word(Word::Packed { off, shift, .. }) => {
                off as usize * 8 + 64 - usize::from(shift) - self.width as usize
            }
            Place::Word(Word::Split { off, shift, .. }) => {
                off as usize * 8 + 128 - usize::from(shift) - self.width as usize
            }
            Place::Word(Word::Slot(off, _)) | Place::Varbit { off, .. } => off as usize * 8,
        }
    }

    /// Returns the low 64 bits; sign-extended if the field is signed.
    #[inline]
    pub(crate) fn get64(&self, mem: &[u8]) -> u64 {
        match self.place {
            Place::Word(w) if self.signed => sign_extend64(w.get(mem), self.width),
            Place::Word(w) => w.get(mem),
            _ => self.get128(mem) as u64,
        }
    }

    /// Returns the low 128 bits; sign-extended if the field is signed.
    pub(crate) fn get128(&self, mem: &[u8]) -> u128 {
        match self.place {
            Place::Word(w) => {
                let v = u128::from(w.get(mem));
                if self.signed {
                    sign_extend128(v, self.width)
                } else {
                    v
                }
            }
            Place::Bits(bit) => {
                let v = if self.width <= 128 {
                    self.bits128(mem, bit)
                } else {
                    read_bits(mem, bit as usize, self.width)
                        .iter_u64_digits()
                        .take(2)
                        .enumerate()
                        .fold(0, |v, (i, digit)| v | u128::from(digit) << (64 * i))
                };
                if self.signed {
                    sign_extend128(v, self.width)
                } else {
                    v
                }
            }
            Place::Varbit { .. } => {
                let (_, digits) = self.get_big(mem).to_u64_digits();
                digits
                    .iter()
                    .take(2)
                    .enumerate()
                    .fold(0, |v, (i, &d)| v | u128::from(d) << (64 * i))
            }
        }
    }

    fn bits128(&self, mem: &[u8], bit: u32) -> u128 {
        let (off, lead) = (bit / 8, bit % 8);
        let high = be128(mem, off) << lead;
        let low = if lead == 0 {
            0
        } else {
            u128::from(mem[off as usize + 16]) >> (8 - lead)
        };
        (high | low) >> (128 - self.width)
    }

    pub(crate) fn get_big(&self, mem: &[u8]) -> BigInt {
        match self.place {
            Place::Word(_) if self.signed => BigInt::from(self.get64(mem) as i64),
            Place::Word(w) => BigInt::from(w.get(mem)),
            Place::Bits(bit) => {
                let v = BigInt::from(read_bits(mem, bit as usize, self.width));
                if self.signed && v.bit(u64::from(self.width) - 1) {
                    v - (BigInt::from(1) << self.width)
                } else {
                    v
                }
            }
            Place::Varbit { off, .. } => {
                let off = off as usize;
                let len = self.varbit_len(mem);
                BigInt::from_bytes_be(Sign::Plus, &mem[off..off + len])
            }
        }
    }

    /// Returns the field's bits as an unsigned number.
    pub(crate) fn to_value(self, mem: &[u8]) -> Value {
        let unsigned = Field {
            signed: false,
            ..self
        };
        Value::from_be_bytes(&unsigned.get_big(mem).magnitude().to_bytes_be())
    }

    /// Writes the low bits of `v`.
    #[inline]
    pub(crate) fn set64(&self, mem: &mut [u8], v: u64) {
        match self.place {
            Place::Word(w) => w.set(mem, v & mask64(self.width)),
            _ => self.set128(mem, u128::from(v)),
        }
    }

    /// Writes the low bits of `v`.
    pub(crate) fn set128(&self, mem: &mut [u8], v: u128) {
        match self.place {
            Place::Word(w) => w.set(mem, v as u64 & mask64(self.width)),
            Place::Bits(bit) if bit % 8 == 0 && self.width == 128 => put_be128(mem, bit / 8, v),
            Place::Bits(bit) => write_bits(mem, bit as usize, self.width, &v.to_be_bytes()),
            Place::Varbit { .. } => self.set_big(mem, &BigInt::from(v)),
        }
    }

    /// Writes the low bits of `v`, in two's complement.
    pub(crate) fn set_big(&self, mem: &mut [u8], v: &BigInt) {
        let width = match self.place {
            Place::Varbit { .. } => self.varbit_len(mem) as u32 * 8,
            _ => self.width,
        };
        let v = wrap(v, width);
        match self.place {
            Place::Word(w) => w.set(mem, v.iter_u64_digits().next().unwrap_or(0)),
            Place::Bits(bit) => write_bits(mem, bit as usize, width, &v.to_bytes_be()),
            Place::Varbit { off, .. } => write_bits(mem, off as usize * 8, width, &v.to_bytes_be()),
        }
    }

    /// Returns the current length in bytes of a variable-length field.
    pub(crate) fn varbit_len(&self, mem: &[u8]) -> usize {
        match self.place {
            Place::Varbit { len, .. } => {
                let len = len as usize;
                usize::from(u16::from_ne_bytes([mem[len], mem[len + 1]]))
            }
            _ => 0,
        }
    }

    pub(crate) fn set_varbit_len(&self, mem: &mut [u8], bytes: usize) {
        if let Place::Varbit { len, .. } = self.place {
            let len = len as usize;
            mem[len..len + 2].copy_from_slice(&(bytes as u16).to_ne_bytes());
        }
    }
}

/// Returns `v` modulo 2^width, not negative.
pub(crate) fn wrap(v: &BigInt, width: u32) -> BigUint {
    if v.sign() != Sign::Minus && v.bits() <= u64::from(width) {
        return v.magnitude().clone();
    }
    let mask: BigInt = (BigInt::from(1) << width) - 1;
    (v & mask).magnitude().clone()
}

fn read_bits(mem: &[u8], bit: usize, width: u32) -> BigUint {
    let end = bit + width as usize;
    let bytes = BigUint::from_bytes_be(&mem[bit / 8..end.div_ceil(8)]);
    let shifted = bytes >> (end.next_multiple_of(8) - end);
    shifted & ((BigUint::from(1u8) << width) - 1u8)
}

/// Writes the low `width` bits of the big-endian number `bytes` at `bit`.
pub(crate) fn write_bits(mem: &mut [u8], bit: usize, width: u32, bytes: &[u8]) {
    let mut end = bit + width as usize;
    let mut from = bytes.iter().rev();
    if end.is_multiple_of(8) && bit.is_multiple_of(8) {
        for i in (bit / 8..end / 8).rev() {
            mem[i] = from.next().copied().unwrap_or(0);
        }
        return;
    }
    // From the last bit backwards, in runs of up to eight bits of the source.
    while end > bit {
        let value = from.next().copied().unwrap_or(0);
        let count = (end - bit).min(8);
        for i in 0..count {
            let at = end - 1 - i;
            let mask = 0x80 >> (at % 8);
            if value >> i & 1 == 1 {
                mem[at / 8] |= mask;
            } else {
                mem[at / 8] &= !mask;
            }
        }
        end -= count;
    }
}

/// Copies `count` bits.
pub(crate) fn copy_bits(src: &[u8], src_bit: usize, dst: &mut [u8], dst_bit: usize, count: usize) {
    if (src_bit | dst_bit | count).is_multiple_of(8) {
        let (from, to, len) = (src_bit / 8, dst_bit / 8, count / 8);
        dst[to..to + len].copy_from_slice(&src[from..from + len]);
        return;
    }
    for i in 0..count {
        let (from, to) = (src_bit + i, dst_bit + i);
        let mask = 0x80 >> (to % 8);
        if src[from / 8] << (from % 8) & 0x80 != 0 {
            dst[to / 8] |= mask;
        } else {
            dst[to / 8] &= !mask;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_fields_round_trip_at_every_offset_and_width() {
        for lead in 0..8 {
            for width in 1..=140 {
                for fill in [0x00, 0xff] {
                    let mut mem = vec![fill; 48];
                    let f = Field::packed(16 + lead, width, false);
                    let v = 0x0123_4567_89ab_cdef_f0e1_d2c3_b4a5_9687u128 & mask128(width);
                    f.set128(&mut mem, v);
                    assert_eq!(f.get128(&mem), v, "lead {lead} width {width}");
                    assert_eq!(f.get64(&mem), v as u64);
                    assert_eq!(f.get_big(&mem), BigInt::from(v));
                    f.set_big(&mut mem, &BigInt::from(-1));
                    assert_eq!(f.get128(&mem), mask128(width));
                    // Adjacent bits are unchanged.
                    let rest = read_bits(&mem, 0, 16 + lead);
                    assert_eq!(rest, read_bits(&[fill; 8], 0, 16 + lead));
                    let after = 16 + lead + width;
                    assert_eq!(
                        read_bits(&mem, after as usize, 40),
                        read_bits(&[fill; 8], 0, 40)
                    );
                }
            }
        }
    }

    #[test]
    fn signed_fields_are_sign_extended() {
        let mut mem = vec![0; 32];
        let f = Field::packed(3, 5, true);
        f.set64(&mut mem, -3i64 as u64);
        assert_eq!(f.get64(&mem) as i64, -3);
        assert_eq!(f.get128(&mem) as i128, -3);
        assert_eq!(f.get_big(&mem), BigInt::from(-3));
    }
}
