// SPDX-License-Identifier: Apache-2.0
//! The receiving half: reassembly, acknowledgments and the echo of marks.

use std::ops::Range;

use super::config::Config;
use super::segment::{Ecn, Flags, SackBlocks, Segment};
use super::sequence::Origin;
use crate::Nanos;
use crate::congestion::Congestion;
use crate::intervals::Intervals;

#[derive(Debug)]
pub struct Receiver {
    /// The peer's initial sequence number.
    pub origin: Origin,
    next: u64,
    beyond: Intervals,
    /// SACK blocks, the one with the latest segment first.
    sack_blocks: Vec<Range<u64>>,
    fin: Option<u64>,
    window: u64,
    acks: Acks,
    echo: Echo,
    timestamp: Option<u32>,
}

/// Pending acknowledgments.
#[derive(Debug)]
struct Acks {
    mss: u64,
    delay: Option<Nanos>,
    /// Number of acknowledgments to send at once: one for data in order, and one for each segment out of order.
    pending: u32,
    deadline: Option<Nanos>,
    last_sent: u64,
}

/// How marks are echoed to the sender.
#[derive(Debug)]
enum Echo {
    Off,
    /// Sets ECE until the sender sends CWR (RFC 3168).
    Rfc3168 {
        latched: bool,
    },
    /// Sets ECE on acknowledgments of marked segments. If the mark changes before an acknowledgment was sent, the earlier segments are
    /// acknowledged separately (RFC 8257, section 3.2).
    Dctcp {
        marked: bool,
        before: Option<(u64, bool)>,
    },
}

impl Receiver {
    /// Creates a receiver after the peer's `syn`.
    pub fn new(config: &Config, mss: u32, syn: &Segment) -> Self {
        Self {
            origin: Origin(syn.seq),
            next: 1,
            beyond: Intervals::default(),
            sack_blocks: Vec::new(),
            fin: None,
            window: config.receive_window,
            acks: Acks {
                mss: u64::from(mss),
                delay: config.delayed_ack,
                pending: 0,
                deadline: None,
                last_sent: 0,
            },
            echo: Echo::Off,
            timestamp: config.timestamps.then(|| syn.ts.map(|ts| ts.val)).flatten(),
        }
    }

    /// Enables the echo of marks after ECN was negotiated.
    pub fn echo_marks(&mut self, congestion: Congestion) {
        self.echo = match congestion {
            Congestion::Dctcp => Echo::Dctcp {
                marked: false,
                before: None,
            },
            Congestion::NewReno | Congestion::Cubic => Echo::Rfc3168 { latched: false },
        };
    }

    /// Returns RCV.NXT.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Returns the number of bytes received in order.
    pub fn readable(&self) -> u64 {
        self.next - 1 - u64::from(self.is_finished())
    }

    /// Returns true if the peer's FIN and all data before it have arrived.
    pub fn is_finished(&self) -> bool {
        self.fin.is_some_and(|fin| self.next > fin)
    }

    /// Returns RCV.WND. The application reads at once, so only the configuration limits it.
    pub fn window(&self) -> u64 {
        self.window
    }

    /// Returns TS.Recent, if the connection uses timestamps.
    pub fn timestamp(&self) -> Option<u32> {
        self.timestamp
    }

    /// Returns true if PAWS rejects the segment: its timestamp is older than TS.Recent (RFC 7323, section 5.3).
    pub fn is_stale(&self, segment: &Segment) -> bool {
        matches!((self.timestamp, segment.ts), (Some(recent), Some(ts)) if is_before(ts.val, recent))
    }

    /// Updates TS.Recent with the timestamp of the segment that the next acknowledgment answers (section 4.3).
    pub fn note_timestamp(&mut self, start: u64, segment: &Segment) {
        if let (Some(recent), Some(ts)) = (&mut self.timestamp, segment.ts)
            && start <= self.acks.last_sent
            && !is_before(ts.val, *recent)
        {
            *recent = ts.val;
        }
    }

    /// Processes a segment's payload and FIN, which start at offset `start`.
    pub fn receive(&mut self, now: Nanos, start: u64, segment: &Segment) {
        let fin = segment.flags.has(Flags::FIN);
        let end = start + u64::from(segment.len) + u64::from(fin);
        if end == start {
            return;
        }
        self.note_mark(segment);
        if fin {
            self.fin = Some(end - 1);
        }
        if end <= self.next || start > self.next + self.window {
            self.acks.pending += 1;
        } else if start > self.next {
            self.store(start..end);
            self.acks.pending += 1;
        } else {
            let gap = !self.beyond.is_empty();
            self.advance(end);
            if gap || self.is_finished() {
                self.acks.pending = 1;
            } else {
                self.acks.in_order(now, self.next);
            }
        }
    }

    fn note_mark(&mut self, segment: &Segment) {
        let ce = segment.ecn == Ecn::Ce;
        match &mut self.echo {
            Echo::Off => {}
            Echo::Rfc3168 { latched } => {
                *latched = ce || (*latched && !segment.flags.has(Flags::CWR))
            }
            Echo::Dctcp { marked, before } => {
                if ce != *marked {
                    if self.acks.deadline.is_some() {
                        *before = Some((self.next, *marked));
                        self.acks.deadline = None;
                        self.acks.last_sent = self.next;
                    }
                    *marked = ce;
                }
            }
        }
    }

    /// Stores a segment beyond a gap.
    fn store(&mut self, range: Range<u64>) {
        let whole = self.beyond.insert(range);
        self.sack_blocks
            .retain(|block| block.end < whole.start || block.start > whole.end);
        self.sack_blocks.insert(0, whole);
        self.sack_blocks.truncate(SackBlocks::MAX);
    }

    fn advance(&mut self, end: u64) {
        self.next = end;
        while self
            .beyond
            .lowest()
            .is_some_and(|lowest| lowest.start <= self.next)
        {
            if let Some(lowest) = self.beyond.pop_lowest() {
                self.next = self.next.max(lowest.end);
            }
        }
        if !self.sack_blocks.is_empty() {
            self.sack_blocks.retain(|block| block.end > self.next);
        }
    }

    /// Returns the SACK blocks (RFC 2018) as sequence numbers.
    pub fn sack_blocks(&self) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        for block in &self.sack_blocks {
            blocks.push(
                self.origin.number(block.start),
                self.origin.number(block.end),
            );
        }
        blocks
    }

    /// Schedules an additional acknowledgment.
    pub fn queue_ack(&mut self) {
        self.acks.pending += 1;
    }

    /// Returns the number and mark of an earlier acknowledgment that must be sent separately, if there is one.
    pub fn take_earlier_ack(&mut self) -> Option<(u64, bool)> {
        match &mut self.echo {
            Echo::Dctcp { before, .. } => before.take(),
            Echo::Off | Echo::Rfc3168 { .. } => None,
        }
    }

    /// Returns true if an acknowledgment must be sent even without data.
    pub fn has_pending_ack(&self) -> bool {
        self.acks.pending > 0
    }

    /// Returns the ECE flag of the next acknowledgments.
    pub fn ece(&self) -> bool {
        match self.echo {
            Echo::Off => false,
            Echo::Rfc3168 { latched } => latched,
            Echo::Dctcp { marked, .. } => marked,
        }
    }

    /// Records that a segment with RCV.NXT is sent.
    pub fn acknowledged(&mut self) {
        self.acks.pending = self.acks.pending.saturating_sub(1);
        self.acks.deadline = None;
        self.acks.last_sent = self.next;
    }

    /// Returns when a delayed acknowledgment is due.
    pub fn timeout(&self) -> Option<Nanos> {
        self.acks.deadline
    }

    pub fn on_timeout(&mut self, now: Nanos) {
        if self.acks.deadline.is_some_and(|deadline| deadline <= now) {
            self.acks.deadline = None;
            self.acks.pending = 1;
        }
    }
}

impl Acks {
    /// Schedules the acknowledgment of data in order (RFC 5681, section 4.2): at the latest with the second segment. As in Linux, that is
    /// when more than one full segment is unacknowledged.
    fn in_order(&mut self, now: Nanos, next: u64) {
        match self.delay {
            Some(delay) if next - self.last_sent <= self.mss => {
                self.deadline.get_or_insert(now + delay);
            }
            _ => self.pending = 1,
        }
    }
}

/// Compares 32-bit serial numbers.
fn is_before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}
