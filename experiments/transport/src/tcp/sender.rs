//! The sending half: what may be sent now, and what acknowledgements and timeouts do to that.

mod timer;
mod transmit;

use std::ops::Range;

use super::config::Config;
use super::recovery::{Phase, Rate};
use super::scoreboard::Scoreboard;
use crate::Nanos;
use crate::congestion::{Acked, Congestion, Controller, Event, Usage};
use timer::Timer;

/// Duplicate acknowledgements that prove a loss.
const DUP_THRESH: u32 = 3;

/// Timeouts in a row after which the connection is given up: Linux's tcp_retries2.
const MOST_TIMEOUTS: u32 = 15;

#[derive(Debug)]
pub struct Sender {
    mss: u64,
    /// Whether recovery is by SACK.
    sack: bool,
    /// Whether it is as NetBench has it ([`Model`](super::config::Model)).
    netbench: bool,
    congestion: Congestion,
    board: Scoreboard,
    phase: Phase,
    pub controller: Controller,
    timer: Timer,
    usage: Usage,
    /// The offset after the last byte written.
    written: u64,
    finished: bool,
    /// The offset after the last that the peer takes.
    right_edge: u64,
    duplicates: u32,
    /// SND.NXT at the last loss event: RFC 6582's `recover`.
    recover: u64,
    /// A retransmission that does not wait for room in the window.
    at_once: bool,
    /// The last segment was retransmitted in this recovery (RFC 6675's rule 4).
    rescued: bool,
    /// To be told to the peer with the next new data (RFC 3168).
    reduced: bool,
    last_sent: Nanos,
    pub counts: Counts,
}

/// How often what happened.
#[derive(Debug, Default, Clone, Copy)]
pub struct Counts {
    pub retransmitted: u64,
    pub timeouts: u64,
    pub fast_recoveries: u64,
    pub mark_reductions: u64,
}

/// An acknowledgement, in offsets.
#[derive(Debug)]
pub struct Ack<'a> {
    pub number: u64,
    /// The offset after the last that the peer takes.
    pub right_edge: u64,
    pub sack: &'a [Range<u64>],
    pub ece: bool,
    /// By the timestamp's echo.
    pub rtt: Option<Nanos>,
    /// Without payload, SYN or FIN.
    pub pure: bool,
}

/// A stretch of offsets to send.
#[derive(Debug, PartialEq, Eq)]
pub struct Piece {
    pub start: u64,
    /// Payload bytes.
    pub len: u32,
    pub fin: bool,
    /// Nothing that was written remains behind it.
    pub push: bool,
    /// Sent for the first time.
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
            at_once: false,
            rescued: false,
            reduced: false,
            last_sent: 0,
            counts: Counts::default(),
        }
    }

    /// The peer's SYN came: what both ends can do.
    pub fn agree(&mut self, config: &Config, mss: u32) {
        self.mss = u64::from(mss);
        self.sack = config.sack && !self.netbench;
        self.board = Scoreboard::new(self.mss);
        self.controller = controller(config, mss);
    }

    /// The handshake is over: its round trip, if it was measured, and how often the SYN was sent.
    pub fn establish(&mut self, now: Nanos, rtt: Option<Nanos>, syns: u32, right_edge: u64) {
        if !self.netbench {
            self.timer.establish(rtt);
            if syns > 2 {
                self.controller.set_window(self.mss); // RFC 6928, section 2.
            }
        } else if syns > 1 {
            self.controller.set_threshold(2 * self.mss);
            self.controller.set_window(self.mss);
            self.timer.backoff = (syns - 1).min(MOST_TIMEOUTS);
        }
        self.right_edge = right_edge;
        self.last_sent = now;
    }

    /// `bytes` more are to be sent.
    pub fn write(&mut self, bytes: u64) {
        self.written += bytes;
    }

    /// Nothing is written any more.
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

    /// Bytes sent at least once.
    pub fn sent(&self) -> u64 {
        self.board.sent().min(self.written) - 1
    }

    /// Bytes acknowledged.
    pub fn acknowledged(&self) -> u64 {
        (self.board.acknowledged()).min(self.written) - 1
    }

    pub fn fin_sent(&self) -> bool {
        self.finished && self.board.sent() > self.written
    }

    pub fn fin_acknowledged(&self) -> bool {
        self.finished && self.board.acknowledged() > self.written
    }

    /// Takes whether the peer is to be told that the window was reduced.
    pub fn take_reduced(&mut self) -> bool {
        std::mem::take(&mut self.reduced)
    }

    /// An acknowledgement of no more than was sent.
    pub fn on_ack(&mut self, now: Nanos, ack: &Ack) {
        let before = self.board.acknowledged();
        if ack.number < before {
            return;
        }
        let mut sacked = 0;
        for block in ack.sack {
            if self.sack || matches!(self.phase, Phase::Loss { .. }) {
                sacked += self.board.sack(block.clone());
            } else if let Some((at, ambiguous)) = self.board.note(block.clone())
                && self.timer.may_be(now - at, ambiguous)
            {
                self.timer.sample(now - at);
            }
        }
        let progress = self.board.acknowledge(ack.number);
        let same_window = ack.right_edge <= self.right_edge;
        self.right_edge = self.right_edge.max(ack.right_edge);

        if progress.bytes > 0 {
            let known = progress.sent_at.map(|at| now - at);
            let usable = |&rtt: &Nanos| self.timer.may_be(rtt, progress.ambiguous);
            if let Some(rtt) = known.filter(usable).or(ack.rtt) {
                self.timer.sample(rtt);
            }
            self.timer.in_vain = 0;
            self.deflate(progress.bytes);
        } else if self.board.flight() > 0
            && (sacked > 0 || (!self.sack && ack.pure && same_window))
            && !(self.netbench && ack.number == 1)
        {
            self.duplicates += 1;
        }
        self.controller
            .on_feedback(progress.bytes, ack.ece, ack.number, self.board.sent());

        let at_once = self.netbench && ack.ece;
        let grows = !at_once && self.phase.grows() && self.usage.is_limited(&self.controller);
        if self.phase.ends_with(ack.number) {
            self.leave(progress.bytes);
        }
        self.find_losses(progress.bytes > 0);
        if at_once {
            self.counts.mark_reductions += 1;
            self.controller.on_marked();
        } else if ack.ece && self.phase == Phase::Open {
            self.reduce();
        }
        if grows && self.phase.grows() && progress.bytes > 0 {
            let rtt = self.timer.rtt.smoothed().unwrap_or(0);
            let most = if self.netbench { self.mss } else { u64::MAX };
            self.controller.on_ack(Acked {
                now,
                bytes: progress.bytes.min(most),
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

    /// Without SACK, a partial acknowledgement takes back what duplicates have inflated, but for
    /// the segment that was missing (RFC 6582, section 3.2, step 3).
    fn deflate(&mut self, bytes: u64) {
        if self.phase.is_recovery() && !self.sack {
            let segments = u32::try_from(bytes.div_ceil(self.mss)).unwrap_or(u32::MAX);
            self.duplicates = self.duplicates.saturating_sub(segments.saturating_sub(1));
        } else {
            self.duplicates = 0;
        }
    }

    /// The end of a phase, by an acknowledgement of so many bytes.
    fn leave(&mut self, bytes: u64) {
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
                // RFC 6582, section 4: no fast retransmit for what a timeout has sent again.
                let proven = self.duplicates >= DUP_THRESH
                    && (self.sack || self.board.acknowledged() > self.recover);
                if proven || self.board.is_missing() {
                    self.recover();
                }
            }
            Phase::Recovery { rate: None, .. } if advanced => {
                self.board.lose_first();
                self.at_once = self.board.is_missing();
            }
            Phase::Recovery { .. } | Phase::Loss { .. } => {}
        }
    }

    /// Enters fast recovery.
    fn recover(&mut self) {
        self.counts.fast_recoveries += 1;
        if !self.board.is_missing() {
            self.board.lose_first();
        }
        let (flight, until) = (self.board.flight(), self.board.sent());
        // A loss and a mark of the same window are one event, but not to DCTCP (RFC 8257, 3.5).
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
        (self.at_once, self.rescued, self.reduced) = (self.board.is_missing(), false, true);
    }

    /// ssthresh becomes half of what is in flight, be it more than the window (NetBench).
    fn halve(&mut self, flight: u64) {
        self.controller
            .set_threshold((flight / 2).max(2 * self.mss));
    }

    /// Brings the window down for marks.
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

    /// When the retransmission timer fires.
    pub fn timeout(&self) -> Option<Nanos> {
        self.timer.deadline
    }

    /// RFC 6298, section 5.4 to 5.7; RFC 5681, section 3.1. Gives false if it was the last try.
    pub fn on_timeout(&mut self, now: Nanos) -> bool {
        if self.timer.deadline.is_none_or(|deadline| deadline > now) {
            return true;
        }
        if self.timer.in_vain == MOST_TIMEOUTS && !self.netbench {
            return false;
        }
        self.counts.timeouts += 1;
        // Once a window, as in Linux: a recovery that fails has already reduced ssthresh.
        let again = match self.phase {
            Phase::Open => false,
            Phase::Loss { .. } => self.timer.in_vain > 0,
            Phase::Reducing { .. } | Phase::Recovery { .. } => true,
        };
        if self.netbench {
            self.halve(self.board.flight_since_timeout());
        } else if !again {
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
        (self.at_once, self.reduced) = (false, true);
        self.timer.back_off(MOST_TIMEOUTS);
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
