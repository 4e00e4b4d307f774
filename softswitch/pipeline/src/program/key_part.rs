// SPDX-License-Identifier: Apache-2.0
//! Builds lookup keys from packets.

use super::expr::DynField;
use crate::phv::{Field, Place};

/// Reads one key field of a packet.
#[derive(Debug, Clone)]
pub(crate) struct KeyPart {
    pub(crate) field: Field,
    pub(crate) word: usize,
    pub(crate) shift: u32,
    /// Mask of the field's bits, least significant limb first.
    pub(crate) mask: Option<Vec<u64>>,
}

impl KeyPart {
    pub(crate) fn new(field: Field, (word, shift): (usize, u32), mask: Option<Vec<u64>>) -> Self {
        Self {
            field,
            word,
            shift,
            mask,
        }
    }

    /// The field.
    pub(crate) fn field(&self) -> &Field {
        &self.field
    }

    /// Adds the field to `key`, whose words are initially zero.
    #[inline]
    pub(crate) fn load(&self, mem: &[u8], key: &mut [u64]) {
        if let (Place::Word(w), None) = (self.field.place, &self.mask) {
            key[self.word] |= w.get(mem) << self.shift;
        } else {
            self.load_slow(mem, key);
        }
    }

    fn load_slow(&self, mem: &[u8], key: &mut [u64]) {
        let words = self.field.width.div_ceil(64).max(1) as usize;
        let mut put = |i: usize, limb: u64| {
            let mask = self
                .mask
                .as_ref()
                .map_or(u64::MAX, |m| m.get(i).copied().unwrap_or(0));
            key[self.word + words - 1 - i] |= (limb & mask) << self.shift;
        };
        match self.field.place {
            Place::Word(w) => put(0, w.get(mem)),
            Place::Bits(_) if words == 2 => {
                let unsigned = Field {
                    signed: false,
                    ..self.field
                };
                let v = unsigned.get128(mem);
                put(0, v as u64);
                put(1, (v >> 64) as u64);
            }
            _ => {
                let unsigned = Field {
                    signed: false,
                    ..self.field
                };
                for (i, limb) in unsigned
                    .get_big(mem)
                    .iter_u64_digits()
                    .enumerate()
                    .take(words)
                {
                    put(i, limb);
                }
            }
        }
    }
}

/// Reads one key field of a header that depends on the packet, such as `h.stack[h.base.index].vid`.
#[derive(Debug, Clone)]
pub(crate) struct ComputedPart {
    pub(crate) field: DynField,
    /// Position and mask, as for a field of any of these headers.
    pub(crate) part: KeyPart,
}
