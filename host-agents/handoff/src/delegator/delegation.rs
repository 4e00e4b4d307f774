// SPDX-License-Identifier: Apache-2.0
//! One delegation: the real server's feedback, credit and reachability.

use std::sync::Arc;

use super::feedback::Feedback;
use super::reachability::ReachabilityMonitor;
use crate::delegate::NoAckReport;

/// A real server's right to send on a path, or by packet numbers of path 0.
#[derive(Debug)]
pub(super) struct Delegation {
    feedback: Arc<Feedback>,
    /// Bytes that the real server wants to send in total.
    requested_credit: u64,
    monitor: ReachabilityMonitor,
    /// ECN counts of the path before the delegation.
    ecn_base: [u64; 3],
}

impl Delegation {
    /// Start a delegation of `credit` bytes on a path with these ECN counts.
    pub(super) fn new(credit: u64, ecn: [u64; 3]) -> Self {
        Self {
            feedback: Arc::default(),
            requested_credit: credit,
            monitor: ReachabilityMonitor::default(),
            ecn_base: ecn,
        }
    }

    pub(super) fn feedback(&self) -> &Arc<Feedback> {
        &self.feedback
    }

    pub(super) fn monitor_mut(&mut self) -> &mut ReachabilityMonitor {
        &mut self.monitor
    }

    #[cfg(test)]
    pub(super) fn monitor(&self) -> ReachabilityMonitor {
        self.monitor
    }

    pub(super) fn request_credit(&mut self, total: u64) {
        self.requested_credit = total;
    }

    /// Return how many bytes of credit the real server requested beyond `credit`.
    pub(super) fn missing_credit(&self, credit: u64) -> u64 {
        self.requested_credit.saturating_sub(credit)
    }

    /// The client has acknowledged a new packet of the real server.
    pub(super) fn on_progress(&mut self) {
        if self.monitor.is_unreachable() {
            self.feedback.clear_unreachable();
        }
        self.monitor = ReachabilityMonitor::default();
    }

    /// The real server reports that the client is silent.
    pub(super) fn on_no_ack_report(&mut self, report: NoAckReport) {
        if self.monitor.is_unreachable() && !self.feedback.is_unreachable() {
            // The event was withdrawn.
            self.monitor = ReachabilityMonitor::default();
        }
        self.monitor.on_report(report);
    }

    /// Tell the owner if the real server has turned out to be unreachable.
    pub(super) fn report_if_unreachable(&mut self) {
        if self.monitor.take_verdict() {
            self.feedback.set_unreachable();
        }
    }

    /// Return `ecn` without the counts from before the delegation.
    pub(super) fn ecn_counts(&self, ecn: [u64; 3]) -> [u64; 3] {
        std::array::from_fn(|i| ecn[i].saturating_sub(self.ecn_base[i]))
    }
}
