// SPDX-License-Identifier: Apache-2.0
//! Rates of meters. BMv2 counts units per microsecond, and the pipeline units per second.

use softswitch_pipeline::MeterConfig;
use softswitch_thrift::interface::{MeterError, MeterRate};

const MICROS_PER_SECOND: f64 = 1e6;

/// Decodes the rates of a meter: the committed one and the peak one.
///
/// # Errors
/// If there are not two rates, a rate or a burst is invalid, or the peak is below the committed rate.
pub fn decode(rates: &[MeterRate]) -> Result<MeterConfig, MeterError> {
    let [committed, peak] = rates else {
        return Err(MeterError::BadRatesList);
    };
    let config = MeterConfig {
        cir: per_second(committed.units_per_micros)?,
        cburst: burst(committed.burst_size)?,
        pir: per_second(peak.units_per_micros)?,
        pburst: burst(peak.burst_size)?,
        eburst: 0,
    };
    match config.pir < config.cir {
        true => Err(MeterError::InvalidInfoRateValue),
        false => Ok(config),
    }
}

fn per_second(per_micro: f64) -> Result<u64, MeterError> {
    let rate = (per_micro * MICROS_PER_SECOND).round();
    // 2^64 is the first number that does not fit; the comparison also excludes NaN.
    if (0.0..18_446_744_073_709_551_616.0).contains(&rate) {
        return Ok(rate as u64);
    }
    Err(MeterError::InvalidInfoRateValue)
}

fn burst(size: i32) -> Result<u64, MeterError> {
    u64::try_from(size).map_err(|_| MeterError::InvalidBurstSizeValue)
}

/// Encodes the rates of a meter; none if it is not configured.
pub fn encode(config: Option<MeterConfig>) -> Vec<MeterRate> {
    let rate = |rate: u64, burst: u64| MeterRate {
        units_per_micros: rate as f64 / MICROS_PER_SECOND,
        burst_size: i32::try_from(burst).unwrap_or(i32::MAX),
    };
    let rates = config.map(|c| vec![rate(c.cir, c.cburst), rate(c.pir, c.pburst)]);
    rates.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(cir: f64, pir: f64, burst: i32) -> [MeterRate; 2] {
        [cir, pir].map(|units_per_micros| MeterRate {
            units_per_micros,
            burst_size: burst,
        })
    }

    #[test]
    fn rates_are_exact_per_second() {
        let given = rates(0.000_003, 0.1, 10);
        let config = decode(&given).unwrap();
        assert_eq!((config.cir, config.pir, config.pburst), (3, 100_000, 10));
        assert_eq!(encode(Some(config)), given);
        assert!(encode(None).is_empty());
    }

    #[test]
    fn invalid_rates_are_refused() {
        for (given, expected) in [
            (rates(2.0, 1.0, 1), MeterError::InvalidInfoRateValue),
            (rates(-1.0, 1.0, 1), MeterError::InvalidInfoRateValue),
            (rates(1.0, f64::NAN, 1), MeterError::InvalidInfoRateValue),
            (
                rates(1.0, f64::INFINITY, 1),
                MeterError::InvalidInfoRateValue,
            ),
            (rates(1.0, 1.0, -1), MeterError::InvalidBurstSizeValue),
        ] {
            assert_eq!(decode(&given), Err(expected), "{given:?}");
        }
        assert_eq!(
            decode(&rates(1.0, 1.0, 1)[..1]),
            Err(MeterError::BadRatesList)
        );
    }
}
