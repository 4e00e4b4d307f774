// SPDX-License-Identifier: Apache-2.0
//! Selection of the next data to send (RFC 6675's NextSeg): lost data, then new data, then data that may be lost.

use std::ops::Range;

use super::{DUP_THRESH, Phase, Piece, Sender};
use crate::Nanos;
use crate::tcp::scoreboard::Candidate;

impl Sender {
    /// Returns the next data to send, if the windows allow it.
    pub fn poll(&mut self, now: Nanos) -> Option<Piece> {
        let piece = self
            .retransmission(now)
            .or_else(|| self.new_data(now))
            .or_else(|| self.rescue(now))?;
        if self.netbench {
            self.timer.restart(now);
        }
        self.timer.deadline.get_or_insert(now + self.timer.value());
        self.last_sent = now;
        Some(piece)
    }

    /// Returns true if a segment of `length` bytes fits in the congestion window.
    ///
    /// Without SACK, each duplicate acknowledgment means that a segment has left the network. Before recovery, at most two count (limited
    /// transmit, RFC 3042). With SACK, the pipe includes this information.
    fn has_room(&self, length: u64) -> bool {
        let left = match self.phase {
            _ if self.sack => 0,
            Phase::Recovery { .. } => u64::from(self.duplicates) * self.mss,
            Phase::Open | Phase::Reducing { .. } => {
                u64::from(self.duplicates.min(DUP_THRESH - 1)) * self.mss
            }
            Phase::Loss { .. } => 0,
        };
        self.board.pipe().saturating_sub(left) + length.min(self.mss) <= self.controller.window()
    }

    fn retransmission(&mut self, now: Nanos) -> Option<Piece> {
        if !self.board.is_missing() {
            return None;
        }
        let candidate = self.board.candidate(false)?;
        if !self.force_retransmission && !self.has_room(candidate.end - candidate.start) {
            return None;
        }
        self.force_retransmission = false;
        self.send_again(now, candidate, true)
    }

    fn send_again(&mut self, now: Nanos, candidate: Candidate, moves: bool) -> Option<Piece> {
        if candidate.is_first() {
            self.timer.restart(now);
        }
        self.board.retransmit(now, candidate, moves);
        self.counts.retransmitted += 1;
        let length = candidate.end - candidate.start;
        if let Some(rate) = self.phase.rate() {
            rate.send(length);
        }
        Some(self.piece(candidate.start..candidate.end, false))
    }

    fn new_data(&mut self, now: Nanos) -> Option<Piece> {
        if self.board.is_missing() {
            return None;
        }
        let sent = self.board.sent();
        let waiting = self.written.saturating_sub(sent);
        let fin_waits = self.finished && sent <= self.written;
        if waiting == 0 && !fin_waits {
            return None;
        }
        let length = waiting.min(self.mss);
        // Silly window avoidance at the sender: send full segments or all data.
        if sent + length > self.right_edge {
            return None;
        }
        if self.board.flight() == 0 {
            self.controller
                .on_idle(now - self.last_sent, self.timer.value());
        }
        if !self.has_room(length) {
            self.usage.note(true, self.board.acknowledged(), sent);
            return None;
        }
        let fin = self.finished && length == waiting;
        let range = self.board.send(now, length + u64::from(fin));
        if let Some(rate) = self.phase.rate() {
            rate.send(range.end - range.start);
        }
        let full = self.board.pipe() + self.mss > self.controller.window();
        self.usage
            .note(full, self.board.acknowledged(), self.board.sent());
        Some(self.piece(range, true))
    }

    /// Retransmits data that is not known to be lost, if recovery has nothing else to send (RFC 6675's NextSeg, rules 3 and 4).
    fn rescue(&mut self, now: Nanos) -> Option<Piece> {
        if !self.phase.is_recovery()
            || !self.sack
            || self.board.is_missing()
            || !self.has_room(self.mss)
        {
            return None;
        }
        if let Some(candidate) = self.board.candidate(true) {
            return self.send_again(now, candidate, true);
        }
        if std::mem::replace(&mut self.rescued, true) {
            return None;
        }
        let last = self.board.last()?;
        self.send_again(now, last, false)
    }

    fn piece(&self, range: Range<u64>, new: bool) -> Piece {
        let end = range.end.min(self.written);
        Piece {
            start: range.start,
            len: end.saturating_sub(range.start) as u32,
            fin: range.end > self.written,
            push: end == self.written,
            new,
        }
    }
}
