// SPDX-License-Identifier: Apache-2.0
//! Hashes of TNA whose inputs and algorithms the control plane changes.

use crate::phv::mask64;
use crate::program::hash_parameters::{ConfiguredCrc, Polynomial};

/// Bits of a hash.
pub(super) const MAX_BITS: u32 = 64;

/// Adjacent bits of the input of a hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HashSlice {
    /// Number of bits behind the slice.
    pub behind: u32,
    /// Length in bits.
    pub bits: u32,
}

/// The function of a hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HashFunction {
    /// The last bits of the input.
    Identity,
    /// An unpredictable function, the same in every run.
    Random,
    /// The exclusive or of words.
    Xor,
    /// A CRC of up to 64 bits. The polynomial does not contain the highest power.
    Crc {
        /// Length in bits.
        width: u32,
        /// The coefficients.
        polynomial: u64,
        /// The initial remainder.
        initial: u64,
        /// The mask that is applied at the end.
        final_xor: u64,
        /// The bits of bytes and of the remainder are in reverse order.
        is_reversed: bool,
    },
}

/// The algorithm of a hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HashAlgorithm {
    /// The function.
    pub function: HashFunction,
    /// Length of the result in bits.
    pub result_bits: u32,
    /// The mask of the result.
    pub seed: u64,
    /// Number of bits by which the result is rotated to the left.
    pub rotation: u32,
    /// A result that is too short begins with its high bits, instead of its low ones.
    pub takes_high_bits: bool,
    /// A result that is too long repeats the hash, instead of beginning with zeros.
    pub repeats: bool,
}

/// The settings of a hash; the default is what the program says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HashConfig {
    /// The parts of the input in order, each the exclusive or of slices of the same length.
    pub inputs: Option<Vec<Vec<HashSlice>>>,
    /// The algorithm.
    pub algorithm: Option<HashAlgorithm>,
}

/// A hash with the settings of the control plane.
#[derive(Debug, Clone)]
pub(crate) struct DynamicHash {
    pub(crate) config: HashConfig,
    pub(super) crc: Option<Box<ConfiguredCrc>>,
}

impl DynamicHash {
    pub(crate) fn new(config: HashConfig) -> Self {
        let crc = config.algorithm.and_then(|a| match a.function {
            HashFunction::Crc {
                width,
                polynomial,
                initial,
                final_xor,
                is_reversed,
            } => Some(Box::new(ConfiguredCrc::new(Polynomial {
                width,
                polynomial,
                initial,
                final_xor,
                reflect_data: is_reversed,
                reflect_remainder: is_reversed,
            }))),
            _ => None,
        });
        Self { config, crc }
    }
}

impl HashAlgorithm {
    /// Returns the result for a hash of `width` bits.
    pub(super) fn finish(&self, hash: u64, width: u32) -> u64 {
        let bits = self.result_bits.clamp(1, MAX_BITS);
        let mut result = hash;
        if self.repeats {
            let copies = (width..bits).step_by(width as usize);
            result = copies.fold(hash, |all, shift| all | hash << shift);
        }
        if self.takes_high_bits && width > bits {
            result = hash >> (width - bits);
        }
        let mask = mask64(bits);
        result &= mask;
        let rotation = self.rotation % bits;
        if rotation > 0 {
            result = (result << rotation | result >> (bits - rotation)) & mask;
        }
        result ^ self.seed & mask
    }
}

/// Returns the selected bits. Zeros in front fill the first byte.
pub(super) fn select(data: &[u8], parts: &[Vec<HashSlice>]) -> Vec<u8> {
    let length = data.len() * 8;
    // Bits in front of the input are zero.
    let bit = |behind: usize| match length.checked_sub(behind + 1) {
        Some(at) => data[at / 8] >> (7 - at % 8) & 1,
        None => 0,
    };
    let part = |slices: &Vec<HashSlice>| {
        let bits = slices.iter().map(|slice| slice.bits).max().unwrap_or(0);
        let slices = slices.clone();
        (0..bits).rev().map(move |at| {
            let slices = slices.iter().filter(|slice| at < slice.bits);
            slices.fold(0, |sum, slice| sum ^ bit((slice.behind + at) as usize))
        })
    };
    let bits: Vec<u8> = parts.iter().flat_map(part).collect();
    let bytes = bits.rchunks(8).rev();
    bytes
        .map(|bits| bits.iter().fold(0, |byte, bit| byte << 1 | bit))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(behind: u32, bits: u32) -> HashSlice {
        HashSlice { behind, bits }
    }

    #[test]
    fn selected_bits_are_in_order_and_at_the_end() {
        let data = [0x12, 0x34, 0x56];
        assert_eq!(select(&data, &[vec![slice(8, 16)]]), [0x12, 0x34]);
        assert_eq!(
            select(&data, &[vec![slice(0, 4)], vec![slice(20, 4)]]),
            [0x61]
        );
        assert_eq!(
            select(&data, &[vec![slice(16, 8)], vec![slice(4, 4)]]),
            [1, 0x25]
        );
        assert_eq!(
            select(&data, &[vec![slice(0, 8), slice(8, 8)]]),
            [0x56 ^ 0x34]
        );
        assert_eq!(select(&data, &[vec![slice(20, 8)]]), [1], "zeros in front");
        assert!(select(&data, &[]).is_empty());
    }

    #[test]
    fn results_are_repeated_shortened_rotated_and_masked() {
        let algorithm = HashAlgorithm {
            function: HashFunction::Identity,
            result_bits: 16,
            seed: 0,
            rotation: 0,
            takes_high_bits: false,
            repeats: false,
        };
        assert_eq!(algorithm.finish(0x12, 8), 0x12);
        let repeated = HashAlgorithm {
            repeats: true,
            ..algorithm
        };
        assert_eq!(repeated.finish(0x12, 8), 0x1212);
        assert_eq!(algorithm.finish(0x1234_5678, 32), 0x5678);
        let high = HashAlgorithm {
            takes_high_bits: true,
            ..algorithm
        };
        assert_eq!(high.finish(0x1234_5678, 32), 0x1234);
        let rotated = HashAlgorithm {
            rotation: 4,
            ..algorithm
        };
        assert_eq!(rotated.finish(0x1234, 16), 0x2341);
        let seeded = HashAlgorithm {
            seed: 0xffff,
            ..algorithm
        };
        assert_eq!(seeded.finish(0x1234, 16), 0xedcb);
    }
}
