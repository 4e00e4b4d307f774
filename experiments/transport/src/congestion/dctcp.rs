// SPDX-License-Identifier: Apache-2.0
//! DCTCP's estimate of the share of marked bytes, and the reduction based on it (RFC 8257, section 3.3).

use super::Event;
use super::new_reno::NewReno;

/// g: weight of a new observation.
const GAIN: f64 = 1.0 / 16.0;

/// DCTCP's state. The window grows as in NewReno. alpha is the share of marked bytes, smoothed over windows.
#[derive(Debug, Clone)]
pub struct Dctcp {
    pub(super) reno: NewReno,
    alpha: f64,
    bytes: u64,
    marked: u64,
    window_end: u64,
}

impl Default for Dctcp {
    /// Starts with alpha = 1, so that the first mark halves the window.
    fn default() -> Self {
        Self::new(1.0)
    }
}

impl Dctcp {
    /// Creates a state with an initial `alpha`.
    pub fn new(alpha: f64) -> Self {
        Self {
            reno: NewReno::default(),
            alpha,
            bytes: 0,
            marked: 0,
            window_end: 0,
        }
    }

    /// Returns DCTCP.Alpha.
    pub fn alpha(&self) -> f64 {
        self.alpha
    }

    /// Counts acknowledged and marked bytes, and updates alpha at the end of a window of data.
    ///
    /// A window ends when all data that had been sent at its start is acknowledged, as in Linux and ns-3.
    pub fn observe(&mut self, bytes: u64, marked: bool, acknowledged: u64, sent: u64) {
        self.bytes += bytes;
        self.marked += if marked { bytes } else { 0 };
        if acknowledged < self.window_end {
            return;
        }
        if self.bytes > 0 {
            let share = self.marked as f64 / self.bytes as f64;
            self.alpha = self.alpha * (1.0 - GAIN) + GAIN * share;
        }
        (self.bytes, self.marked, self.window_end) = (0, 0, sent);
    }

    /// Returns ssthresh after an event: reduced by alpha / 2 for marks, and by half for losses (section 3.5).
    pub fn reduce(&mut self, event: Event, window: u64, flight: u64) -> u64 {
        match event {
            Event::Mark => (window as f64 * (1.0 - self.alpha / 2.0)) as u64,
            Event::Loss | Event::Timeout => self.reno.reduce(flight),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Windows of ten segments with different numbers of marks, compared with the formula in section 3.3.
    #[test]
    fn alpha_follows_the_share_of_marks() {
        let mut dctcp = Dctcp::default();
        dctcp.observe(0, false, 0, 10_000);
        let mut expected = 1.0;
        for (window, marks) in [0u64, 0, 3, 10, 1, 0, 5].into_iter().enumerate() {
            let base = 10_000 * window as u64;
            for segment in 1..=10 {
                assert_eq!(dctcp.alpha(), expected);
                dctcp.observe(1000, segment <= marks, base + 1000 * segment, base + 20_000);
            }
            expected = expected * 15.0 / 16.0 + marks as f64 / 10.0 / 16.0;
            assert!(
                (dctcp.alpha() - expected).abs() < 1e-12,
                "{} {expected}",
                dctcp.alpha()
            );
            expected = dctcp.alpha();
        }
        let by_mark = dctcp.reduce(Event::Mark, 100_000, 50_000);
        assert_eq!(by_mark, (100_000.0 * (1.0 - expected / 2.0)) as u64);
        assert_eq!(dctcp.reduce(Event::Loss, 100_000, 50_000), 25_000);
    }
}
