// SPDX-License-Identifier: Apache-2.0
//! Exact match: an array for short keys, else a hash table. The hash table stores keys of one word inline, which saves a
//! memory access per hit.

use super::cells::{Cells, tag};
use super::entries::Entries;
use crate::program::key::KeyShape;

#[derive(Debug, Clone)]
pub(super) enum Exact {
    /// By key: slot + 1, or 0.
    Dense(Box<[u32]>),
    /// By key: slot + 1.
    Hashed(Cells),
}

impl Exact {
    pub(super) fn new(shape: &KeyShape) -> Self {
        match shape.short_bits() {
            // The kernel does not allocate the memory of large arrays until it is written.
            Some(bits) => Self::Dense(vec![0; 1 << bits].into()),
            None => Self::Hashed(Cells::new(shape.words)),
        }
    }

    #[inline]
    pub(super) fn lookup(&self, entries: &Entries, key: &[u64]) -> Option<u32> {
        match self {
            Self::Dense(slots) => slots[index(key, slots.len())].checked_sub(1),
            Self::Hashed(cells) => {
                let has_key = |record| key.len() == 1 || entries.values(record - 1) == key;
                cells.find(tag(key), has_key).map(|record| record - 1)
            }
        }
    }

    /// Adds an entry. With a mask, an array has the entry in each place that its key masks.
    pub(super) fn insert(&mut self, entries: &Entries, slot: u32, mask: Option<&[u64]>) {
        match self {
            Self::Dense(slots) => {
                for at in places(entries.values(slot), mask, slots.len()) {
                    slots[at] = slot + 1;
                }
            }
            Self::Hashed(cells) => cells.insert(tag(entries.values(slot)), slot + 1),
        }
    }

    pub(super) fn remove(&mut self, entries: &Entries, slot: u32, mask: Option<&[u64]>) {
        let removed = match self {
            Self::Dense(slots) => {
                let mut places = places(entries.values(slot), mask, slots.len());
                places.all(|at| std::mem::take(&mut slots[at]) == slot + 1)
            }
            Self::Hashed(cells) => cells.remove(tag(entries.values(slot)), slot + 1),
        };
        assert!(removed, "a used slot is in the index");
    }
}

/// Returns the index of a short key in an array of `len` places, a power of two. A key without fields has index 0.
#[inline]
fn index(key: &[u64], places: usize) -> usize {
    key.first().map_or(0, |&k| k as usize & (places - 1))
}

/// Returns the indices of a short key in an array: all that have the key's bits in the mask.
fn places(key: &[u64], mask: Option<&[u64]>, len: usize) -> impl Iterator<Item = usize> + use<> {
    let first = index(key, len);
    let mask = mask.map_or(len - 1, |mask| index(mask, len));
    // The subsets of the bits outside the mask, in ascending order.
    let free = (len - 1) & !mask;
    let next = move |part: &usize| Some(part.wrapping_sub(free) & free).filter(|next| *next != 0);
    std::iter::successors(Some(0), next).map(move |part| first | part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masked_keys_have_all_places_that_match() {
        let all = |key, mask: Option<u64>| {
            let mask = mask.map(|mask| [mask]);
            let places = places(&[key], mask.as_ref().map(|mask| &mask[..]), 16);
            places.collect::<Vec<_>>()
        };
        assert_eq!(all(5, None), [5]);
        assert_eq!(all(4, Some(0b1100)), [4, 5, 6, 7]);
        assert_eq!(all(4, Some(0b0110)), [4, 5, 12, 13]);
        assert_eq!(all(0, Some(0)), (0..16).collect::<Vec<_>>());
    }
}
