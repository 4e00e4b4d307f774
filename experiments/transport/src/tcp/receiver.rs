//! The receiving half: reassembly, what to acknowledge and when, and the echo of marks.

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
    /// SACK blocks, that of the latest segment first.
    recent: Vec<Range<u64>>,
    fin: Option<u64>,
    window: u64,
    acks: Acks,
    echo: Echo,
    timestamp: Option<u32>,
}

/// Acknowledgements to be sent.
#[derive(Debug)]
struct Acks {
    mss: u64,
    delay: Option<Nanos>,
    /// To be sent at once: one for what is in order, and one for each segment that is not.
    owed: u32,
    deadline: Option<Nanos>,
    last_sent: u64,
}

/// How marks go back to the sender.
#[derive(Debug)]
enum Echo {
    Off,
    /// ECE until the sender says CWR (RFC 3168).
    Classic {
        latched: bool,
    },
    /// ECE says whether the acknowledged segments were marked. Where that changes before an
    /// acknowledgement was sent, it is sent for what came before (RFC 8257, section 3.2).
    Precise {
        marked: bool,
        before: Option<(u64, bool)>,
    },
}

impl Receiver {
    /// After a SYN with that sequence number.
    pub fn new(config: &Config, mss: u32, syn: &Segment) -> Self {
        Self {
            origin: Origin(syn.seq),
            next: 1,
            beyond: Intervals::default(),
            recent: Vec::new(),
            fin: None,
            window: config.receive_window,
            acks: Acks {
                mss: u64::from(mss),
                delay: config.delayed_ack,
                owed: 0,
                deadline: None,
                last_sent: 0,
            },
            echo: Echo::Off,
            timestamp: config.timestamps.then(|| syn.ts.map(|ts| ts.val)).flatten(),
        }
    }

    /// Both ends know ECN.
    pub fn echo_marks(&mut self, congestion: Congestion) {
        self.echo = match congestion {
            Congestion::Dctcp => Echo::Precise {
                marked: false,
                before: None,
            },
            Congestion::NewReno | Congestion::Cubic => Echo::Classic { latched: false },
        };
    }

    /// RCV.NXT.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Bytes received in order.
    pub fn readable(&self) -> u64 {
        self.next - 1 - u64::from(self.is_finished())
    }

    /// Whether the peer's FIN and all before it have arrived.
    pub fn is_finished(&self) -> bool {
        self.fin.is_some_and(|fin| self.next > fin)
    }

    /// RCV.WND: the application reads at once, so only the configuration bounds it.
    pub fn window(&self) -> u64 {
        self.window
    }

    /// TS.Recent, if the connection has timestamps.
    pub fn timestamp(&self) -> Option<u32> {
        self.timestamp
    }

    /// PAWS: whether a timestamp is older than one that came in order (RFC 7323, section 5.3).
    pub fn is_stale(&self, segment: &Segment) -> bool {
        matches!((self.timestamp, segment.ts), (Some(recent), Some(ts)) if is_before(ts.val, recent))
    }

    /// TS.Recent is that of the segment that the next acknowledgement answers (section 4.3).
    pub fn note_timestamp(&mut self, start: u64, segment: &Segment) {
        if let (Some(recent), Some(ts)) = (&mut self.timestamp, segment.ts)
            && start <= self.acks.last_sent
            && !is_before(ts.val, *recent)
        {
            *recent = ts.val;
        }
    }

    /// Takes a segment's payload and FIN, which begin at offset `start`.
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
            self.acks.owed += 1;
        } else if start > self.next {
            self.keep(start..end);
            self.acks.owed += 1;
        } else {
            let gap = !self.beyond.is_empty();
            self.advance(end);
            if gap || self.is_finished() {
                self.acks.owed = 1;
            } else {
                self.acks.in_order(now, self.next);
            }
        }
    }

    fn note_mark(&mut self, segment: &Segment) {
        let ce = segment.ecn == Ecn::Ce;
        match &mut self.echo {
            Echo::Off => {}
            Echo::Classic { latched } => {
                *latched = ce || (*latched && !segment.flags.has(Flags::CWR))
            }
            Echo::Precise { marked, before } => {
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

    /// A segment beyond a gap.
    fn keep(&mut self, range: Range<u64>) {
        let whole = self.beyond.insert(range);
        self.recent
            .retain(|block| block.end < whole.start || block.start > whole.end);
        self.recent.insert(0, whole);
        self.recent.truncate(SackBlocks::MOST);
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
        if !self.recent.is_empty() {
            self.recent.retain(|block| block.end > self.next);
        }
    }

    /// RFC 2018's blocks, as sequence numbers.
    pub fn sack_blocks(&self) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        for block in &self.recent {
            blocks.push(
                self.origin.number(block.start),
                self.origin.number(block.end),
            );
        }
        blocks
    }

    /// An acknowledgement beyond what segments ask for.
    pub fn owe(&mut self) {
        self.acks.owed += 1;
    }

    /// An acknowledgement to be sent on its own before any other, with an older number and mark.
    pub fn take_earlier_ack(&mut self) -> Option<(u64, bool)> {
        match &mut self.echo {
            Echo::Precise { before, .. } => before.take(),
            Echo::Off | Echo::Classic { .. } => None,
        }
    }

    /// Whether to send an acknowledgement even without data.
    pub fn owes(&self) -> bool {
        self.acks.owed > 0
    }

    /// ECE of the acknowledgements to come.
    pub fn ece(&self) -> bool {
        match self.echo {
            Echo::Off => false,
            Echo::Classic { latched } => latched,
            Echo::Precise { marked, .. } => marked,
        }
    }

    /// A segment with RCV.NXT is being sent.
    pub fn acknowledged(&mut self) {
        self.acks.owed = self.acks.owed.saturating_sub(1);
        self.acks.deadline = None;
        self.acks.last_sent = self.next;
    }

    /// When a delayed acknowledgement is due.
    pub fn timeout(&self) -> Option<Nanos> {
        self.acks.deadline
    }

    pub fn on_timeout(&mut self, now: Nanos) {
        if self.acks.deadline.is_some_and(|deadline| deadline <= now) {
            self.acks.deadline = None;
            self.acks.owed = 1;
        }
    }
}

impl Acks {
    /// RFC 5681, section 4.2: at the latest with the second segment. As in Linux, that is when more
    /// than one full segment is unacknowledged.
    fn in_order(&mut self, now: Nanos, next: u64) {
        match self.delay {
            Some(delay) if next - self.last_sent <= self.mss => {
                self.deadline.get_or_insert(now + delay);
            }
            _ => self.owed = 1,
        }
    }
}

/// In the circle of 32-bit numbers.
fn is_before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}
