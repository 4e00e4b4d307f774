// SPDX-License-Identifier: Apache-2.0
//! The switch's clock.

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use softswitch_pipeline::Nanos;

/// The period after which a clock that begins at the time of day repeats: 2^36 us, or 19 hours.
const DAY_CLOCK_PERIOD: Duration = Duration::from_micros(1 << 36);

/// A clock that counts nanoseconds, based on the monotonic clock.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    origin: Duration,
    start: Duration,
}

impl Clock {
    /// Starts a clock at zero.
    pub fn from_zero() -> Self {
        Self::starting_at(Duration::ZERO)
    }

    /// Starts a clock at the time since the UNIX epoch modulo 2^36 us.
    ///
    /// The lowest 36 bits of its microseconds are those of all such clocks on machines with the same time.
    pub fn from_time_of_day() -> Self {
        Self::starting_at(since_period(
            clock_gettime(ClockId::CLOCK_REALTIME).map_or(Duration::ZERO, Duration::from),
        ))
    }

    fn starting_at(start: Duration) -> Self {
        Self {
            origin: monotonic(),
            start,
        }
    }

    /// Returns the time in nanoseconds.
    pub fn now(&self) -> Nanos {
        let since = monotonic().saturating_sub(self.origin);
        let now = self.start.saturating_add(since);
        Nanos::try_from(now.as_nanos()).unwrap_or(Nanos::MAX)
    }

    /// Converts a time to the monotonic clock, for timers.
    pub fn absolute(&self, at: Nanos) -> Duration {
        let since = Duration::from_nanos(at).saturating_sub(self.start);
        self.origin.saturating_add(since)
    }
}

/// Returns the time since the last multiple of the period.
fn since_period(time: Duration) -> Duration {
    let nanos = time.as_nanos() % DAY_CLOCK_PERIOD.as_nanos();
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(0))
}

fn monotonic() -> Duration {
    // It cannot fail: the clock exists on every Linux, and the pointer is valid.
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(Duration::ZERO, Duration::from)
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    const SECOND: Nanos = 1_000_000_000;
    const TOLERANCE: Duration = Duration::from_secs(5);

    #[test]
    fn clock_from_zero_starts_at_zero() {
        let before = monotonic();
        let clock = Clock::from_zero();
        let now = Duration::from_nanos(clock.now());
        assert!(now <= monotonic().saturating_sub(before));
    }

    #[test]
    fn clock_from_the_time_of_day_agrees_with_it_whenever_it_starts() {
        for pause in [0, 20] {
            std::thread::sleep(Duration::from_millis(pause));
            let clock = Clock::from_time_of_day();
            let now = since_period(Duration::from_nanos(clock.now()));
            let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
            let ahead = since_period(time.expect("the epoch is over") + DAY_CLOCK_PERIOD - now);
            assert!(ahead.min(DAY_CLOCK_PERIOD - ahead) < TOLERANCE);
        }
    }

    #[test]
    fn time_of_day_repeats_after_a_multiple_of_the_ticks_that_programs_see() {
        let earlier = Duration::from_secs(1_700_000_000);
        assert_eq!(
            since_period(earlier),
            since_period(earlier + 3 * DAY_CLOCK_PERIOD)
        );
        assert!(since_period(earlier) < DAY_CLOCK_PERIOD);
    }

    #[test]
    fn timers_of_both_clocks_are_on_the_monotonic_clock() {
        for clock in [Clock::from_zero(), Clock::from_time_of_day()] {
            let before = monotonic();
            let at = clock.absolute(clock.now() + SECOND);
            let expected = before + Duration::from_secs(1)..=monotonic() + Duration::from_secs(1);
            assert!(expected.contains(&at));
        }
    }
}
