//! Which bytes of a stream have arrived.

use std::collections::BTreeMap;

/// A set of byte offsets that grows from 0, almost in order.
#[derive(Debug, Default)]
pub struct Ranges {
    prefix: u64,
    /// Begin and end of what is beyond the prefix, apart from each other.
    islands: BTreeMap<u64, u64>,
    /// How many those are.
    beyond: u64,
}

impl Ranges {
    /// Adds `from..to`.
    pub fn insert(&mut self, mut from: u64, mut to: u64) {
        if self.islands.is_empty() && from <= self.prefix {
            self.prefix = self.prefix.max(to);
            return;
        }
        while let Some((&begin, &end)) = self
            .islands
            .range(..=to)
            .next_back()
            .filter(|(_, end)| **end >= from)
        {
            self.islands.remove(&begin);
            self.beyond -= end - begin;
            (from, to) = (from.min(begin), to.max(end));
        }
        if from <= self.prefix {
            self.prefix = self.prefix.max(to);
        } else {
            self.islands.insert(from, to);
            self.beyond += to - from;
        }
    }

    /// How many there are.
    pub fn total(&self) -> u64 {
        self.prefix + self.beyond
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn ranges_are_a_set(parts in prop::collection::vec((0u64..64, 0u64..16), 0..32)) {
            let (mut ranges, mut set) = (Ranges::default(), std::collections::BTreeSet::new());
            for (from, length) in parts {
                ranges.insert(from, from + length);
                set.extend(from..from + length);
                prop_assert_eq!(ranges.total(), set.len() as u64);
            }
        }
    }
}
