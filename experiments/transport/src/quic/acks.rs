// SPDX-License-Identifier: Apache-2.0
//! Generation of acknowledgments (RFC 9000, section 13.2).

use super::packet::{Ack, AckRanges, Packet};
use crate::Nanos;
use crate::intervals::Intervals;
use crate::tcp::Ecn;

/// Number of ack-eliciting packets after which an acknowledgment is sent at once (section 13.2.2).
const ACK_THRESHOLD: u32 = 2;

/// Maximum number of packet number ranges to keep (section 13.2.3).
const MAX_RANGES: usize = 32;

#[derive(Debug)]
pub struct Acks {
    max_delay: Nanos,
    received: Intervals,
    /// Packets below this number count as received, because their ranges were dropped.
    floor: u64,
    /// Packets below this number need not be reported again.
    reported: u64,
    largest: u64,
    largest_at: Nanos,
    /// Number of ack-eliciting packets since the last acknowledgment.
    eliciting: u32,
    is_due: bool,
    deadline: Option<Nanos>,
    /// Number of marked packets, present once an ECN-capable packet has arrived.
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
            is_due: false,
            deadline: None,
            ce: None,
        }
    }

    /// Records a packet; returns false if it is a duplicate.
    pub fn receive(&mut self, now: Nanos, packet: &Packet) -> bool {
        let number = packet.number;
        if number < self.floor || self.received.contains(&(number..number + 1)) {
            return false;
        }
        let in_order = self.received.end().is_none_or(|end| number == end);
        self.received.insert(number..number + 1);
        if self.received.len() > MAX_RANGES
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
            let immediate = !in_order || packet.handshake || packet.ecn == Ecn::Ce;
            if immediate || self.eliciting >= ACK_THRESHOLD || self.max_delay == 0 {
                self.is_due = true;
            } else {
                self.deadline.get_or_insert(now + self.max_delay);
            }
        }
        true
    }

    /// Returns true if an acknowledgment must be sent now, even in a packet of its own.
    pub fn is_due(&self) -> bool {
        self.is_due
    }

    /// Returns the ACK frame for a packet that is sent now, if there is anything new to report.
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
        (self.eliciting, self.is_due, self.deadline) = (0, false, None);
        Some(Ack {
            ranges,
            delay: now - self.largest_at,
            ce: self.ce,
        })
    }

    /// Stops reporting packets up to `largest`, because the peer has received an acknowledgment of them (section 13.2.4).
    pub fn forget(&mut self, largest: u64) {
        self.reported = self.reported.max(largest);
    }

    pub fn timeout(&self) -> Option<Nanos> {
        self.deadline
    }

    pub fn on_timeout(&mut self, now: Nanos) {
        if self.deadline.is_some_and(|deadline| deadline <= now) {
            self.deadline = None;
            self.is_due = true;
        }
    }
}
