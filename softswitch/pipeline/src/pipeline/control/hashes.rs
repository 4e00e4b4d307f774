// SPDX-License-Identifier: Apache-2.0
//! The hashes of TNA that the control plane can change.

use super::no_such;
use crate::error::StateError;
use crate::info::HashId;
use crate::phv::mask64;
use crate::pipeline::Pipeline;
use crate::program::changeable_hash::ChangeableHash;
use crate::program::dynamic_hash::{DynamicHash, HashConfig, HashFunction};
use crate::program::hash::{HashParameters, HashState};

type Result<T> = std::result::Result<T, StateError>;

impl Pipeline {
    /// Returns the settings of a hash.
    ///
    /// # Errors
    /// If it does not exist.
    pub fn hash_config(&self, id: HashId) -> Result<HashConfig> {
        let at = self.changeable_hash(id)?.parameters as usize;
        Ok(match &self.state().externs.hash_parameters[at] {
            HashParameters::Dynamic(hash) => hash.config.clone(),
            _ => HashConfig::default(),
        })
    }

    /// Changes the settings of a hash.
    ///
    /// # Errors
    /// If it does not exist, the slices of a part have different lengths, or the CRC is invalid.
    pub fn set_hash_config(&mut self, id: HashId, config: HashConfig) -> Result<()> {
        let at = self.changeable_hash(id)?.parameters as usize;
        let name = &self.program.info().hashes[id.index()].name;
        check(&config).map_err(|reason| StateError::Invalid {
            what: format!("hash {name}"),
            reason: reason.to_owned(),
        })?;
        let parameters = match config == HashConfig::default() {
            true => HashParameters::Default,
            false => HashParameters::Dynamic(Box::new(DynamicHash::new(config))),
        };
        self.change(|p| {
            p.core.state.externs.hash_parameters.write()[at] = parameters.clone();
            Ok(())
        })
    }

    /// Returns the bits that the program uses of the hash of an input, whose fields stand without gaps, behind zeros that fill the first byte.
    ///
    /// # Errors
    /// If it does not exist.
    pub fn compute_hash(&mut self, id: HashId, input: &[u8]) -> Result<u64> {
        let hash = self.changeable_hash(id)?;
        let (base, at) = (hash.base, hash.parameters as usize);
        let first = self.scope.iter().next().unwrap_or(0);
        self.core.state.select(first as usize);
        let externs = &mut self.core.state.externs;
        let parameters = &externs.hash_parameters;
        let mut state = HashState {
            rng: &mut externs.rng,
            calls: &mut externs.round_robin,
            parameters,
        };
        let value = match &parameters[at] {
            HashParameters::Dynamic(hash) => hash.compute(base, input, &mut state),
            _ => base.compute(input, &mut state),
        };
        Ok(value & mask64(hash.used_bits))
    }

    fn changeable_hash(&self, id: HashId) -> Result<ChangeableHash> {
        let hash = self.program.compiled().hashes.get(id.index());
        hash.copied().ok_or_else(|| no_such("hash", id.0))
    }
}

/// Returns the fault of invalid settings.
fn check(config: &HashConfig) -> std::result::Result<(), &'static str> {
    let mut parts = config.inputs.iter().flatten();
    if !parts.all(|part| part.windows(2).all(|pair| pair[0].bits == pair[1].bits)) {
        return Err("slices of the same order must have the same length");
    }
    match config.algorithm.map(|algorithm| algorithm.function) {
        Some(HashFunction::Crc { width, .. }) if !(1..=64).contains(&width) => {
            Err("a CRC must have 1 to 64 bits")
        }
        _ => Ok(()),
    }
}
