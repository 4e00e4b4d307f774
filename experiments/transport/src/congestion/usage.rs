//! Whether the window is what limits the sender.

use super::Controller;

/// A window may only grow if it is in use (RFC 7661, section 4.1; RFC 9002, section 7.8). Judged
/// over a window of data, as Linux's tcp_cwnd_validate does.
#[derive(Debug, Default)]
pub struct Usage {
    limited: bool,
    most: u64,
    until: u64,
}

impl Usage {
    /// Something was sent, or would have been but for the window: `limited` if no more fits.
    /// `acknowledged` and `sent` are counts of bytes since the beginning.
    pub fn note(&mut self, limited: bool, acknowledged: u64, sent: u64) {
        let flight = sent - acknowledged;
        if limited || acknowledged >= self.until || (!self.limited && flight > self.most) {
            (self.limited, self.most, self.until) = (limited, flight, sent);
        }
    }

    /// In slow start, half of the window in use is enough.
    pub fn is_limited(&self, controller: &Controller) -> bool {
        self.limited || (controller.in_slow_start() && controller.window() < 2 * self.most)
    }
}
