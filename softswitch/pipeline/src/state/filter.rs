// SPDX-License-Identifier: Apache-2.0
//! Low-pass filters, and random early detection over them.

use softswitch_random::Rng;

use crate::Nanos;
use crate::entry::{DropCurve, FilterConfig};

/// Number of binary digits behind the point of a filter's level.
const FRACTION_BITS: u32 = 16;

/// One million, which is a probability of 1.
const CERTAIN: u64 = 1_000_000;

/// One cell of a filter array. Without a configuration, the output is the input.
#[derive(Debug, Clone, Default)]
pub(crate) struct Filter {
    config: Option<FilterConfig>,
    level: u64,
    last: Option<Nanos>,
}

impl Filter {
    /// Sets the configuration, and starts anew.
    pub(crate) fn configure(&mut self, config: Option<FilterConfig>) {
        *self = Self {
            config,
            ..Self::default()
        };
    }

    pub(crate) fn config(&self) -> Option<&FilterConfig> {
        self.config.as_ref()
    }

    /// Returns the output for an input at time `now`: a first-order low-pass filter in the backward Euler form.
    pub(crate) fn execute(&mut self, input: u64, now: Nanos) -> u64 {
        let Some(config) = &self.config else {
            return input;
        };
        let target = input.min(u64::MAX >> FRACTION_BITS) << FRACTION_BITS;
        let last = self.last.replace(now.max(self.last.unwrap_or(now)));
        let elapsed = last.map(|last| now.saturating_sub(last));
        self.level = match (elapsed, config.is_rate) {
            (None, _) => target,
            (Some(elapsed), true) => {
                let kept = between(self.level, 0, elapsed, config.decay_time);
                kept.saturating_add(target)
            }
            (Some(elapsed), false) => {
                let rises = target > self.level;
                let time = if rises {
                    config.gain_time
                } else {
                    config.decay_time
                };
                between(self.level, target, elapsed, time)
            }
        };
        (self.level >> FRACTION_BITS) >> config.scale_down.min(u64::BITS - 1)
    }

    /// Returns whether to drop a packet for an input at time `now`.
    pub(crate) fn drops(&mut self, input: u64, now: Nanos, rng: &mut Rng) -> bool {
        let average = self.execute(input, now);
        let Some(curve) = self.config.and_then(|c| c.drop_curve) else {
            return false;
        };
        let probability = probability(&curve, average);
        probability > 0 && rng.uniform(1, CERTAIN) <= probability
    }
}

/// Returns the level `elapsed` after `from` on the way to `to`.
fn between(from: u64, to: u64, elapsed: Nanos, time: f32) -> u64 {
    let time = time.round() as u64;
    let total = u128::from(elapsed) + u128::from(time);
    if total == 0 {
        return to;
    }
    let (before, after) = (u128::from(from), u128::from(to));
    ((before * u128::from(time) + after * u128::from(elapsed)) / total) as u64
}

/// Returns the drop probability in millionths.
fn probability(curve: &DropCurve, average: u64) -> u64 {
    if average < curve.min {
        return 0;
    }
    if average >= curve.max {
        return CERTAIN;
    }
    let part = u128::from(average - curve.min) * u128::from(millionths(curve.max_probability));
    (part / u128::from(curve.max - curve.min)) as u64
}

/// Returns a probability in millionths.
fn millionths(probability: f32) -> u64 {
    (probability * CERTAIN as f32).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: FilterConfig = FilterConfig {
        is_rate: false,
        gain_time: 1000.0,
        decay_time: 3000.0,
        scale_down: 0,
        drop_curve: None,
    };

    fn filter(config: FilterConfig) -> Filter {
        let mut filter = Filter::default();
        filter.configure(Some(config));
        filter
    }

    #[test]
    fn level_follows_samples_with_its_time_constants() {
        let mut f = filter(CONFIG);
        assert_eq!(f.execute(100, 0), 100);
        assert_eq!(f.execute(200, 1000), 150);
        assert_eq!(f.execute(50, 2000), 125);
        assert_eq!(f.execute(50, 1_000_000_000), 50);
        assert_eq!(Filter::default().execute(7, 0), 7);
    }

    #[test]
    fn rate_adds_inputs_and_decays() {
        let mut f = filter(FilterConfig {
            is_rate: true,
            scale_down: 1,
            ..CONFIG
        });
        assert_eq!(
            [f.execute(100, 0), f.execute(100, 0), f.execute(0, 3000)],
            [50, 100, 50]
        );
    }

    #[test]
    fn drop_probability_follows_the_curve() {
        let curve = DropCurve {
            min: 100,
            max: 200,
            max_probability: 0.5,
        };
        let at = |average| probability(&curve, average);
        assert_eq!(
            [at(99), at(100), at(150), at(200)],
            [0, 0, 250_000, CERTAIN]
        );
        let mut f = filter(FilterConfig {
            drop_curve: Some(curve),
            ..CONFIG
        });
        let rng = &mut Rng::new(1);
        let dropped = (0..1000).filter(|_| f.drops(150, 0, rng)).count();
        assert!((200..300).contains(&dropped), "{dropped}");
    }
}
