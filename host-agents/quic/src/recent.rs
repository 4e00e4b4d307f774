// SPDX-License-Identifier: Apache-2.0
//! A map of recently used keys, in bounded memory and without a clock. Its hash is fast, and randomly seeded because
//! remote hosts choose the keys.

use std::collections::HashMap;
use std::hash::Hash;

use foldhash::quality::RandomState;

/// A map that keeps at least the `capacity` most recently updated keys, and at most twice as many.
#[derive(Debug)]
pub struct RecentMap<K, V> {
    capacity: usize,
    young: HashMap<K, V, RandomState>,
    old: HashMap<K, V, RandomState>,
}

impl<K: Eq + Hash, V: Copy> RecentMap<K, V> {
    /// Create an empty map.
    pub fn new(capacity: usize) -> Self {
        Self {
            capacity,
            young: HashMap::default(),
            old: HashMap::default(),
        }
    }

    /// Return the value of `key`.
    pub fn get(&self, key: &K) -> Option<V> {
        self.young.get(key).or_else(|| self.old.get(key)).copied()
    }

    /// Remove `key` and return its value.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        self.young.remove(key).or_else(|| self.old.remove(key))
    }

    /// Return whether the map has no keys.
    pub fn is_empty(&self) -> bool {
        self.young.is_empty() && self.old.is_empty()
    }

    /// Set the value of `key` to what `update` returns for the previous value.
    pub fn update(&mut self, key: K, update: impl FnOnce(Option<V>) -> V) {
        if let Some(value) = self.young.get_mut(&key) {
            *value = update(Some(*value));
            return;
        }
        let before = self.old.remove(&key);
        if self.young.len() == self.capacity {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, update(before));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recently_updated_keys_stay() {
        let mut map = RecentMap::new(4);
        map.update(0, |_| 'a');
        for key in 1..100i32 {
            map.update(key, |_| 'x');
            // Updated in every round, so never forgotten.
            assert_eq!(map.get(&0), Some('a'));
            map.update(0, |before| before.expect("key 0 stays"));
            assert!(map.young.len() + map.old.len() <= 8);
            assert!(((key - 2).max(0)..=key).all(|key| map.get(&key).is_some()));
        }
        assert_eq!(map.get(&50), None);
        for key in 0..100 {
            let had = map.get(&key);
            assert_eq!((map.remove(&key), map.get(&key)), (had, None));
        }
        assert!(map.is_empty());
    }
}
