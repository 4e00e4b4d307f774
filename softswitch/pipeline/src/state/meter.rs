// SPDX-License-Identifier: Apache-2.0
//! Two-rate three-colour meters (RFC 2698), colour-blind.

use crate::Nanos;
use crate::entry::MeterConfig;

/// The colour of a packet; the numbers are v1model's `MeterColor_t`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Color {
    /// Within the committed rate.
    Green = 0,
    /// Within the peak rate.
    Yellow = 1,
    /// Beyond the peak rate.
    Red = 2,
}

const NANOS_PER_SECOND: u128 = 1_000_000_000;

/// One token bucket in exact arithmetic: tokens are counted in units of 1/10^9.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    level: u128,
}

impl Bucket {
    fn refill(&mut self, rate: u64, burst: u64, elapsed: Nanos) {
        let full = u128::from(burst) * NANOS_PER_SECOND;
        let gain = u128::from(rate) * u128::from(elapsed);
        self.level = full.min(self.level + gain);
    }
}

/// One meter cell. Without a configuration every packet is green.
#[derive(Debug, Clone, Default)]
pub(crate) struct Meter {
    armed: Option<Armed>,
}

#[derive(Debug, Clone)]
struct Armed {
    config: MeterConfig,
    committed: Bucket,
    peak: Bucket,
    last: Option<Nanos>,
}

impl Meter {
    pub(crate) fn new(config: Option<MeterConfig>) -> Self {
        let full = |burst| Bucket {
            level: u128::from(burst) * NANOS_PER_SECOND,
        };
        Self {
            armed: config.map(|config| Armed {
                config,
                committed: full(config.cburst),
                peak: full(config.pburst),
                last: None,
            }),
        }
    }

    pub(crate) fn config(&self) -> Option<MeterConfig> {
        self.armed.as_ref().map(|a| a.config)
    }

    /// Meters `amount` bytes or packets at time `now`.
    pub(crate) fn execute(&mut self, amount: u64, now: Nanos) -> Color {
        let Some(a) = &mut self.armed else {
            return Color::Green;
        };
        let elapsed = now.saturating_sub(a.last.unwrap_or(now));
        a.last = Some(now.max(a.last.unwrap_or(now)));
        a.committed.refill(a.config.cir, a.config.cburst, elapsed);
        a.peak.refill(a.config.pir, a.config.pburst, elapsed);
        let need = u128::from(amount) * NANOS_PER_SECOND;
        if a.peak.level < need {
            return Color::Red;
        }
        a.peak.level -= need;
        if a.committed.level < need {
            return Color::Yellow;
        }
        a.committed.level -= need;
        Color::Green
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: MeterConfig = MeterConfig {
        cir: 10,
        cburst: 2,
        pir: 20,
        pburst: 4,
    };

    #[test]
    fn colour_depends_on_both_rates() {
        let mut m = Meter::new(Some(CONFIG));
        let colors: Vec<u8> = (0..6).map(|_| m.execute(1, 0) as u8).collect();
        assert_eq!(colors, [0, 0, 1, 1, 2, 2]);
        // 100 ms yield one committed and two peak tokens.
        let colors: Vec<u8> = (0..3).map(|_| m.execute(1, 100_000_000) as u8).collect();
        assert_eq!(colors, [0, 1, 2]);
    }

    #[test]
    fn unconfigured_meter_is_green_and_time_may_go_back() {
        assert_eq!(Meter::default().execute(u64::MAX, 5), Color::Green);
        let mut m = Meter::new(Some(CONFIG));
        for _ in 0..4 {
            m.execute(1, 1_000_000_000);
        }
        assert_eq!(m.execute(1, 0), Color::Red);
        assert_eq!(m.execute(1, 1_000_000_000), Color::Red);
    }

    #[test]
    fn small_rates_refill_exactly() {
        let mut m = Meter::new(Some(MeterConfig {
            cir: 1,
            cburst: 1,
            pir: 1,
            pburst: 1,
        }));
        assert_eq!(m.execute(1, 0), Color::Green);
        for ms in 1..1000 {
            assert_eq!(m.execute(1, ms * 1_000_000), Color::Red);
        }
        assert_eq!(m.execute(1, 1_000_000_000), Color::Green);
    }
}
