// SPDX-License-Identifier: Apache-2.0
//! Parameters of hash calculations.

use softswitch_pipeline::{CalculationId, CrcConfig, HashKind};
use softswitch_thrift::interface::{
    Calculations, Crc16Config, Crc32Config, CrcError, ToeplitzError,
};
use softswitch_thrift::wire::Binary;

use super::Services;

impl Services {
    fn set_crc(&self, name: &str, kind: HashKind, config: CrcConfig) -> Result<(), CrcError> {
        let unknown = CrcError::InvalidCalculationName;
        self.with_state(unknown, |cx, program| {
            let info = program.info();
            let id: CalculationId = info.calculation(name).ok_or(unknown)?;
            if info.calculations[id.index()].kind != kind {
                return Err(CrcError::WrongTypeCalculation);
            }
            let set = cx.pipeline.set_crc(id, config);
            set.map_err(|_| CrcError::InvalidConfig)
        })
    }
}

impl Calculations for Services {
    fn bm_set_crc16_custom_parameters(
        &self,
        _: i32,
        name: String,
        config: Crc16Config,
    ) -> Result<(), CrcError> {
        let config = CrcConfig {
            width: 16,
            polynomial: config.polynomial.cast_unsigned().into(),
            initial: config.initial_remainder.cast_unsigned().into(),
            final_xor: config.final_xor_value.cast_unsigned().into(),
            reflect_data: config.data_reflected,
            reflect_remainder: config.remainder_reflected,
        };
        self.set_crc(&name, HashKind::Crc16Custom, config)
    }

    fn bm_set_crc32_custom_parameters(
        &self,
        _: i32,
        name: String,
        config: Crc32Config,
    ) -> Result<(), CrcError> {
        let config = CrcConfig {
            width: 32,
            polynomial: config.polynomial.cast_unsigned(),
            initial: config.initial_remainder.cast_unsigned(),
            final_xor: config.final_xor_value.cast_unsigned(),
            reflect_data: config.data_reflected,
            reflect_remainder: config.remainder_reflected,
        };
        self.set_crc(&name, HashKind::Crc32Custom, config)
    }

    fn bm_set_toeplitz_hash_key(
        &self,
        _: i32,
        name: String,
        key: Binary,
    ) -> Result<(), ToeplitzError> {
        let unknown = ToeplitzError::InvalidCalculationName;
        self.with_state(unknown, |cx, program| {
            let info = program.info();
            let id = info.calculation(&name).ok_or(unknown)?;
            if info.calculations[id.index()].kind != HashKind::Toeplitz {
                return Err(ToeplitzError::WrongTypeCalculation);
            }
            let set = cx.pipeline.set_toeplitz_key(id, &key.0);
            set.map_err(|_| ToeplitzError::InvalidKey)
        })
    }
}
