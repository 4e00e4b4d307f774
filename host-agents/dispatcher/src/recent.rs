//! Where recent first flights went: for their packets that name no service, and so that later ones need no decryption. Its
//! memory is fixed; what is lost is chosen anew, by the same function.

use crate::choice::Targets;

/// A table of two places a key, of which the one longer unused gives way.
#[derive(Debug)]
pub struct Recent {
    /// In each pair the more recently used is first. A key of 0 is none.
    pairs: Box<[[(u64, Targets); 2]]>,
}

impl Recent {
    /// For about `capacity` flights.
    pub fn new(capacity: usize) -> Self {
        let pairs = (capacity / 2).max(1).next_power_of_two();
        Self {
            pairs: vec![Default::default(); pairs].into(),
        }
    }

    fn pair(&mut self, key: u64) -> &mut [(u64, Targets); 2] {
        let at = key as usize & (self.pairs.len() - 1);
        &mut self.pairs[at]
    }

    /// Where the flight of `key` went.
    #[inline]
    pub fn get(&mut self, key: u64) -> Option<Targets> {
        let pair = self.pair(key);
        if pair[0].0 != key {
            if pair[1].0 != key {
                return None;
            }
            pair.swap(0, 1);
        }
        Some(pair[0].1)
    }

    /// Remembers where it went.
    #[inline]
    pub fn put(&mut self, key: u64, targets: Targets) {
        let pair = self.pair(key);
        if pair[0].0 != key {
            pair[1] = pair[0];
        }
        pair[0] = (key, targets);
    }
}
