// SPDX-License-Identifier: Apache-2.0
//! Congestion control, which limits the data in flight. One [`Controller`] serves TCP and QUIC.
//!
//! Windows are in bytes of payload. Slow start and the bounds are common to all algorithms. An algorithm defines how the window grows in
//! congestion avoidance, and how far an event reduces it.

mod cubic;
mod dctcp;
mod new_reno;
mod usage;

use crate::Nanos;
use cubic::Cubic;
use dctcp::Dctcp;
use new_reno::NewReno;
pub(crate) use usage::Usage;

/// A congestion control algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Congestion {
    /// RFC 5681: grows by one segment per round trip, and halves after a loss.
    #[default]
    NewReno,
    /// RFC 9438.
    Cubic,
    /// RFC 8257: like NewReno, but ECN marks reduce the window in proportion to the share of marked bytes.
    Dctcp,
}

/// Why the window shrinks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// Packets were lost, while others arrived.
    Loss,
    /// The receiver reported congestion marks (ECN).
    Mark,
    /// A retransmission timeout, or QUIC's persistent congestion.
    Timeout,
}

/// An acknowledgment, as the congestion controller sees it.
#[derive(Debug, Clone, Copy)]
pub struct Acked {
    /// Time of arrival.
    pub now: Nanos,
    /// Payload bytes newly acknowledged.
    pub bytes: u64,
    /// Smoothed round-trip time.
    pub rtt: Nanos,
}

/// A congestion window and its algorithm.
#[derive(Debug, Clone)]
pub struct Controller {
    mss: u64,
    initial: u64,
    window: u64,
    threshold: u64,
    algorithm: Algorithm,
}

#[derive(Debug, Clone)]
enum Algorithm {
    NewReno(NewReno),
    Cubic(Cubic),
    Dctcp(Dctcp),
}

impl Controller {
    /// Creates a controller in slow start with a window of `initial_window` segments of `mss` payload bytes.
    pub fn new(congestion: Congestion, mss: u32, initial_window: u32) -> Self {
        let mss = u64::from(mss);
        let initial = mss * u64::from(initial_window);
        Self {
            mss,
            initial,
            window: initial,
            threshold: u64::MAX,
            algorithm: match congestion {
                Congestion::NewReno => Algorithm::NewReno(NewReno::default()),
                Congestion::Cubic => Algorithm::Cubic(Cubic::new(mss)),
                Congestion::Dctcp => Algorithm::Dctcp(Dctcp::default()),
            },
        }
    }

    /// Returns cwnd in bytes.
    pub fn window(&self) -> u64 {
        self.window
    }

    /// Returns ssthresh in bytes, or `u64::MAX` before the first event.
    pub fn threshold(&self) -> u64 {
        self.threshold
    }

    /// Returns true in slow start, where the window grows by the number of acknowledged bytes.
    pub fn in_slow_start(&self) -> bool {
        self.window < self.threshold
    }

    /// Returns DCTCP's alpha, the smoothed share of marked bytes. Returns `None` for other algorithms.
    pub fn marked_share(&self) -> Option<f64> {
        match &self.algorithm {
            Algorithm::Dctcp(dctcp) => Some(dctcp.alpha()),
            _ => None,
        }
    }

    /// Grows the window for newly acknowledged bytes. Call it only outside loss recovery and if the window was in use.
    ///
    /// Slow start counts bytes without a limit (RFC 3465 with unbounded L, as in Linux and RFC 9002). Bytes beyond ssthresh count for
    /// congestion avoidance.
    pub fn on_ack(&mut self, mut acked: Acked) {
        if self.in_slow_start() {
            let growth = acked.bytes.min(self.threshold - self.window);
            self.window += growth;
            acked.bytes -= growth;
        }
        if acked.bytes > 0 {
            self.window = match &mut self.algorithm {
                Algorithm::NewReno(reno) => reno.grow(self.window, self.mss, acked.bytes),
                Algorithm::Dctcp(dctcp) => dctcp.reno.grow(self.window, self.mss, acked.bytes),
                Algorithm::Cubic(cubic) => cubic.grow(self.window, &acked),
            };
        }
    }

    /// Processes the ECN feedback of an acknowledgment: the number of acknowledged bytes, and whether it was marked (ECE).
    ///
    /// `acknowledged` and `sent` are the ends of the acknowledged and of the sent data, which delimit DCTCP's observation window. Must be
    /// called for every acknowledgment, before [`on_event`](Self::on_event).
    pub fn on_feedback(&mut self, bytes: u64, marked: bool, acknowledged: u64, sent: u64) {
        if let Algorithm::Dctcp(dctcp) = &mut self.algorithm {
            dctcp.observe(bytes, marked, acknowledged, sent);
        }
    }

    /// Sets ssthresh after an event, based on `flight` bytes in flight, but at most the window.
    ///
    /// The caller must then reduce the window with [`set_window`](Self::set_window).
    pub fn on_event(&mut self, event: Event, flight: u64) {
        let basis = self.window.min(flight);
        let threshold = match &mut self.algorithm {
            Algorithm::NewReno(reno) => reno.reduce(basis),
            Algorithm::Cubic(cubic) => cubic.reduce(event, self.window, basis),
            Algorithm::Dctcp(dctcp) => dctcp.reduce(event, self.window, basis),
        };
        self.threshold = threshold.max(2 * self.mss);
    }

    /// Reduces the window at once for a marked acknowledgment: by alpha / 2 with DCTCP, by half otherwise, and to at least one segment.
    pub fn on_marked(&mut self) {
        let share = self.marked_share().unwrap_or(1.0);
        let window = (self.window as f64 * (1.0 - share / 2.0)) as u64;
        self.window = window.max(self.mss);
        self.threshold = window.max(2 * self.mss);
    }

    /// Sets DCTCP's initial alpha.
    pub fn set_marked_share(&mut self, alpha: f64) {
        if let Algorithm::Dctcp(dctcp) = &mut self.algorithm {
            *dctcp = Dctcp::new(alpha);
        }
    }

    /// Sets ssthresh in bytes.
    pub fn set_threshold(&mut self, bytes: u64) {
        self.threshold = bytes;
    }

    /// Sets cwnd in bytes.
    pub fn set_window(&mut self, bytes: u64) {
        self.window = bytes;
    }

    /// Halves the window once for every RTO in the `idle` time, but not below the initial window (RFC 2861; RFC 5681, section 4.1).
    pub fn on_idle(&mut self, idle: Nanos, rto: Nanos) {
        if idle > rto && self.window > self.initial {
            self.threshold = self.threshold.max(self.window / 4 * 3);
            let halvings = u32::try_from(idle / rto).unwrap_or(u32::MAX);
            self.window = self
                .window
                .checked_shr(halvings)
                .unwrap_or(0)
                .max(self.initial);
        }
        if let Algorithm::Cubic(cubic) = &mut self.algorithm {
            cubic.pause(idle);
        }
    }
}
