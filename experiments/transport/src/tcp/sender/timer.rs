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
    /// Whether a timeout discards the estimate, which then begins anew with the next sample (NetBench).
    forgets: bool,
    stale: bool,
    /// The shortest round trip so far.
    least: Nanos,
    /// How often the timeout was doubled since a round trip was measured.
    pub backoff: u32,
    /// Timeouts since something was acknowledged.
    pub in_vain: u32,
    pub deadline: Option<Nanos>,
}

impl Timer {
    pub fn new(config: &Config) -> Self {
        Self {
            rtt: RttEstimator::default(),
            min: config.min_rto,
            max: config.max_rto,
            initial: config.initial_rto,
            forgets: config.is_netbench(),
            stale: false,
            least: Nanos::MAX,
            backoff: 0,
            in_vain: 0,
            deadline: None,
        }
    }

    /// After the handshake, whose round trip may have been measured.
    pub fn establish(&mut self, rtt: Option<Nanos>) {
        match rtt {
            Some(rtt) => self.rtt.sample(rtt),
            // RFC 6298, section 5.7: 3 s where the first was 1 s.
            None => self.initial = (3 * self.initial).min(self.max),
        }
    }

    pub fn value(&self) -> Nanos {
        let base = self.rtt.timeout(0).unwrap_or(self.initial).max(self.min);
        base.saturating_mul(1 << self.backoff).min(self.max)
    }

    /// Whether it may be a round trip. Of what was sent more than once it is not known which copy arrived (Karn's algorithm). NetBench's echoes tell
    /// which; here, if it was the last, it has taken no less than the shortest round trip.
    pub fn may_be(&self, rtt: Nanos, ambiguous: bool) -> bool {
        !ambiguous || (self.forgets && rtt >= self.least)
    }

    pub fn sample(&mut self, rtt: Nanos) {
        if std::mem::take(&mut self.stale) {
            self.rtt = RttEstimator::default();
        }
        self.least = self.least.min(rtt);
        self.rtt.sample(rtt);
        self.backoff = 0;
    }

    /// The timer has fired: the next timeout is twice as long, until a round trip is measured.
    pub fn back_off(&mut self, most: u32) {
        self.backoff = (self.backoff + 1).min(most);
        self.in_vain += 1;
        self.stale = self.forgets;
    }

    pub fn restart(&mut self, now: Nanos) {
        self.deadline = Some(now + self.value());
    }
}
