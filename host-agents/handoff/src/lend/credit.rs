//! Shares in what the client takes of all streams (RFC 9000, section 4.1): noq's, those of real servers, and what nobody has yet.
//!
//! Whoever was told a limit may use all of it, and the sum of the limits is never above the client's. noq says nothing when it has used up its own, so what
//! it uses is counted here: when it has little of what is free, it gets half of that.

use rustc_hash::FxHashMap;

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
            self.balancer = allowed.div_ceil(2);
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

    /// Half of what noq might have is its own no more: it gets that.
    pub(super) fn balance_if_short(&mut self) {
        let (free, left) = (self.balancer - self.used, self.left());
        if free < left / 3 {
            self.balancer += (left - free) / 2;
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
    fn noq_has_half_of_what_is_free() {
        let mut credit = Credit::default();
        assert_eq!(credit.begin(1000), 500);
        assert_eq!(credit.begin(1000), 500);
        assert_eq!(credit.lend(200), 200);
        credit.send(0, 0, 400, false);
        assert_eq!(credit.left(), 300);
        assert_eq!(credit.news(), None);
        credit.send(0, 300, 410, false);
        assert_eq!(credit.news(), Some(605));
        assert_eq!(credit.news(), None);
        assert_eq!(credit.lend(1000), 195);
        // What real servers wait for, too.
        credit.send(0, 410, 605, false);
        credit.allow(1400);
        assert_eq!(credit.news(), Some(805));
        assert_eq!(credit.lend(1000), 200);
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
                        prop_assert!(credit.balancer - credit.used >= credit.left() / 3);
                    }
                }
                prop_assert!(credit.balancer + lent <= credit.allowed);
                prop_assert!(credit.used <= credit.balancer);
            }
        }
    }
}
