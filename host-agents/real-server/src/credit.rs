// SPDX-License-Identifier: Apache-2.0
//! Requests for connection flow-control credit.

use frontage_handoff::link::Outbox;
use frontage_handoff::message::ToBalancer;
use parking_lot::Mutex;

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
    totals: Mutex<Totals>,
}

#[derive(Debug)]
struct Totals {
    /// Credit that was granted or requested.
    requested: u64,
    /// Bytes that all responses so far need.
    needed: u64,
}

impl Credit {
    /// Create a share of `granted` bytes.
    pub fn new(granted: u64) -> Self {
        Self {
            totals: Mutex::new(Totals {
                requested: granted,
                needed: 0,
            }),
        }
    }

    /// Add `bytes` that will be sent. Calls `request` with the total credit to request, if the share is too small.
    ///
    /// The lock is held during the call: the balancer uses the last request, so requests must leave in the order of the totals.
    fn add(&self, bytes: u64, request: impl FnOnce(u64)) {
        let mut totals = self.totals.lock();
        totals.needed += bytes;
        if totals.requested < totals.needed {
            totals.requested = totals.needed;
            request(totals.needed);
        }
    }

    /// Remove `bytes` that will not be sent. Calls `request`, as [`Self::add`] does, with the total credit to request
    /// instead, if the difference is large.
    fn remove(&self, bytes: u64, request: impl FnOnce(u64)) {
        let mut totals = self.totals.lock();
        totals.needed -= bytes;
        if bytes > OVERHEAD && totals.requested > totals.needed {
            totals.requested = totals.needed;
            request(totals.needed);
        }
    }
}

/// One response's part of the credit. When it is written or dropped, the next response gets what this one did not use.
/// Idle credit would keep the client from raising MAX_DATA.
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

    /// Withdraw the request for what the response did not need. Without this call, the balancer would grant more credit
    /// until the client has acknowledged the written response.
    pub fn release_unused(&mut self) {
        let idle = self.bytes.saturating_sub(self.used);
        self.bytes -= idle;
        self.credit.remove(idle, |credit| self.request(credit));
    }

    fn request(&self, credit: u64) {
        self.outbox.send(&ToBalancer::Blocked { credit });
    }

    fn raise(&mut self, bytes: u64) {
        let more = bytes - self.bytes;
        self.bytes = bytes;
        self.credit.add(more, |credit| self.request(credit));
    }
}

impl Drop for CreditNeed<'_> {
    fn drop(&mut self) {
        self.release_unused();
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
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

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

    /// Return the total that a change of the share requests.
    fn requested(change: impl FnOnce(&mut dyn FnMut(u64))) -> Option<u64> {
        let mut requested = None;
        change(&mut |credit| requested = Some(credit));
        requested
    }

    #[test]
    fn unused_credit_serves_next_response() {
        let credit = Credit::new(1000);
        let add = |bytes| requested(|request| credit.add(bytes, request));
        let remove = |bytes| requested(|request| credit.remove(bytes, request));
        assert_eq!((add(900), add(50)), (None, None));
        assert_eq!(add(100), Some(1050));
        assert_eq!(remove(500), None);
        assert_eq!((add(500), add(1)), (None, Some(1051)));
        // A large difference is reported to the balancer, because other real servers wait for credit.
        let much = OVERHEAD + 1;
        assert_eq!(add(much), Some(1051 + much));
        assert_eq!(remove(much), Some(1051));
        assert_eq!((add(0), add(1)), (None, Some(1052)));
    }

    #[test]
    fn last_request_has_the_total_of_all_threads() {
        const BYTES: u64 = 100_000;
        let (credit, last) = (Credit::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    (0..BYTES).for_each(|_| credit.add(1, |total| last.store(total, Relaxed)))
                });
            }
        });
        assert_eq!(last.into_inner(), 4 * BYTES);
    }
}
