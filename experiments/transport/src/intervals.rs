//! Sets of numbers as sorted intervals: what was received out of order, what was acknowledged.

use std::ops::Range;

/// Disjoint, not adjacent, half-open intervals in ascending order.
///
/// There are few at a time, and changes are near the end: a vector that is kept is fast and needs
/// no allocation once it has grown.
#[derive(Debug, Clone, Default)]
pub struct Intervals {
    held: Vec<Range<u64>>,
    /// How many numbers these are.
    total: u64,
}

impl Intervals {
    /// Adds a range and returns the whole interval that now holds it. It must not be empty.
    pub fn insert(&mut self, range: Range<u64>) -> Range<u64> {
        debug_assert!(range.start < range.end);
        // Those that touch the range are `first..after`.
        let after = self.count_before(|held| held.start <= range.end);
        let mut first = after;
        let mut whole = range;
        while let Some(held) = self.held[..first]
            .last()
            .filter(|held| held.end >= whole.start)
        {
            self.total -= held.end - held.start;
            whole.start = whole.start.min(held.start);
            whole.end = whole.end.max(held.end);
            first -= 1;
        }
        self.total += whole.end - whole.start;
        if first == after {
            self.held.insert(first, whole.clone());
        } else {
            self.held[first] = whole.clone();
            self.held.drain(first + 1..after);
        }
        whole
    }

    /// Removes all numbers below `bound`.
    pub fn remove_below(&mut self, bound: u64) {
        let below = |held: &&Range<u64>| held.end <= bound;
        let gone = self.held.iter().take_while(below).count();
        for held in self.held.drain(..gone) {
            self.total -= held.end - held.start;
        }
        if let Some(first) = self.held.first_mut() {
            let start = first.start.max(bound);
            self.total -= start - first.start;
            first.start = start;
        }
    }

    /// Removes the lowest interval.
    pub fn pop_lowest(&mut self) -> Option<Range<u64>> {
        if self.held.is_empty() {
            return None;
        }
        let lowest = self.held.remove(0);
        self.total -= lowest.end - lowest.start;
        Some(lowest)
    }

    /// The lowest interval.
    pub fn lowest(&self) -> Option<&Range<u64>> {
        self.held.first()
    }

    /// One above the highest number.
    pub fn end(&self) -> Option<u64> {
        self.held.last().map(|held| held.end)
    }

    /// The end of the interval that holds a number; the number itself if none does.
    pub fn end_of_run(&self, number: u64) -> u64 {
        let before = self.count_before(|held| held.start <= number);
        self.held[..before]
            .last()
            .map_or(number, |held| held.end.max(number))
    }

    /// Whether all of a range is in the set.
    pub fn contains(&self, range: &Range<u64>) -> bool {
        let before = self.count_before(|held| held.start <= range.start);
        self.held[..before]
            .last()
            .is_some_and(|held| held.end >= range.end)
    }

    /// From the highest interval to the lowest.
    pub fn descending(&self) -> impl Iterator<Item = &Range<u64>> {
        self.held.iter().rev()
    }

    /// How many numbers there are.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// How many intervals there are.
    pub fn len(&self) -> usize {
        self.held.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// How many intervals, from the lowest, meet a condition that a prefix of them meets. Looks at
    /// the last first, where almost all changes are.
    fn count_before(&self, condition: impl Fn(&Range<u64>) -> bool) -> usize {
        match self.held.last() {
            Some(last) if condition(last) => self.held.len(),
            _ => self.held.partition_point(condition),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn intervals_are_a_set(steps in prop::collection::vec((0u64..64, 1u64..12, any::<bool>()), 0..48)) {
            let (mut intervals, mut set) = (Intervals::default(), BTreeSet::new());
            for (start, length, remove) in steps {
                let range = start..start + length;
                if remove {
                    intervals.remove_below(start / 4);
                    set = set.split_off(&(start / 4));
                } else {
                    let whole = intervals.insert(range.clone());
                    set.extend(range.clone());
                    prop_assert!(whole.clone().all(|number| set.contains(&number)));
                    prop_assert!(!set.contains(&whole.end));
                    prop_assert!(intervals.contains(&whole));
                }
                prop_assert_eq!(intervals.contains(&range), range.clone().all(|number| set.contains(&number)));
                let held: Vec<u64> = intervals.held.iter().flat_map(Clone::clone).collect();
                prop_assert_eq!(intervals.total(), set.len() as u64);
                prop_assert_eq!(held, set.iter().copied().collect::<Vec<_>>());
                prop_assert!(intervals.held.windows(2).all(|pair| pair[0].end < pair[1].start));
            }
        }
    }
}
