//! What is known of one response.

use std::sync::atomic::Ordering::Relaxed;

use super::Loads;
use super::ranges::Ranges;

/// A response on its stream.
#[derive(Debug)]
pub struct Response {
    length: Length,
    /// The end of what was sent at least once.
    sent: u64,
    acknowledged: Ranges,
    counted_ff: bool,
}

/// Bytes of the whole.
#[derive(Debug)]
enum Length {
    Unknown,
    /// As the application says, without what HTTP/3 adds.
    Announced(u64),
    /// The end was sent.
    Ended(u64),
}

impl Response {
    /// One that begins, of `size` bytes if known.
    pub fn new(size: Option<u64>) -> Self {
        Self {
            length: size.map_or(Length::Unknown, Length::Announced),
            sent: 0,
            acknowledged: Ranges::default(),
            counted_ff: false,
        }
    }

    /// Bytes up to `to` were sent; `fin` if they are its last.
    pub fn sent(&mut self, to: u64, fin: bool) {
        self.sent = self.sent.max(to);
        if fin {
            self.length = Length::Ended(to);
        }
    }

    /// Bytes `from..to` arrived.
    pub fn acknowledged(&mut self, from: u64, to: u64) {
        self.acknowledged.insert(from, to);
    }

    /// Bytes still to be acknowledged. Of unknown length: as many bytes again as were sent so far.
    pub fn remaining(&self) -> u64 {
        let whole = match self.length {
            Length::Unknown => 2 * self.sent,
            Length::Announced(size) => size.max(self.sent),
            Length::Ended(end) => end,
        };
        whole.saturating_sub(self.acknowledged.total())
    }

    /// Whether all of it arrived.
    pub fn is_whole(&self) -> bool {
        matches!(self.length, Length::Ended(end) if end == self.acknowledged.total())
    }

    /// Brings N_FF up to date; what remains.
    pub fn account(&mut self, loads: &Loads) -> u64 {
        let remaining = self.remaining();
        let far = remaining > loads.look_ahead;
        if far != self.counted_ff {
            self.counted_ff = far;
            if far {
                loads.n_ff.fetch_add(1, Relaxed)
            } else {
                loads.n_ff.fetch_sub(1, Relaxed)
            };
        }
        remaining
    }

    /// Takes it from the loads.
    pub fn leave(self, loads: &Loads) {
        loads.n_ff.fetch_sub(u64::from(self.counted_ff), Relaxed);
    }
}
