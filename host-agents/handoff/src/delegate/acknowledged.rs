// SPDX-License-Identifier: Apache-2.0
//! Acknowledged bytes of the delegated streams. noq does not report them, so the packets in flight are recorded here.

use std::collections::{BTreeMap, VecDeque};
use std::ops::{Range, RangeInclusive};

/// Distance below the largest acknowledged number at which a packet counts as lost. noq retransmits its data earlier.
const MAX_REORDERING: u64 = 1 << 12;
/// Minimum progress in bytes between two reports about a stream.
const MIN_STEP: u64 = 64 << 10;
/// A report is due when the acknowledged prefix has grown by 1 / this factor.
const STEP_PARTS: u64 = 8;

/// STREAM frames in packets that the client has not acknowledged.
#[derive(Debug, Default)]
pub struct InFlight {
    /// Frames in the order of their packet numbers.
    frames: VecDeque<Frame>,
    /// Largest acknowledged number.
    largest: u64,
}

#[derive(Debug)]
struct Frame {
    packet: u64,
    stream: u64,
    bytes: Range<u64>,
    is_acknowledged: bool,
}

impl InFlight {
    /// Record that packet `packet` contains these bytes of `stream`. Packet numbers must not decrease.
    pub fn on_sent(&mut self, packet: u64, stream: u64, bytes: Range<u64>) {
        self.frames.push_back(Frame {
            packet,
            stream,
            bytes,
            is_acknowledged: false,
        });
    }

    /// Call `each` with the stream and the bytes of each newly acknowledged frame.
    pub fn on_acknowledged(
        &mut self,
        packets: RangeInclusive<u64>,
        mut each: impl FnMut(u64, Range<u64>),
    ) {
        self.largest = self.largest.max(*packets.end());
        let first = self
            .frames
            .partition_point(|frame| frame.packet < *packets.start());
        let frames = self.frames.range_mut(first..);
        for frame in frames.take_while(|frame| frame.packet <= *packets.end()) {
            if !std::mem::replace(&mut frame.is_acknowledged, true) {
                each(frame.stream, frame.bytes.clone());
            }
        }
        let largest = self.largest;
        let is_over =
            |frame: &Frame| frame.is_acknowledged || frame.packet + MAX_REORDERING < largest;
        while self.frames.front().is_some_and(is_over) {
            self.frames.pop_front();
        }
    }
}

/// Acknowledged bytes of one stream.
#[derive(Debug, Default)]
pub struct Acknowledged {
    /// Length of the contiguously acknowledged prefix.
    beginning: u64,
    /// Acknowledged ranges beyond the prefix, by their starts. They may overlap.
    beyond: BTreeMap<u64, u64>,
    /// Length of the prefix in the latest report.
    reported: u64,
    /// True from the moment a report is due until it is made.
    is_due: bool,
}

impl Acknowledged {
    /// Add acknowledged bytes. Returns whether a report has become due.
    pub fn add(&mut self, bytes: Range<u64>) -> bool {
        let end = self.beyond.entry(bytes.start).or_default();
        *end = bytes.end.max(*end);
        while let Some(first) = self.beyond.first_entry()
            && *first.key() <= self.beginning
        {
            self.beginning = self.beginning.max(first.remove());
        }
        let is_due = self.beginning >= self.reported + MIN_STEP.max(self.reported / STEP_PARTS);
        is_due && !std::mem::replace(&mut self.is_due, true)
    }

    /// Return the length of the acknowledged prefix, for a report.
    pub fn report(&mut self) -> u64 {
        self.reported = self.beginning;
        self.is_due = false;
        self.beginning
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn report_is_due_once_the_beginning_has_grown_enough() {
        let mut acknowledged = Acknowledged::default();
        assert!(!acknowledged.add(MIN_STEP..3 * MIN_STEP));
        assert!(!acknowledged.add(0..10));
        assert!(acknowledged.add(10..MIN_STEP));
        // The same report is not due twice.
        assert!(!acknowledged.add(3 * MIN_STEP..4 * MIN_STEP));
        assert_eq!(acknowledged.report(), 4 * MIN_STEP);
        assert!(acknowledged.beyond.is_empty());
        assert!(!acknowledged.add(4 * MIN_STEP..5 * MIN_STEP - 1));
        assert!(acknowledged.add(5 * MIN_STEP - 1..5 * MIN_STEP));
    }

    #[test]
    fn each_frame_is_acknowledged_once_and_lost_ones_are_forgotten() {
        let mut in_flight = InFlight::default();
        for packet in 0..10 {
            in_flight.on_sent(packet, 4, packet..packet + 1);
        }
        let mut seen = Vec::new();
        for packets in [2..=3, 0..=1, 0..=3, 9..=9] {
            in_flight.on_acknowledged(packets, |_, bytes| seen.push(bytes.start));
        }
        assert_eq!(seen, [2, 3, 0, 1, 9]);
        assert_eq!(in_flight.frames.len(), 6);
        let late = 10 + MAX_REORDERING;
        in_flight.on_acknowledged(late..=late, |_, _| unreachable!());
        assert!(in_flight.frames.is_empty());
    }
}
