// SPDX-License-Identifier: Apache-2.0
//! Detection of real servers whose packets do not reach the client (QDSR, section 6.2).
//!
//! ```text
//!   real server   NoAckReport ............. probe, NoAckReport ............. NoAckReport: unreachable
//!   balancer      PING on its own path .... PING on its own path ........... PING on its own path
//!   client           acknowledges the PING     acknowledges the PING            acknowledges the PING
//! ```
//!
//! A client that is offline acknowledges neither. When it comes back, it may acknowledge the balancer's next packet although
//! it has not received the real server's last probe. Therefore the client must acknowledge a PING before a probe of the real
//! server, and another PING after the probe. A PING that it does not acknowledge before the next report shows that it is
//! offline, and the detection starts again. It then takes two lost probes: probes are rare after an outage, and other
//! senders resume in bursts, so that a single loss is weak evidence.
//!
//! Some of the client's acknowledgments may not have reached the real server yet, so the report includes what the real server
//! has received. No timer is involved: the balancer reads the client's packets in order, so it reads the response to a probe
//! before the acknowledgment of a later PING, however busy it is.

use frontage_quic::session::Nonce;

use crate::delegate::{NoAckReport, UNREACHABLE_TIMEOUT};

/// Knowledge since the client last acknowledged a packet of the real server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Evidence {
    /// Nothing.
    #[default]
    None,
    /// The client has acknowledged a PING.
    Online,
    /// The client has acknowledged PINGs before and after a probe of the real server, but not the probe.
    ProbeLost,
    /// The client has been silent for too long.
    Unreachable,
    /// The owner has received this verdict.
    Reported,
}

/// A PING of noq because of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ping {
    /// The packet; `None` until noq sends it.
    packet: Option<Nonce>,
    /// True if the real server has sent a probe since noq's previous PING.
    has_probed: bool,
    /// True if the client has been silent for [`UNREACHABLE_TIMEOUT`].
    is_final: bool,
}

/// Whether packets of one real server reach the client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ReachabilityMonitor {
    evidence: Evidence,
    ping: Option<Ping>,
    /// True if the client has missed a PING, and no probe has been lost since it came back.
    was_offline: bool,
}

impl ReachabilityMonitor {
    /// The real server reports that the client is silent. noq's next packet must be a PING.
    pub(super) fn on_report(&mut self, report: NoAckReport) {
        if self.is_unreachable() {
            return;
        }
        let mut ping = Ping {
            packet: None,
            has_probed: report.has_probed,
            is_final: report.elapsed >= UNREACHABLE_TIMEOUT,
        };
        match self.ping {
            // The client has not acknowledged it.
            Some(Ping {
                packet: Some(_), ..
            }) => (self.evidence, self.was_offline) = (Evidence::None, true),
            Some(unsent) => {
                ping.has_probed |= unsent.has_probed;
                ping.is_final |= unsent.is_final;
            }
            None => {}
        }
        self.ping = Some(ping);
    }

    /// noq sends a packet.
    pub(super) fn on_sent(&mut self, packet: Nonce) {
        if let Some(ping) = &mut self.ping {
            ping.packet.get_or_insert(packet);
        }
    }

    /// Handle an ACK of noq's packets.
    pub(super) fn on_ack(&mut self, is_acked: impl Fn(Nonce) -> bool) {
        if let Some(ping) = self.ping
            && ping.packet.is_some_and(is_acked)
        {
            self.ping = None;
            self.evidence = match self.evidence {
                Evidence::None => Evidence::Online,
                Evidence::Online if !ping.has_probed => Evidence::Online,
                Evidence::Online if std::mem::take(&mut self.was_offline) => Evidence::Online,
                _ if ping.is_final => Evidence::Unreachable,
                _ => Evidence::ProbeLost,
            };
        }
    }

    /// Return whether the monitor waits for an acknowledgment of noq's PING.
    pub(super) fn is_waiting(&self) -> bool {
        self.ping.is_some_and(|ping| ping.packet.is_some())
    }

    /// Return whether the real server counts as unreachable.
    pub(super) fn is_unreachable(&self) -> bool {
        matches!(self.evidence, Evidence::Unreachable | Evidence::Reported)
    }

    /// Return whether the real server has become unreachable since the last call.
    pub(super) fn take_verdict(&mut self) -> bool {
        let is_new = self.evidence == Evidence::Unreachable;
        if is_new {
            self.evidence = Evidence::Reported;
        }
        is_new
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn packet(number: u64) -> Nonce {
        Nonce { path: 0, number }
    }

    /// A monitor, and the number of noq's next packet.
    #[derive(Default)]
    struct Client {
        monitor: ReachabilityMonitor,
        number: u64,
    }

    impl Client {
        /// The real server reports after `ms`. Returns noq's PING.
        fn report(&mut self, ms: u64, has_probed: bool) -> Nonce {
            self.monitor.on_report(NoAckReport {
                elapsed: Duration::from_millis(ms),
                next: 0,
                has_probed,
            });
            self.number += 1;
            let ping = packet(self.number);
            self.monitor.on_sent(ping);
            self.monitor.on_sent(packet(1000 + self.number));
            ping
        }

        /// The client acknowledges a packet. Returns whether the real server is now unreachable.
        fn ack(&mut self, packet: Nonce) -> bool {
            self.monitor.on_ack(|acked| acked == packet);
            self.monitor.take_verdict()
        }

        /// The real server reports, and the client acknowledges the PING.
        fn answer(&mut self, ms: u64, has_probed: bool) -> bool {
            let ping = self.report(ms, has_probed);
            self.ack(ping)
        }
    }

    #[test]
    fn client_that_acknowledges_balancer_but_not_real_server_is_unreachable() {
        let mut client = Client::default();
        assert!(!client.answer(120, true));
        assert!(!client.answer(400, true));
        let ping = client.report(800, false);
        // Not the PING.
        assert!(!client.ack(packet(1000 + ping.number)));
        assert!(client.ack(ping));
        assert!(client.monitor.is_unreachable());
        // It is reported once.
        assert!(!client.answer(1000, true));
    }

    #[test]
    fn last_report_decides_with_a_probe_of_its_own() {
        let mut client = Client::default();
        assert!(!client.answer(450, true));
        assert!(client.answer(1350, true));
    }

    /// The client comes back between a probe and the balancer's PING.
    #[test]
    fn lost_probe_before_the_first_acknowledged_ping_proves_nothing() {
        let mut client = Client::default();
        client.report(120, true);
        assert!(!client.answer(400, true));
        assert!(!client.answer(800, false));
        assert!(!client.answer(900, false));
        // Two probes were sent after the first acknowledged PING.
        assert!(!client.answer(1700, true));
        assert!(client.answer(2600, true));
    }

    #[test]
    fn lost_ping_starts_the_detection_again() {
        let mut client = Client::default();
        assert!(!client.answer(120, true));
        assert!(!client.answer(400, true));
        let lost = client.report(800, false);
        let ping = client.report(900, true);
        assert!(!client.ack(lost));
        assert!(!client.ack(ping));
        // The first loss after an outage is not enough.
        assert!(!client.answer(1700, true));
        assert!(!client.answer(2000, false));
        assert!(client.answer(3300, true));
    }

    /// A busy balancer gets two reports before noq sends a packet.
    #[test]
    fn one_ping_answers_reports_that_arrive_before_it() {
        let mut client = Client::default();
        assert!(!client.answer(120, true));
        client.monitor.on_report(NoAckReport {
            elapsed: Duration::from_millis(400),
            next: 0,
            has_probed: true,
        });
        assert!(client.answer(800, false));
    }

    /// Both noq's PING and the real server's probe are lost.
    #[test]
    fn offline_client_never_becomes_unreachable() {
        let mut client = Client::default();
        assert!(!client.answer(120, true));
        for i in 1..5 {
            client.report(800 * i, true);
        }
        // The client comes back.
        assert!(!client.answer(5000, true));
        assert!(!client.monitor.is_unreachable());
    }
}
