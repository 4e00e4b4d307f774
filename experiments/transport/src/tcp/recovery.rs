//! Where the sender stands between a congestion event and its end, and how its window comes down.

/// What the sender is doing about congestion. `until` is SND.NXT when it began: it ends when that
/// is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Nothing: the window grows.
    Open,
    /// The window comes down for marks (RFC 3168, section 6.1.2).
    Reducing { until: u64, rate: Rate },
    /// Fast recovery. With SACK, the window comes down in proportion to what arrives.
    Recovery { until: u64, rate: Option<Rate> },
    /// After a timeout: slow start over what was not SACKed.
    Loss { until: u64 },
}

impl Phase {
    /// Whether it ends when all below `number` is acknowledged. A reduction for marks ends only with
    /// the acknowledgement of what was sent after it, since that tells the peer to cease (CWR).
    pub fn ends_with(&self, number: u64) -> bool {
        match *self {
            Self::Open => false,
            Self::Reducing { until, .. } => number > until,
            Self::Recovery { until, .. } | Self::Loss { until } => number >= until,
        }
    }

    /// The reduction under way.
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

    /// Whether acknowledgements let the window grow.
    pub fn grows(&self) -> bool {
        matches!(self, Self::Open | Self::Loss { .. })
    }
}

/// Proportional rate reduction (RFC 6937, with the slow start reduction bound): sends in proportion
/// to what is delivered, so that the flight comes to ssthresh at the end of a round trip without a
/// pause or a burst.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// RecoverFS
    flight: u64,
    delivered: u64,
    out: u64,
}

impl Rate {
    /// With so many bytes in flight.
    pub fn new(flight: u64) -> Self {
        Self {
            flight,
            delivered: 0,
            out: 0,
        }
    }

    /// So many bytes go out.
    pub fn send(&mut self, bytes: u64) {
        self.out += bytes;
    }

    /// So many bytes were delivered, by SACK or in order. Returns the window.
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

    /// RFC 6937, section 5: 20 segments in flight, the first lost, CUBIC's 14 as target: seven
    /// segments go out for ten acknowledgements, none in a burst, until the flight is on target.
    #[test]
    fn sends_in_proportion() {
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
