// SPDX-License-Identifier: Apache-2.0
//! Sets of numbers as sorted intervals, for data received out of order and for acknowledged data.

use std::ops::Range;

/// A set of numbers, as disjoint, non-adjacent, half-open intervals in ascending order.
///
/// A set has few intervals, and changes are near its end. So a sorted vector is fast, and it allocates nothing once it has grown.
#[derive(Debug, Clone, Default)]
pub struct Intervals {
    ranges: Vec<Range<u64>>,
    /// Number of elements.
    total: u64,
}

impl Intervals {
    /// Adds a range, which must not be empty. Returns the interval that now contains it.
    pub fn insert(&mut self, range: Range<u64>) -> Range<u64> {
        debug_assert!(range.start < range.end);
        // The intervals `first..after` touch the range.
        let after = self.count_before(|interval| interval.start <= range.end);
        let mut first = after;
        let mut merged = range;
        while let Some(interval) = self.ranges[..first]
            .last()
            .filter(|interval| interval.end >= merged.start)
        {
            self.total -= interval.end - interval.start;
            merged.start = merged.start.min(interval.start);
            merged.end = merged.end.max(interval.end);
            first -= 1;
        }
        self.total += merged.end - merged.start;
        if first == after {
            self.ranges.insert(first, merged.clone());
        } else {
            self.ranges[first] = merged.clone();
            self.ranges.drain(first + 1..after);
        }
        merged
    }

    /// Removes all numbers below `bound`.
    pub fn remove_below(&mut self, bound: u64) {
        let below = |interval: &&Range<u64>| interval.end <= bound;
        let removed = self.ranges.iter().take_while(below).count();
        for interval in self.ranges.drain(..removed) {
            self.total -= interval.end - interval.start;
        }
        if let Some(first) = self.ranges.first_mut() {
            let start = first.start.max(bound);
            self.total -= start - first.start;
            first.start = start;
        }
    }

    /// Removes the lowest interval.
    pub fn pop_lowest(&mut self) -> Option<Range<u64>> {
        if self.ranges.is_empty() {
            return None;
        }
        let lowest = self.ranges.remove(0);
        self.total -= lowest.end - lowest.start;
        Some(lowest)
    }

    /// Returns the lowest interval.
    pub fn lowest(&self) -> Option<&Range<u64>> {
        self.ranges.first()
    }

    /// Returns one above the highest number.
    pub fn end(&self) -> Option<u64> {
        self.ranges.last().map(|range| range.end)
    }

    /// Returns the end of the interval that contains `number`, or `number` itself if it is not in the set.
    pub fn end_of_run(&self, number: u64) -> u64 {
        let before = self.count_before(|range| range.start <= number);
        self.ranges[..before]
            .last()
            .map_or(number, |range| range.end.max(number))
    }

    /// Returns true if the whole range is in the set.
    pub fn contains(&self, range: &Range<u64>) -> bool {
        let before = self.count_before(|interval| interval.start <= range.start);
        self.ranges[..before]
            .last()
            .is_some_and(|interval| interval.end >= range.end)
    }

    /// Iterates from the highest interval to the lowest.
    pub fn descending(&self) -> impl Iterator<Item = &Range<u64>> {
        self.ranges.iter().rev()
    }

    /// Returns the number of elements.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Returns the number of intervals.
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Returns true if the set is empty.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Returns the length of the prefix of intervals that meet `condition`. It tests the last interval first, because almost all changes
    /// are there.
    fn count_before(&self, condition: impl Fn(&Range<u64>) -> bool) -> usize {
        match self.ranges.last() {
            Some(last) if condition(last) => self.ranges.len(),
            _ => self.ranges.partition_point(condition),
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
        fn intervals_behave_like_a_set(steps in prop::collection::vec((0u64..64, 1u64..12, any::<bool>()), 0..48)) {
            let (mut intervals, mut set) = (Intervals::default(), BTreeSet::new());
            for (start, length, remove) in steps {
                let range = start..start + length;
                if remove {
                    intervals.remove_below(start / 4);
                    set = set.split_off(&(start / 4));
                } else {
                    let merged = intervals.insert(range.clone());
                    set.extend(range.clone());
                    prop_assert!(merged.clone().all(|number| set.contains(&number)));
                    prop_assert!(!set.contains(&merged.end));
                    prop_assert!(intervals.contains(&merged));
                }
                prop_assert_eq!(intervals.contains(&range), range.clone().all(|number| set.contains(&number)));
                let interval: Vec<u64> = intervals.ranges.iter().flat_map(Clone::clone).collect();
                prop_assert_eq!(intervals.total(), set.len() as u64);
                prop_assert_eq!(interval, set.iter().copied().collect::<Vec<_>>());
                prop_assert!(intervals.ranges.windows(2).all(|pair| pair[0].end < pair[1].start));
            }
        }
    }
}
