// SPDX-License-Identifier: Apache-2.0
//! The switch's clock.

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use softswitch_pipeline::Nanos;

/// A clock that counts nanoseconds since the switch started, based on the monotonic clock.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    origin: Duration,
}

impl Clock {
    /// Starts the clock.
    pub fn start() -> Self {
        Self {
            origin: monotonic(),
        }
    }

    /// Returns the nanoseconds since the start.
    pub fn now(&self) -> Nanos {
        let since = monotonic().saturating_sub(self.origin);
        Nanos::try_from(since.as_nanos()).unwrap_or(Nanos::MAX)
    }

    /// Converts a time to the monotonic clock, for timers.
    pub fn absolute(&self, at: Nanos) -> Duration {
        self.origin.saturating_add(Duration::from_nanos(at))
    }
}

fn monotonic() -> Duration {
    // It cannot fail: the clock exists on every Linux, and the pointer is valid.
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(Duration::ZERO, Duration::from)
}
