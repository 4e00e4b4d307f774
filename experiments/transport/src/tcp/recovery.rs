// SPDX-License-Identifier: Apache-2.0
//! Phases of loss recovery, and the reduction of the window.

/// Phase of the sender's reaction to congestion. `until` is SND.NXT at its start; its acknowledgment ends the phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Normal operation: the window grows.
    Open,
    /// The window shrinks because of marks (RFC 3168, section 6.1.2).
    Reducing { until: u64, rate: Rate },
    /// Fast recovery. With SACK, the window shrinks in proportion to delivered data.
    Recovery { until: u64, rate: Option<Rate> },
    /// After a timeout: slow start over the data that was not SACKed.
    Loss { until: u64 },
}

impl Phase {
    /// Returns true if the phase ends when all data below `number` is acknowledged.
    ///
    /// A reduction for marks ends with the acknowledgment of data sent after it, because only that data carries CWR.
    pub fn ends_with(&self, number: u64) -> bool {
        match *self {
            Self::Open => false,
            Self::Reducing { until, .. } => number > until,
            Self::Recovery { until, .. } | Self::Loss { until } => number >= until,
        }
    }

    /// Returns the current reduction.
    pub fn rate(&mut self) -> Option<&mut Rate> {
        match self {
            Self::Reducing { rate, .. } => Some(rate),
            Self::Recovery { rate, .. } => rate.as_mut(),
            Self::Open | Self::Loss { .. } => None,
        }
    }

    pub fn is_recovery(&self) -> bool {
        matches!(self, Self::Recovery { .. })
    }

    /// Returns true if acknowledgments may grow the window.
    pub fn grows(&self) -> bool {
        matches!(self, Self::Open | Self::Loss { .. })
    }
}

/// Proportional rate reduction (RFC 6937, with the slow start reduction bound).
///
/// It sends in proportion to delivered data, so that the flight reaches ssthresh after a round trip without a pause or a burst.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// RecoverFS
    flight: u64,
    delivered: u64,
    out: u64,
}

impl Rate {
    /// Starts a reduction with `flight` bytes in flight.
    pub fn new(flight: u64) -> Self {
        Self {
            flight,
            delivered: 0,
            out: 0,
        }
    }

    /// Records that `bytes` are sent.
    pub fn send(&mut self, bytes: u64) {
        self.out += bytes;
    }

    /// Records that bytes were delivered, by SACK or in order. Returns the window.
    pub fn window(&mut self, delivered: u64, pipe: u64, threshold: u64, mss: u64) -> u64 {
        self.delivered += delivered;
        let quota = if pipe > threshold {
            let share = u128::from(self.delivered) * u128::from(threshold);
            (share.div_ceil(u128::from(self.flight)) as u64).saturating_sub(self.out)
        } else {
            let limit = self.delivered.saturating_sub(self.out).max(delivered) + mss;
            limit.min(threshold - pipe)
        };
        pipe + quota
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Example of RFC 6937, section 5: 20 segments in flight, of which the first is lost, and CUBIC's target of 14. Seven segments are sent
    /// for ten acknowledgments, without bursts, until the flight reaches the target.
    #[test]
    fn reduction_sends_in_proportion_to_delivered_data() {
        let (mss, threshold) = (1000, 14_000);
        let mut rate = Rate::new(20_000);
        let (mut pipe, mut sent) = (19_000, Vec::new());
        for _ in 0..19 {
            pipe -= mss;
            let window = rate.window(mss, pipe, threshold, mss);
            let mut out = 0;
            while pipe + mss <= window {
                pipe += mss;
                rate.send(mss);
                out += 1;
            }
            sent.push(out);
        }
        assert!(sent.iter().all(|&out| out <= 1), "{sent:?}");
        assert_eq!(sent[..10].iter().sum::<u64>(), 7, "{sent:?}");
        assert_eq!(pipe, threshold);
    }
}
