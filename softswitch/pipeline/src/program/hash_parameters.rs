// SPDX-License-Identifier: Apache-2.0
//! Parameters of hashes that the control plane sets, with BMv2's meaning.

use crate::entry::CrcConfig;

/// Longest CRC in bits.
const MAX_CRC: u32 = 64;

/// The parameters of a CRC of up to 64 bits. The polynomial does not contain the highest power.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Polynomial {
    pub(crate) width: u32,
    pub(crate) polynomial: u64,
    pub(crate) initial: u64,
    pub(crate) final_xor: u64,
    pub(crate) reflect_data: bool,
    pub(crate) reflect_remainder: bool,
}

impl From<CrcConfig> for Polynomial {
    fn from(config: CrcConfig) -> Self {
        Self {
            width: config.width,
            polynomial: config.polynomial.into(),
            initial: config.initial.into(),
            final_xor: config.final_xor.into(),
            reflect_data: config.reflect_data,
            reflect_remainder: config.reflect_remainder,
        }
    }
}

/// A CRC with any parameters.
#[derive(Debug, Clone)]
pub(crate) struct ConfiguredCrc {
    config: Polynomial,
    /// The remainder of each byte, in the upper bits.
    table: [u64; 256],
}

impl ConfiguredCrc {
    /// The width is from 1 to 64.
    pub(crate) fn new(config: impl Into<Polynomial>) -> Self {
        let config = config.into();
        // The register occupies the upper bits of a word, so one algorithm serves all widths.
        let up = |value: u64| value << (MAX_CRC - config.width);
        let config = Polynomial {
            polynomial: up(config.polynomial),
            initial: up(config.initial),
            ..config
        };
        let remainder = |byte: usize| {
            (0..8).fold((byte as u64) << (MAX_CRC - 8), |r, _| {
                match r >> (MAX_CRC - 1) {
                    0 => r << 1,
                    _ => r << 1 ^ config.polynomial,
                }
            })
        };
        Self {
            table: std::array::from_fn(remainder),
            config,
        }
    }

    pub(crate) fn compute(&self, data: &[u8]) -> u64 {
        let config = &self.config;
        let remainder = data.iter().fold(config.initial, |r, &byte| {
            let byte = if config.reflect_data {
                byte.reverse_bits()
            } else {
                byte
            };
            let index = byte ^ (r >> (MAX_CRC - 8)) as u8;
            self.table[usize::from(index)] ^ r << 8
        });
        let result = if config.reflect_remainder {
            remainder.reverse_bits()
        } else {
            remainder >> (MAX_CRC - config.width)
        };
        result ^ config.final_xor
    }
}

/// The key of a Toeplitz hash, in words.
#[derive(Debug, Clone)]
pub(crate) struct ToeplitzKey(Vec<u32>);

impl ToeplitzKey {
    /// Returns the key of these bytes; `None` unless they are one or more words of 4 bytes.
    pub(crate) fn new(bytes: &[u8]) -> Option<Self> {
        let words = bytes.chunks_exact(4);
        if bytes.is_empty() || !words.remainder().is_empty() {
            return None;
        }
        let word = |w: &[u8]| u32::from_be_bytes([w[0], w[1], w[2], w[3]]);
        Some(Self(words.map(word).collect()))
    }

    /// Returns the exclusive or of the key, shifted by the position of each bit that is set. A longer input repeats the key.
    pub(crate) fn compute(&self, data: &[u8]) -> u32 {
        let Self(key) = self;
        let mut hash = 0;
        for (i, chunk) in data.chunks(4).enumerate() {
            // BMv2 reads a shorter last word as a number.
            let word = chunk
                .iter()
                .fold(0, |word, &byte| word << 8 | u32::from(byte));
            let pair = u64::from(key[i % key.len()]) << 32 | u64::from(key[(i + 1) % key.len()]);
            for bit in (0..32).filter(|bit| word << bit >> 31 == 1) {
                hash ^= (pair << bit >> 32) as u32;
            }
        }
        hash
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHECK: &[u8] = b"123456789";

    fn crc(config: impl Into<Polynomial>) -> u64 {
        ConfiguredCrc::new(config).compute(CHECK)
    }

    #[test]
    fn configured_crcs_match_catalogue() {
        let config = CrcConfig {
            width: 16,
            polynomial: 0x1021,
            initial: 0xffff,
            final_xor: 0,
            reflect_data: false,
            reflect_remainder: false,
        };
        // CRC-16/IBM-3740, CRC-16/KERMIT and CRC-32/ISO-HDLC.
        assert_eq!(crc(config), 0x29b1);
        let kermit = CrcConfig {
            initial: 0,
            reflect_data: true,
            reflect_remainder: true,
            ..config
        };
        assert_eq!(crc(kermit), 0x2189);
        let ethernet = CrcConfig {
            width: 32,
            polynomial: 0x04c1_1db7,
            initial: 0xffff_ffff,
            final_xor: 0xffff_ffff,
            reflect_data: true,
            reflect_remainder: true,
        };
        assert_eq!(crc(ethernet), 0xcbf4_3926);
        // CRC-64/XZ and CRC-5/USB.
        let long = Polynomial {
            width: 64,
            polynomial: 0x42f0_e1eb_a9ea_3693,
            initial: u64::MAX,
            final_xor: u64::MAX,
            reflect_data: true,
            reflect_remainder: true,
        };
        assert_eq!(crc(long), 0x995d_c9bb_df19_39fa);
        let short = Polynomial {
            width: 5,
            polynomial: 5,
            initial: 0x1f,
            final_xor: 0x1f,
            ..long
        };
        assert_eq!(crc(short), 0x19);
    }

    #[test]
    fn toeplitz_hash_matches_rss_vector() {
        // The verification suite of Microsoft's Receive Side Scaling, IPv4 with TCP ports.
        let key = [
            0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3,
            0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3,
            0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
        ];
        let input = [66, 9, 149, 187, 161, 142, 100, 80, 0x0a, 0xea, 0x06, 0xe6];
        assert_eq!(ToeplitzKey::new(&key).unwrap().compute(&input), 0x51cc_c178);
        assert!(ToeplitzKey::new(&key[..6]).is_none());
        assert!(ToeplitzKey::new(&[]).is_none());
    }
}
