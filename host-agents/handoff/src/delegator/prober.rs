// SPDX-License-Identifier: Apache-2.0
//! Probes of noq on behalf of the reachability monitors of a connection.

use frontage_quic::session::Nonce;
use frontage_quic_wire::frames::Ack;

use super::delegation::Delegation;

/// State of noq's probes.
#[derive(Debug, Default)]
pub(super) struct Prober {
    /// The path on which noq's next packet is a probe.
    pending_on: Option<u32>,
    /// True if some monitor waits for an acknowledgment.
    is_outstanding: bool,
    /// True if a real server may have become unreachable within the current packet.
    has_verdict: bool,
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
            monitor.on_ack(is_acked);
            self.is_outstanding |= monitor.is_waiting();
            self.has_verdict |= monitor.is_unreachable();
        }
    }

    /// A packet of the client ends. Later frames of the packet may have acknowledged packets of a real server.
    #[inline]
    pub(super) fn on_packet_end<'a>(
        &mut self,
        delegations: impl Iterator<Item = &'a mut Delegation>,
    ) {
        if std::mem::take(&mut self.has_verdict) {
            delegations.for_each(Delegation::report_if_unreachable);
        }
    }
}

#[cfg(test)]
mod tests {
    use frontage_quic_wire::frames::{Frame, read};

    use super::super::paths::Paths;
    use super::*;
    use crate::delegate::{NoAckReport, UNREACHABLE_TIMEOUT};

    const REPORT: NoAckReport = NoAckReport {
        elapsed: UNREACHABLE_TIMEOUT,
        next: 0,
        has_probed: true,
    };

    /// noq probes for two delegations, on two paths of its own.
    #[test]
    fn same_number_on_another_path_is_not_an_answer() {
        let (mut paths, mut prober) = (Paths::default(), Prober::default());
        for (delegated, own) in [(5, 0), (6, 2)] {
            let path = paths.get_or_new(delegated).expect("room");
            path.delegate(0).expect("owned by noq");
            let delegation = path.delegation().expect("delegated");
            delegation.on_no_ack_report(REPORT);
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
        let waiting: Vec<_> = paths
            .delegations()
            .map(|d| d.monitor().is_waiting())
            .collect();
        assert_eq!(waiting, [true, false]);
        assert!(prober.is_outstanding);
    }

    /// The client acknowledges noq's PINGs, and the real server's packet in a later frame of the last packet.
    #[test]
    fn acknowledgment_in_the_same_packet_withdraws_the_verdict() {
        for is_acked in [false, true] {
            let (mut paths, mut prober) = (Paths::default(), Prober::default());
            let path = paths.get_or_new(5).expect("room");
            path.delegate(0).expect("owned by noq");
            for number in 0..2 {
                let delegation = paths.get(5).and_then(|path| path.delegation());
                delegation.expect("delegated").on_no_ack_report(REPORT);
                prober.request(0);
                prober.on_sent(Nonce { path: 0, number }, paths.delegations());
                let wire = [0x3e, 0, number as u8, 0, 0, 0];
                let Some(Frame::Ack(ack)) = read(&wire).next() else {
                    panic!("not an ACK");
                };
                prober.on_ack(&ack, paths.delegations());
            }
            let path = paths.get(5).expect("known");
            if is_acked {
                path.on_ack(0, None);
            }
            prober.on_packet_end(paths.delegations());
            let path = paths.get(5).expect("known");
            let feedback = path.feedback().expect("delegated");
            assert_eq!(feedback.is_unreachable(), !is_acked);
        }
    }
}
