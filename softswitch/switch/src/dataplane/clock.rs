//! The switch's time.

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use softswitch_pipeline::Nanos;

/// Nanoseconds of the monotonic clock since the switch began.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    origin: Duration,
}

impl Clock {
    /// Begins now.
    pub fn start() -> Self {
        Self {
            origin: monotonic(),
        }
    }

    /// Nanoseconds since the beginning.
    pub fn now(&self) -> Nanos {
        let since = monotonic().saturating_sub(self.origin);
        Nanos::try_from(since.as_nanos()).unwrap_or(Nanos::MAX)
    }

    /// A time on the monotonic clock, as timers want it.
    pub fn absolute(&self, at: Nanos) -> Duration {
        self.origin.saturating_add(Duration::from_nanos(at))
    }
}

fn monotonic() -> Duration {
    // It cannot fail: the clock exists on every Linux, and the kernel writes to a valid structure.
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(Duration::ZERO, Duration::from)
}
