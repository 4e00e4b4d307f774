// SPDX-License-Identifier: Apache-2.0
//! Requests for connection flow-control credit.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use frontage_handoff::link::Outbox;
use frontage_handoff::message::ToBalancer;

/// Additional bytes for headers and frame headers.
const OVERHEAD: u64 = 4 << 10;
/// Initial credit in bytes for a response of unknown size.
const INITIAL_UNSIZED: u64 = 64 << 10;
/// Maximum credit in bytes ahead of a response of unknown size, which doubles as the response grows. Unused credit lies idle until the
/// response ends, but each request for more costs a round trip.
const MAX_UNSIZED: u64 = 4 << 20;

/// A delegation's share of the client's MAX_DATA.
#[derive(Debug)]
pub struct Credit {
    /// Credit that was granted or requested.
    requested: AtomicU64,
    /// Bytes that all responses so far need.
    needed: AtomicU64,
}

impl Credit {
    /// Create a share of `granted` bytes.
    pub fn new(granted: u64) -> Self {
        Self {
            requested: AtomicU64::new(granted),
            needed: AtomicU64::new(0),
        }
    }

    /// Add `bytes` that will be sent. Returns the total credit to request, if the share is too small.
    fn add(&self, bytes: u64) -> Option<u64> {
        let needed = self.needed.fetch_add(bytes, Relaxed) + bytes;
        (self.requested.fetch_max(needed, Relaxed) < needed).then_some(needed)
    }

    /// Remove `bytes` that will not be sent. Returns the total credit to request instead, if the difference is large.
    fn remove(&self, bytes: u64) -> Option<u64> {
        let needed = self.needed.fetch_sub(bytes, Relaxed) - bytes;
        (bytes > OVERHEAD && self.requested.fetch_min(needed, Relaxed) > needed).then_some(needed)
    }
}

/// One response's part of the credit. When it is dropped, the next response gets what this one did not use. Idle credit would keep
/// the client from raising MAX_DATA.
pub struct CreditNeed<'a> {
    credit: &'a Credit,
    outbox: &'a Outbox<ToBalancer>,
    /// True if the response's size is known.
    is_sized: bool,
    /// Bytes that the response needs as far as known.
    bytes: u64,
    /// Bytes that were written.
    used: u64,
}

impl<'a> CreditNeed<'a> {
    /// Create the need of a response whose body has `size` bytes, if known.
    pub fn new(credit: &'a Credit, outbox: &'a Outbox<ToBalancer>, size: Option<u64>) -> Self {
        let mut need = Self {
            credit,
            outbox,
            is_sized: size.is_some(),
            bytes: 0,
            used: 0,
        };
        need.raise(size.unwrap_or(INITIAL_UNSIZED) + OVERHEAD);
        need
    }

    /// Handle that bytes up to `to` are about to be written.
    pub fn on_write(&mut self, to: u64) {
        self.used = to;
        if let Some(bytes) = next_request(self.is_sized, self.bytes, to) {
            self.raise(bytes);
        }
    }

    fn raise(&mut self, bytes: u64) {
        let more = bytes - self.bytes;
        self.bytes = bytes;
        if let Some(credit) = self.credit.add(more) {
            self.outbox.send(&ToBalancer::Blocked { credit });
        }
    }
}

impl Drop for CreditNeed<'_> {
    fn drop(&mut self) {
        let idle = self.bytes.saturating_sub(self.used);
        if let Some(credit) = self.credit.remove(idle) {
            self.outbox.send(&ToBalancer::Blocked { credit });
        }
    }
}

/// Return how many bytes to request for a response that has reached `to`, if the `requested` bytes are not enough.
fn next_request(is_sized: bool, requested: u64, to: u64) -> Option<u64> {
    let ahead = match is_sized {
        true => 0,
        false => to.clamp(INITIAL_UNSIZED, MAX_UNSIZED),
    };
    // Leaves half of it for the round trip.
    (to + ahead / 2 > requested).then_some(to + ahead + OVERHEAD)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_size_is_requested_once() {
        let requested = 1_000_000 + OVERHEAD;
        assert_eq!(next_request(true, requested, requested), None);
        // Many small frames exceed the overhead.
        assert_eq!(
            next_request(true, requested, requested + 1),
            Some(requested + 1 + OVERHEAD)
        );
    }

    /// Grow a response of unknown size to `bytes`. Returns the idle credit and the number of requests.
    fn grow(bytes: u64) -> (u64, u32) {
        let (mut requested, mut times) = (INITIAL_UNSIZED + OVERHEAD, 1);
        for to in (0..bytes).step_by(10_000) {
            assert!(to <= requested);
            if let Some(now) = next_request(false, requested, to) {
                (requested, times) = (now, times + 1);
            }
        }
        (requested - bytes, times)
    }

    #[test]
    fn unknown_size_is_requested_as_it_grows() {
        assert_eq!(grow(20_000), (INITIAL_UNSIZED + OVERHEAD - 20_000, 1));
        let (idle, times) = grow(1_000_000);
        assert!(idle <= 1_000_000 && times < 16, "{idle} {times}");
        let (idle, times) = grow(100_000_000);
        assert!(
            idle <= MAX_UNSIZED + OVERHEAD && times < 80,
            "{idle} {times}"
        );
    }

    #[test]
    fn unused_credit_serves_next_response() {
        let credit = Credit::new(1000);
        assert_eq!((credit.add(900), credit.add(50)), (None, None));
        assert_eq!(credit.add(100), Some(1050));
        assert_eq!(credit.remove(500), None);
        assert_eq!((credit.add(500), credit.add(1)), (None, Some(1051)));
        // A large difference is reported to the balancer, because other real servers wait for credit.
        let much = OVERHEAD + 1;
        assert_eq!(credit.add(much), Some(1051 + much));
        assert_eq!(credit.remove(much), Some(1051));
        assert_eq!((credit.add(0), credit.add(1)), (None, Some(1052)));
    }
}
