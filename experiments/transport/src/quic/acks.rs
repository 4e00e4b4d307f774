//! Which packets were received, and when to say so (RFC 9000, section 13.2).

use super::packet::{Ack, AckRanges, Packet};
use crate::Nanos;
use crate::intervals::Intervals;
use crate::tcp::Ecn;

/// Ack-eliciting packets after which an acknowledgement does not wait (section 13.2.2).
const AT_ONCE: u32 = 2;

/// Ranges of packet numbers that are remembered (section 13.2.3).
const KEPT: usize = 32;

#[derive(Debug)]
pub struct Acks {
    max_delay: Nanos,
    received: Intervals,
    /// Older packets are no longer told apart from those received.
    floor: u64,
    /// The peer knows what was received below.
    reported: u64,
    largest: u64,
    largest_at: Nanos,
    /// Ack-eliciting packets since the last acknowledgement.
    eliciting: u32,
    owed: bool,
    deadline: Option<Nanos>,
    /// Packets with a mark, once any was ECN-capable.
    ce: Option<u64>,
}

impl Acks {
    pub fn new(max_delay: Nanos) -> Self {
        Self {
            max_delay,
            received: Intervals::default(),
            floor: 0,
            reported: 0,
            largest: 0,
            largest_at: 0,
            eliciting: 0,
            owed: false,
            deadline: None,
            ce: None,
        }
    }

    /// Takes a packet; false if it came before.
    pub fn receive(&mut self, now: Nanos, packet: &Packet) -> bool {
        let number = packet.number;
        if number < self.floor || self.received.contains(&(number..number + 1)) {
            return false;
        }
        let in_order = self.received.end().is_none_or(|end| number == end);
        self.received.insert(number..number + 1);
        if self.received.len() > KEPT
            && let Some(lowest) = self.received.pop_lowest()
        {
            self.floor = lowest.end;
        }
        self.reported = self.reported.min(number);
        if number >= self.largest {
            (self.largest, self.largest_at) = (number, now);
        }
        if packet.ecn != Ecn::NotEct {
            *self.ce.get_or_insert(0) += u64::from(packet.ecn == Ecn::Ce);
        }
        if packet.is_eliciting() {
            self.eliciting += 1;
            let at_once = !in_order || packet.handshake || packet.ecn == Ecn::Ce;
            if at_once || self.eliciting >= AT_ONCE || self.max_delay == 0 {
                self.owed = true;
            } else {
                self.deadline.get_or_insert(now + self.max_delay);
            }
        }
        true
    }

    /// Whether to send an acknowledgement even without anything else.
    pub fn owes(&self) -> bool {
        self.owed
    }

    /// The frame for a packet that goes out now, if there is news.
    pub fn take(&mut self, now: Nanos) -> Option<Ack> {
        if self.eliciting == 0 {
            return None;
        }
        let mut ranges = AckRanges::default();
        for range in self
            .received
            .descending()
            .take_while(|range| range.end > self.reported)
        {
            ranges.push(range.start..=range.end - 1);
        }
        (self.eliciting, self.owed, self.deadline) = (0, false, None);
        Some(Ack {
            ranges,
            delay: now - self.largest_at,
            ce: self.ce,
        })
    }

    /// The peer has an acknowledgement of what was received up to `largest`: it is not repeated
    /// (section 13.2.4).
    pub fn forget(&mut self, largest: u64) {
        self.reported = self.reported.max(largest);
    }

    pub fn timeout(&self) -> Option<Nanos> {
        self.deadline
    }

    pub fn on_timeout(&mut self, now: Nanos) {
        if self.deadline.is_some_and(|deadline| deadline <= now) {
            self.deadline = None;
            self.owed = true;
        }
    }
}
