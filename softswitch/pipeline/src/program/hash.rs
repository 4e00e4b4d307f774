// SPDX-License-Identifier: Apache-2.0
//! The hash algorithms of BMv2.

use crc::{Algorithm, CRC_16_ARC, CRC_16_IBM_3740, CRC_64_ECMA_182, Crc, Table};
use softswitch_random::Rng;
use xxhash_rust::xxh64::xxh64;

use crate::info::HashKind;
use crate::program::dynamic_hash::DynamicHash;
use crate::program::hash_parameters::{ConfiguredCrc, ToeplitzKey};

/// A hash algorithm, under the name in the JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hash {
    Crc8Custom,
    Crc16,
    Crc32,
    Crc64Custom,
    CrcCcitt,
    /// CRC-64/ECMA-182.
    Crc64,
    Csum16,
    /// [`Self::Csum16`], with all ones instead of zero.
    Csum16AsOnes,
    Xor8,
    Xor16,
    Xor32,
    Identity,
    /// The last bits of the input.
    Low,
    Xxh64,
    Fnv,
    Toeplitz,
    RoundRobin,
    Random,
    /// The hash of a named calculation with parameters that the control plane sets: its kind and the calculation's number.
    Configurable(HashKind, u32),
}

/// Bytes that a large table processes at once.
const BLOCK: usize = 16;

/// BMv2's `crc8_custom` without configuration: CRC-8/SMBUS.
static CRC8: Crc<u8, Table<1>> = Crc::<u8, Table<1>>::new(&crc::CRC_8_SMBUS);
static CRC16: Crc<u16, Table<BLOCK>> = Crc::<u16, Table<BLOCK>>::new(&CRC_16_ARC);
static CCITT: Crc<u16, Table<1>> = Crc::<u16, Table<1>>::new(&CRC_16_IBM_3740);
const CRC_64_BMV2: Algorithm<u64> = Algorithm {
    width: 64,
    poly: 0x1b,
    init: 0,
    refin: true,
    refout: true,
    xorout: 0,
    check: 0,
    residue: 0,
};
static CRC64_ECMA: Crc<u64, Table<1>> = Crc::<u64, Table<1>>::new(&CRC_64_ECMA_182);
static CRC64: Crc<u64, Table<1>> = Crc::<u64, Table<1>>::new(&CRC_64_BMV2);

/// The parameters of a named calculation.
#[derive(Debug, Clone, Default)]
pub(crate) enum HashParameters {
    /// The algorithm's own.
    #[default]
    Default,
    Crc(Box<ConfiguredCrc>),
    Toeplitz(ToeplitzKey),
    /// Those of a hash of TNA.
    Dynamic(Box<DynamicHash>),
}

/// The state of hashes.
pub(crate) struct HashState<'a> {
    pub(crate) rng: &'a mut Rng,
    /// Number of calls of round-robin hashes.
    pub(crate) calls: &'a mut u64,
    /// The parameters that the control plane sets.
    pub(crate) parameters: &'a [HashParameters],
}

impl Hash {
    pub(crate) fn by_name(name: &str) -> Option<Self> {
        Some(match name {
            "crc8_custom" => Self::Crc8Custom,
            "crc16" | "crc16_custom" => Self::Crc16,
            "crc32" | "crc32_custom" => Self::Crc32,
            "crc64_custom" => Self::Crc64Custom,
            "crcCCITT" => Self::CrcCcitt,
            "csum16" | "cksum16" => Self::Csum16,
            "xor16" => Self::Xor16,
            "xor32" => Self::Xor32,
            "identity" => Self::Identity,
            "xxh64" | "bmv2_hash" => Self::Xxh64,
            "hash_ex" => Self::Fnv,
            "toeplitz" => Self::Toeplitz,
            "round_robin" => Self::RoundRobin,
            "random" => Self::Random,
            _ => return None,
        })
    }

    /// Returns the algorithm of this name in TNA. `random` is an unpredictable hash, but always the same for the same
    /// input.
    pub(crate) fn by_name_in_tna(name: &str) -> Option<Self> {
        Some(match name {
            "identity" => Self::Low,
            "random" => Self::Xxh64,
            "crc8" => Self::Crc8Custom,
            "crc64" => Self::Crc64,
            "xor8" => Self::Xor8,
            other => return Self::by_name(other),
        })
    }

    /// Returns true if the hash is an Internet checksum.
    pub(crate) fn is_sum(self) -> bool {
        matches!(self, Self::Csum16 | Self::Csum16AsOnes)
    }

    /// Returns the checksum of a sum of big-endian words.
    pub(crate) fn of_sum(self, sum: u64) -> u64 {
        match fold16(sum) {
            0 if self == Self::Csum16AsOnes => 0xffff,
            checksum => checksum.into(),
        }
    }

    /// Returns the name for traces.
    pub(crate) fn name(self) -> String {
        match self {
            Self::Configurable(kind, _) => format!("{kind:?}").to_lowercase(),
            fixed => format!("{fixed:?}").to_lowercase(),
        }
    }

    /// Returns the hash of a named calculation, whose parameters the control plane may set.
    pub(crate) fn of_calculation(self, algorithm: &str, number: u32) -> Self {
        match HashKind::by_name(algorithm) {
            HashKind::Fixed => self,
            kind => Self::Configurable(kind, number),
        }
    }

    /// Returns the hash of `data`.
    pub(crate) fn compute(self, data: &[u8], state: &mut HashState<'_>) -> u64 {
        match self {
            Self::Configurable(kind, number) => match (&state.parameters[number as usize], kind) {
                (HashParameters::Crc(crc), _) => crc.compute(data),
                (HashParameters::Toeplitz(key), _) => key.compute(data).into(),
                (HashParameters::Default, HashKind::Crc16Custom) => crc16(data).into(),
                (HashParameters::Default, HashKind::Crc32Custom) => crc32fast::hash(data).into(),
                (HashParameters::Default, HashKind::Toeplitz | HashKind::Fixed)
                | (HashParameters::Dynamic(_), _) => 0,
            },
            Self::Crc8Custom => CRC8.checksum(data).into(),
            Self::Crc16 => crc16(data).into(),
            Self::Crc32 => crc32fast::hash(data).into(),
            Self::Crc64Custom => CRC64.checksum(data),
            Self::CrcCcitt => CCITT.checksum(data).into(),
            Self::Crc64 => CRC64_ECMA.checksum(data),
            Self::Csum16 | Self::Csum16AsOnes => self.of_sum(sum16(data)),
            Self::Xor8 => xor(data, 1),
            Self::Xor16 => xor(data, 2),
            Self::Xor32 => xor(data, 4),
            Self::Identity => data.iter().take(8).fold(0, |v, &b| v << 8 | u64::from(b)),
            Self::Low => data.iter().fold(0, |v, &b| v << 8 | u64::from(b)),
            Self::Xxh64 => xxh64(data, 0),
            Self::Fnv => fnv(data).into(),
            // The key is zero by default.
            Self::Toeplitz => 0,
            Self::RoundRobin => {
                *state.calls += 1;
                *state.calls - 1
            }
            Self::Random => state.rng.next(),
        }
    }
}

/// CRC-16/ARC. Its register starts at zero, so leading zeros do not change it, and whole blocks are quick.
pub(crate) fn crc16(data: &[u8]) -> u16 {
    let mut blocks = [0; 4 * BLOCK];
    let len = data.len().next_multiple_of(BLOCK);
    match blocks.get_mut(..len) {
        Some(blocks) => {
            blocks[len - data.len()..].copy_from_slice(data);
            CRC16.checksum(blocks)
        }
        None => CRC16.checksum(data),
    }
}

/// The Internet checksum (RFC 1071).
pub(crate) fn csum16(data: &[u8]) -> u16 {
    fold16(sum16(data))
}

/// Returns a sum of big-endian words for [`fold16`]. Sums of several pieces may be added if all but the last consist of
/// whole 16-bit words.
pub(crate) fn sum16(data: &[u8]) -> u64 {
    let words = data.chunks_exact(4);
    let mut last = [0; 4];
    last[..words.remainder().len()].copy_from_slice(words.remainder());
    let word = |w: &[u8]| u64::from(u32::from_be_bytes([w[0], w[1], w[2], w[3]]));
    words.map(word).sum::<u64>() + word(&last)
}

/// Returns the complement of a sum, folded to 16 bits.
pub(crate) fn fold16(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// Returns the exclusive or of big-endian words; the last is padded with zeros.
fn xor(data: &[u8], size: usize) -> u64 {
    let word = |chunk: &[u8]| {
        (0..size).fold(0, |v, i| {
            v << 8 | u64::from(chunk.get(i).copied().unwrap_or(0))
        })
    };
    data.chunks(size).fold(0, |v, chunk| v ^ word(chunk))
}

/// BMv2's `hash_ex`: FNV-1a over signed bytes, with a final mix.
fn fnv(data: &[u8]) -> u32 {
    let mut h = data.iter().fold(2_166_136_261_u32, |h, &b| {
        (h ^ i32::from(b as i8) as u32).wrapping_mul(16_777_619)
    });
    h = h.wrapping_add(h << 13);
    h ^= h >> 7;
    h = h.wrapping_add(h << 3);
    h ^= h >> 17;
    h.wrapping_add(h << 5)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(name: &str, data: &[u8]) -> u64 {
        let mut state = HashState {
            rng: &mut Rng::new(0),
            calls: &mut 0,
            parameters: &[],
        };
        Hash::by_name(name).unwrap().compute(data, &mut state)
    }

    #[test]
    fn hashes_match_check_values() {
        // The check string of the CRC catalogue.
        let check = b"123456789";
        assert_eq!(hash("crc16", check), 0xbb3d);
        assert_eq!(hash("crc32", check), 0xcbf4_3926);
        assert_eq!(hash("crcCCITT", check), 0x29b1);
        assert_eq!(hash("crc8_custom", check), 0xf4);
        assert_eq!(hash("xxh64", b""), 0xef46_db37_51d8_e999);
        assert_eq!(hash("identity", &[1, 2, 3]), 0x01_0203);
        assert_eq!(hash("xor16", &[1, 2, 3, 4, 5]), 0x0102 ^ 0x0304 ^ 0x0500);
    }

    #[test]
    fn internet_checksum_matches_rfc_1071_example() {
        let data = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(csum16(&data), !0xddf2);
        assert_eq!(csum16(&[0xab]), !0xab00);
        assert_eq!(csum16(&[]), 0xffff);
        assert_eq!(csum16(&[0xff; 20]), 0);
    }
}
