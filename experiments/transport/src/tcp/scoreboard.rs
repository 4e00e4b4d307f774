// SPDX-License-Identifier: Apache-2.0
//! The scoreboard: state of the segments that were sent but not acknowledged (RFC 6675, sections 3 and 4).

use std::collections::VecDeque;
use std::ops::Range;

use crate::Nanos;
use crate::intervals::Intervals;

/// The outstanding segments in order. Their bounds never change: a retransmission has the bounds of the original.
#[derive(Debug)]
pub struct Scoreboard {
    mss: u64,
    acknowledged: u64,
    sent: u64,
    segments: VecDeque<Outstanding>,
    /// Number of segments removed from the front. `next_retransmission` counts from the first segment ever sent.
    removed: u64,
    sacked: Intervals,
    pipe: u64,
    /// Bytes lost and not retransmitted.
    missing: u64,
    /// End of the data that was searched for losses, so that each is found once.
    searched: u64,
    /// Index of the segment after the last retransmitted one (HighRxt).
    next_retransmission: u64,
}

#[derive(Debug)]
struct Outstanding {
    start: u64,
    end: u64,
    sent_at: Nanos,
    /// Number of copies believed to be in the network.
    copies: u8,
    lost: bool,
    sacked: bool,
    /// A SACK block has reported the segment, but counts only after a timeout (NetBench).
    reported: bool,
    retransmitted: bool,
}

/// Effect of an acknowledgment number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes by which the acknowledgment number advanced.
    pub bytes: u64,
    /// Bytes of these that had not been SACKed.
    pub delivered: u64,
    /// Time when the first of these segments was last sent.
    pub sent_at: Option<Nanos>,
    /// A segment was retransmitted, so it is unknown which copy arrived (Karn's algorithm).
    pub ambiguous: bool,
}

/// A segment to retransmit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    pub start: u64,
    pub end: u64,
    index: usize,
}

impl Scoreboard {
    /// Creates a scoreboard that starts at offset 1, after the SYN.
    pub fn new(mss: u64) -> Self {
        Self {
            mss,
            acknowledged: 1,
            sent: 1,
            segments: VecDeque::new(),
            removed: 0,
            sacked: Intervals::default(),
            pipe: 0,
            missing: 0,
            searched: 1,
            next_retransmission: 0,
        }
    }

    /// Returns SND.UNA.
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// Returns SND.NXT.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Returns FlightSize: data sent but not acknowledged, including lost and SACKed data.
    pub fn flight(&self) -> u64 {
        self.sent - self.acknowledged
    }

    /// Returns the flight in NetBench, where a timeout sets SND.NXT back: up to the end of the data sent since the last timeout.
    pub fn flight_since_timeout(&self) -> u64 {
        let mut from_last = self.segments.iter().rev();
        let last = from_last.find(|segment| segment.copies > 0 && !segment.sacked);
        last.map_or(0, |segment| segment.end - self.acknowledged)
    }

    /// Returns RFC 6675's pipe: bytes believed to be in the network.
    pub fn pipe(&self) -> u64 {
        self.pipe
    }

    /// Returns true if data is lost and not retransmitted.
    pub fn is_missing(&self) -> bool {
        self.missing > 0
    }

    /// Records new data of `length` sequence numbers; returns its offsets.
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
            reported: false,
            retransmitted: false,
        });
        start..self.sent
    }

    /// Removes data below `number`, which must be at most [`sent`](Self::sent).
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
            let removed = number.min(front.end) - front.start;
            progress.ambiguous |= front.retransmitted;
            if !front.sacked {
                progress.delivered += removed;
                self.pipe -= removed * u64::from(front.copies);
                self.missing -= if front.is_missing() { removed } else { 0 };
                progress.sent_at.get_or_insert(front.sent_at);
            }
            if front.end > number {
                front.start = number;
                break;
            }
            self.segments.pop_front();
            self.removed += 1;
        }
        if !self.sacked.is_empty() {
            self.sacked.remove_below(number);
        }
        progress
    }

    /// Processes a SACK block, which must lie between acknowledged and sent. Returns the number of newly SACKed bytes.
    ///
    /// Partially SACKed segments do not count.
    pub fn sack(&mut self, block: Range<u64>) -> u64 {
        let from = self.sacked.end_of_run(block.start);
        let first = self
            .segments
            .partition_point(|segment| segment.start < from);
        let mut newly_sacked = 0;
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
                newly_sacked += length;
            }
        }
        newly_sacked
    }

    /// Records a SACK block that counts only after a timeout.
    ///
    /// Returns the time when the last newly reported segment was sent, and true if it was retransmitted.
    pub fn report(&mut self, block: Range<u64>) -> Option<(Nanos, bool)> {
        let first = self
            .segments
            .partition_point(|segment| segment.start < block.start);
        let covered = self.segments.range_mut(first..);
        let mut sent_at = None;
        for segment in covered.take_while(|segment| segment.end <= block.end) {
            if !std::mem::replace(&mut segment.reported, true) {
                sent_at = Some((segment.sent_at, segment.retransmitted));
            }
        }
        sent_at
    }

    /// Marks segments as lost by RFC 6675's IsLost: those with three intervals, or more than two segments, SACKed above them.
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

    /// Marks the first segment as lost, after three duplicate acknowledgments or a partial one of NewReno.
    pub fn lose_first(&mut self) {
        if let Some(front) = self.segments.front() {
            self.lose(front.end);
        }
    }

    /// Marks all segments that were not SACKed as lost, after a timeout. Retransmission starts over.
    pub fn lose_all(&mut self) {
        self.next_retransmission = self.removed;
        for segment in self.segments.iter_mut().filter(|segment| segment.reported) {
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

    /// Returns the next segment to retransmit by RFC 6675's NextSeg.
    ///
    /// Rule 1 selects the first lost segment above the last retransmitted one. With `unproven`, rule 3 also allows the first segment below
    /// a SACKed one.
    pub fn candidate(&self, unproven: bool) -> Option<Candidate> {
        let first = self.next_retransmission.saturating_sub(self.removed) as usize;
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

    /// Returns the last segment, if it is not SACKed (rule 4).
    pub fn last(&self) -> Option<Candidate> {
        let last = self
            .segments
            .back()
            .filter(|segment| !segment.sacked && segment.copies == 1)?;
        Some(last.candidate(self.segments.len() - 1))
    }

    /// Records a retransmission. `moves` advances HighRxt, except for the last segment (rule 4).
    pub fn retransmit(&mut self, now: Nanos, candidate: Candidate, moves: bool) {
        let segment = &mut self.segments[candidate.index];
        let length = segment.length();
        self.missing -= if segment.is_missing() { length } else { 0 };
        self.pipe += length;
        segment.copies += 1;
        segment.retransmitted = true;
        segment.sent_at = now;
        if moves {
            self.next_retransmission = self.removed + candidate.index as u64 + 1;
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
    /// Returns true for the first outstanding segment.
    pub fn is_first(&self) -> bool {
        self.index == 0
    }
}

#[cfg(test)]
mod tests;
