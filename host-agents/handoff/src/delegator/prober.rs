// SPDX-License-Identifier: Apache-2.0
//! Probes of noq on behalf of the reachability monitors of a connection.

use frontage_quic::session::Nonce;
use frontage_quic_wire::frames::Ack;

use super::delegation::Delegation;
use super::reachability::ReachabilityMonitor;

/// State of noq's probes.
#[derive(Debug, Default)]
pub(super) struct Prober {
    /// The path on which noq's next packet is a probe.
    pending_on: Option<u32>,
    /// True if some monitor waits for an acknowledgment.
    is_outstanding: bool,
}

impl Prober {
    /// Use noq's next packet on `path` as a probe.
    pub(super) fn request(&mut self, path: u32) {
        self.pending_on = Some(path);
    }

    /// noq sends a packet.
    #[inline]
    pub(super) fn on_sent<'a>(
        &mut self,
        packet: Nonce,
        delegations: impl Iterator<Item = &'a mut Delegation>,
    ) {
        if self.pending_on == Some(packet.path) {
            self.pending_on = None;
            self.is_outstanding = true;
            for delegation in delegations {
                delegation.monitor_mut().on_sent(packet);
            }
        }
    }

    /// The client acknowledges packets.
    #[inline]
    pub(super) fn on_ack<'a>(
        &mut self,
        ack: &Ack<'_>,
        delegations: impl Iterator<Item = &'a mut Delegation>,
    ) {
        if !self.is_outstanding {
            return;
        }
        self.is_outstanding = false;
        // noq's own path may have changed since an earlier probe, and each path has its own numbers.
        let is_acked = |packet: Nonce| {
            packet.path == ack.path && ack.ranges().any(|range| range.contains(&packet.number))
        };
        for delegation in delegations {
            let monitor = delegation.monitor_mut();
            let is_unreachable = monitor.on_ack(is_acked);
            self.is_outstanding |= matches!(monitor, ReachabilityMonitor::ProbeSent { .. });
            if is_unreachable {
                delegation.feedback().set_unreachable();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use frontage_quic_wire::frames::{Frame, read};

    use super::super::paths::Paths;
    use super::*;

    /// noq probes for two delegations, on two paths of its own.
    #[test]
    fn same_number_on_another_path_is_not_an_answer() {
        let (mut paths, mut prober) = (Paths::default(), Prober::default());
        for (delegated, own) in [(5, 0), (6, 2)] {
            let path = paths.get_or_new(delegated).expect("room");
            path.delegate(0).expect("owned by noq");
            let delegation = path.delegation().expect("delegated");
            delegation.monitor_mut().on_report(false);
            prober.request(own);
            let nonce = Nonce {
                path: own,
                number: 7,
            };
            prober.on_sent(nonce, paths.delegations());
        }
        let wire = [0x3e, 2, 7, 0, 0, 0];
        let Some(Frame::Ack(ack)) = read(&wire).next() else {
            panic!("not an ACK");
        };
        prober.on_ack(&ack, paths.delegations());
        let monitors: Vec<_> = paths.delegations().map(|d| d.monitor()).collect();
        let still_waiting = ReachabilityMonitor::ProbeSent {
            packet: Nonce { path: 0, number: 7 },
            is_final: false,
        };
        assert_eq!(monitors, [still_waiting, ReachabilityMonitor::Alive]);
        assert!(prober.is_outstanding);
    }
}
