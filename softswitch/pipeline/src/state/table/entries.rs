// SPDX-License-Identifier: Apache-2.0
//! The entries of a table by slot; an entry keeps its slot for its lifetime.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::program::criteria::Criteria;
use crate::program::key::KeyShape;

/// Order of precedence, smallest first: higher priority, then older entry.
pub(super) type Rank = (i32, u64);

/// The criteria of the entries and their order of insertion. The data of one entry is contiguous, because it is used
/// together.
#[derive(Debug, Clone)]
pub(super) struct Entries {
    words: usize,
    /// True if masks are stored, because the kind of table does not imply them.
    masked: bool,
    /// Words of a record before the criteria: order of insertion (0 for a free slot), and the priority if there is one.
    head: usize,
    /// Words of a record: head, values, masks, ranges.
    stride: usize,
    records: Vec<u64>,
    /// Free slots; the lowest is used first, as in BMv2.
    free: BinaryHeap<Reverse<u32>>,
    /// Number of earlier entries of each slot, modulo 256; for slots that were freed.
    versions: Vec<u8>,
    last_seq: u64,
}

impl Entries {
    pub(super) fn new(shape: &KeyShape) -> Self {
        let masked = shape.needs_priority;
        let masks = if masked { shape.words } else { 0 };
        let head = 1 + usize::from(masked || shape.by_prefix);
        Self {
            words: shape.words,
            masked,
            head,
            stride: head + shape.words + masks + shape.range_limbs,
            records: Vec::new(),
            free: BinaryHeap::new(),
            versions: Vec::new(),
            last_seq: 0,
        }
    }

    /// Returns the entries of all slots.
    pub(super) fn records(&self) -> &[u64] {
        &self.records
    }

    pub(super) fn len(&self) -> usize {
        self.capacity() - self.free.len()
    }

    /// Returns the number of slots, used or free.
    pub(super) fn capacity(&self) -> usize {
        self.records.len() / self.stride
    }

    pub(super) fn is_used(&self, slot: u32) -> bool {
        (slot as usize) < self.capacity() && self.seq(slot) != 0
    }

    /// Assigns a slot to criteria.
    pub(super) fn add(&mut self, c: &Criteria) -> u32 {
        self.last_seq += 1;
        let masks = if self.masked { &c.masks[..] } else { &[] };
        let head = [self.last_seq, c.priority as u64];
        let parts = [&head[..self.head], &c.values, masks, &c.ranges];
        let record = parts.into_iter().flatten().copied();
        let Some(Reverse(slot)) = self.free.pop() else {
            self.records.extend(record);
            return self.capacity() as u32 - 1;
        };
        let old = &mut self.records[slot as usize * self.stride..][..self.stride];
        old.iter_mut().zip(record).for_each(|(o, r)| *o = r);
        slot
    }

    /// Frees a used slot.
    pub(super) fn release(&mut self, slot: u32) {
        self.records[slot as usize * self.stride] = 0;
        self.free.push(Reverse(slot));
        let slot = slot as usize;
        if self.versions.len() <= slot {
            self.versions.resize(slot + 1, 0);
        }
        self.versions[slot] = self.versions[slot].wrapping_add(1);
    }

    /// Returns the number of earlier entries of a slot, modulo 256.
    pub(super) fn version(&self, slot: u32) -> u8 {
        self.versions.get(slot as usize).copied().unwrap_or(0)
    }

    #[inline]
    fn record(&self, slot: u32) -> &[u64] {
        &self.records[slot as usize * self.stride..][..self.stride]
    }

    /// Returns the values, masks and ranges, as far as they are stored.
    #[inline]
    pub(super) fn asked(&self, slot: u32) -> &[u64] {
        &self.record(slot)[self.head..]
    }

    #[inline]
    pub(super) fn values(&self, slot: u32) -> &[u64] {
        &self.asked(slot)[..self.words]
    }

    /// Returns the masks of a ternary table's entry.
    #[inline]
    pub(super) fn masks(&self, slot: u32) -> &[u64] {
        &self.asked(slot)[self.words..2 * self.words]
    }

    #[inline]
    pub(super) fn priority(&self, slot: u32) -> i32 {
        match self.record(slot)[..self.head] {
            [_, priority] => priority as i32,
            _ => 0,
        }
    }

    #[inline]
    pub(super) fn seq(&self, slot: u32) -> u64 {
        self.record(slot)[0]
    }

    #[inline]
    pub(super) fn rank(&self, slot: u32) -> Rank {
        (-self.priority(slot), self.seq(slot))
    }

    /// Returns true if a key is within the ranges of a ternary table's entry.
    #[inline]
    pub(super) fn in_ranges(&self, slot: u32, key: &[u64], shape: &KeyShape) -> bool {
        shape.range_limbs == 0 || shape.in_ranges(key, &self.asked(slot)[2 * self.words..])
    }

    /// Returns true if a ternary table's entry matches a key.
    #[inline]
    pub(super) fn matches(&self, slot: u32, key: &[u64], shape: &KeyShape) -> bool {
        let (values, rest) = self.asked(slot).split_at(self.words);
        let (masks, ranges) = rest.split_at(self.words);
        let words = key.iter().zip(masks).zip(values);
        words.fold(0, |differ, ((k, m), v)| differ | (k & m ^ v)) == 0
            && shape.in_ranges(key, ranges)
    }

    pub(super) fn criteria(&self, slot: u32, shape: &KeyShape) -> Criteria {
        let (values, rest) = self.asked(slot).split_at(self.words);
        let priority = self.priority(slot);
        let (masks, ranges) = if self.masked {
            let (masks, ranges) = rest.split_at(self.words);
            (masks.into(), ranges)
        } else {
            (shape.prefix_mask(priority as u32).into(), rest)
        };
        Criteria {
            values: values.into(),
            masks,
            ranges: ranges.into(),
            priority,
        }
    }
}
