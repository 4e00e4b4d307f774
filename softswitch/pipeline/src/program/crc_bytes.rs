// SPDX-License-Identifier: Apache-2.0
//! CRCs of inputs of a known length, as the exclusive or of one number for each byte.
//!
//! CRCs of the same length are linear, apart from a constant: what a byte adds depends only on its value and on the
//! number of bytes behind it.

use std::sync::LazyLock;

use super::hash::{Hash, crc16};

/// Maximum length of an input in bytes.
pub(crate) const MAX_BYTES: usize = 40;

/// The part of each value of a byte in a CRC, by the number of bytes behind it.
type Parts = [[u32; 256]; MAX_BYTES];

static CRC16: LazyLock<Box<Parts>> = LazyLock::new(|| parts(|data| crc16(data).into()));
static CRC32: LazyLock<Box<Parts>> = LazyLock::new(|| parts(crc32fast::hash));

/// A CRC of inputs of one length.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CrcBytes {
    /// The part of each value of a byte, by the number of bytes behind it.
    pub(crate) parts: &'static Parts,
    /// The CRC of zeros.
    pub(crate) of_zeros: u32,
}

impl CrcBytes {
    /// Returns the CRC of inputs of `len` bytes; `None` if the hash is not a CRC with fixed parameters, or the inputs are too
    /// long.
    pub(crate) fn new(hash: Hash, len: usize) -> Option<Self> {
        let zeros = [0; MAX_BYTES];
        let zeros = zeros.get(..len)?;
        match hash {
            Hash::Crc16 => Some(Self {
                parts: &CRC16,
                of_zeros: crc16(zeros).into(),
            }),
            Hash::Crc32 => Some(Self {
                parts: &CRC32,
                of_zeros: crc32fast::hash(zeros),
            }),
            _ => None,
        }
    }
}

fn parts(crc: impl Fn(&[u8]) -> u32) -> Box<Parts> {
    let mut parts = Box::new([[0; 256]; MAX_BYTES]);
    for (behind, parts) in parts.iter_mut().enumerate() {
        let mut data = [0; MAX_BYTES];
        let of_zeros = crc(&data[..=behind]);
        for (byte, part) in (0..=u8::MAX).zip(parts) {
            data[0] = byte;
            *part = crc(&data[..=behind]) ^ of_zeros;
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use softswitch_random::Rng;

    use super::*;

    #[test]
    fn sum_of_parts_is_the_crc() {
        let mut rng = Rng::new(1);
        for len in 0..=MAX_BYTES {
            let data: Vec<u8> = (0..len).map(|_| rng.next() as u8).collect();
            for (hash, expected) in [
                (Hash::Crc16, crc16(&data).into()),
                (Hash::Crc32, crc32fast::hash(&data)),
            ] {
                let crc = CrcBytes::new(hash, len).unwrap();
                let bytes = data.iter().rev().zip(crc.parts);
                let sum = bytes.fold(crc.of_zeros, |sum, (&b, parts)| sum ^ parts[usize::from(b)]);
                assert_eq!(sum, expected, "{hash:?}, {len} bytes");
            }
        }
    }

    #[test]
    fn other_hashes_and_long_inputs_are_not_supported() {
        assert!(CrcBytes::new(Hash::Xor16, 4).is_none());
        assert!(CrcBytes::new(Hash::Crc32, MAX_BYTES + 1).is_none());
    }
}
