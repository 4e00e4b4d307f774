//! A map that remembers the recent and forgets the rest, in bounded memory and without a clock.

use std::collections::HashMap;
use std::hash::Hash;

/// Remembers at least the last `capacity` keys used, at most twice as many.
#[derive(Debug)]
pub struct Recent<K, V> {
    capacity: usize,
    young: HashMap<K, V>,
    old: HashMap<K, V>,
}

impl<K: Eq + Hash, V: Copy + PartialEq> Recent<K, V> {
    /// An empty map.
    pub fn new(capacity: usize) -> Self {
        Self {
            capacity,
            young: HashMap::new(),
            old: HashMap::new(),
        }
    }

    /// The value of `key`.
    pub fn get(&self, key: &K) -> Option<V> {
        self.young.get(key).or_else(|| self.old.get(key)).copied()
    }

    /// Gives `key` a value; the one that it had.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        if let Some(here) = self.young.get_mut(&key) {
            return Some(std::mem::replace(here, value));
        }
        let before = self.old.remove(&key);
        if self.young.len() == self.capacity {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, value);
        before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recent_stay() {
        let mut map = Recent::new(4);
        assert_eq!(map.insert(0, 'a'), None);
        for key in 1..100i32 {
            map.insert(key, 'x');
            // Used all the time, so never forgotten.
            assert_eq!(map.insert(0, 'a'), Some('a'));
            assert!(map.young.len() + map.old.len() <= 8);
            assert!(((key - 2).max(0)..=key).all(|key| map.get(&key).is_some()));
        }
        assert_eq!(map.get(&50), None);
    }
}
