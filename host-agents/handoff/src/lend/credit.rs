//! Shares in what the client takes of all streams (RFC 9000, section 4.1): noq's, those of real servers, and what nobody has yet.
//!
//! Whoever was told a limit may use all of it, and the sum of the limits is never above the client's. noq says nothing when it has used up its own, so what
//! it uses is counted here: when it has little of what is free, it gets a quarter of that.
//!
//! What one has and does not use, no other can. Most clients raise their limit once half of it is used (RFC 9000, section 4.2, leaves that to them), so that all
//! would wait for each other for ever if more than the other half lay idle: noq has a quarter at most, and a real server little before it asks.

use rustc_hash::FxHashMap;

/// Of what is free, noq has one part in so many.
const SHARE: u64 = 4;
/// Of what nobody has, a real server gets one part in so many at first: sixteen that ask for nothing leave more than half to the others.
const FIRST: u64 = 64;

/// In bytes, all since the connection began.
#[derive(Debug, Default)]
pub(super) struct Credit {
    /// The client's limit.
    allowed: u64,
    /// noq's.
    balancer: u64,
    /// That noq knows.
    told: u64,
    /// The sum of those of real servers.
    lent: u64,
    /// What noq used.
    used: u64,
    /// Up to where noq sent each stream that it has not ended.
    sent: FxHashMap<u64, u64>,
}

impl Credit {
    /// The client's first limit; noq's of it.
    pub(super) fn begin(&mut self, allowed: u64) -> u64 {
        if self.allowed == 0 {
            self.allowed = allowed;
            self.balancer = allowed.div_ceil(SHARE);
        }
        self.tell()
    }

    /// The client takes more.
    pub(super) fn allow(&mut self, limit: u64) {
        self.allowed = self.allowed.max(limit);
    }

    /// Nobody has it.
    pub(super) fn left(&self) -> u64 {
        self.allowed - self.balancer - self.lent
    }

    /// Up to `bytes` for a real server; how many.
    pub(super) fn lend(&mut self, bytes: u64) -> u64 {
        let bytes = bytes.min(self.left());
        self.lent += bytes;
        bytes
    }

    /// What a real server gets before it asks.
    pub(super) fn lend_first(&mut self) -> u64 {
        self.lend(self.left() / FIRST)
    }

    /// A real server did not use these.
    pub(super) fn give_back(&mut self, bytes: u64) {
        self.lent -= bytes;
    }

    /// noq sends a stream up to `to`, and is done with it if `fin`.
    pub(super) fn send(&mut self, stream: u64, from: u64, to: u64, fin: bool) {
        // What is sent again of a stream that is done does not begin one.
        if let Some(sent) = self.sent.get_mut(&stream) {
            self.used += to.saturating_sub(*sent);
            *sent = to.max(*sent);
        } else if from == 0 {
            self.used += to;
            if !fin {
                self.sent.insert(stream, to);
            }
        }
        if fin {
            self.sent.remove(&stream);
        }
        self.used = self.used.min(self.balancer);
    }

    /// Whether noq has sent of a stream, and not all.
    pub(super) fn began(&self, stream: u64) -> bool {
        self.sent.contains_key(&stream)
    }

    /// noq gives a stream up.
    pub(super) fn end(&mut self, stream: u64) {
        self.sent.remove(&stream);
    }

    /// noq has used half of its share of what is free: it gets the other half again.
    pub(super) fn balance_if_short(&mut self) {
        let free = self.balancer - self.used;
        let share = (free + self.left()) / SHARE;
        if free < share / 2 {
            self.balancer += share - free;
        }
    }

    /// noq's limit.
    pub(super) fn tell(&mut self) -> u64 {
        self.told = self.balancer;
        self.told
    }

    /// The same, if it is above the one that noq knows.
    pub(super) fn news(&mut self) -> Option<u64> {
        self.balance_if_short();
        (self.told < self.balancer).then(|| self.tell())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn noq_has_a_quarter_of_what_is_free() {
        let mut credit = Credit::default();
        assert_eq!(credit.begin(1000), 250);
        assert_eq!(credit.begin(1000), 250);
        assert_eq!(credit.lend(200), 200);
        credit.send(0, 0, 165, false);
        assert_eq!(credit.left(), 550);
        assert_eq!(credit.news(), None);
        credit.send(0, 65, 175, false);
        assert_eq!(credit.news(), Some(331));
        assert_eq!(credit.news(), None);
        assert_eq!(credit.lend(1000), 469);
        // What real servers wait for, too.
        credit.send(0, 175, 331, false);
        credit.allow(1400);
        assert_eq!(credit.news(), Some(431));
        assert_eq!(credit.lend(1000), 300);
    }

    /// A client raises its limit once half of it is used, at the latest: so much can be, though noq has nothing to send, nor most of the real servers.
    #[test]
    fn one_of_many_gets_more_than_half() {
        let mut credit = Credit::default();
        credit.begin(1 << 20);
        for _ in 0..15 {
            credit.lend_first();
        }
        let first = credit.lend_first();
        assert!(first + credit.lend(u64::MAX) > 1 << 19);
    }

    #[test]
    fn what_is_sent_again_is_counted_once() {
        let mut credit = Credit::default();
        credit.begin(1000);
        credit.send(0, 0, 100, false);
        credit.send(0, 100, 200, true);
        credit.send(0, 100, 200, true);
        credit.send(4, 0, 50, true);
        assert_eq!(credit.used, 250);
        assert!(credit.sent.is_empty());
    }

    proptest! {
        /// Nobody may send what the client does not take, and neither side starves.
        #[test]
        fn shares_are_never_more_than_there_is(steps in prop::collection::vec((0..5u8, 0..700u64), 1..200)) {
            let mut credit = Credit::default();
            credit.begin(1000);
            let (mut lent, mut head) = (0, 0);
            for (step, bytes) in steps {
                match step {
                    0 => lent += credit.lend(bytes),
                    1 if bytes <= lent => {
                        credit.give_back(bytes);
                        lent -= bytes;
                    }
                    2 => {
                        credit.send(0, head, (head + bytes).min(credit.balancer), false);
                        head = (head + bytes).min(credit.balancer);
                    }
                    3 => credit.allow(credit.allowed + bytes),
                    _ => {
                        credit.news();
                        let free = credit.balancer - credit.used;
                        prop_assert!(free >= (free + credit.left()) / SHARE / 2);
                    }
                }
                prop_assert!(credit.balancer + lent <= credit.allowed);
                prop_assert!(credit.used <= credit.balancer);
            }
        }
    }
}
