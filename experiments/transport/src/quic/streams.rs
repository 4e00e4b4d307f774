//! Streams of known length: what is to be sent, sent again, and what has come.
//!
//! The FIN counts as a byte after the last one.

use std::collections::VecDeque;
use std::ops::Range;

use super::packet::{Frames, StreamFrame};
use crate::intervals::Intervals;

/// Streams that this end sends, until all is acknowledged.
#[derive(Debug, Default)]
pub struct Outgoing {
    /// By id.
    streams: Vec<Sending>,
    /// Whose turn it is: they take turns by packet.
    turn: usize,
    sent: u64,
    acknowledged: u64,
}

#[derive(Debug)]
struct Sending {
    id: u64,
    /// With the FIN.
    length: u64,
    sent: u64,
    lost: Intervals,
    acknowledged: Intervals,
}

impl Outgoing {
    /// A stream of so many bytes.
    ///
    /// # Panics
    /// If the stream is already being sent.
    pub fn open(&mut self, id: u64, bytes: u64) {
        let stream = Sending {
            id,
            length: bytes + 1,
            sent: 0,
            lost: Intervals::default(),
            acknowledged: Intervals::default(),
        };
        match self.streams.binary_search_by_key(&id, |stream| stream.id) {
            Ok(_) => panic!("stream {id} is open already"),
            Err(place) => self.streams.insert(place, stream),
        }
    }

    /// Whether something waits to be sent.
    pub fn is_waiting(&self) -> bool {
        self.streams.iter().any(Sending::is_waiting)
    }

    /// Fills frames into so many bytes; returns how many they take.
    pub fn fill(&mut self, frames: &mut Frames, room: u32) -> u32 {
        let mut left = room;
        for _ in 0..self.streams.len() {
            self.turn = (self.turn + 1) % self.streams.len();
            let stream = &mut self.streams[self.turn];
            while !frames.is_full() && stream.is_waiting() {
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

    /// The peer has a frame.
    pub fn acknowledge(&mut self, frame: &StreamFrame) {
        let Some(place) = self.place(frame) else {
            return;
        };
        let stream = &mut self.streams[place];
        let before = stream.acknowledged_bytes();
        stream.acknowledged.insert(frame.range());
        self.acknowledged += stream.acknowledged_bytes() - before;
        if stream.acknowledged.contains(&(0..stream.length)) {
            self.streams.remove(place);
            self.turn = self.turn.saturating_sub(usize::from(place <= self.turn));
        }
    }

    /// A frame is to be sent again, as far as it was not acknowledged by another packet.
    pub fn lose(&mut self, frame: &StreamFrame) {
        let Some(place) = self.place(frame) else {
            return;
        };
        let stream = &mut self.streams[place];
        if !stream.acknowledged.contains(&frame.range()) {
            stream.lost.insert(frame.range());
        }
    }

    /// Where the frame's stream is, if it is not acknowledged whole.
    fn place(&self, frame: &StreamFrame) -> Option<usize> {
        let found = self
            .streams
            .binary_search_by_key(&frame.id, |stream| stream.id);
        found.ok()
    }

    /// Bytes of streams that were sent, each once.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Bytes of streams that were acknowledged, each once.
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    pub fn is_empty(&self) -> bool {
        self.streams.is_empty()
    }
}

impl Sending {
    /// Of which the FIN is none.
    fn sent_bytes(&self) -> u64 {
        self.sent.min(self.length - 1)
    }

    /// Of which the FIN is none.
    fn acknowledged_bytes(&self) -> u64 {
        let fin = self.acknowledged.end() == Some(self.length);
        self.acknowledged.total() - u64::from(fin)
    }

    fn is_waiting(&self) -> bool {
        self.sent < self.length || !self.lost.is_empty()
    }

    /// What is lost first, then what is new; `None` if not even a byte fits in `room`.
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
    /// By the two low bits, which are the stream's type: the other bits of those that are whole.
    whole: [Intervals; 4],
    /// Those that became whole and were not asked for yet.
    news: VecDeque<(u64, u64)>,
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
        if self.whole[kind].contains(&(sequence..sequence + 1)) {
            return;
        }
        let place = match self
            .streams
            .binary_search_by_key(&frame.id, |stream| stream.id)
        {
            Ok(place) => place,
            Err(place) => {
                let stream = Receiving {
                    id: frame.id,
                    received: Intervals::default(),
                    length: None,
                };
                self.streams.insert(place, stream);
                place
            }
        };
        let stream = &mut self.streams[place];
        let before = stream.received.total();
        stream.received.insert(frame.range());
        self.bytes += stream.received.total() - before;
        if frame.fin && stream.length.replace(frame.range().end).is_none() {
            self.bytes -= 1; // The FIN itself.
        }
        if let Some(length) = stream
            .length
            .filter(|length| stream.received.contains(&(0..*length)))
        {
            self.news.push_back((frame.id, length - 1));
            self.whole[kind].insert(sequence..sequence + 1);
            self.streams.remove(place);
        }
    }

    /// The next stream that is whole: its id and length.
    pub fn take(&mut self) -> Option<(u64, u64)> {
        self.news.pop_front()
    }

    /// Bytes of streams received, each once.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}
