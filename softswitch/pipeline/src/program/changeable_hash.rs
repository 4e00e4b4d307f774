// SPDX-License-Identifier: Apache-2.0
//! The result of a hash that the control plane can change: that of its settings, or else that of the program's hash.

use crate::program::dynamic_hash::{DynamicHash, HashFunction, MAX_BITS, select};
use crate::program::hash::{Hash, HashState};

/// A hash that the control plane can change.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChangeableHash {
    /// The hash of the program.
    pub(crate) base: Hash,
    /// The number of its parameters.
    pub(crate) parameters: u32,
    /// Number of low bits that the program uses.
    pub(crate) used_bits: u32,
}

impl DynamicHash {
    /// Returns the hash of an input. `base` is the program's hash.
    pub(crate) fn compute(&self, base: Hash, data: &[u8], state: &mut HashState<'_>) -> u64 {
        let selected = self.config.inputs.as_ref().map(|parts| select(data, parts));
        let data = selected.as_deref().unwrap_or(data);
        let Some(algorithm) = self.config.algorithm else {
            return base.compute(data, state);
        };
        let fixed = |hash: Hash, state: &mut HashState<'_>| (hash.compute(data, state), MAX_BITS);
        let (hash, width) = match (algorithm.function, &self.crc) {
            (HashFunction::Crc { width, .. }, Some(crc)) => (crc.compute(data), width),
            (HashFunction::Random, _) => fixed(Hash::Xxh64, state),
            (HashFunction::Xor, _) => match algorithm.result_bits {
                ..=8 => (Hash::Xor8.compute(data, state), 8),
                9..=16 => (Hash::Xor16.compute(data, state), 16),
                _ => (Hash::Xor32.compute(data, state), 32),
            },
            _ => fixed(Hash::Low, state),
        };
        algorithm.finish(hash, width)
    }
}
