// SPDX-License-Identifier: Apache-2.0
//! The range of an expression's values, which determines the arithmetic that computes it exactly.

use num_bigint::{BigInt, Sign};

/// A range of values: `0 <= v < 2^bits` if unsigned, else `-2^bits <= v < 2^bits`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) negative: bool,
    pub(crate) bits: u32,
}

/// The kinds of arithmetic, narrowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Tier {
    B64,
    B128,
    Big,
}

impl Tier {
    /// Returns the narrowest kind with at least this many bits.
    pub(crate) fn with_bits(bits: u32) -> Self {
        match bits {
            0..=64 => Tier::B64,
            65..=128 => Tier::B128,
            _ => Tier::Big,
        }
    }
}

/// The limit at which the number of bits saturates: more than any field has, so it means the unbounded kind.
const UNBOUNDED: u32 = 1 << 24;

impl Range {
    pub(crate) fn unsigned(bits: u32) -> Self {
        Self {
            negative: false,
            bits: bits.min(UNBOUNDED),
        }
    }

    pub(crate) fn signed(bits: u32) -> Self {
        Self {
            negative: true,
            bits: bits.min(UNBOUNDED),
        }
    }

    pub(crate) fn of(v: &BigInt) -> Self {
        Self {
            negative: v.sign() == Sign::Minus,
            bits: v.bits() as u32,
        }
    }

    pub(crate) fn unbounded() -> Self {
        Self::signed(UNBOUNDED)
    }

    /// Returns the narrowest kind that holds every value.
    pub(crate) fn tier(self) -> Tier {
        Tier::with_bits(self.bits + u32::from(self.negative))
    }

    /// Returns the narrowest kind that holds every value as a signed number.
    pub(crate) fn signed_tier(self) -> Tier {
        Tier::with_bits(self.bits + 1)
    }

    pub(crate) fn add(self, o: Self) -> Self {
        Self {
            negative: self.negative || o.negative,
            bits: grow(self.bits.max(o.bits), 1),
        }
    }

    pub(crate) fn sub(self, o: Self) -> Self {
        let extra = u32::from(self.negative || o.negative);
        Self::signed(grow(self.bits.max(o.bits), extra))
    }

    pub(crate) fn mul(self, o: Self) -> Self {
        let negative = self.negative || o.negative;
        Self {
            negative,
            bits: grow(self.bits, o.bits + u32::from(negative)),
        }
    }

    pub(crate) fn and(self, o: Self) -> Self {
        match (self.negative, o.negative) {
            (false, false) => Self::unsigned(self.bits.min(o.bits)),
            (false, true) => self,
            (true, false) => o,
            (true, true) => Self::signed(self.bits.max(o.bits)),
        }
    }

    /// Returns the range that contains both, which also holds for `|` and `^`.
    pub(crate) fn union(self, o: Self) -> Self {
        Self {
            negative: self.negative || o.negative,
            bits: self.bits.max(o.bits),
        }
    }

    pub(crate) fn shl(self, by: u32) -> Self {
        Self {
            bits: grow(self.bits, by),
            ..self
        }
    }

    pub(crate) fn shr(self, by: u32) -> Self {
        Self {
            bits: self.bits.saturating_sub(by),
            ..self
        }
    }
}

fn grow(bits: u32, by: u32) -> u32 {
    bits.saturating_add(by).min(UNBOUNDED)
}
