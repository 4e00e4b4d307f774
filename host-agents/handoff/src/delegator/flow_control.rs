// SPDX-License-Identifier: Apache-2.0
//! Connection flow control: shares in the client's MAX_DATA (RFC 9000, section 4.1).
//!
//! The credit is divided among noq, the real servers, and an unassigned rest. A sender may use all of the limit that it has
//! been given, so the sum of the limits never exceeds the client's. noq does not report when it runs out of credit, so
//! its use is counted here: when it has little of the free credit, it gets a quarter of it.
//!
//! Credit that one sender holds and does not use is not available to the others. Most clients raise MAX_DATA only once half
//! of it is used (RFC 9000, section 4.2, leaves that to them), so all senders would stall if more than the other half lay
//! idle. Therefore noq gets a quarter at most, and a real server gets little before it requests more.

use rustc_hash::FxHashMap;

use super::Error;

/// noq gets one part in this many of the free credit.
const BALANCER_PARTS: u64 = 4;
/// A real server initially gets one part in this many of the unassigned credit: 16 that request no more leave over half to
/// the others.
const INITIAL_PARTS: u64 = 64;

/// The connection's credit, in bytes since the connection began.
#[derive(Debug, Default)]
pub(super) struct FlowControl {
    /// The client's limit.
    max_data: u64,
    /// noq's limit.
    balancer: u64,
    /// The limit that noq knows.
    announced: u64,
    /// The sum of the real servers' limits.
    reserved: u64,
    /// Bytes that noq has used.
    used: u64,
    /// Highest offset that noq sent, of each stream that it has begun and not ended.
    sent: FxHashMap<u64, u64>,
    /// Bytes of resumed streams that real servers may have sent, and the number of them that noq has sent again.
    overlaps: FxHashMap<u64, (u64, u64)>,
}

impl FlowControl {
    /// Set the client's initial limit. Returns noq's.
    pub(super) fn start(&mut self, max_data: u64) -> u64 {
        if self.max_data == 0 {
            self.max_data = max_data;
            self.balancer = max_data.div_ceil(BALANCER_PARTS);
        }
        self.announce()
    }

    /// Handle MAX_DATA of the client.
    pub(super) fn on_max_data(&mut self, limit: u64) {
        self.max_data = self.max_data.max(limit);
    }

    /// Return the unassigned credit.
    pub(super) fn unassigned(&self) -> u64 {
        self.max_data - self.balancer - self.reserved
    }

    /// Reserve up to `bytes` for a real server. Returns how many.
    pub(super) fn reserve(&mut self, bytes: u64) -> u64 {
        let bytes = bytes.min(self.unassigned());
        self.reserved += bytes;
        bytes
    }

    /// Reserve what a real server gets before it requests credit.
    pub(super) fn reserve_initial(&mut self) -> u64 {
        self.reserve(self.unassigned() / INITIAL_PARTS)
    }

    /// Release the credit that a real server did not use.
    pub(super) fn release(&mut self, account: &mut Account) {
        self.reserved -= account.unused();
        *account = Account::default();
    }

    /// Charge a stream that ended to its real server's account, if that still exists. `limit` is the client's limit for
    /// the stream.
    ///
    /// Returns the final size for the client. If the real server did not report one (`known_size`), it is the maximum that
    /// the real server can have sent, because the client must not have received more (RFC 9000, section 4.5).
    pub(super) fn charge(
        &mut self,
        account: Option<&mut Account>,
        stream: u64,
        known_size: Option<u64>,
        limit: u64,
    ) -> Result<u64, Error> {
        let size = known_size.unwrap_or_else(|| {
            let max_sent = account.as_ref().map_or(0, |account| account.max_sent());
            limit.min(max_sent)
        });
        if size > limit {
            return Err(Error::FinalSize { stream, size });
        }
        if let Some(account) = account {
            // If a real server died with several streams, its credit counts for each of them.
            let missing = size.saturating_sub(account.unused());
            if missing > self.unassigned() {
                return Err(Error::Credit { missing });
            }
            account.reserved += self.reserve(missing);
            account.charge(size, known_size.is_some());
        }
        Ok(size)
    }

    /// Let noq resume a stream. A real server may have sent its first `overlap` bytes, in noq's offsets, which were
    /// charged to the real server.
    pub(super) fn resume(&mut self, stream: u64, overlap: u64) {
        self.overlaps.insert(stream, (overlap, 0));
    }

    /// Forget a resumed stream.
    pub(super) fn forget_resumed(&mut self, stream: u64) {
        self.overlaps.remove(&stream);
    }

    /// Record that noq sends a resumed stream up to `to`. Credit that was charged to the real server becomes noq's.
    pub(super) fn on_resumed_sent(&mut self, stream: u64, to: u64) {
        if let Some((overlap, repeated)) = self.overlaps.get_mut(&stream) {
            let bytes = to.min(*overlap).saturating_sub(*repeated);
            *repeated += bytes;
            self.reserved -= bytes;
            self.balancer += bytes;
        }
    }

    /// Return whether noq can send at least `bytes`, and raise its limit if it can get more.
    pub(super) fn has_free(&mut self, bytes: u64) -> bool {
        self.rebalance();
        self.balancer - self.used >= bytes
    }

    /// noq sends the bytes `from..to` of a stream, and its end if `fin`.
    pub(super) fn on_stream_sent(&mut self, stream: u64, from: u64, to: u64, fin: bool) {
        // A retransmission of a stream that has ended does not begin it again.
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

    /// Return whether noq has begun and not ended a stream.
    pub(super) fn has_begun(&self, stream: u64) -> bool {
        self.sent.contains_key(&stream)
    }

    /// noq resets a stream.
    pub(super) fn on_reset_sent(&mut self, stream: u64) {
        self.sent.remove(&stream);
    }

    /// Give noq its full share of the free credit if it has used half of it.
    pub(super) fn rebalance(&mut self) {
        let free = self.balancer - self.used;
        let share = (free + self.unassigned()) / BALANCER_PARTS;
        if free < share / 2 {
            self.balancer += share - free;
        }
    }

    /// Return noq's limit, which noq then knows.
    pub(super) fn announce(&mut self) -> u64 {
        self.announced = self.balancer;
        self.announced
    }

    /// Return noq's limit if it is above the one that noq knows.
    pub(super) fn take_update(&mut self) -> Option<u64> {
        self.rebalance();
        (self.announced < self.balancer).then(|| self.announce())
    }
}

/// One real server's credit, in bytes since its delegation began.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Account {
    /// The limit that the real server knows.
    credit: u64,
    /// Bytes that it is known to have sent.
    known_sent: u64,
    /// Sum of the final sizes that the client got. More than was sent where the sent size is unknown.
    charged: u64,
    /// Bytes reserved in the client's limit. Never less than `credit` and `charged`.
    reserved: u64,
}

impl Account {
    pub(super) fn new(credit: u64) -> Self {
        Self {
            credit,
            reserved: credit,
            ..Self::default()
        }
    }

    /// Return the limit that the real server knows.
    pub(super) fn credit(&self) -> u64 {
        self.credit
    }

    /// Raise the limit by `bytes` that were reserved.
    pub(super) fn add(&mut self, bytes: u64) {
        self.credit += bytes;
        self.reserved += bytes;
    }

    /// Return the reserved bytes that were not charged.
    fn unused(&self) -> u64 {
        self.reserved - self.charged
    }

    /// Return the maximum that the real server can have sent on a single stream.
    fn max_sent(&self) -> u64 {
        self.credit.saturating_sub(self.known_sent)
    }

    fn charge(&mut self, size: u64, is_known: bool) {
        self.charged += size;
        if is_known {
            self.known_sent += size;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn balancer_gets_quarter_of_free_credit() {
        let mut flow = FlowControl::default();
        assert_eq!(flow.start(1000), 250);
        assert_eq!(flow.start(1000), 250);
        assert_eq!(flow.reserve(200), 200);
        flow.on_stream_sent(0, 0, 165, false);
        assert_eq!(flow.unassigned(), 550);
        assert_eq!(flow.take_update(), None);
        flow.on_stream_sent(0, 65, 175, false);
        assert_eq!(flow.take_update(), Some(331));
        assert_eq!(flow.take_update(), None);
        assert_eq!(flow.reserve(1000), 469);
        // Real servers share the credit that noq does not get.
        flow.on_stream_sent(0, 175, 331, false);
        flow.on_max_data(1400);
        assert_eq!(flow.take_update(), Some(431));
        assert_eq!(flow.reserve(1000), 300);
    }

    /// A client raises its limit once half of it is used, at the latest. One real server can use that much even if noq and
    /// the other real servers have nothing to send.
    #[test]
    fn one_of_many_real_servers_gets_more_than_half() {
        let mut flow = FlowControl::default();
        flow.start(1 << 20);
        for _ in 0..15 {
            flow.reserve_initial();
        }
        let first = flow.reserve_initial();
        assert!(first + flow.reserve(u64::MAX) > 1 << 19);
    }

    #[test]
    fn retransmitted_bytes_are_counted_once() {
        let mut flow = FlowControl::default();
        flow.start(1000);
        flow.on_stream_sent(0, 0, 100, false);
        flow.on_stream_sent(0, 100, 200, true);
        flow.on_stream_sent(0, 100, 200, true);
        flow.on_stream_sent(4, 0, 50, true);
        assert_eq!(flow.used, 250);
        assert!(flow.sent.is_empty());
    }

    proptest! {
        /// No sender may exceed the client's limit, and neither side starves.
        #[test]
        fn limits_never_exceed_max_data(steps in prop::collection::vec((0..5u8, 0..700u64), 1..200)) {
            let mut flow = FlowControl::default();
            flow.start(1000);
            let (mut reserved, mut head) = (0, 0);
            for (step, bytes) in steps {
                match step {
                    0 => reserved += flow.reserve(bytes),
                    1 if bytes <= reserved => {
                        flow.release(&mut Account::new(bytes));
                        reserved -= bytes;
                    }
                    2 => {
                        flow.on_stream_sent(0, head, (head + bytes).min(flow.balancer), false);
                        head = (head + bytes).min(flow.balancer);
                    }
                    3 => flow.on_max_data(flow.max_data + bytes),
                    _ => {
                        flow.take_update();
                        let free = flow.balancer - flow.used;
                        prop_assert!(free >= (free + flow.unassigned()) / BALANCER_PARTS / 2);
                    }
                }
                prop_assert!(flow.balancer + reserved <= flow.max_data);
                prop_assert!(flow.used <= flow.balancer);
            }
        }
    }
}
