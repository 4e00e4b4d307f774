//! The entries of a table by slot: a slot keeps its number for the entry's life.

use super::criteria::Criteria;
use super::key::KeyShape;

/// Order of precedence: the smaller wins. The higher priority comes first, then the older entry.
pub(super) type Rank = (i32, u64);

/// Words of a record before the criteria: order of insertion (0 is a free slot) and priority.
const HEAD: usize = 2;

/// What entries ask of the key, and in which order they came. All of an entry stands together, as it is needed together.
#[derive(Debug, Clone)]
pub(super) struct Entries {
    words: usize,
    /// The masks are kept: they do not follow from the kind of table.
    masked: bool,
    /// Words of a record: head, values, masks, ranges.
    stride: usize,
    records: Vec<u64>,
    free: Vec<u32>,
    last_seq: u64,
}

impl Entries {
    pub(super) fn new(shape: &KeyShape) -> Self {
        let masked = shape.needs_priority;
        let masks = if masked { shape.words } else { 0 };
        Self {
            words: shape.words,
            masked,
            stride: HEAD + shape.words + masks + shape.range_limbs,
            records: Vec::new(),
            free: Vec::new(),
            last_seq: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.capacity() - self.free.len()
    }

    /// Slots that exist, used or free.
    pub(super) fn capacity(&self) -> usize {
        self.records.len() / self.stride
    }

    pub(super) fn is_used(&self, slot: u32) -> bool {
        (slot as usize) < self.capacity() && self.seq(slot) != 0
    }

    /// Gives criteria a slot.
    pub(super) fn add(&mut self, c: &Criteria) -> u32 {
        self.last_seq += 1;
        let masks = if self.masked { &c.masks[..] } else { &[] };
        let head = [self.last_seq, c.priority as u64];
        let parts = [&head[..], &c.values, masks, &c.ranges];
        let record = parts.into_iter().flatten().copied();
        let Some(slot) = self.free.pop() else {
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
        self.free.push(slot);
    }

    #[inline]
    fn record(&self, slot: u32) -> &[u64] {
        &self.records[slot as usize * self.stride..][..self.stride]
    }

    /// Values, masks and ranges, as far as they are kept.
    #[inline]
    pub(super) fn asked(&self, slot: u32) -> &[u64] {
        &self.record(slot)[HEAD..]
    }

    #[inline]
    pub(super) fn values(&self, slot: u32) -> &[u64] {
        &self.asked(slot)[..self.words]
    }

    /// The masks of a ternary table's entry.
    #[inline]
    pub(super) fn masks(&self, slot: u32) -> &[u64] {
        &self.asked(slot)[self.words..2 * self.words]
    }

    #[inline]
    pub(super) fn priority(&self, slot: u32) -> i32 {
        self.record(slot)[1] as i32
    }

    #[inline]
    pub(super) fn seq(&self, slot: u32) -> u64 {
        self.record(slot)[0]
    }

    #[inline]
    pub(super) fn rank(&self, slot: u32) -> Rank {
        (-self.priority(slot), self.seq(slot))
    }

    /// Whether a key is within the ranges of a ternary table's entry.
    #[inline]
    pub(super) fn in_ranges(&self, slot: u32, key: &[u64], shape: &KeyShape) -> bool {
        shape.range_limbs == 0 || shape.in_ranges(key, &self.asked(slot)[2 * self.words..])
    }

    /// Whether a ternary table's entry matches a key.
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
            (masks.to_vec(), ranges)
        } else {
            (shape.prefix_mask(priority as u32), rest)
        };
        Criteria {
            values: values.to_vec(),
            masks,
            ranges: ranges.to_vec(),
            priority,
        }
    }
}
