//! How much of what the client takes a loan asks for.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use frontage_handoff::link::Outbox;
use frontage_handoff::message::ToBalancer;

/// Bytes asked for beyond those that are known to be needed: headers, and the heads of frames.
const OVERHEAD: u64 = 4 << 10;
/// Of an answer whose size nobody knows, so many bytes are asked for at first,
const FIRST: u64 = 64 << 10;
/// and then as many again as it had so far, up to so many: what it does not use lies idle until it ends, and a round trip is lost whenever it needs more.
const MOST: u64 = 4 << 20;

/// A loan's share in the client's limit on all streams.
#[derive(Debug)]
pub struct Credit {
    /// Bytes that may be sent, as far as this server has asked.
    asked: AtomicU64,
    /// Bytes that all answers so far have needed, or may.
    needed: AtomicU64,
}

impl Credit {
    /// A share of so many bytes.
    pub fn new(granted: u64) -> Self {
        Self {
            asked: AtomicU64::new(granted),
            needed: AtomicU64::new(0),
        }
    }

    /// So many bytes more are to be sent: what to ask the balancer for, if all that is to be sent has no room in the share.
    fn need(&self, bytes: u64) -> Option<u64> {
        let needed = self.needed.fetch_add(bytes, Relaxed) + bytes;
        (self.asked.fetch_max(needed, Relaxed) < needed).then_some(needed)
    }

    /// So many of these bytes are not to be sent after all: what to tell the balancer, if that would wait for much that nobody needs.
    fn spare(&self, bytes: u64) -> Option<u64> {
        let needed = self.needed.fetch_sub(bytes, Relaxed) - bytes;
        (bytes > OVERHEAD && self.asked.fetch_min(needed, Relaxed) > needed).then_some(needed)
    }
}

/// One answer's part of it, until it is dropped: the next one's then is what this one did not use. What nobody uses keeps the client from taking more.
pub struct Need<'a> {
    credit: &'a Credit,
    outbox: &'a Outbox<ToBalancer>,
    /// Whether the answer's size is known.
    sized: bool,
    /// Bytes that it was to need so far.
    bytes: u64,
    /// Bytes of it that were written.
    used: u64,
}

impl<'a> Need<'a> {
    /// Of an answer whose body has `size` bytes, if that is known.
    pub fn new(credit: &'a Credit, outbox: &'a Outbox<ToBalancer>, size: Option<u64>) -> Self {
        let mut need = Self {
            credit,
            outbox,
            sized: size.is_some(),
            bytes: 0,
            used: 0,
        };
        need.raise(size.unwrap_or(FIRST) + OVERHEAD);
        need
    }

    /// Bytes up to `to` are about to be written.
    pub fn write(&mut self, to: u64) {
        self.used = to;
        if let Some(bytes) = more(self.sized, self.bytes, to) {
            self.raise(bytes);
        }
    }

    fn raise(&mut self, bytes: u64) {
        let more = bytes - self.bytes;
        self.bytes = bytes;
        if let Some(credit) = self.credit.need(more) {
            self.outbox.send(&ToBalancer::Blocked { credit });
        }
    }
}

impl Drop for Need<'_> {
    fn drop(&mut self) {
        let idle = self.bytes.saturating_sub(self.used);
        if let Some(credit) = self.credit.spare(idle) {
            self.outbox.send(&ToBalancer::Blocked { credit });
        }
    }
}

/// Of an answer for which so many bytes were asked, and which comes to `to`: for how many it is to be asked now, if those are few.
fn more(sized: bool, asked: u64, to: u64) -> Option<u64> {
    let ahead = match sized {
        true => 0,
        false => to.clamp(FIRST, MOST),
    };
    // Half of it is left for the round trip.
    (to + ahead / 2 > asked).then_some(to + ahead + OVERHEAD)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_size_is_asked_for_once() {
        let asked = 1_000_000 + OVERHEAD;
        assert_eq!(more(true, asked, asked), None);
        // Of many small frames.
        assert_eq!(more(true, asked, asked + 1), Some(asked + 1 + OVERHEAD));
    }

    /// An answer of so many bytes, in pieces: for how many more than it had it was asked at the end, and how often it was asked.
    fn grown(bytes: u64) -> (u64, u32) {
        let (mut asked, mut times) = (FIRST + OVERHEAD, 1);
        for to in (0..bytes).step_by(10_000) {
            assert!(to <= asked);
            if let Some(now) = more(false, asked, to) {
                (asked, times) = (now, times + 1);
            }
        }
        (asked - bytes, times)
    }

    #[test]
    fn an_unknown_size_is_asked_for_as_it_grows() {
        assert_eq!(grown(20_000), (FIRST + OVERHEAD - 20_000, 1));
        let (idle, times) = grown(1_000_000);
        assert!(idle <= 1_000_000 && times < 16, "{idle} {times}");
        let (idle, times) = grown(100_000_000);
        assert!(idle <= MOST + OVERHEAD && times < 80, "{idle} {times}");
    }

    #[test]
    fn what_is_not_used_is_the_next_ones() {
        let credit = Credit::new(1000);
        assert_eq!((credit.need(900), credit.need(50)), (None, None));
        assert_eq!(credit.need(100), Some(1050));
        assert_eq!(credit.spare(500), None);
        assert_eq!((credit.need(500), credit.need(1)), (None, Some(1051)));
        // The balancer would keep others waiting for it.
        let much = OVERHEAD + 1;
        assert_eq!(credit.need(much), Some(1051 + much));
        assert_eq!(credit.spare(much), Some(1051));
        assert_eq!((credit.need(0), credit.need(1)), (None, Some(1052)));
    }
}
