// SPDX-License-Identifier: Apache-2.0
//! The retransmission timer.

use super::Config;
use crate::Nanos;
use crate::rtt::RttEstimator;

/// RFC 6298's retransmission timer.
#[derive(Debug)]
pub struct Timer {
    pub rtt: RttEstimator,
    min: Nanos,
    max: Nanos,
    initial: Nanos,
    /// A timeout discards the estimate at the next sample (NetBench).
    resets_after_timeout: bool,
    stale: bool,
    /// Shortest round-trip time so far.
    min_rtt: Nanos,
    /// Number of doublings of the timeout since the last measurement.
    pub backoff: u32,
    /// Number of timeouts since the last progress.
    pub consecutive_timeouts: u32,
    pub deadline: Option<Nanos>,
}

impl Timer {
    pub fn new(config: &Config) -> Self {
        Self {
            rtt: RttEstimator::default(),
            min: config.min_rto,
            max: config.max_rto,
            initial: config.initial_rto,
            resets_after_timeout: config.is_netbench(),
            stale: false,
            min_rtt: Nanos::MAX,
            backoff: 0,
            consecutive_timeouts: 0,
            deadline: None,
        }
    }

    /// Initializes the timer after the handshake, with its round-trip time if measured.
    pub fn establish(&mut self, rtt: Option<Nanos>) {
        match rtt {
            Some(rtt) => self.rtt.sample(rtt),
            // RFC 6298, section 5.7: three times the initial timeout.
            None => self.initial = (3 * self.initial).min(self.max),
        }
    }

    pub fn value(&self) -> Nanos {
        let base = self.rtt.timeout(0).unwrap_or(self.initial).max(self.min);
        base.saturating_mul(1 << self.backoff).min(self.max)
    }

    /// Returns true if `rtt` may be used as a sample.
    ///
    /// An `ambiguous` one may not, because it is unknown which copy arrived (Karn's algorithm). NetBench's echoes identify the copy; here,
    /// the last copy is plausible if `rtt` is not below the shortest round-trip time.
    pub fn is_plausible(&self, rtt: Nanos, ambiguous: bool) -> bool {
        !ambiguous || (self.resets_after_timeout && rtt >= self.min_rtt)
    }

    pub fn sample(&mut self, rtt: Nanos) {
        if std::mem::take(&mut self.stale) {
            self.rtt = RttEstimator::default();
        }
        self.min_rtt = self.min_rtt.min(rtt);
        self.rtt.sample(rtt);
        self.backoff = 0;
    }

    /// Doubles the timeout until the next measurement.
    pub fn back_off(&mut self, max: u32) {
        self.backoff = (self.backoff + 1).min(max);
        self.consecutive_timeouts += 1;
        self.stale = self.resets_after_timeout;
    }

    pub fn restart(&mut self, now: Nanos) {
        self.deadline = Some(now + self.value());
    }
}
