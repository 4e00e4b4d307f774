// SPDX-License-Identifier: Apache-2.0
//! Parameters of named hash calculations.

use super::no_such;
use crate::entry::CrcConfig;
use crate::error::StateError;
use crate::info::{CalculationId, CalculationInfo, HashKind};
use crate::pipeline::Pipeline;
use crate::program::hash::HashParameters;
use crate::program::hash_parameters::{ConfiguredCrc, ToeplitzKey};

type Result<T> = std::result::Result<T, StateError>;

impl Pipeline {
    fn calculation(&self, id: CalculationId) -> Result<&CalculationInfo> {
        let calculations = &self.program.info().calculations;
        let info = calculations.get(id.index());
        info.ok_or_else(|| no_such("calculation", id.0))
    }

    /// Sets the parameters of a `crc16_custom` or `crc32_custom`.
    pub fn set_crc(&mut self, id: CalculationId, config: CrcConfig) -> Result<()> {
        let info = self.calculation(id)?;
        let fits = match info.kind {
            HashKind::Crc16Custom => config.width == 16,
            HashKind::Crc32Custom => config.width == 32,
            HashKind::Fixed | HashKind::Toeplitz => false,
        };
        if !fits {
            return Err(StateError::Invalid {
                what: format!("calculation {}", info.name),
                reason: format!("it is not a configurable CRC of {} bits", config.width),
            });
        }
        let crc = ConfiguredCrc::new(config);
        self.set_parameters(id, HashParameters::Crc(Box::new(crc)))
    }

    /// Sets the key of a Toeplitz hash: one or more words of 4 bytes.
    pub fn set_toeplitz_key(&mut self, id: CalculationId, key: &[u8]) -> Result<()> {
        let info = self.calculation(id)?;
        let invalid = |reason: &str| StateError::Invalid {
            what: format!("calculation {}", info.name),
            reason: reason.to_owned(),
        };
        if info.kind != HashKind::Toeplitz {
            return Err(invalid("it is not a Toeplitz hash"));
        }
        let key = ToeplitzKey::new(key);
        let key = key.ok_or_else(|| invalid("the key must have 4, 8, 12, ... bytes"))?;
        self.set_parameters(id, HashParameters::Toeplitz(key))
    }

    fn set_parameters(&mut self, id: CalculationId, parameters: HashParameters) -> Result<()> {
        self.change(|p| {
            p.core.state.externs.hash_parameters.write()[id.index()] = parameters.clone();
            Ok(())
        })
    }
}
