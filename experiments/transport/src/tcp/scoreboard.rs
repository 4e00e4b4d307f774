//! What is in the network: the segments sent and not yet acknowledged, and what became of them
//! (RFC 6675, sections 3 and 4).

use std::collections::VecDeque;
use std::ops::Range;

use crate::Nanos;
use crate::intervals::Intervals;

/// Segments in order. Their bounds never change: a segment is retransmitted as it was sent.
#[derive(Debug)]
pub struct Scoreboard {
    mss: u64,
    acknowledged: u64,
    sent: u64,
    segments: VecDeque<Outstanding>,
    /// How many segments were taken off the front: indices below count from the first ever.
    taken: u64,
    sacked: Intervals,
    pipe: u64,
    /// Lost and not retransmitted.
    missing: u64,
    /// Up to where losses were looked for: none is found twice.
    searched: u64,
    /// The segment after the last retransmitted one: HighRxt.
    next_retransmission: u64,
}

#[derive(Debug)]
struct Outstanding {
    start: u64,
    end: u64,
    sent_at: Nanos,
    /// How many copies are thought to be in the network.
    copies: u8,
    lost: bool,
    sacked: bool,
    /// A SACK block told of it that did not count yet.
    noted: bool,
    retransmitted: bool,
}

/// What an acknowledgement number told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes by which the acknowledgement number grew.
    pub bytes: u64,
    /// Those that no SACK block had told of.
    pub delivered: u64,
    /// When the first of those segments was last sent.
    pub sent_at: Option<Nanos>,
    /// One of the segments was retransmitted, so that it is not known which copy arrived (Karn's algorithm).
    pub ambiguous: bool,
}

/// A segment to send again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    pub start: u64,
    pub end: u64,
    index: usize,
}

impl Scoreboard {
    /// Begins at offset 1, after the SYN.
    pub fn new(mss: u64) -> Self {
        Self {
            mss,
            acknowledged: 1,
            sent: 1,
            segments: VecDeque::new(),
            taken: 0,
            sacked: Intervals::default(),
            pipe: 0,
            missing: 0,
            searched: 1,
            next_retransmission: 0,
        }
    }

    /// SND.UNA.
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// SND.NXT.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// FlightSize: what is sent and not acknowledged, be it lost or SACKed.
    pub fn flight(&self) -> u64 {
        self.sent - self.acknowledged
    }

    /// The same if a timeout takes SND.NXT back, as NetBench has it: up to the end of what was sent since the last one.
    pub fn flight_since_timeout(&self) -> u64 {
        let mut from_last = self.segments.iter().rev();
        let last = from_last.find(|segment| segment.copies > 0 && !segment.sacked);
        last.map_or(0, |segment| segment.end - self.acknowledged)
    }

    /// RFC 6675's pipe: bytes thought to be in the network.
    pub fn pipe(&self) -> u64 {
        self.pipe
    }

    /// Whether something is lost that was not retransmitted.
    pub fn is_missing(&self) -> bool {
        self.missing > 0
    }

    /// New data of so many sequence numbers goes out.
    pub fn send(&mut self, now: Nanos, length: u64) -> Range<u64> {
        let start = self.sent;
        self.sent += length;
        self.pipe += length;
        self.segments.push_back(Outstanding {
            start,
            end: self.sent,
            sent_at: now,
            copies: 1,
            lost: false,
            sacked: false,
            noted: false,
            retransmitted: false,
        });
        start..self.sent
    }

    /// Takes off what is below `number`, which is at most [`sent`](Self::sent).
    pub fn acknowledge(&mut self, number: u64) -> Progress {
        let mut progress = Progress::default();
        if number <= self.acknowledged {
            return progress;
        }
        progress.bytes = number - self.acknowledged;
        self.acknowledged = number;
        while let Some(front) = self
            .segments
            .front_mut()
            .filter(|front| front.start < number)
        {
            let gone = number.min(front.end) - front.start;
            progress.ambiguous |= front.retransmitted;
            if !front.sacked {
                progress.delivered += gone;
                self.pipe -= gone * u64::from(front.copies);
                self.missing -= if front.is_missing() { gone } else { 0 };
                progress.sent_at.get_or_insert(front.sent_at);
            }
            if front.end > number {
                front.start = number;
                break;
            }
            self.segments.pop_front();
            self.taken += 1;
        }
        if !self.sacked.is_empty() {
            self.sacked.remove_below(number);
        }
        progress
    }

    /// Takes a SACK block, which lies between acknowledged and sent. Returns the bytes that are new.
    /// Segments of which it has only a part do not count.
    pub fn sack(&mut self, block: Range<u64>) -> u64 {
        let from = self.sacked.end_of_run(block.start);
        let first = self
            .segments
            .partition_point(|segment| segment.start < from);
        let mut news = 0;
        for segment in self.segments.range_mut(first..) {
            if segment.end > block.end {
                break;
            }
            if !segment.sacked {
                let length = segment.length();
                self.pipe -= length * u64::from(segment.copies);
                self.missing -= if segment.is_missing() { length } else { 0 };
                (segment.sacked, segment.copies) = (true, 0);
                self.sacked.insert(segment.start..segment.end);
                news += length;
            }
        }
        news
    }

    /// Takes a SACK block that counts after a timeout only. Of the segments that it tells of first, gives when the last was sent, and whether more than once.
    pub fn note(&mut self, block: Range<u64>) -> Option<(Nanos, bool)> {
        let first = self
            .segments
            .partition_point(|segment| segment.start < block.start);
        let told = self.segments.range_mut(first..);
        let mut sent_at = None;
        for segment in told.take_while(|segment| segment.end <= block.end) {
            if !std::mem::replace(&mut segment.noted, true) {
                sent_at = Some((segment.sent_at, segment.retransmitted));
            }
        }
        sent_at
    }

    /// RFC 6675's IsLost: what has three intervals, or more than two segments, SACKed above it.
    pub fn find_losses(&mut self) {
        let (mut intervals, mut bytes) = (0, 0);
        let third = self.sacked.descending().find(|interval| {
            intervals += 1;
            bytes += interval.end - interval.start;
            intervals == 3 || bytes > 2 * self.mss
        });
        if let Some(bound) = third.map(|interval| interval.start) {
            self.lose(bound);
        }
    }

    /// The first segment is lost: three duplicate acknowledgements, or NewReno's partial one.
    pub fn lose_first(&mut self) {
        if let Some(front) = self.segments.front() {
            self.lose(front.end);
        }
    }

    /// All that was not SACKed is lost: a timeout. Retransmission begins anew.
    pub fn lose_all(&mut self) {
        self.next_retransmission = self.taken;
        for segment in self.segments.iter_mut().filter(|segment| segment.noted) {
            segment.copies = 0;
            if !std::mem::replace(&mut segment.sacked, true) {
                self.sacked.insert(segment.start..segment.end);
            }
        }
        for segment in self.segments.iter_mut().filter(|segment| !segment.sacked) {
            segment.lost = true;
            segment.copies = 0;
        }
        self.searched = self.sent;
        self.pipe = 0;
        let unsacked = self.segments.iter().filter(|segment| !segment.sacked);
        self.missing = unsacked.map(Outstanding::length).sum();
    }

    fn lose(&mut self, bound: u64) {
        if bound <= self.searched {
            return;
        }
        let searched = self.searched;
        let first = self
            .segments
            .partition_point(|segment| segment.start < searched);
        for segment in self
            .segments
            .range_mut(first..)
            .take_while(|segment| segment.end <= bound)
        {
            if !segment.sacked {
                segment.lost = true;
                segment.copies -= 1;
                let length = segment.length();
                self.pipe -= length;
                self.missing += if segment.copies == 0 { length } else { 0 };
            }
        }
        self.searched = bound;
    }

    /// RFC 6675's NextSeg, rule 1: the first lost segment above the last retransmitted one; and if
    /// `unproven`, rule 3: the first that is below a SACKed one.
    pub fn candidate(&self, unproven: bool) -> Option<Candidate> {
        let first = self.next_retransmission.saturating_sub(self.taken) as usize;
        let highest = self.sacked.end().unwrap_or(0);
        let mut above = self
            .segments
            .iter()
            .enumerate()
            .skip(first)
            .filter(|(_, segment)| !segment.sacked);
        above
            .find(|(_, segment)| segment.is_missing() || !segment.lost)
            .filter(|(_, segment)| segment.lost || (unproven && segment.end < highest))
            .map(|(index, segment)| segment.candidate(index))
    }

    /// Rule 4: the last segment, if it is not SACKed.
    pub fn last(&self) -> Option<Candidate> {
        let last = self
            .segments
            .back()
            .filter(|segment| !segment.sacked && segment.copies == 1)?;
        Some(last.candidate(self.segments.len() - 1))
    }

    /// A segment goes out again. `moves` HighRxt, but for the last one (rule 4).
    pub fn retransmit(&mut self, now: Nanos, candidate: Candidate, moves: bool) {
        let segment = &mut self.segments[candidate.index];
        let length = segment.length();
        self.missing -= if segment.is_missing() { length } else { 0 };
        self.pipe += length;
        segment.copies += 1;
        segment.retransmitted = true;
        segment.sent_at = now;
        if moves {
            self.next_retransmission = self.taken + candidate.index as u64 + 1;
        }
    }
}

impl Outstanding {
    fn length(&self) -> u64 {
        self.end - self.start
    }

    fn is_missing(&self) -> bool {
        self.lost && self.copies == 0 && !self.sacked
    }

    fn candidate(&self, index: usize) -> Candidate {
        Candidate {
            start: self.start,
            end: self.end,
            index,
        }
    }
}

impl Candidate {
    /// Whether it is the first outstanding segment.
    pub fn is_first(&self) -> bool {
        self.index == 0
    }
}

#[cfg(test)]
mod tests;
