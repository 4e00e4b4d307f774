// SPDX-License-Identifier: Apache-2.0
//! Configuration of a host's TCP.

use crate::congestion::Congestion;
use crate::{MILLISECOND, Nanos, SECOND};

/// TCP configuration of a host, for all its connections.
///
/// A file must specify every field, except those that are rarely set.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Payload of a full segment in bytes; the connection uses the smaller value of both ends. Options are extra: 12 bytes for
    /// timestamps, and up to 28 for SACK where data flows in both directions.
    pub mss: u32,
    /// Initial congestion window in segments (RFC 6928: 10).
    pub initial_window: u32,
    /// Initial slow start threshold in segments. With `None`, slow start continues until the first loss or mark, as RFC 5681 recommends.
    #[serde(default)]
    pub initial_threshold: Option<u32>,
    /// Congestion control algorithm. DCTCP sends all packets with ECT(0) and echoes marks exactly.
    pub congestion: Congestion,
    /// TCP implementation to model.
    #[serde(default)]
    pub model: Model,
    /// Request ECN also with algorithms other than DCTCP. A request by the peer is always accepted.
    #[serde(default)]
    pub ecn: bool,
    /// Minimum retransmission timeout: 1 s in RFC 6298, 200 ms in Linux.
    pub min_rto: Nanos,
    /// Retransmission timeout before the first measurement of the round-trip time.
    pub initial_rto: Nanos,
    /// Maximum retransmission timeout with backoff.
    pub max_rto: Nanos,
    /// Maximum delay of the acknowledgment of a single segment. With `None`, each segment is acknowledged at once.
    pub delayed_ack: Option<Nanos>,
    /// Offer and accept selective acknowledgments.
    pub sack: bool,
    /// Offer and accept timestamps.
    pub timestamps: bool,
    /// Receive window in bytes. The application reads at once, so it never shrinks. At least `mss`, so that the window never closes, and at
    /// most 1 GiB (RFC 7323).
    pub receive_window: u64,
}

/// A TCP implementation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Model {
    /// The RFCs, and Linux where they leave a choice.
    #[default]
    Rfc,
    /// NetBench (`NewRenoTcpSocket`), on which the figures of SP-PIFO and AIFO depend, at both ends. It differs from the RFCs:
    /// - The timer ignores the round trip of the handshake, but measures that of each SACKed segment. Every segment with data restarts it.
    /// - Retransmitted segments are measured, too. (NetBench's packets echo their departure time. Here, a value that may be the round trip
    ///   of the last copy counts.) After a timeout, the first measurement replaces the estimate.
    /// - Connections never fail.
    /// - Each timeout sets ssthresh to half of the data sent since the last one. A timeout of the SYN-ACK leaves a window of one segment and
    ///   an ssthresh of two.
    /// - ssthresh is half of the flight, even if the flight exceeds the window. The window after recovery is bounded by the flight before
    ///   its end.
    /// - SACK only determines what need not be retransmitted after a timeout. Recovery is NewReno's, and ignores duplicate acknowledgments
    ///   before the first progress.
    /// - The window grows by at most one segment per acknowledgment.
    /// - Acknowledgments are sent before data instead of with it. A segment that overtakes the first one (of the SYN-ACK; here, also of the
    ///   client's first data) is lost.
    /// - DCTCP's alpha starts at 0, and each marked acknowledgment reduces the window, to at least one segment.
    NetBench,
}

impl Default for Config {
    /// Returns Linux's values where they are fixed. 1448 bytes and 12 bytes of timestamps fit an Ethernet frame.
    fn default() -> Self {
        Self {
            mss: 1448,
            initial_window: 10,
            initial_threshold: None,
            congestion: Congestion::Cubic,
            model: Model::Rfc,
            ecn: false,
            min_rto: 200 * MILLISECOND,
            initial_rto: SECOND,
            max_rto: 120 * SECOND,
            delayed_ack: Some(40 * MILLISECOND),
            sack: true,
            timestamps: true,
            receive_window: 6 << 20,
        }
    }
}

impl Config {
    /// Maximum window scale (RFC 7323, section 2.3).
    pub(super) const MAX_SCALE: u8 = 14;

    /// Checks the values.
    ///
    /// # Errors
    /// Returns the name of an invalid field and its valid values.
    pub fn check(&self) -> Result<(), &'static str> {
        let largest = u64::from(u16::MAX) << Self::MAX_SCALE;
        match self {
            _ if self.mss == 0 || self.mss > u32::from(u16::MAX) => {
                Err("mss: must be 1 to 65535 bytes")
            }
            _ if self.initial_window == 0 => Err("initial_window: must be at least 1 segment"),
            _ if self.initial_threshold.is_some_and(|segments| segments < 2) => {
                Err("initial_threshold: must be at least 2 segments, or absent")
            }
            _ if self.min_rto == 0 => Err("min_rto: must be more than 0"),
            _ if self.initial_rto < self.min_rto => Err("initial_rto: must be at least min_rto"),
            _ if self.max_rto < self.initial_rto => Err("max_rto: must be at least initial_rto"),
            _ if self.delayed_ack == Some(0) => Err("delayed_ack: must be more than 0, or absent"),
            _ if self.receive_window < u64::from(self.mss) => {
                Err("receive_window: must be at least mss")
            }
            _ if self.receive_window > largest => {
                Err("receive_window: must be at most 1073725440 bytes")
            }
            _ => Ok(()),
        }
    }

    /// Returns the smallest window scale with which the receive window fits in 16 bits.
    pub(super) fn window_scale(&self) -> u8 {
        let bits = u64::BITS - self.receive_window.leading_zeros();
        bits.saturating_sub(u16::BITS) as u8
    }

    pub(super) fn is_netbench(&self) -> bool {
        self.model == Model::NetBench
    }

    pub(super) fn uses_ecn(&self) -> bool {
        self.ecn || self.congestion == Congestion::Dctcp
    }
}
