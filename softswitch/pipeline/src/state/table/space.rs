// SPDX-License-Identifier: Apache-2.0
//! The entries of a table and their index, whose structure depends on the kinds of the key's fields.

use super::entries::Entries;
use super::exact::Exact;
use super::ternary::Ternary;
use super::trie::Trie;
use crate::program::criteria::{Criteria, Words};
use crate::program::key::KeyShape;
use crate::state::view::Cell;

#[derive(Debug, Clone)]
enum Index {
    /// For keys with exact fields only.
    Exact(Exact),
    /// For keys with one longest-prefix field, and exact ones.
    Prefix(Box<Trie>),
    /// For keys with ternary, range or optional fields.
    Ternary(Box<Ternary>),
}

/// The entries of a table, by slot number; an entry keeps its slot for its lifetime.
#[derive(Debug, Clone)]
pub(crate) struct Space {
    entries: Entries,
    index: Index,
    /// The bits of exact keys that matter; all without a mask.
    mask: Option<Box<[u64]>>,
}

/// Returns a copy of a key without the bits outside the mask.
fn masked(key: &[u64], mask: &[u64]) -> Words {
    key.iter().zip(mask).map(|(key, mask)| key & mask).collect()
}

impl Space {
    pub(crate) fn new(shape: &KeyShape) -> Self {
        let entries = Entries::new(shape);
        let index = if shape.needs_priority {
            Index::Ternary(Box::new(Ternary::new(&entries, shape)))
        } else if shape.by_prefix {
            Index::Prefix(Box::new(Trie::new(shape)))
        } else {
            Index::Exact(Exact::new(shape))
        };
        Self {
            entries,
            index,
            mask: None,
        }
    }

    /// Sets the bits of the key that matter, while the table is empty. Returns false for keys that are not exact.
    pub(crate) fn set_mask(&mut self, mask: Option<Box<[u64]>>) -> bool {
        let is_exact = matches!(self.index, Index::Exact(_));
        if is_exact {
            self.mask = mask;
        }
        is_exact
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns the array of a table with short keys.
    pub(super) fn dense(&self) -> Option<&[u32]> {
        match &self.index {
            Index::Exact(Exact::Dense(records)) => Some(records),
            _ => None,
        }
    }

    /// Returns the hash table of a table with long exact keys, unless keys are masked.
    pub(super) fn cells(&self) -> &[Cell] {
        match &self.index {
            Index::Exact(Exact::Hashed(cells)) if self.mask.is_none() => cells.as_slice(),
            _ => &[],
        }
    }

    /// Returns the trie of a table with a longest-prefix field.
    pub(super) fn trie(&self) -> Option<&Trie> {
        match &self.index {
            Index::Prefix(trie) => Some(trie),
            _ => None,
        }
    }

    /// Returns the entries by slot; for exact keys, each has one word and then the key.
    pub(super) fn records(&self) -> &[u64] {
        self.entries.records()
    }

    /// Returns the number of slots, used or free.
    pub(crate) fn capacity(&self) -> usize {
        self.entries.capacity()
    }

    pub(crate) fn is_used(&self, slot: u32) -> bool {
        self.entries.is_used(slot)
    }

    /// Returns the order of insertion of a used slot.
    pub(crate) fn seq(&self, slot: u32) -> u64 {
        self.entries.seq(slot)
    }

    /// Returns the number of earlier entries of a slot, modulo 256.
    pub(crate) fn version(&self, slot: u32) -> u8 {
        self.entries.version(slot)
    }

    pub(crate) fn criteria(&self, slot: u32, shape: &KeyShape) -> Criteria {
        self.entries.criteria(slot, shape)
    }

    /// Returns the entry with exactly these criteria.
    pub(crate) fn find(&self, c: &Criteria) -> Option<u32> {
        match &self.index {
            Index::Exact(i) => match &self.mask {
                Some(mask) => i.lookup(&self.entries, &masked(&c.values, mask)),
                None => i.lookup(&self.entries, &c.values),
            },
            Index::Prefix(i) => i.find(&self.entries, &c.values, c.priority),
            Index::Ternary(i) => i.find(&self.entries, c),
        }
    }

    /// Adds an entry whose criteria are new, and returns its slot.
    pub(crate) fn insert(&mut self, c: &Criteria, shape: &KeyShape) -> u32 {
        let slot = match &self.mask {
            Some(mask) => self.entries.add(&Criteria {
                values: masked(&c.values, mask),
                ..c.clone()
            }),
            None => self.entries.add(c),
        };
        match &mut self.index {
            Index::Exact(i) => i.insert(&self.entries, slot, self.mask.as_deref()),
            Index::Prefix(i) => i.insert(&self.entries, slot),
            Index::Ternary(i) => i.insert(&self.entries, shape, slot),
        }
        slot
    }

    /// Removes the entry in a used slot.
    pub(crate) fn remove(&mut self, slot: u32, shape: &KeyShape) {
        match &mut self.index {
            Index::Exact(i) => i.remove(&self.entries, slot, self.mask.as_deref()),
            Index::Prefix(i) => i.remove(&self.entries, slot),
            Index::Ternary(i) => i.remove(&self.entries, shape, slot),
        }
        self.entries.release(slot);
    }

    /// Returns the matching entry with the highest priority or the longest prefix; among equals, the oldest.
    #[inline]
    pub(crate) fn lookup(&self, key: &[u64], shape: &KeyShape) -> Option<u32> {
        match &self.index {
            Index::Exact(i) => match &self.mask {
                Some(mask) => i.lookup(&self.entries, &masked(key, mask)),
                None => i.lookup(&self.entries, key),
            },
            Index::Prefix(i) => i.lookup(&self.entries, key),
            Index::Ternary(i) => i.lookup(&self.entries, shape, key),
        }
    }
}
