//! What a host's TCP is set to.

use crate::congestion::Congestion;
use crate::{MILLISECOND, Nanos, SECOND};

/// A host's TCP, the same for all its connections. Read from a file, it is whole: nothing is taken for granted but what few set.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Payload bytes of a full segment; the smaller of both ends' counts. Options come on top: 12
    /// bytes of timestamps, and up to 28 of SACK where data flows both ways.
    pub mss: u32,
    /// Initial congestion window, in segments (RFC 6928: 10).
    pub initial_window: u32,
    /// Initial slow start threshold, in segments; `None`: slow start goes on until the first loss or mark, as RFC 5681 advises.
    #[serde(default)]
    pub initial_threshold: Option<u32>,
    /// The law of congestion control. DCTCP marks all its packets ECT(0) and echoes exactly.
    pub congestion: Congestion,
    /// Whose TCP it is.
    #[serde(default)]
    pub model: Model,
    /// Whether to ask for ECN, if the law is not DCTCP, which always does. A peer that asks gets it.
    #[serde(default)]
    pub ecn: bool,
    /// Least retransmission timeout. RFC 6298 says 1 s; Linux has 200 ms.
    pub min_rto: Nanos,
    /// Retransmission timeout before the first round trip is measured.
    pub initial_rto: Nanos,
    /// Most that backing off makes of the retransmission timeout.
    pub max_rto: Nanos,
    /// How long the acknowledgement of a single segment may wait for a second; `None`: each segment
    /// is acknowledged at once.
    pub delayed_ack: Option<Nanos>,
    /// Whether to offer and accept selective acknowledgements.
    pub sack: bool,
    /// Whether to offer and accept timestamps.
    pub timestamps: bool,
    /// Bytes the receiver offers beyond those received in order; the application reads at once.
    /// At least `mss`, so that no window is ever closed, and at most 1 GiB (RFC 7323).
    pub receive_window: u64,
}

/// Whose TCP it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Model {
    /// The RFCs' and Linux's.
    #[default]
    Rfc,
    /// That of NetBench (`NewRenoTcpSocket`), on which figures of SP-PIFO and AIFO depend, at both ends. Differently from the RFCs,
    /// - the handshake's round trip does not count for the timer, that of each SACKed segment does, and every segment with data starts it anew;
    /// - what was sent again is measured, too (its packets echo when they departed; here, what may be the round trip of the last copy counts), and the
    ///   first measurement after a timeout is the only one;
    /// - no connection is given up;
    /// - each timeout makes ssthresh half of what was sent since the last, and one of the SYN-ACK leaves a window of a segment and an ssthresh of two;
    /// - half of what is in flight counts all, be it more than the window, and the window after recovery is bounded by the flight before its end;
    /// - SACK tells only what need not be sent again after a timeout, and recovery is NewReno's, which counts no duplicates before the first progress;
    /// - the window grows by at most a segment with each acknowledgement;
    /// - acknowledgements do not travel with data but before it, and what overtakes the first (of the SYN-ACK; here, of the client's first data, too)
    ///   is lost;
    /// - DCTCP's alpha begins at 0, and each marked acknowledgement reduces the window, to a segment at least.
    NetBench,
}

impl Default for Config {
    /// Linux's, where it has a fixed value: 1448 + 12 bytes of timestamps in an Ethernet frame.
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
    /// RFC 7323, section 2.3: shifts of the window are at most this.
    pub(super) const MAX_SCALE: u8 = 14;

    /// Whether connections can be made of it.
    ///
    /// # Errors
    /// The name of the field and what it must be.
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

    /// The least shift by which the receive window fits in 16 bits.
    pub(super) fn window_scale(&self) -> u8 {
        let bits = u64::BITS - self.receive_window.leading_zeros();
        bits.saturating_sub(u16::BITS) as u8
    }

    pub(super) fn is_netbench(&self) -> bool {
        self.model == Model::NetBench
    }

    pub(super) fn asks_for_ecn(&self) -> bool {
        self.ecn || self.congestion == Congestion::Dctcp
    }
}
