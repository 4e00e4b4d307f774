//! A map that remembers the recent and forgets the rest, in bounded memory and without a clock. Its hash is quick and seeded at random: others
//! choose the keys.

use std::collections::HashMap;
use std::hash::Hash;

use foldhash::quality::RandomState;

/// Remembers at least the last `capacity` keys used, at most twice as many.
#[derive(Debug)]
pub struct Recent<K, V> {
    capacity: usize,
    young: HashMap<K, V, RandomState>,
    old: HashMap<K, V, RandomState>,
}

impl<K: Eq + Hash, V: Copy> Recent<K, V> {
    /// An empty map.
    pub fn new(capacity: usize) -> Self {
        Self {
            capacity,
            young: HashMap::default(),
            old: HashMap::default(),
        }
    }

    /// The value of `key`.
    pub fn get(&self, key: &K) -> Option<V> {
        self.young.get(key).or_else(|| self.old.get(key)).copied()
    }

    /// Forgets `key`, and returns the value that it had.
    pub fn take(&mut self, key: &K) -> Option<V> {
        self.young.remove(key).or_else(|| self.old.remove(key))
    }

    /// Whether nothing is remembered.
    pub fn is_empty(&self) -> bool {
        self.young.is_empty() && self.old.is_empty()
    }

    /// Gives `key` the value that `change` makes of the one that it had.
    pub fn change(&mut self, key: K, change: impl FnOnce(Option<V>) -> V) {
        if let Some(here) = self.young.get_mut(&key) {
            *here = change(Some(*here));
            return;
        }
        let before = self.old.remove(&key);
        if self.young.len() == self.capacity {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, change(before));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recent_stay() {
        let mut map = Recent::new(4);
        map.change(0, |_| 'a');
        for key in 1..100i32 {
            map.change(key, |_| 'x');
            // Used all the time, so never forgotten.
            assert_eq!(map.get(&0), Some('a'));
            map.change(0, |before| before.expect("it is remembered"));
            assert!(map.young.len() + map.old.len() <= 8);
            assert!(((key - 2).max(0)..=key).all(|key| map.get(&key).is_some()));
        }
        assert_eq!(map.get(&50), None);
        for key in 0..100 {
            let had = map.get(&key);
            assert_eq!((map.take(&key), map.get(&key)), (had, None));
        }
        assert!(map.is_empty());
    }
}
