// SPDX-License-Identifier: Apache-2.0
//! Detection of senders that the congestion window limits.

use super::Controller;

/// Tracks whether the window is in use, because only then may it grow (RFC 7661, section 4.1; RFC 9002, section 7.8).
///
/// The decision covers a window of data, as in Linux's tcp_cwnd_validate.
#[derive(Debug, Default)]
pub struct Usage {
    limited: bool,
    max_flight: u64,
    until: u64,
}

impl Usage {
    /// Records a transmission, or one that the window prevented. `limited` means that no further segment fits.
    ///
    /// `acknowledged` and `sent` count bytes since the start of the connection.
    pub fn note(&mut self, limited: bool, acknowledged: u64, sent: u64) {
        let flight = sent - acknowledged;
        if limited || acknowledged >= self.until || (!self.limited && flight > self.max_flight) {
            (self.limited, self.max_flight, self.until) = (limited, flight, sent);
        }
    }

    /// Returns true if the window limits the sender. In slow start, half of the window in use is enough.
    pub fn is_limited(&self, controller: &Controller) -> bool {
        self.limited || (controller.in_slow_start() && controller.window() < 2 * self.max_flight)
    }
}
