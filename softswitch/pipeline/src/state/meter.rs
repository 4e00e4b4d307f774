// SPDX-License-Identifier: Apache-2.0
//! Three-colour meters with two rates (RFC 2698) or one (RFC 2697), colour-blind or colour-aware.

use crate::Nanos;
use crate::entry::{ColorCounters, MeterConfig};
use crate::program::op::ColorCodes;

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

impl Color {
    /// Returns the colour with this number; unknown ones are red.
    pub(crate) fn of_code(code: u64, codes: &ColorCodes) -> Self {
        let is = |color: Self| u64::from(codes[color as usize]) == code;
        let others = [Self::Green, Self::Yellow];
        others.into_iter().find(|&c| is(c)).unwrap_or(Self::Red)
    }
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
    counters: ColorCounters,
}

#[derive(Debug, Clone)]
struct Armed {
    config: MeterConfig,
    committed: Bucket,
    /// The excess bucket of a meter with one rate.
    peak: Bucket,
    last: Option<Nanos>,
}

impl MeterConfig {
    /// Returns true for a meter of RFC 2697. Without excess burst, both RFCs give the same colours.
    fn has_single_rate(&self) -> bool {
        self.eburst > 0
    }
}

impl Meter {
    /// Sets the configuration, with full buckets, and keeps the counters.
    pub(crate) fn configure(&mut self, config: Option<MeterConfig>) {
        let full = |burst| Bucket {
            level: u128::from(burst) * NANOS_PER_SECOND,
        };
        self.armed = config.map(|config| Armed {
            config,
            committed: full(config.cburst),
            peak: full(match config.has_single_rate() {
                true => config.eburst,
                false => config.pburst,
            }),
            last: None,
        });
    }

    pub(crate) fn config(&self) -> Option<MeterConfig> {
        self.armed.as_ref().map(|a| a.config)
    }

    pub(crate) fn counters(&self) -> ColorCounters {
        self.counters
    }

    pub(crate) fn reset_counters(&mut self) {
        self.counters = ColorCounters::default();
    }

    /// Meters a packet of `bytes` bytes, which takes `amount` bytes or packets, at time `now`, and counts it. The packet has
    /// colour `before`, which is green for a colour-blind meter, and becomes no better.
    pub(crate) fn execute(&mut self, amount: u64, bytes: u32, now: Nanos, before: Color) -> Color {
        let color = match &mut self.armed {
            Some(armed) => armed.color(amount, now, before),
            None => before,
        };
        let counter = match color {
            Color::Green => &mut self.counters.green,
            Color::Yellow => &mut self.counters.yellow,
            Color::Red => &mut self.counters.red,
        };
        counter.add(bytes);
        color
    }
}

impl Armed {
    fn color(&mut self, amount: u64, now: Nanos, before: Color) -> Color {
        let elapsed = now.saturating_sub(self.last.unwrap_or(now));
        self.last = Some(now.max(self.last.unwrap_or(now)));
        let need = u128::from(amount) * NANOS_PER_SECOND;
        match self.config.has_single_rate() {
            true => self.single_rate(need, elapsed, before),
            false => self.two_rates(need, elapsed, before),
        }
    }

    /// RFC 2698, section 3.
    fn two_rates(&mut self, need: u128, elapsed: Nanos, before: Color) -> Color {
        let c = &self.config;
        self.committed.refill(c.cir, c.cburst, elapsed);
        self.peak.refill(c.pir, c.pburst, elapsed);
        if before == Color::Red || self.peak.level < need {
            return Color::Red;
        }
        self.peak.level -= need;
        if before == Color::Yellow || self.committed.level < need {
            return Color::Yellow;
        }
        self.committed.level -= need;
        Color::Green
    }

    /// RFC 2697, section 3: tokens that the committed bucket cannot hold go to the excess bucket.
    fn single_rate(&mut self, need: u128, elapsed: Nanos, before: Color) -> Color {
        let c = &self.config;
        let gain = u128::from(c.cir) * u128::from(elapsed);
        let committed = self.committed.level + gain;
        self.committed.level = committed.min(u128::from(c.cburst) * NANOS_PER_SECOND);
        let excess = self.peak.level + (committed - self.committed.level);
        self.peak.level = excess.min(u128::from(c.eburst) * NANOS_PER_SECOND);
        if before == Color::Green && self.committed.level >= need {
            self.committed.level -= need;
            return Color::Green;
        }
        if before != Color::Red && self.peak.level >= need {
            self.peak.level -= need;
            return Color::Yellow;
        }
        Color::Red
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meter(config: Option<MeterConfig>) -> Meter {
        let mut meter = Meter::default();
        meter.configure(config);
        meter
    }

    const CONFIG: MeterConfig = MeterConfig {
        cir: 10,
        cburst: 2,
        pir: 20,
        pburst: 4,
        eburst: 0,
    };

    #[test]
    fn colour_depends_on_both_rates() {
        let mut m = meter(Some(CONFIG));
        let colors: Vec<u8> = (0..6)
            .map(|_| m.execute(1, 10, 0, Color::Green) as u8)
            .collect();
        assert_eq!(colors, [0, 0, 1, 1, 2, 2]);
        // 100 ms yield one committed and two peak tokens.
        let colors: Vec<u8> = (0..3)
            .map(|_| m.execute(1, 10, 100_000_000, Color::Green) as u8)
            .collect();
        assert_eq!(colors, [0, 1, 2]);
    }

    #[test]
    fn unconfigured_meter_is_green_and_time_may_go_back() {
        assert_eq!(
            Meter::default().execute(u64::MAX, 10, 5, Color::Green),
            Color::Green
        );
        let mut m = meter(Some(CONFIG));
        for _ in 0..4 {
            m.execute(1, 10, 1_000_000_000, Color::Green);
        }
        assert_eq!(m.execute(1, 10, 0, Color::Green), Color::Red);
        assert_eq!(m.execute(1, 10, 1_000_000_000, Color::Green), Color::Red);
    }

    #[test]
    fn small_rates_refill_exactly() {
        let mut m = meter(Some(MeterConfig {
            cir: 1,
            cburst: 1,
            pir: 1,
            pburst: 1,
            eburst: 0,
        }));
        assert_eq!(m.execute(1, 10, 0, Color::Green), Color::Green);
        for ms in 1..1000 {
            assert_eq!(m.execute(1, 10, ms * 1_000_000, Color::Green), Color::Red);
        }
        assert_eq!(m.execute(1, 10, 1_000_000_000, Color::Green), Color::Green);
    }

    // RFC 2697: tokens fill the committed bucket first, then the excess bucket.
    #[test]
    fn excess_burst_gives_yellow_until_it_is_used() {
        let mut m = meter(Some(MeterConfig {
            cir: 10,
            cburst: 2,
            pir: 10,
            pburst: 2,
            eburst: 3,
        }));
        let colors: Vec<u8> = (0..6)
            .map(|_| m.execute(1, 10, 0, Color::Green) as u8)
            .collect();
        assert_eq!(colors, [0, 0, 1, 1, 1, 2]);
        // 100 ms yield one token, which goes to the committed bucket.
        let colors: Vec<u8> = (0..2)
            .map(|_| m.execute(1, 10, 100_000_000, Color::Green) as u8)
            .collect();
        assert_eq!(colors, [0, 2]);
        // 400 ms yield four: two of them go to the excess bucket.
        let colors: Vec<u8> = (0..5)
            .map(|_| m.execute(1, 10, 500_000_000, Color::Green) as u8)
            .collect();
        assert_eq!(colors, [0, 0, 1, 1, 2]);
    }

    #[test]
    fn packets_of_each_colour_are_counted_until_reset() {
        let mut m = meter(Some(CONFIG));
        for _ in 0..5 {
            m.execute(1, 10, 0, Color::Green);
        }
        let counters = m.counters();
        let packets = [counters.green, counters.yellow, counters.red].map(|c| c.packets);
        assert_eq!((packets, counters.green.bytes), ([2, 2, 1], 20));
        // A new configuration keeps them.
        m.configure(None);
        m.execute(1, 10, 0, Color::Green);
        assert_eq!(m.counters().green.packets, 3);
        m.reset_counters();
        assert_eq!(m.counters(), ColorCounters::default());
    }

    #[test]
    fn coloured_packet_becomes_no_better_and_saves_tokens() {
        let mut m = meter(Some(CONFIG));
        assert_eq!(m.execute(1, 10, 0, Color::Red), Color::Red);
        // Yellow packets take peak tokens only.
        for _ in 0..2 {
            assert_eq!(m.execute(1, 10, 0, Color::Yellow), Color::Yellow);
        }
        let rest: Vec<Color> = (0..3).map(|_| m.execute(1, 10, 0, Color::Green)).collect();
        assert_eq!(rest, [Color::Green, Color::Green, Color::Red]);
        assert_eq!(
            Meter::default().execute(1, 10, 0, Color::Yellow),
            Color::Yellow
        );
    }

    #[test]
    fn coloured_packet_becomes_no_better_with_a_single_rate() {
        let mut m = meter(Some(MeterConfig {
            cir: 10,
            cburst: 1,
            pir: 10,
            pburst: 1,
            eburst: 2,
        }));
        assert_eq!(m.execute(1, 10, 0, Color::Red), Color::Red);
        assert_eq!(m.execute(1, 10, 0, Color::Yellow), Color::Yellow);
        let rest: Vec<Color> = (0..3).map(|_| m.execute(1, 10, 0, Color::Green)).collect();
        assert_eq!(rest, [Color::Green, Color::Yellow, Color::Red]);
    }
}
