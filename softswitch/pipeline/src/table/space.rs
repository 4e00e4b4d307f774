//! The entries of a table and the structure that finds them, which the kinds of the key's fields choose.

use super::criteria::Criteria;
use super::entries::Entries;
use super::exact::Exact;
use super::key::KeyShape;
use super::ternary::Ternary;
use super::trie::Trie;

#[derive(Debug, Clone)]
enum Index {
    /// Only exact fields.
    Exact(Exact),
    /// And one longest-prefix field.
    Prefix(Box<Trie>),
    /// And ternary, range or optional fields.
    Ternary(Box<Ternary>),
}

/// The entries of a table, by slot number; a slot keeps its number for the entry's life.
#[derive(Debug, Clone)]
pub(crate) struct Space {
    entries: Entries,
    index: Index,
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
        Self { entries, index }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The array of a table with short keys.
    pub(super) fn dense(&self) -> Option<&[u32]> {
        match &self.index {
            Index::Exact(Exact::Dense(records)) => Some(records),
            _ => None,
        }
    }

    /// Slots that exist, used or free.
    pub(crate) fn capacity(&self) -> usize {
        self.entries.capacity()
    }

    pub(crate) fn is_used(&self, slot: u32) -> bool {
        self.entries.is_used(slot)
    }

    /// Order of insertion of a used slot.
    pub(crate) fn seq(&self, slot: u32) -> u64 {
        self.entries.seq(slot)
    }

    pub(crate) fn criteria(&self, slot: u32, shape: &KeyShape) -> Criteria {
        self.entries.criteria(slot, shape)
    }

    /// The entry with exactly these criteria.
    pub(crate) fn find(&self, c: &Criteria) -> Option<u32> {
        match &self.index {
            Index::Exact(i) => i.lookup(&self.entries, &c.values),
            Index::Prefix(i) => i.find(&self.entries, &c.values, c.priority),
            Index::Ternary(i) => i.find(&self.entries, c),
        }
    }

    /// Adds an entry whose criteria are new, and returns its slot.
    pub(crate) fn insert(&mut self, c: &Criteria, shape: &KeyShape) -> u32 {
        let slot = self.entries.add(c);
        match &mut self.index {
            Index::Exact(i) => i.insert(&self.entries, slot),
            Index::Prefix(i) => i.insert(&self.entries, slot),
            Index::Ternary(i) => i.insert(&self.entries, shape, slot),
        }
        slot
    }

    /// Removes the entry in a used slot.
    pub(crate) fn remove(&mut self, slot: u32, shape: &KeyShape) {
        match &mut self.index {
            Index::Exact(i) => i.remove(&self.entries, slot),
            Index::Prefix(i) => i.remove(&self.entries, slot),
            Index::Ternary(i) => i.remove(&self.entries, shape, slot),
        }
        self.entries.release(slot);
    }

    /// The matching entry of highest priority or longest prefix; of several, the oldest.
    #[inline]
    pub(crate) fn lookup(&self, key: &[u64], shape: &KeyShape) -> Option<u32> {
        match &self.index {
            Index::Exact(i) => i.lookup(&self.entries, key),
            Index::Prefix(i) => i.lookup(&self.entries, key),
            Index::Ternary(i) => i.lookup(&self.entries, shape, key),
        }
    }
}
