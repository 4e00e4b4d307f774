// SPDX-License-Identifier: Apache-2.0
//! Detection of clients that acknowledge nothing.
//!
//! The way to the client may be cut although the way from the client is not. The balancer then receives the client's packets,
//! while this server sees no acknowledgment, which may as well mean that the client is offline. Therefore this server
//! reports to the balancer, which probes the client (QDSR, section 6.2).

use std::time::{Duration, Instant};

/// Minimum time without an acknowledgment before a report. Loss recovery handles shorter times.
const MIN_NO_ACK: Duration = Duration::from_millis(100);
/// Time without an acknowledgment after which a real server counts as unreachable, if the client receives the balancer.
///
/// Not shorter than a switch may defer a real server's packets in favour of shorter flows (AIFO), and not longer than
/// leaves a round trip before one second has passed.
pub const UNREACHABLE_TIMEOUT: Duration = Duration::from_millis(800);
/// Default of the client's `max_ack_delay` (RFC 9000, section 18.2).
const MAX_ACK_DELAY: Duration = Duration::from_millis(25);

/// Return the time within which to expect an acknowledgment: the probe timeout (RFC 9002, section 6.2.1), assuming an RTT
/// variation of an eighth of the RTT, because noq does not expose it.
fn probe_timeout(rtt: Duration) -> Duration {
    rtt * 3 / 2 + MAX_ACK_DELAY
}

/// A client has acknowledged nothing for some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoAckReport {
    /// Time without an acknowledgment.
    pub elapsed: Duration,
    /// One past the largest acknowledged number; or 0.
    pub next: u64,
    /// True if this is the first report, or if a packet was sent at least a probe timeout after the previous one, so that the
    /// balancer had time to respond to that.
    pub has_probed: bool,
}

/// Acknowledgments of the packets of one delegation.
#[derive(Debug, Default)]
pub struct AckMonitor {
    largest_acked: Option<u64>,
    /// Since when the client has owed an acknowledgment, if packets are in flight.
    since: Option<Instant>,
    last_sent: Option<Instant>,
    reported: Option<Instant>,
}

impl AckMonitor {
    /// A packet is sent. Returns whether the caller must check for a report.
    pub fn on_sent(&mut self, now: Instant) -> bool {
        self.last_sent = Some(now);
        let since = *self.since.get_or_insert(now);
        now.saturating_duration_since(since) >= MIN_NO_ACK
    }

    /// Return whether the client should have acknowledged something by now, so that what noq sends is a probe (RFC 9002,
    /// section 6.2.4).
    pub fn is_overdue(&self, rtt: Duration, now: Instant) -> bool {
        let timeout = probe_timeout(rtt).max(MIN_NO_ACK);
        self.since
            .is_some_and(|since| now.saturating_duration_since(since) >= timeout)
    }

    /// The client has acknowledged `largest`; all packets below `next` have been sent.
    pub fn on_ack(&mut self, largest: u64, next: u64, now: Instant) {
        if self.largest_acked.is_none_or(|acked| largest > acked) {
            self.largest_acked = Some(largest);
            self.since = (largest + 1 < next).then_some(now);
            self.reported = None;
        }
    }

    /// Return a report if one is due.
    ///
    /// It is due after a packet once an acknowledgment could have arrived, so the packet is a probe. It is due at most once
    /// per probe timeout, so that the client can answer the balancer before the next probe. It is also due at
    /// [`Self::deadline`].
    pub fn report(&mut self, rtt: Duration, now: Instant) -> Option<NoAckReport> {
        let elapsed = now.saturating_duration_since(self.since?);
        let timeout = probe_timeout(rtt);
        let next = self.largest_acked.map_or(0, |largest| largest + 1);
        let earliest = self.reported.map(|reported| reported + timeout);
        let is_after_response = |at| earliest.is_none_or(|earliest| at >= earliest);
        let has_probed = self.last_sent.is_some_and(is_after_response);
        let is_due = has_probed || self.deadline(rtt).is_some_and(|deadline| now >= deadline);
        if !is_due || elapsed < timeout.max(MIN_NO_ACK) {
            return None;
        }
        self.reported = Some(now);
        Some(NoAckReport {
            elapsed,
            next,
            has_probed,
        })
    }

    /// Return when a report is due without a packet: at [`UNREACHABLE_TIMEOUT`], if there was an earlier report.
    pub fn deadline(&self, rtt: Duration) -> Option<Instant> {
        let (timeout, reported) = (self.since? + UNREACHABLE_TIMEOUT, self.reported?);
        (reported < timeout).then(|| timeout.max(reported + probe_timeout(rtt)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(60);

    #[test]
    fn unacknowledged_probes_are_reported() {
        let begin = Instant::now();
        let at = |ms| begin + Duration::from_millis(ms);
        let mut monitor = AckMonitor::default();
        assert_eq!(monitor.report(RTT, at(0)), None);
        for ms in 0..60 {
            assert!(!monitor.on_sent(at(ms)));
        }
        // The first report is due 115 ms after the first packet, the next 115 ms later.
        assert!(!monitor.is_overdue(RTT, at(114)) && monitor.is_overdue(RTT, at(115)));
        assert!(monitor.on_sent(at(110)));
        assert_eq!(monitor.report(RTT, at(110)), None);
        let report = |ms, next, has_probed| {
            Some(NoAckReport {
                elapsed: Duration::from_millis(ms),
                next,
                has_probed,
            })
        };
        assert!(monitor.on_sent(at(120)));
        assert_eq!(monitor.report(RTT, at(120)), report(120, 0, true));
        // The client cannot have answered the balancer yet.
        assert!(monitor.on_sent(at(130)));
        assert_eq!(monitor.report(RTT, at(130)), None);
        assert_eq!(monitor.report(RTT, at(300)), None);
        assert!(monitor.on_sent(at(350)));
        assert_eq!(monitor.report(RTT, at(360)), report(360, 0, true));
        assert_eq!(monitor.deadline(RTT), Some(begin + UNREACHABLE_TIMEOUT));
        // Only the first of two equal ACKs counts.
        monitor.on_ack(7, 60, at(400));
        monitor.on_ack(7, 60, at(480));
        assert!(monitor.on_sent(at(500)));
        assert_eq!(monitor.deadline(RTT), None);
        assert_eq!(monitor.report(RTT, at(520)), report(120, 8, true));
        assert_eq!(monitor.deadline(RTT), Some(at(1200)));
        assert!(monitor.on_sent(at(1190)));
        assert_eq!(monitor.report(RTT, at(1190)), report(790, 8, true));
        assert_eq!(monitor.deadline(RTT), Some(at(1305)));
        assert_eq!(monitor.report(RTT, at(1304)), None);
        assert_eq!(monitor.report(RTT, at(1305)), report(905, 8, false));
        assert_eq!(monitor.deadline(RTT), None);
        // Nothing is in flight any more.
        monitor.on_ack(60, 61, at(1310));
        assert!(!monitor.is_overdue(RTT, at(1900)));
        assert!(!monitor.on_sent(at(1900)));
        assert_eq!(monitor.report(RTT, at(1900)), None);
    }
}
