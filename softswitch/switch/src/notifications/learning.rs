// SPDX-License-Identifier: Apache-2.0
//! Learn lists as a state machine without I/O: buffers, acknowledgements, and the message of BMv2.

use std::collections::{BTreeMap, HashSet};

use softswitch_pipeline::{Nanos, Value};

use super::header;

/// Default number of samples that fill a buffer, as in BMv2.
const DEFAULT_SIZE: usize = 1;

/// Default time for which samples wait in nanoseconds, as in BMv2.
const DEFAULT_TIMEOUT: Nanos = 1_000_000_000;

/// Largest number of samples in a buffer.
const MAX_SIZE: usize = 65_536;

/// Largest number of samples of a list that wait for an acknowledgement. Beyond it, the oldest buffers count as
/// acknowledged.
const MAX_UNACKNOWLEDGED: usize = 262_144;

const NANOS_PER_MILLISECOND: Nanos = 1_000_000;

/// A full buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The list's id in the JSON.
    pub list_id: u32,
    /// The number by which the buffer is acknowledged.
    pub buffer_id: u64,
    /// The samples.
    pub samples: Vec<Vec<u8>>,
}

impl Message {
    /// Encodes the message as BMv2 does: topic, device, context, list, buffer and number of samples in little-endian
    /// order without gaps, then the samples.
    pub fn encode(&self, device_id: u64) -> Vec<u8> {
        let mut bytes = header::begin(*b"LEA|", device_id);
        bytes.extend(header::CONTEXT.to_le_bytes());
        bytes.extend(self.list_id.to_le_bytes());
        bytes.extend(self.buffer_id.to_le_bytes());
        bytes.extend((self.samples.len() as u32).to_le_bytes()); // at most MAX_SIZE
        bytes.extend(self.samples.iter().flatten());
        bytes
    }
}

/// Returns the fields of a digest one after the other, each with all its bytes, in network order.
pub fn sample(widths: &[u32], fields: &[Value]) -> Vec<u8> {
    let fields = widths.iter().zip(fields).map(|(width, value)| {
        let bytes = width.div_ceil(8) as usize;
        value.to_padded(bytes).unwrap_or_else(|| vec![0; bytes])
    });
    fields.flatten().collect()
}

/// The learn lists of a program, by id.
#[derive(Debug, Default)]
pub struct Lists(BTreeMap<u32, List>);

#[derive(Debug)]
struct List {
    size: usize,
    timeout: Nanos,
    waiting: Vec<Vec<u8>>,
    /// When the first waiting sample arrived.
    since: Nanos,
    next_buffer: u64,
    /// Samples that wait, or that were sent and not acknowledged.
    known: HashSet<Vec<u8>>,
    /// Sent buffers. An acknowledged sample is `None`.
    sent: BTreeMap<u64, Vec<Option<Vec<u8>>>>,
}

impl Default for List {
    fn default() -> Self {
        Self {
            size: DEFAULT_SIZE,
            timeout: DEFAULT_TIMEOUT,
            waiting: vec![],
            since: 0,
            next_buffer: 0,
            known: HashSet::new(),
            sent: BTreeMap::new(),
        }
    }
}

impl List {
    /// Sends the waiting samples.
    fn flush(&mut self, list_id: u32) -> Message {
        let samples = std::mem::take(&mut self.waiting);
        let buffer_id = self.next_buffer;
        self.next_buffer += 1;
        self.sent
            .insert(buffer_id, samples.iter().cloned().map(Some).collect());
        while self.known.len() > MAX_UNACKNOWLEDGED
            && let Some((oldest, _)) = self.sent.first_key_value()
        {
            self.acknowledge_buffer(*oldest);
        }
        Message {
            list_id,
            buffer_id,
            samples,
        }
    }

    fn acknowledge_buffer(&mut self, buffer: u64) {
        let samples = self.sent.remove(&buffer).unwrap_or_default();
        for sample in samples.into_iter().flatten() {
            self.known.remove(&sample);
        }
    }

    fn deadline(&self) -> Option<Nanos> {
        let has_deadline = self.timeout > 0 && !self.waiting.is_empty();
        has_deadline.then(|| self.since.saturating_add(self.timeout))
    }
}

impl Lists {
    fn list(&mut self, list_id: u32) -> &mut List {
        self.0.entry(list_id).or_default()
    }

    /// Adds a sample; returns the buffer that it fills, if any.
    pub fn push(&mut self, list_id: u32, sample: Vec<u8>, now: Nanos) -> Option<Message> {
        let list = self.list(list_id);
        if !list.known.insert(sample.clone()) {
            return None;
        }
        if list.waiting.is_empty() {
            list.since = now;
        }
        list.waiting.push(sample);
        let is_full = list.waiting.len() >= list.size.min(MAX_SIZE);
        is_full.then(|| list.flush(list_id))
    }

    /// Returns the buffers that are due or have become full.
    pub fn poll(&mut self, now: Nanos) -> Vec<Message> {
        let due = self.0.iter_mut().filter(|(_, list)| {
            let is_full = !list.waiting.is_empty() && list.waiting.len() >= list.size;
            is_full || list.deadline().is_some_and(|at| at <= now)
        });
        due.map(|(id, list)| list.flush(*id)).collect()
    }

    /// Returns the time at which [`poll`](Self::poll) must be called next.
    pub fn next_deadline(&self) -> Option<Nanos> {
        self.0.values().filter_map(List::deadline).min()
    }

    /// Acknowledges samples of a buffer by their positions. Unknown buffers and positions are ignored, as in BMv2.
    pub fn acknowledge(&mut self, list_id: u32, buffer: u64, positions: &[i32]) {
        let list = self.list(list_id);
        let Some(samples) = list.sent.get_mut(&buffer) else {
            return;
        };
        for position in positions {
            let position = usize::try_from(*position).ok();
            let sample = position.and_then(|position| samples.get_mut(position)?.take());
            if let Some(sample) = sample {
                list.known.remove(&sample);
            }
        }
        if samples.iter().all(Option::is_none) {
            list.sent.remove(&buffer);
        }
    }

    /// Acknowledges a buffer. An unknown buffer is ignored, as in BMv2.
    pub fn acknowledge_buffer(&mut self, list_id: u32, buffer: u64) {
        self.list(list_id).acknowledge_buffer(buffer);
    }

    /// Sets the time for which samples wait for others in milliseconds; with 0, they wait until the buffer is full.
    pub fn set_timeout(&mut self, list_id: u32, milliseconds: u32) {
        self.list(list_id).timeout = Nanos::from(milliseconds) * NANOS_PER_MILLISECOND;
    }

    /// Sets the number of samples that fill a buffer.
    pub fn set_size(&mut self, list_id: u32, size: usize) {
        self.list(list_id).size = size;
    }

    /// Forgets all samples and buffers; time-outs and sizes stay.
    pub fn reset(&mut self) {
        for list in self.0.values_mut() {
            *list = List {
                size: list.size,
                timeout: list.timeout,
                ..List::default()
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(lists: &mut Lists, sample: u8, now: Nanos) -> Option<(u64, usize)> {
        let message = lists.push(1, vec![sample], now)?;
        Some((message.buffer_id, message.samples.len()))
    }

    #[test]
    fn message_has_layout_of_bmv2() {
        let message = Message {
            list_id: 2,
            buffer_id: 3,
            samples: vec![vec![0xa, 0xb], vec![0xc, 0xd]],
        };
        let expected = [
            *b"LEA|",
            [7, 0, 0, 0],
            [0; 4],
            [0; 4],
            [2, 0, 0, 0],
            [3, 0, 0, 0],
            [0; 4],
            [2, 0, 0, 0],
            [0xa, 0xb, 0xc, 0xd],
        ];
        assert_eq!(message.encode(7), expected.concat());
    }

    #[test]
    fn samples_have_all_bytes_of_their_fields() {
        let fields = [Value::from(1u32), Value::from(0u32), Value::from(0x1ffu32)];
        assert_eq!(sample(&[48, 4, 9], &fields), [0, 0, 0, 0, 0, 1, 0, 1, 0xff]);
    }

    #[test]
    fn sample_is_sent_at_once_and_again_after_acknowledgement() {
        let mut lists = Lists::default();
        assert_eq!(push(&mut lists, 5, 0), Some((0, 1)));
        assert_eq!(push(&mut lists, 5, 1), None);
        assert_eq!(push(&mut lists, 6, 1), Some((1, 1)));
        lists.acknowledge_buffer(1, 9);
        assert_eq!(push(&mut lists, 5, 2), None);
        lists.acknowledge_buffer(1, 0);
        assert_eq!(push(&mut lists, 5, 3), Some((2, 1)));
        assert_eq!(push(&mut lists, 6, 3), None);
    }

    #[test]
    fn buffer_is_sent_when_full_or_due() {
        let mut lists = Lists::default();
        lists.set_size(1, 3);
        lists.set_timeout(1, 2);
        assert_eq!(push(&mut lists, 1, 100), None);
        assert_eq!(push(&mut lists, 2, 200), None);
        assert_eq!(push(&mut lists, 3, 300), Some((0, 3)));
        assert_eq!(lists.next_deadline(), None);
        push(&mut lists, 4, 400);
        assert_eq!(lists.next_deadline(), Some(2_000_400));
        assert_eq!(lists.poll(2_000_399), []);
        assert_eq!(lists.poll(2_000_400)[0].samples, [[4]]);
        push(&mut lists, 5, 500);
        lists.set_timeout(1, 0);
        assert_eq!(lists.next_deadline(), None);
        lists.set_size(1, 1);
        assert_eq!(lists.poll(600).len(), 1, "the buffer is full now");
    }

    #[test]
    fn samples_are_acknowledged_one_by_one() {
        let mut lists = Lists::default();
        lists.set_size(1, 2);
        push(&mut lists, 1, 0);
        push(&mut lists, 2, 0);
        lists.acknowledge(1, 0, &[1, -1, 7, 1]);
        push(&mut lists, 1, 0);
        assert_eq!(push(&mut lists, 2, 0), None, "only one sample waits");
        lists.acknowledge(1, 0, &[0]);
        assert_eq!(push(&mut lists, 1, 0), Some((1, 2)));
    }

    #[test]
    fn reset_forgets_samples_but_not_settings() {
        let mut lists = Lists::default();
        lists.set_size(1, 2);
        push(&mut lists, 1, 0);
        lists.reset();
        assert_eq!(push(&mut lists, 1, 0), None);
        assert_eq!(push(&mut lists, 2, 0), Some((0, 2)));
    }
}
