//! Congestion control: how much may be in flight. One [`Controller`] serves TCP and QUIC.
//!
//! Windows are in bytes of payload. Slow start and the bounds are the same for all laws; a law
//! says how the window grows in congestion avoidance and how far an event reduces it.

mod cubic;
mod dctcp;
mod new_reno;
mod usage;

use crate::Nanos;
use cubic::Cubic;
use dctcp::Dctcp;
use new_reno::NewReno;
pub(crate) use usage::Usage;

/// A law of congestion control.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Congestion {
    /// RFC 5681: one segment more a round trip, half after a loss.
    #[default]
    NewReno,
    /// RFC 9438.
    Cubic,
    /// RFC 8257: as NewReno, but ECN marks reduce the window by their share.
    Dctcp,
}

/// Why the window shrinks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// Packets were lost, and others arrived.
    Loss,
    /// The receiver saw congestion marks (ECN).
    Mark,
    /// Nothing was heard: the retransmission timeout, or QUIC's persistent congestion.
    Timeout,
}

/// What an acknowledgement says to the window.
#[derive(Debug, Clone, Copy)]
pub struct Acked {
    /// When.
    pub now: Nanos,
    /// Payload bytes newly acknowledged.
    pub bytes: u64,
    /// The smoothed round-trip time.
    pub rtt: Nanos,
}

/// A congestion window and its law.
#[derive(Debug, Clone)]
pub struct Controller {
    mss: u64,
    initial: u64,
    window: u64,
    threshold: u64,
    law: Law,
}

#[derive(Debug, Clone)]
enum Law {
    NewReno(NewReno),
    Cubic(Cubic),
    Dctcp(Dctcp),
}

impl Controller {
    /// A window of so many segments of `mss` payload bytes, in slow start.
    pub fn new(congestion: Congestion, mss: u32, initial_window: u32) -> Self {
        let mss = u64::from(mss);
        let initial = mss * u64::from(initial_window);
        Self {
            mss,
            initial,
            window: initial,
            threshold: u64::MAX,
            law: match congestion {
                Congestion::NewReno => Law::NewReno(NewReno::default()),
                Congestion::Cubic => Law::Cubic(Cubic::new(mss)),
                Congestion::Dctcp => Law::Dctcp(Dctcp::default()),
            },
        }
    }

    /// cwnd, in bytes.
    pub fn window(&self) -> u64 {
        self.window
    }

    /// ssthresh, in bytes; `u64::MAX` before the first event.
    pub fn threshold(&self) -> u64 {
        self.threshold
    }

    /// Whether the window grows by what is acknowledged.
    pub fn in_slow_start(&self) -> bool {
        self.window < self.threshold
    }

    /// The share of marked bytes, smoothed: DCTCP's alpha. `None` under other laws.
    pub fn marked_share(&self) -> Option<f64> {
        match &self.law {
            Law::Dctcp(dctcp) => Some(dctcp.alpha()),
            _ => None,
        }
    }

    /// Grows the window for newly acknowledged bytes, outside loss recovery and if it was in use.
    ///
    /// Slow start counts bytes without a limit (RFC 3465 with L unbounded, as Linux and RFC 9002
    /// do), and what reaches beyond ssthresh counts for congestion avoidance.
    pub fn on_ack(&mut self, mut acked: Acked) {
        if self.in_slow_start() {
            let growth = acked.bytes.min(self.threshold - self.window);
            self.window += growth;
            acked.bytes -= growth;
        }
        if acked.bytes > 0 {
            self.window = match &mut self.law {
                Law::NewReno(reno) => reno.grow(self.window, self.mss, acked.bytes),
                Law::Dctcp(dctcp) => dctcp.reno.grow(self.window, self.mss, acked.bytes),
                Law::Cubic(cubic) => cubic.grow(self.window, &acked),
            };
        }
    }

    /// Tells of all acknowledged bytes and whether the acknowledgement was marked (ECE), growing or
    /// not. `acknowledged` and `sent` are the ends of what has been: DCTCP's observation window.
    /// To be called before [`on_event`](Self::on_event).
    pub fn on_feedback(&mut self, bytes: u64, marked: bool, acknowledged: u64, sent: u64) {
        if let Law::Dctcp(dctcp) = &mut self.law {
            dctcp.observe(bytes, marked, acknowledged, sent);
        }
    }

    /// Sets ssthresh after an event. Of `flight` bytes in flight no more count than the window has.
    /// The window itself is the caller's to bring down to it, by [`set_window`](Self::set_window).
    pub fn on_event(&mut self, event: Event, flight: u64) {
        let basis = self.window.min(flight);
        let threshold = match &mut self.law {
            Law::NewReno(reno) => reno.reduce(basis),
            Law::Cubic(cubic) => cubic.reduce(event, self.window, basis),
            Law::Dctcp(dctcp) => dctcp.reduce(event, self.window, basis),
        };
        self.threshold = threshold.max(2 * self.mss);
    }

    /// Brings the window down at once for a marked acknowledgement, to a segment at least. What is not DCTCP halves it.
    pub fn on_marked(&mut self) {
        let share = self.marked_share().unwrap_or(1.0);
        let window = (self.window as f64 * (1.0 - share / 2.0)) as u64;
        self.window = window.max(self.mss);
        self.threshold = window.max(2 * self.mss);
    }

    /// Sets DCTCP's alpha, before anything is known of the path.
    pub fn set_marked_share(&mut self, alpha: f64) {
        if let Law::Dctcp(dctcp) = &mut self.law {
            *dctcp = Dctcp::new(alpha);
        }
    }

    /// Sets ssthresh to so many bytes, before anything is known of the path.
    pub fn set_threshold(&mut self, bytes: u64) {
        self.threshold = bytes;
    }

    /// Sets cwnd to so many bytes.
    pub fn set_window(&mut self, bytes: u64) {
        self.window = bytes;
    }

    /// Nothing was in flight for `idle`: the window halves for every RTO of it, but not below the
    /// initial one (RFC 2861; RFC 5681, section 4.1).
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
        if let Law::Cubic(cubic) = &mut self.law {
            cubic.pause(idle);
        }
    }
}
