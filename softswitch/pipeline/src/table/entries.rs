//! The entries of a table by slot: a slot keeps its number for the entry's life.

use super::criteria::Criteria;
use super::key::KeyShape;

/// Order of precedence: the smaller wins. The higher priority comes first, then the older entry.
pub(super) type Rank = (i32, u64);

/// What entries ask of the key, and in which order they came.
#[derive(Debug, Clone)]
pub(super) struct Entries {
    words: usize,
    /// The masks are kept: they do not follow from the kind of table.
    masked: bool,
    /// Words of a record: values, then masks, then ranges.
    stride: usize,
    records: Vec<u64>,
    /// None where the table knows no priority.
    priorities: Vec<i32>,
    /// Order of insertion; 0 is a free slot.
    seqs: Vec<u64>,
    free: Vec<u32>,
    last_seq: u64,
}

impl Entries {
    pub(super) fn new(shape: &KeyShape) -> Self {
        let masked = shape.needs_priority;
        Self {
            words: shape.words,
            masked,
            stride: shape.words * (1 + usize::from(masked)) + shape.range_limbs,
            records: Vec::new(),
            priorities: Vec::new(),
            seqs: Vec::new(),
            free: Vec::new(),
            last_seq: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.seqs.len() - self.free.len()
    }

    /// Slots that exist, used or free.
    pub(super) fn capacity(&self) -> usize {
        self.seqs.len()
    }

    pub(super) fn is_used(&self, slot: u32) -> bool {
        self.seqs.get(slot as usize).is_some_and(|&s| s != 0)
    }

    /// Gives criteria a slot.
    pub(super) fn add(&mut self, c: &Criteria, shape: &KeyShape) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.records.resize(self.records.len() + self.stride, 0);
            if shape.needs_priority || shape.by_prefix {
                self.priorities.push(0);
            }
            self.seqs.push(0);
            self.seqs.len() as u32 - 1
        });
        self.last_seq += 1;
        self.seqs[slot as usize] = self.last_seq;
        if let Some(p) = self.priorities.get_mut(slot as usize) {
            *p = c.priority;
        }
        let record = &mut self.records[slot as usize * self.stride..][..self.stride];
        let (values, rest) = record.split_at_mut(self.words);
        values.copy_from_slice(&c.values);
        let (masks, ranges) = rest.split_at_mut(if self.masked { self.words } else { 0 });
        if self.masked {
            masks.copy_from_slice(&c.masks);
        }
        ranges.copy_from_slice(&c.ranges);
        slot
    }

    /// Frees a used slot.
    pub(super) fn release(&mut self, slot: u32) {
        self.seqs[slot as usize] = 0;
        self.free.push(slot);
    }

    /// Values, masks and ranges, as far as they are kept.
    #[inline]
    pub(super) fn record(&self, slot: u32) -> &[u64] {
        &self.records[slot as usize * self.stride..][..self.stride]
    }

    #[inline]
    pub(super) fn values(&self, slot: u32) -> &[u64] {
        &self.records[slot as usize * self.stride..][..self.words]
    }

    /// The masks of a ternary table's entry.
    #[inline]
    pub(super) fn masks(&self, slot: u32) -> &[u64] {
        &self.record(slot)[self.words..2 * self.words]
    }

    pub(super) fn priority(&self, slot: u32) -> i32 {
        self.priorities.get(slot as usize).copied().unwrap_or(0)
    }

    pub(super) fn seq(&self, slot: u32) -> u64 {
        self.seqs[slot as usize]
    }

    #[inline]
    pub(super) fn rank(&self, slot: u32) -> Rank {
        (-self.priority(slot), self.seq(slot))
    }

    /// Whether a key is within the ranges of a ternary table's entry.
    #[inline]
    pub(super) fn in_ranges(&self, slot: u32, key: &[u64], shape: &KeyShape) -> bool {
        shape.range_limbs == 0 || shape.in_ranges(key, &self.record(slot)[2 * self.words..])
    }

    /// Whether a ternary table's entry matches a key.
    #[inline]
    pub(super) fn matches(&self, slot: u32, key: &[u64], shape: &KeyShape) -> bool {
        let (values, rest) = self.record(slot).split_at(self.words);
        let (masks, ranges) = rest.split_at(self.words);
        let words = key.iter().zip(masks).zip(values);
        words.fold(0, |differ, ((k, m), v)| differ | (k & m ^ v)) == 0
            && shape.in_ranges(key, ranges)
    }

    pub(super) fn criteria(&self, slot: u32, shape: &KeyShape) -> Criteria {
        let (values, rest) = self.record(slot).split_at(self.words);
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
