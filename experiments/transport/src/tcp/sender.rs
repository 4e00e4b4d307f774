// SPDX-License-Identifier: Apache-2.0
//! The sending half: transmission, acknowledgments and timeouts.

mod timer;
mod transmit;

use std::ops::Range;

use super::config::Config;
use super::recovery::{Phase, Rate};
use super::scoreboard::Scoreboard;
use crate::Nanos;
use crate::congestion::{Acked, Congestion, Controller, Event, Usage};
use timer::Timer;

/// Number of duplicate acknowledgments that indicate a loss.
const DUP_THRESH: u32 = 3;

/// Maximum number of consecutive timeouts before the connection fails (Linux's tcp_retries2).
const MAX_TIMEOUTS: u32 = 15;

#[derive(Debug)]
pub struct Sender {
    mss: u64,
    /// Use SACK for recovery.
    sack: bool,
    /// Behave like NetBench ([`Model`](super::config::Model)).
    netbench: bool,
    congestion: Congestion,
    board: Scoreboard,
    phase: Phase,
    pub controller: Controller,
    timer: Timer,
    usage: Usage,
    /// Offset after the last byte written.
    written: u64,
    finished: bool,
    /// Right edge of the peer's window: the offset after the last byte that it accepts.
    right_edge: u64,
    duplicates: u32,
    /// SND.NXT at the last loss event: RFC 6582's `recover`.
    recover: u64,
    /// A retransmission must be sent even if the window is full.
    force_retransmission: bool,
    /// The last segment was retransmitted in this recovery (RFC 6675's rule 4).
    rescued: bool,
    /// CWR must be sent with the next new data (RFC 3168).
    reduced: bool,
    last_sent: Nanos,
    pub counts: Counts,
}

/// Event counters.
#[derive(Debug, Default, Clone, Copy)]
pub struct Counts {
    pub retransmitted: u64,
    pub timeouts: u64,
    pub fast_recoveries: u64,
    pub mark_reductions: u64,
}

/// An acknowledgment, in offsets.
#[derive(Debug)]
pub struct Ack<'a> {
    pub number: u64,
    /// Right edge of the peer's window: the offset after the last byte that it accepts.
    pub right_edge: u64,
    pub sack: &'a [Range<u64>],
    pub ece: bool,
    /// Round-trip time from the timestamp echo.
    pub rtt: Option<Nanos>,
    /// The segment has no payload, SYN or FIN.
    pub pure: bool,
}

/// A range of offsets to send.
#[derive(Debug, PartialEq, Eq)]
pub struct Piece {
    pub start: u64,
    /// Length of the payload in bytes.
    pub len: u32,
    pub fin: bool,
    /// The piece ends the written data.
    pub push: bool,
    /// The piece is not a retransmission.
    pub new: bool,
}

impl Sender {
    pub fn new(config: &Config) -> Self {
        let mss = config.mss;
        Self {
            mss: u64::from(mss),
            sack: config.sack && !config.is_netbench(),
            netbench: config.is_netbench(),
            congestion: config.congestion,
            board: Scoreboard::new(u64::from(mss)),
            phase: Phase::Open,
            controller: controller(config, mss),
            timer: Timer::new(config),
            usage: Usage::default(),
            written: 1,
            finished: false,
            right_edge: 1,
            duplicates: 0,
            recover: 0,
            force_retransmission: false,
            rescued: false,
            reduced: false,
            last_sent: 0,
            counts: Counts::default(),
        }
    }

    /// Applies the options that both SYNs offer.
    pub fn negotiate(&mut self, config: &Config, mss: u32) {
        self.mss = u64::from(mss);
        self.sack = config.sack && !self.netbench;
        self.board = Scoreboard::new(self.mss);
        self.controller = controller(config, mss);
    }

    /// Completes the handshake, with its round-trip time, if measured, and the number of SYNs sent.
    pub fn establish(&mut self, now: Nanos, rtt: Option<Nanos>, syns: u32, right_edge: u64) {
        if !self.netbench {
            self.timer.establish(rtt);
            if syns > 2 {
                self.controller.set_window(self.mss); // RFC 6928, section 2.
            }
        } else if syns > 1 {
            self.controller.set_threshold(2 * self.mss);
            self.controller.set_window(self.mss);
            self.timer.backoff = (syns - 1).min(MAX_TIMEOUTS);
        }
        self.right_edge = right_edge;
        self.last_sent = now;
    }

    /// Adds `bytes` to send.
    pub fn write(&mut self, bytes: u64) {
        self.written += bytes;
    }

    /// Ends the data.
    pub fn finish(&mut self) {
        self.finished = true;
    }

    pub fn board(&self) -> &Scoreboard {
        &self.board
    }

    pub fn is_finished(&self) -> bool {
        self.finished
    }

    pub fn smoothed_rtt(&self) -> Option<Nanos> {
        self.timer.rtt.smoothed()
    }

    pub fn rto(&self) -> Nanos {
        self.timer.value()
    }

    /// Returns the number of distinct bytes sent.
    pub fn sent(&self) -> u64 {
        self.board.sent().min(self.written) - 1
    }

    /// Returns the number of bytes acknowledged.
    pub fn acknowledged(&self) -> u64 {
        (self.board.acknowledged()).min(self.written) - 1
    }

    pub fn fin_sent(&self) -> bool {
        self.finished && self.board.sent() > self.written
    }

    pub fn fin_acknowledged(&self) -> bool {
        self.finished && self.board.acknowledged() > self.written
    }

    /// Returns true once if CWR must be sent.
    pub fn take_reduced(&mut self) -> bool {
        std::mem::take(&mut self.reduced)
    }

    /// Processes an acknowledgment, whose number must be at most SND.NXT.
    pub fn on_ack(&mut self, now: Nanos, ack: &Ack) {
        let before = self.board.acknowledged();
        if ack.number < before {
            return;
        }
        let mut sacked = 0;
        for block in ack.sack {
            if self.sack || matches!(self.phase, Phase::Loss { .. }) {
                sacked += self.board.sack(block.clone());
            } else if let Some((at, ambiguous)) = self.board.report(block.clone())
                && self.timer.is_plausible(now - at, ambiguous)
            {
                self.timer.sample(now - at);
            }
        }
        let progress = self.board.acknowledge(ack.number);
        let same_window = ack.right_edge <= self.right_edge;
        self.right_edge = self.right_edge.max(ack.right_edge);

        if progress.bytes > 0 {
            let known = progress.sent_at.map(|at| now - at);
            let usable = |&rtt: &Nanos| self.timer.is_plausible(rtt, progress.ambiguous);
            if let Some(rtt) = known.filter(usable).or(ack.rtt) {
                self.timer.sample(rtt);
            }
            self.timer.consecutive_timeouts = 0;
            self.deflate(progress.bytes);
        } else if self.board.flight() > 0
            && (sacked > 0 || (!self.sack && ack.pure && same_window))
            && !(self.netbench && ack.number == 1)
        {
            self.duplicates += 1;
        }
        self.controller
            .on_feedback(progress.bytes, ack.ece, ack.number, self.board.sent());

        let reduces_at_once = self.netbench && ack.ece;
        let grows =
            !reduces_at_once && self.phase.grows() && self.usage.is_limited(&self.controller);
        if self.phase.ends_with(ack.number) {
            self.leave_phase(progress.bytes);
        }
        self.find_losses(progress.bytes > 0);
        if reduces_at_once {
            self.counts.mark_reductions += 1;
            self.controller.on_marked();
        } else if ack.ece && self.phase == Phase::Open {
            self.reduce();
        }
        if grows && self.phase.grows() && progress.bytes > 0 {
            let rtt = self.timer.rtt.smoothed().unwrap_or(0);
            let max_growth = if self.netbench { self.mss } else { u64::MAX };
            self.controller.on_ack(Acked {
                now,
                bytes: progress.bytes.min(max_growth),
                rtt,
            });
        }
        if let Some(rate) = self.phase.rate() {
            let (pipe, threshold) = (self.board.pipe(), self.controller.threshold());
            let window = rate.window(progress.delivered + sacked, pipe, threshold, self.mss);
            self.controller.set_window(window);
        }
        if self.board.flight() == 0 {
            self.timer.deadline = None;
        } else if progress.bytes > 0 {
            self.timer.restart(now);
        }
    }

    /// Deflates the window on a partial acknowledgment without SACK, except for the missing segment (RFC 6582, section 3.2, step 3).
    fn deflate(&mut self, bytes: u64) {
        if self.phase.is_recovery() && !self.sack {
            let segments = u32::try_from(bytes.div_ceil(self.mss)).unwrap_or(u32::MAX);
            self.duplicates = self.duplicates.saturating_sub(segments.saturating_sub(1));
        } else {
            self.duplicates = 0;
        }
    }

    /// Ends a phase after an acknowledgment of `bytes`.
    fn leave_phase(&mut self, bytes: u64) {
        let threshold = self.controller.threshold();
        match self.phase {
            Phase::Open | Phase::Loss { .. } => {}
            Phase::Reducing { .. } | Phase::Recovery { rate: Some(_), .. } => {
                self.controller.set_window(threshold)
            }
            Phase::Recovery { rate: None, .. } => {
                // RFC 6582, section 3.2, step 3, option 1: no burst.
                let flight = if self.netbench {
                    self.board.flight() + bytes
                } else {
                    self.board.flight().max(self.mss)
                };
                self.controller.set_window(threshold.min(flight + self.mss));
                self.duplicates = 0;
            }
        }
        self.phase = Phase::Open;
    }

    fn find_losses(&mut self, advanced: bool) {
        if self.sack {
            self.board.find_losses();
        }
        match self.phase {
            Phase::Open | Phase::Reducing { .. } => {
                // RFC 6582, section 4: no fast retransmit of data that a timeout has retransmitted.
                let proven = self.duplicates >= DUP_THRESH
                    && (self.sack || self.board.acknowledged() > self.recover);
                if proven || self.board.is_missing() {
                    self.enter_recovery();
                }
            }
            Phase::Recovery { rate: None, .. } if advanced => {
                self.board.lose_first();
                self.force_retransmission = self.board.is_missing();
            }
            Phase::Recovery { .. } | Phase::Loss { .. } => {}
        }
    }

    /// Enters fast recovery.
    fn enter_recovery(&mut self) {
        self.counts.fast_recoveries += 1;
        if !self.board.is_missing() {
            self.board.lose_first();
        }
        let (flight, until) = (self.board.flight(), self.board.sent());
        // A loss and a mark in the same window are one event, except for DCTCP (RFC 8257, section 3.5).
        let rate = match self.phase {
            Phase::Reducing { rate, .. } if self.congestion != Congestion::Dctcp => rate,
            _ => {
                self.controller.on_event(Event::Loss, flight);
                if self.netbench {
                    self.halve(flight);
                }
                Rate::new(flight)
            }
        };
        if !self.sack {
            self.controller.set_window(self.controller.threshold());
        }
        self.phase = Phase::Recovery {
            until,
            rate: self.sack.then_some(rate),
        };
        self.recover = until;
        (self.force_retransmission, self.rescued, self.reduced) =
            (self.board.is_missing(), false, true);
    }

    /// Sets ssthresh to half of the flight, even if the flight exceeds the window (NetBench).
    fn halve(&mut self, flight: u64) {
        self.controller
            .set_threshold((flight / 2).max(2 * self.mss));
    }

    /// Reduces the window because of marks.
    fn reduce(&mut self) {
        self.counts.mark_reductions += 1;
        let flight = self.board.flight();
        self.controller.on_event(Event::Mark, flight);
        self.phase = Phase::Reducing {
            until: self.board.sent(),
            rate: Rate::new(flight.max(1)),
        };
        self.reduced = true;
    }

    /// Returns when the retransmission timer expires.
    pub fn timeout(&self) -> Option<Nanos> {
        self.timer.deadline
    }

    /// Processes a retransmission timeout (RFC 6298, sections 5.4 to 5.7; RFC 5681, section 3.1). Returns false if the connection fails.
    pub fn on_timeout(&mut self, now: Nanos) -> bool {
        if self.timer.deadline.is_none_or(|deadline| deadline > now) {
            return true;
        }
        if self.timer.consecutive_timeouts == MAX_TIMEOUTS && !self.netbench {
            return false;
        }
        self.counts.timeouts += 1;
        // At most once per window, as in Linux: a failed recovery has already reduced ssthresh.
        let is_reduced = match self.phase {
            Phase::Open => false,
            Phase::Loss { .. } => self.timer.consecutive_timeouts > 0,
            Phase::Reducing { .. } | Phase::Recovery { .. } => true,
        };
        if self.netbench {
            self.halve(self.board.flight_since_timeout());
        } else if !is_reduced {
            self.controller
                .on_event(Event::Timeout, self.board.flight());
        }
        self.controller.set_window(self.mss);
        self.board.lose_all();
        self.phase = Phase::Loss {
            until: self.board.sent(),
        };
        self.recover = self.board.sent();
        self.duplicates = 0;
        (self.force_retransmission, self.reduced) = (false, true);
        self.timer.back_off(MAX_TIMEOUTS);
        self.timer.restart(now);
        true
    }
}

fn controller(config: &Config, mss: u32) -> Controller {
    let mut controller = Controller::new(config.congestion, mss, config.initial_window);
    if let Some(segments) = config.initial_threshold {
        controller.set_threshold(u64::from(mss) * u64::from(segments));
    }
    if config.is_netbench() {
        controller.set_marked_share(0.0);
    }
    controller
}
