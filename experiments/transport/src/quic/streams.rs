// SPDX-License-Identifier: Apache-2.0
//! Streams of known length, sent and received.
//!
//! The FIN counts as one byte after the last one.

use std::collections::VecDeque;
use std::ops::Range;

use super::packet::{Frames, StreamFrame};
use crate::intervals::Intervals;

/// Streams that this end sends, until they are completely acknowledged.
#[derive(Debug, Default)]
pub struct Outgoing {
    /// Streams, sorted by id.
    streams: Vec<Sending>,
    /// Index of the stream whose turn it is: round robin, packet by packet.
    turn: usize,
    sent: u64,
    acknowledged: u64,
}

#[derive(Debug)]
struct Sending {
    id: u64,
    /// Length including the FIN.
    length: u64,
    sent: u64,
    lost: Intervals,
    acknowledged: Intervals,
}

impl Outgoing {
    /// Adds a stream of `bytes` bytes.
    ///
    /// # Panics
    /// Panics if the stream is already being sent.
    pub fn open(&mut self, id: u64, bytes: u64) {
        let stream = Sending {
            id,
            length: bytes + 1,
            sent: 0,
            lost: Intervals::default(),
            acknowledged: Intervals::default(),
        };
        match self.streams.binary_search_by_key(&id, |stream| stream.id) {
            Ok(_) => panic!("stream {id} is already being sent"),
            Err(index) => self.streams.insert(index, stream),
        }
    }

    /// Returns true if there is data to send.
    pub fn has_data(&self) -> bool {
        self.streams.iter().any(Sending::has_data)
    }

    /// Adds frames with a total length of at most `room` bytes; returns their length.
    pub fn fill(&mut self, frames: &mut Frames, room: u32) -> u32 {
        let mut left = room;
        for _ in 0..self.streams.len() {
            self.turn = (self.turn + 1) % self.streams.len();
            let stream = &mut self.streams[self.turn];
            while !frames.is_full() && stream.has_data() {
                let before = stream.sent_bytes();
                let Some(frame) = stream.next(left) else {
                    return room - left;
                };
                self.sent += stream.sent_bytes() - before;
                left -= StreamFrame::overhead(frame.id, frame.offset, frame.len) + frame.len;
                frames.push(frame);
            }
        }
        room - left
    }

    /// Records that the peer has received a frame.
    pub fn acknowledge(&mut self, frame: &StreamFrame) {
        let Some(index) = self.index(frame) else {
            return;
        };
        let stream = &mut self.streams[index];
        let before = stream.acknowledged_bytes();
        stream.acknowledged.insert(frame.range());
        self.acknowledged += stream.acknowledged_bytes() - before;
        if stream.acknowledged.contains(&(0..stream.length)) {
            self.streams.remove(index);
            self.turn = self.turn.saturating_sub(usize::from(index <= self.turn));
        }
    }

    /// Schedules the retransmission of a frame, unless another packet delivered it.
    pub fn lose(&mut self, frame: &StreamFrame) {
        let Some(index) = self.index(frame) else {
            return;
        };
        let stream = &mut self.streams[index];
        if !stream.acknowledged.contains(&frame.range()) {
            stream.lost.insert(frame.range());
        }
    }

    /// Returns the index of the frame's stream, unless it is completely acknowledged.
    fn index(&self, frame: &StreamFrame) -> Option<usize> {
        self.streams
            .binary_search_by_key(&frame.id, |stream| stream.id)
            .ok()
    }

    /// Returns the number of distinct stream bytes sent.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Returns the number of distinct stream bytes acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    pub fn is_empty(&self) -> bool {
        self.streams.is_empty()
    }
}

impl Sending {
    /// Returns the number of bytes sent, without the FIN.
    fn sent_bytes(&self) -> u64 {
        self.sent.min(self.length - 1)
    }

    /// Returns the number of bytes acknowledged, without the FIN.
    fn acknowledged_bytes(&self) -> u64 {
        let fin = self.acknowledged.end() == Some(self.length);
        self.acknowledged.total() - u64::from(fin)
    }

    fn has_data(&self) -> bool {
        self.sent < self.length || !self.lost.is_empty()
    }

    /// Returns the next frame: lost data first, then new data. Returns `None` if not even one byte fits in `room`.
    fn next(&mut self, room: u32) -> Option<StreamFrame> {
        let whole = self
            .lost
            .lowest()
            .cloned()
            .unwrap_or(self.sent..self.length);
        let room = room
            .checked_sub(StreamFrame::overhead(self.id, whole.start, room))
            .filter(|room| *room > 0)?;
        let end = whole
            .end
            .min(self.length - 1)
            .min(whole.start + u64::from(room))
            .max(whole.start);
        let fin = whole.end == self.length && end == self.length - 1;
        let range = whole.start..end + u64::from(fin);
        if self.lost.is_empty() {
            self.sent = range.end;
        } else {
            self.lost.remove_below(range.end);
        }
        Some(StreamFrame {
            id: self.id,
            offset: range.start,
            len: (end - range.start) as u32,
            fin,
        })
    }
}

impl StreamFrame {
    fn range(&self) -> Range<u64> {
        self.offset..self.offset + u64::from(self.len) + u64::from(self.fin)
    }
}

/// Streams that the peer sends.
#[derive(Debug, Default)]
pub struct Incoming {
    streams: Vec<Receiving>,
    /// Sequence numbers of complete streams, by stream type (the two low bits of the id).
    complete: [Intervals; 4],
    /// Complete streams that the application has not fetched yet.
    unread: VecDeque<(u64, u64)>,
    bytes: u64,
}

#[derive(Debug)]
struct Receiving {
    id: u64,
    received: Intervals,
    length: Option<u64>,
}

impl Incoming {
    pub fn receive(&mut self, frame: &StreamFrame) {
        let (kind, sequence) = ((frame.id & 3) as usize, frame.id >> 2);
        if self.complete[kind].contains(&(sequence..sequence + 1)) {
            return;
        }
        let index = match self
            .streams
            .binary_search_by_key(&frame.id, |stream| stream.id)
        {
            Ok(index) => index,
            Err(index) => {
                let stream = Receiving {
                    id: frame.id,
                    received: Intervals::default(),
                    length: None,
                };
                self.streams.insert(index, stream);
                index
            }
        };
        let stream = &mut self.streams[index];
        let before = stream.received.total();
        stream.received.insert(frame.range());
        self.bytes += stream.received.total() - before;
        if frame.fin && stream.length.replace(frame.range().end).is_none() {
            self.bytes -= 1; // The FIN is not a byte.
        }
        if let Some(length) = stream
            .length
            .filter(|length| stream.received.contains(&(0..*length)))
        {
            self.unread.push_back((frame.id, length - 1));
            self.complete[kind].insert(sequence..sequence + 1);
            self.streams.remove(index);
        }
    }

    /// Returns the id and length of the next complete stream.
    pub fn take(&mut self) -> Option<(u64, u64)> {
        self.unread.pop_front()
    }

    /// Returns the number of distinct stream bytes received.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}
