//! Sets of numbers as sorted intervals: what was received out of order, what was acknowledged.

use std::ops::Range;

/// Disjoint, not adjacent, half-open intervals in ascending order.
///
/// There are few at a time, and changes are near the end: a vector that is kept is fast and needs
/// no allocation once it has grown.
#[derive(Debug, Clone, Default)]
pub struct Intervals(Vec<Range<u64>>);

impl Intervals {
    /// Adds a range and returns the whole interval that now holds it. It must not be empty.
    pub fn insert(&mut self, range: Range<u64>) -> Range<u64> {
        debug_assert!(range.start < range.end);
        // Those that touch the range are `first..after`.
        let after = self.count_before(|held| held.start <= range.end);
        let mut first = after;
        let mut whole = range;
        while let Some(held) = self.0[..first]
            .last()
            .filter(|held| held.end >= whole.start)
        {
            whole.start = whole.start.min(held.start);
            whole.end = whole.end.max(held.end);
            first -= 1;
        }
        if first == after {
            self.0.insert(first, whole.clone());
        } else {
            self.0[first] = whole.clone();
            self.0.drain(first + 1..after);
        }
        whole
    }

    /// Removes all numbers below `bound`.
    pub fn remove_below(&mut self, bound: u64) {
        let gone = self.0.iter().take_while(|held| held.end <= bound).count();
        self.0.drain(..gone);
        if let Some(first) = self.0.first_mut() {
            first.start = first.start.max(bound);
        }
    }

    /// Removes the lowest interval.
    pub fn pop_lowest(&mut self) -> Option<Range<u64>> {
        (!self.0.is_empty()).then(|| self.0.remove(0))
    }

    /// The lowest interval.
    pub fn lowest(&self) -> Option<&Range<u64>> {
        self.0.first()
    }

    /// One above the highest number.
    pub fn end(&self) -> Option<u64> {
        self.0.last().map(|held| held.end)
    }

    /// The end of the interval that holds a number; the number itself if none does.
    pub fn end_of_run(&self, number: u64) -> u64 {
        let before = self.count_before(|held| held.start <= number);
        self.0[..before]
            .last()
            .map_or(number, |held| held.end.max(number))
    }

    /// Whether all of a range is in the set.
    pub fn contains(&self, range: &Range<u64>) -> bool {
        let before = self.count_before(|held| held.start <= range.start);
        self.0[..before]
            .last()
            .is_some_and(|held| held.end >= range.end)
    }

    /// From the highest interval to the lowest.
    pub fn descending(&self) -> impl Iterator<Item = &Range<u64>> {
        self.0.iter().rev()
    }

    /// How many numbers there are.
    pub fn total(&self) -> u64 {
        self.0.iter().map(|held| held.end - held.start).sum()
    }

    /// How many intervals there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many intervals, from the lowest, meet a condition that a prefix of them meets. Looks at
    /// the last first, where almost all changes are.
    fn count_before(&self, condition: impl Fn(&Range<u64>) -> bool) -> usize {
        match self.0.last() {
            Some(last) if condition(last) => self.0.len(),
            _ => self.0.partition_point(condition),
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
                let held: Vec<u64> = intervals.0.iter().flat_map(Clone::clone).collect();
                prop_assert_eq!(held, set.iter().copied().collect::<Vec<_>>());
                prop_assert!(intervals.0.windows(2).all(|pair| pair[0].end < pair[1].start));
            }
        }
    }
}
