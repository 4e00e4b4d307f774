//! Which bytes of a stream have arrived.

use std::collections::BTreeMap;

/// A set of byte offsets that grows from 0, almost in order.
#[derive(Debug, Default)]
pub struct Ranges {
    prefix: u64,
    /// What is beyond the prefix, which mostly is nothing.
    islands: Option<Box<Islands>>,
}

#[derive(Debug, Default)]
struct Islands {
    /// Begin and end of each, apart from each other.
    ends: BTreeMap<u64, u64>,
    /// How many bytes these are.
    total: u64,
}

impl Ranges {
    /// Adds `from..to`.
    pub fn insert(&mut self, mut from: u64, mut to: u64) {
        if let Some(islands) = &mut self.islands {
            (from, to) = islands.join(from, to);
            if islands.ends.is_empty() {
                self.islands = None;
            }
        }
        if from <= self.prefix {
            self.prefix = self.prefix.max(to);
        } else {
            let islands = self.islands.get_or_insert_default();
            islands.ends.insert(from, to);
            islands.total += to - from;
        }
    }

    /// How many there are.
    pub fn total(&self) -> u64 {
        self.prefix + self.islands.as_ref().map_or(0, |islands| islands.total)
    }
}

impl Islands {
    /// Takes those that touch `from..to`; what it is with them.
    fn join(&mut self, mut from: u64, mut to: u64) -> (u64, u64) {
        while let Some((&begin, &end)) = self
            .ends
            .range(..=to)
            .next_back()
            .filter(|(_, end)| **end >= from)
        {
            self.ends.remove(&begin);
            self.total -= end - begin;
            (from, to) = (from.min(begin), to.max(end));
        }
        (from, to)
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
