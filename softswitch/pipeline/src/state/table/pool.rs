// SPDX-License-Identifier: Apache-2.0
//! An allocator of short, growing and shrinking arrays in one vector.

/// Longest array: 128 items.
const CLASSES: usize = 8;

/// A pool of arrays. An array of `n` items has a block of the next power of two; its owner stores the start and `n`.
#[derive(Debug, Clone)]
pub(super) struct Pool<T> {
    items: Vec<T>,
    /// Starts of free blocks, by the logarithm of their size.
    free: [Vec<u32>; CLASSES],
}

impl<T: Copy + Default> Pool<T> {
    pub(super) fn new() -> Self {
        Self {
            items: Vec::new(),
            free: Default::default(),
        }
    }

    /// Returns the items of all arrays by their positions.
    pub(super) fn as_slice(&self) -> &[T] {
        &self.items
    }

    #[inline]
    pub(super) fn get(&self, i: u32) -> &T {
        &self.items[i as usize]
    }

    pub(super) fn get_mut(&mut self, i: u32) -> &mut T {
        &mut self.items[i as usize]
    }

    fn block(&mut self, size: usize) -> u32 {
        self.free[size.trailing_zeros() as usize]
            .pop()
            .unwrap_or_else(|| {
                let start = self.items.len();
                self.items.resize(start + size, T::default());
                start as u32
            })
    }

    /// Inserts an item at `at` into an array of `len` items; returns the array's start, which may have moved.
    pub(super) fn insert(&mut self, start: u32, len: usize, at: usize, item: T) -> u32 {
        let full = len == 0 || len.is_power_of_two();
        let to = if full {
            self.block((len + 1).next_power_of_two())
        } else {
            start
        };
        let (from, into) = (start as usize, to as usize);
        self.items.copy_within(from + at..from + len, into + at + 1);
        if full && len > 0 {
            self.items.copy_within(from..from + at, into);
            self.free[len.trailing_zeros() as usize].push(start);
        }
        self.items[into + at] = item;
        to
    }

    /// Removes the item at `at` from an array of `len` items; returns the array's start, which may have moved.
    pub(super) fn remove(&mut self, start: u32, len: usize, at: usize) -> u32 {
        let from = start as usize;
        self.items.copy_within(from + at + 1..from + len, from + at);
        let size = len.next_power_of_two();
        let rest = len - 1;
        if rest != 0 && rest.next_power_of_two() == size {
            return start;
        }
        let to = if rest == 0 { 0 } else { self.block(rest) };
        self.items.copy_within(from..from + rest, to as usize);
        self.free[size.trailing_zeros() as usize].push(start);
        to
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use softswitch_random::Rng;

    #[test]
    fn arrays_do_not_overlap() {
        let mut rng = Rng::new(3);
        let mut pool = Pool::new();
        let mut arrays = vec![(0, Vec::new()); 9];
        for item in 0..20_000 {
            let (start, model) = &mut arrays[rng.uniform(0, 8) as usize];
            let len = model.len();
            let grows = len == 0 || len < 127 && rng.uniform(0, 100) < 52;
            let at = rng.uniform(0, (if grows { len } else { len - 1 }) as u64) as usize;
            if grows {
                *start = pool.insert(*start, len, at, item);
                model.insert(at, item);
            } else {
                *start = pool.remove(*start, len, at);
                model.remove(at);
            }
            for (start, model) in &arrays {
                assert!((0..).zip(model).all(|(i, m)| pool.get(start + i) == m));
            }
        }
        let sizes: usize = pool
            .free
            .iter()
            .enumerate()
            .map(|(c, f)| f.len() << c)
            .sum();
        let used: usize = arrays
            .iter()
            .map(|(_, m)| m.len().next_power_of_two())
            .sum();
        let empty = arrays.iter().filter(|(_, m)| m.is_empty()).count();
        assert_eq!(sizes + used - empty, pool.items.len());
    }
}
