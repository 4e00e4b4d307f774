// SPDX-License-Identifier: Apache-2.0
//! Unsigned values of any width, in the control plane's form.

use std::fmt;

use smallvec::{SmallVec, smallvec};

/// Length in bytes of values that need no allocation: an IPv6 address.
const INLINE: usize = 16;

/// An unsigned integer in canonical big-endian form: no leading zero bytes, and `[0]` for zero
/// (the canonical byte string of the P4Runtime specification, section 8.4).
///
/// Equality and hashing are numeric, since the form is canonical.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Value(SmallVec<[u8; INLINE]>);

impl Value {
    /// Creates a value from big-endian bytes. Leading zero bytes are accepted; an empty slice is zero.
    pub fn from_be_bytes(bytes: &[u8]) -> Self {
        let start = bytes.iter().position(|&b| b != 0).unwrap_or(bytes.len());
        if start == bytes.len() {
            Self(smallvec![0])
        } else {
            Self(SmallVec::from_slice(&bytes[start..]))
        }
    }

    /// Returns the canonical big-endian bytes, which are never empty.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the number of significant bits: 0 for zero.
    pub fn bits(&self) -> u32 {
        self.0.len() as u32 * 8 - self.0[0].leading_zeros()
    }

    /// Returns the value as `u64`, if it fits.
    pub fn to_u64(&self) -> Option<u64> {
        u64::try_from(self.to_u128()?).ok()
    }

    /// Returns the value as `u128`, if it fits.
    pub fn to_u128(&self) -> Option<u128> {
        (self.0.len() <= 16).then(|| self.0.iter().fold(0, |v, &b| v << 8 | u128::from(b)))
    }

    /// Returns the big-endian bytes padded with zeros to `len` bytes; `None` if the value needs more.
    pub fn to_padded(&self, len: usize) -> Option<Vec<u8>> {
        if self.0[..] == [0] {
            return Some(vec![0; len]);
        }
        let pad = len.checked_sub(self.0.len())?;
        let mut out = vec![0; len];
        out[pad..].copy_from_slice(&self.0);
        Some(out)
    }

    /// Returns the 64-bit limbs up to the last one that is not zero, the least significant first.
    pub(crate) fn limbs(&self) -> impl Iterator<Item = u64> {
        let limb = |bytes: &[u8]| bytes.iter().fold(0, |v, &b| v << 8 | u64::from(b));
        self.0.rchunks(8).map(limb)
    }

    /// Returns the value with ones in the low `width` bits.
    pub fn ones(width: u32) -> Self {
        let mut bytes = vec![0xff; width.div_ceil(8) as usize];
        if !width.is_multiple_of(8) {
            bytes[0] = (1 << (width % 8)) - 1;
        }
        Self::from_be_bytes(&bytes)
    }
}

impl From<u128> for Value {
    fn from(v: u128) -> Self {
        Self::from_be_bytes(&v.to_be_bytes())
    }
}

impl From<u64> for Value {
    fn from(v: u64) -> Self {
        Self::from(u128::from(v))
    }
}

impl From<u32> for Value {
    fn from(v: u32) -> Self {
        Self::from(u128::from(v))
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x")?;
        self.0.iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_has_one_canonical_form() {
        assert_eq!(Value::from_be_bytes(&[]).as_bytes(), [0]);
        assert_eq!(Value::from_be_bytes(&[0, 0]), Value::from(0u64));
        assert_eq!(Value::from_be_bytes(&[0, 1, 2]).as_bytes(), [1, 2]);
        assert_eq!(Value::from(0x1_00u64).bits(), 9);
        assert_eq!(Value::from(0u64).bits(), 0);
        assert_eq!(Value::ones(12).to_u64(), Some(0xfff));
        assert_eq!(Value::from(5u64).to_padded(2).unwrap(), [0, 5]);
        assert_eq!(Value::from(0x10000u64).to_padded(2), None);
        assert!(Value::from(0u64).to_padded(0).unwrap().is_empty());
    }

    #[test]
    fn limbs_start_at_least_significant_byte() {
        let limbs = |v: Value| v.limbs().collect::<Vec<_>>();
        assert_eq!(limbs(0u64.into()), [0]);
        assert_eq!(limbs(0x1_0000_0000_0000_0002_u128.into()), [2, 1]);
        assert_eq!(limbs(Value::ones(130)), [u64::MAX, u64::MAX, 3]);
    }
}
