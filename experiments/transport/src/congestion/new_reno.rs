// SPDX-License-Identifier: Apache-2.0
//! Congestion avoidance of RFC 5681 with appropriate byte counting (section 3.1; RFC 3465).

/// NewReno's state: the number of bytes acknowledged since the window last grew.
#[derive(Debug, Clone, Default)]
pub struct NewReno {
    acknowledged: u64,
}

impl NewReno {
    /// Grows the window by one segment for each acknowledged window.
    pub fn grow(&mut self, mut window: u64, mss: u64, bytes: u64) -> u64 {
        self.acknowledged += bytes;
        while self.acknowledged >= window {
            self.acknowledged -= window;
            window += mss;
        }
        window
    }

    /// Returns ssthresh after an event: half of the data in flight.
    pub fn reduce(&mut self, flight: u64) -> u64 {
        self.acknowledged = 0;
        flight / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn window_grows_by_a_segment_per_acknowledged_window() {
        let mut reno = NewReno::default();
        let mut window = 10_000;
        for _ in 0..9 {
            window = reno.grow(window, 1000, 1000);
        }
        assert_eq!(window, 10_000);
        assert_eq!(reno.grow(window, 1000, 1000), 11_000);
        assert_eq!(reno.reduce(11_000), 5_500);
    }
}
