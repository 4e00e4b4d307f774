// SPDX-License-Identifier: Apache-2.0
//! The three kinds of arithmetic: 64 bits, 128 bits, unbounded.

use std::fmt::Debug;

use num_bigint::{BigInt, BigUint, Sign};

use crate::phv::{Field, mask64, mask128, sign_extend64, sign_extend128, wrap};

/// Maximum left shift of an unbounded number; no field can hold a bit of a larger shift.
const MAX_SHIFT: u64 = 1 << 16;

/// Operations of one kind of arithmetic. Fixed widths wrap; division by zero gives zero.
pub(crate) trait Word: Clone + Debug {
    fn from_u64(v: u64) -> Self;
    fn from_field(f: &Field, mem: &[u8]) -> Self;
    /// Converts from 64-bit limbs, least significant first.
    fn from_limbs(limbs: &[u64]) -> Self;
    fn from_biguint(v: &BigUint) -> Self;
    /// Converts a 64-bit number, which is a two's complement if `is_signed`.
    fn from_64(v: u64, is_signed: bool) -> Self;
    /// Converts a 128-bit number, which is a two's complement if `is_signed`.
    fn from_128(v: u128, is_signed: bool) -> Self;
    /// Converts an unbounded number.
    fn from_big(v: BigInt) -> Self;
    fn add(self, o: &Self) -> Self;
    fn sub(self, o: &Self) -> Self;
    fn mul(self, o: &Self) -> Self;
    fn div(self, o: &Self) -> Self;
    fn rem(self, o: &Self) -> Self;
    fn and(self, o: &Self) -> Self;
    fn or(self, o: &Self) -> Self;
    fn xor(self, o: &Self) -> Self;
    fn not(self) -> Self;
    fn shl(self, by: u64) -> Self;
    fn shr(self, by: u64) -> Self;
    fn sar(self, by: u64) -> Self;
    fn sign_extend(self, width: u32) -> Self;
    fn sat_unsigned(self, width: u32) -> Self;
    fn sat_signed(self, width: u32) -> Self;
}

macro_rules! fixed {
    ($t:ty, $signed:ty, $bits:literal, $mask:ident, $sign_extend:ident) => {
        #[inline]
        fn add(self, o: &Self) -> Self {
            self.wrapping_add(*o)
        }
        #[inline]
        fn sub(self, o: &Self) -> Self {
            self.wrapping_sub(*o)
        }
        #[inline]
        fn mul(self, o: &Self) -> Self {
            self.wrapping_mul(*o)
        }
        fn div(self, o: &Self) -> Self {
            self.checked_div(*o).unwrap_or(0)
        }
        fn rem(self, o: &Self) -> Self {
            self.checked_rem(*o).unwrap_or(0)
        }
        #[inline]
        fn and(self, o: &Self) -> Self {
            self & o
        }
        #[inline]
        fn or(self, o: &Self) -> Self {
            self | o
        }
        #[inline]
        fn xor(self, o: &Self) -> Self {
            self ^ o
        }
        #[inline]
        fn not(self) -> Self {
            !self
        }
        #[inline]
        fn shl(self, by: u64) -> Self {
            if by < $bits { self << by } else { 0 }
        }
        #[inline]
        fn shr(self, by: u64) -> Self {
            if by < $bits { self >> by } else { 0 }
        }
        fn sar(self, by: u64) -> Self {
            (self as $signed >> by.min($bits - 1)) as $t
        }
        fn sign_extend(self, width: u32) -> Self {
            $sign_extend(self, width)
        }
        fn sat_unsigned(self, width: u32) -> Self {
            if (self as $signed) < 0 {
                0
            } else {
                self.min($mask(width))
            }
        }
        fn sat_signed(self, width: u32) -> Self {
            let max = $mask(width.saturating_sub(1)) as $signed & <$signed>::MAX;
            (self as $signed).clamp(-max - 1, max) as $t
        }
    };
}

impl Word for u64 {
    #[inline]
    fn from_u64(v: u64) -> Self {
        v
    }
    fn from_field(f: &Field, mem: &[u8]) -> Self {
        f.get64(mem)
    }
    #[inline]
    fn from_limbs(limbs: &[u64]) -> Self {
        limbs.first().copied().unwrap_or(0)
    }
    fn from_biguint(v: &BigUint) -> Self {
        v.iter_u64_digits().next().unwrap_or(0)
    }
    #[inline]
    fn from_64(v: u64, _: bool) -> Self {
        v
    }
    #[inline]
    fn from_128(v: u128, _: bool) -> Self {
        v as u64
    }
    fn from_big(v: BigInt) -> Self {
        Self::from_biguint(&wrap(&v, 64))
    }
    fixed!(u64, i64, 64, mask64, sign_extend64);
}

impl Word for u128 {
    fn from_u64(v: u64) -> Self {
        u128::from(v)
    }
    fn from_field(f: &Field, mem: &[u8]) -> Self {
        f.get128(mem)
    }
    fn from_limbs(limbs: &[u64]) -> Self {
        limbs
            .iter()
            .take(2)
            .rev()
            .fold(0, |v, &l| v << 64 | u128::from(l))
    }
    fn from_biguint(v: &BigUint) -> Self {
        v.iter_u64_digits()
            .take(2)
            .enumerate()
            .fold(0, |s, (i, d)| s | u128::from(d) << (64 * i))
    }
    #[inline]
    fn from_64(v: u64, is_signed: bool) -> Self {
        if is_signed {
            i128::from(v as i64) as u128
        } else {
            u128::from(v)
        }
    }
    #[inline]
    fn from_128(v: u128, _: bool) -> Self {
        v
    }
    fn from_big(v: BigInt) -> Self {
        Self::from_biguint(&wrap(&v, 128))
    }
    fixed!(u128, i128, 128, mask128, sign_extend128);
}

impl Word for BigInt {
    fn from_u64(v: u64) -> Self {
        BigInt::from(v)
    }
    fn from_field(f: &Field, mem: &[u8]) -> Self {
        f.get_big(mem)
    }
    fn from_limbs(limbs: &[u64]) -> Self {
        let bytes: Vec<u8> = limbs.iter().rev().flat_map(|l| l.to_be_bytes()).collect();
        BigInt::from_bytes_be(Sign::Plus, &bytes)
    }
    fn from_biguint(v: &BigUint) -> Self {
        BigInt::from(v.clone())
    }
    fn from_64(v: u64, is_signed: bool) -> Self {
        if is_signed {
            BigInt::from(v as i64)
        } else {
            BigInt::from(v)
        }
    }
    fn from_128(v: u128, is_signed: bool) -> Self {
        if is_signed {
            BigInt::from(v as i128)
        } else {
            BigInt::from(v)
        }
    }
    fn from_big(v: BigInt) -> Self {
        v
    }
    fn add(self, o: &Self) -> Self {
        self + o
    }
    fn sub(self, o: &Self) -> Self {
        self - o
    }
    fn mul(self, o: &Self) -> Self {
        self * o
    }
    fn div(self, o: &Self) -> Self {
        self.checked_div(o).unwrap_or_default()
    }
    fn rem(self, o: &Self) -> Self {
        if o.sign() == Sign::NoSign {
            BigInt::ZERO
        } else {
            self % o
        }
    }
    fn and(self, o: &Self) -> Self {
        self & o
    }
    fn or(self, o: &Self) -> Self {
        self | o
    }
    fn xor(self, o: &Self) -> Self {
        self ^ o
    }
    fn not(self) -> Self {
        !self
    }
    fn shl(self, by: u64) -> Self {
        if by < MAX_SHIFT {
            self << by
        } else {
            BigInt::ZERO
        }
    }
    fn shr(self, by: u64) -> Self {
        self >> by
    }
    fn sar(self, by: u64) -> Self {
        self >> by
    }
    fn sign_extend(self, width: u32) -> Self {
        let v = BigInt::from(wrap(&self, width));
        if width > 0 && v.bit(u64::from(width) - 1) {
            v - (BigInt::from(1) << width)
        } else {
            v
        }
    }
    fn sat_unsigned(self, width: u32) -> Self {
        self.clamp(BigInt::ZERO, (BigInt::from(1) << width) - 1)
    }
    fn sat_signed(self, width: u32) -> Self {
        let limit = BigInt::from(1) << width.saturating_sub(1);
        self.clamp(-&limit, limit - 1)
    }
}
