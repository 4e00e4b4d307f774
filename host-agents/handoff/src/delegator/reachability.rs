// SPDX-License-Identifier: Apache-2.0
//! Detection of real servers whose packets do not reach the client (QDSR, section 6.2).
//!
//! ```text
//!   real server   probe, NoAckReport ......... probe, NoAckReport ............. unreachable: the delegation ends
//!   balancer             PING on its own path ...... PING on its own path ...... |
//!   client                     acknowledges the PING         acknowledges the PING, but not the real server
//! ```
//!
//! A client that is offline acknowledges neither. When it comes back, it may acknowledge the balancer's next packet although
//! it has not received the real server's last probe. The client must therefore have acknowledged the balancer at one probe of
//! the real server, and again at a later one when it has been silent for `UNREACHABLE_TIMEOUT`. Some of its acknowledgments may
//! not have reached the real server yet, so the report includes what the real server has received. No timer is involved:
//! the balancer reads the client's packets in order, so it reads the response to the first probe before the second
//! acknowledgment, however busy it is.

use frontage_quic::session::Nonce;

/// Whether packets of one real server reach the client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ReachabilityMonitor {
    /// No report since the client last acknowledged a packet of the real server.
    #[default]
    Idle,
    /// The real server has sent a probe, and noq's next packet probes the client. `is_final`: for the last time.
    ProbePending { is_final: bool },
    /// This packet of noq probes the client.
    ProbeSent { packet: Nonce, is_final: bool },
    /// The client has acknowledged a packet of noq.
    Alive,
    /// The client acknowledges noq's packets but not those of the real server.
    Unreachable,
}

impl ReachabilityMonitor {
    /// The real server has sent a probe; `is_final` if the client has been silent for `UNREACHABLE_TIMEOUT`.
    pub(super) fn on_report(&mut self, is_final: bool) {
        *self = match self {
            Self::Unreachable => Self::Unreachable,
            Self::Alive => Self::ProbePending { is_final },
            Self::ProbePending { is_final: true } | Self::ProbeSent { is_final: true, .. } => {
                Self::ProbePending { is_final: true }
            }
            _ => Self::ProbePending { is_final: false },
        };
    }

    /// noq sends a packet.
    pub(super) fn on_sent(&mut self, packet: Nonce) {
        if let Self::ProbePending { is_final } = *self {
            *self = Self::ProbeSent { packet, is_final };
        }
    }

    /// Handle an ACK of noq's packets. Returns whether the real server is now unreachable.
    pub(super) fn on_ack(&mut self, is_acked: impl Fn(Nonce) -> bool) -> bool {
        match *self {
            Self::ProbeSent { packet, is_final } if is_acked(packet) => {
                *self = if is_final {
                    Self::Unreachable
                } else {
                    Self::Alive
                };
                is_final
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(number: u64) -> Nonce {
        Nonce { path: 0, number }
    }

    #[test]
    fn client_that_answers_balancer_twice_but_not_real_server_is_unreachable() {
        let mut monitor = ReachabilityMonitor::default();
        assert!(!monitor.on_ack(|_| true));
        monitor.on_report(false);
        monitor.on_sent(packet(7));
        monitor.on_sent(packet(8));
        assert!(!monitor.on_ack(|acked| acked == packet(8)));
        assert!(!monitor.on_ack(|acked| acked == packet(7)));
        assert_eq!(monitor, ReachabilityMonitor::Alive);
        // The client has not been silent for long enough.
        monitor.on_report(false);
        monitor.on_sent(packet(9));
        assert!(!monitor.on_ack(|acked| acked == packet(9)));
        assert_eq!(monitor, ReachabilityMonitor::Alive);
        monitor.on_report(true);
        monitor.on_sent(packet(10));
        // Packet 10 is lost.
        monitor.on_report(true);
        monitor.on_sent(packet(11));
        assert!(!monitor.on_ack(|acked| acked == packet(10)));
        assert!(monitor.on_ack(|acked| acked == packet(11)));
        monitor.on_report(true);
        assert_eq!(monitor, ReachabilityMonitor::Unreachable);
    }

    /// Both noq's probe and the real server's are lost.
    #[test]
    fn offline_client_never_becomes_unreachable() {
        let mut monitor = ReachabilityMonitor::default();
        for _ in 0..3 {
            monitor.on_report(true);
            monitor.on_sent(packet(1));
            monitor.on_report(true);
            monitor.on_sent(packet(2));
            // The client acknowledges another packet of noq later.
            assert!(!monitor.on_ack(|acked| acked == packet(3)));
        }
        monitor.on_report(true);
        assert_eq!(
            monitor,
            ReachabilityMonitor::ProbePending { is_final: false }
        );
    }
}
