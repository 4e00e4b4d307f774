// SPDX-License-Identifier: Apache-2.0
//! Round-trip time estimation of RFC 6298, section 2, and RFC 9002, section 5.

use crate::Nanos;

/// SRTT and RTTVAR. Both are undefined before the first sample.
#[derive(Debug, Clone, Copy, Default)]
pub struct RttEstimator {
    smoothed: Option<Nanos>,
    variation: Nanos,
}

impl RttEstimator {
    /// Adds a sample, with alpha = 1/8 and beta = 1/4.
    pub fn sample(&mut self, rtt: Nanos) {
        match self.smoothed {
            None => {
                self.smoothed = Some(rtt);
                self.variation = rtt / 2;
            }
            Some(smoothed) => {
                self.variation = (3 * self.variation + smoothed.abs_diff(rtt)) / 4;
                self.smoothed = Some((7 * smoothed + rtt) / 8);
            }
        }
    }

    /// Returns SRTT, if there was a sample.
    pub fn smoothed(&self) -> Option<Nanos> {
        self.smoothed
    }

    /// Returns SRTT + max(G, 4 RTTVAR), if there was a sample.
    pub fn timeout(&self, granularity: Nanos) -> Option<Nanos> {
        Some(self.smoothed? + (4 * self.variation).max(granularity))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MILLISECOND;

    #[test]
    fn samples_follow_rfc_6298() {
        let mut rtt = RttEstimator::default();
        assert_eq!(rtt.timeout(0), None);
        rtt.sample(100 * MILLISECOND);
        assert_eq!(rtt.smoothed(), Some(100 * MILLISECOND));
        assert_eq!(rtt.timeout(0), Some(300 * MILLISECOND));
        rtt.sample(180 * MILLISECOND);
        // RTTVAR = 3/4 * 50 + 1/4 * 80, SRTT = 7/8 * 100 + 1/8 * 180.
        assert_eq!(rtt.variation, 57_500_000);
        assert_eq!(rtt.smoothed(), Some(110 * MILLISECOND));
        assert_eq!(rtt.timeout(300 * MILLISECOND), Some(410 * MILLISECOND));
    }
}
