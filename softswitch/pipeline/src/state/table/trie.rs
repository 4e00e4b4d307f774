// SPDX-License-Identifier: Apache-2.0
//! Longest-prefix match: a tree bitmap (Eatherton, Varghese, Dittia: Tree Bitmap, ACM SIGCOMM CCR 34(2), 2004), six
//! bits per node, in which a subtree with a single entry is replaced by that entry.
//!
//! An entry is a prefix of the key as a whole; exact fields come first. The depth of the trie depends on the common
//! prefixes of the entries, not on their lengths.

use smallvec::SmallVec;

use super::entries::Entries;
use super::pool::Pool;
use crate::program::key::KeyShape;
use crate::state::view::{TrieItem as Item, TrieNode as Node};

/// Number of bits per node.
pub(crate) const STRIDE: usize = 6;

/// For each value of a node's bits, the set of matching prefixes of `0..STRIDE` bits. Prefix `p` of `n` bits has number
/// `2^n - 1 + p`, so the longest prefix has the highest number.
pub(crate) static MATCHING: [u64; 64] = {
    let mut sets = [0; 64];
    let mut chunk = 0;
    while chunk < 64 {
        let mut bits = 0;
        while bits < STRIDE {
            sets[chunk] |= 1 << ((1 << bits) - 1 + (chunk >> (STRIDE - bits)));
            bits += 1;
        }
        chunk += 1;
    }
    sets
};

/// Returns the number of ones in a set below position `n`.
#[inline]
fn below(set: u64, n: u32) -> u32 {
    (set & ((1 << n) - 1)).count_ones()
}

impl Node {
    #[inline]
    fn leaf(&self, chunk: u32) -> u32 {
        self.items + self.prefixes.count_ones() + below(self.leaves, chunk)
    }

    #[inline]
    fn child(&self, chunk: u32) -> u32 {
        self.nodes + below(self.children, chunk)
    }

    fn len(&self) -> usize {
        (self.prefixes.count_ones() + self.leaves.count_ones()) as usize
    }
}

/// The position of an entry in a node.
#[derive(Debug, Clone, Copy)]
enum Seat {
    Prefix(u32),
    Leaf(u32),
}

#[derive(Debug, Clone)]
pub(super) struct Trie {
    nodes: Pool<Node>,
    items: Pool<Item>,
    root: u32,
    /// The first used bit of the key.
    first: usize,
    /// The first bit of the longest-prefix field.
    prefix: usize,
}

/// Number of last bits in [`Item::rest`] that are the number of the others.
pub(crate) const REST_LEN: u32 = 5;
/// Maximum number of an entry's bits in an item.
pub(crate) const REST: usize = 32 - REST_LEN as usize;
/// The number that means that the bits do not fit.
pub(crate) const MORE: u32 = (1 << REST_LEN) - 1;

/// Returns an item's bits from `at` to `end`.
fn rest(values: &[u64], at: usize, end: usize) -> u32 {
    match end - at {
        len @ 0..=REST => bits(values, at, REST) << REST_LEN | len as u32,
        _ => MORE,
    }
}

/// Returns `n` bits, at most 32, of a key from bit `at`; bits beyond the end are zero.
#[inline]
fn bits(key: &[u64], at: usize, n: usize) -> u32 {
    let (word, bit) = (at / 64, at % 64);
    let mut bits = key.get(word).map_or(0, |k| k << bit);
    if bit > 64 - n && word + 1 < key.len() {
        bits |= key[word + 1] >> (64 - bit);
    }
    (bits >> (64 - n)) as u32
}

/// Returns true if two keys agree before bit `end`.
#[inline]
fn agree(a: &[u64], b: &[u64], end: usize) -> bool {
    let (full, rest) = (end / 64, end % 64);
    a[..full] == b[..full] && (rest == 0 || (a[full] ^ b[full]) >> (64 - rest) == 0)
}

impl Trie {
    pub(super) fn new(shape: &KeyShape) -> Self {
        let mut nodes = Pool::new();
        let root = nodes.insert(0, 0, 0, Node::default());
        Self {
            nodes,
            items: Pool::new(),
            root,
            first: shape.first_bit(),
            prefix: shape.prefix_bit().expect("the table has a prefix field"),
        }
    }

    /// Returns the root, the nodes and the items for native code.
    pub(super) fn parts(&self) -> (&Node, &[Node], &[Item]) {
        let nodes = self.nodes.as_slice();
        (&nodes[self.root as usize], nodes, self.items.as_slice())
    }

    /// Returns the bit after an entry's prefix, whose length is its priority.
    #[inline]
    fn end(&self, priority: i32) -> usize {
        self.prefix + priority as usize
    }

    /// Returns the entry with the longest matching prefix.
    #[inline]
    pub(super) fn lookup(&self, entries: &Entries, key: &[u64]) -> Option<u32> {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("popcnt") {
            // SAFETY: the processor has the instruction.
            return unsafe { self.walk_popcnt(entries, key) };
        }
        self.walk(entries, key)
    }

    /// Looks up a key with the `popcnt` instruction, which the oldest x86-64 processors lack.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "popcnt")]
    fn walk_popcnt(&self, entries: &Entries, key: &[u64]) -> Option<u32> {
        self.walk(entries, key)
    }

    #[inline(always)]
    fn walk(&self, entries: &Entries, key: &[u64]) -> Option<u32> {
        let mut best = None;
        let mut node = self.nodes.get(self.root);
        let mut at = self.first;
        loop {
            let c = bits(key, at, STRIDE);
            at += STRIDE;
            let matching = node.prefixes & MATCHING[c as usize];
            if matching != 0 {
                best = Some((node, matching));
            }
            if node.children >> c & 1 != 0 {
                node = self.nodes.get(node.child(c));
                continue;
            }
            if node.leaves >> c & 1 != 0 {
                let leaf = *self.items.get(node.leaf(c));
                if self.is_prefix(leaf, entries, key, at) {
                    return Some(leaf.slot);
                }
            }
            let (node, matching) = best?;
            let longest = 63 - matching.leading_zeros();
            let item = self.items.get(node.items + below(node.prefixes, longest));
            return Some(item.slot);
        }
    }

    /// Returns true if a leaf's bits from `at` on equal the key's.
    #[inline(always)]
    fn is_prefix(&self, leaf: Item, entries: &Entries, key: &[u64], at: usize) -> bool {
        let len = leaf.rest & MORE;
        if len == MORE {
            let end = self.end(entries.priority(leaf.slot));
            return agree(entries.values(leaf.slot), key, end);
        }
        let differ = bits(key, at, REST) ^ leaf.rest >> REST_LEN;
        differ >> (REST as u32 - len) == 0
    }

    /// Returns the number of a prefix that ends before bit `end` in a node that begins at bit `at`.
    fn number(values: &[u64], at: usize, end: usize) -> u32 {
        let bits = end - at;
        let chunk = self::bits(values, at, STRIDE);
        (1 << bits) - 1 + (chunk >> (STRIDE - bits))
    }

    /// Returns the position of an entry in a node that begins at bit `at`, if the position is free.
    fn seat(&self, values: &[u64], at: usize, end: usize) -> Seat {
        if end < at + STRIDE {
            Seat::Prefix(Self::number(values, at, end))
        } else {
            Seat::Leaf(bits(values, at, STRIDE))
        }
    }

    /// Returns the entry with exactly this prefix.
    pub(super) fn find(&self, entries: &Entries, values: &[u64], priority: i32) -> Option<u32> {
        let end = self.end(priority);
        let mut node = self.nodes.get(self.root);
        let mut at = self.first;
        loop {
            match self.seat(values, at, end) {
                Seat::Prefix(n) => {
                    let slot = || self.items.get(node.items + below(node.prefixes, n)).slot;
                    return (node.prefixes >> n & 1 != 0).then(slot);
                }
                Seat::Leaf(c) if node.children >> c & 1 != 0 => {
                    node = self.nodes.get(node.child(c))
                }
                Seat::Leaf(c) if node.leaves >> c & 1 != 0 => {
                    let slot = self.items.get(node.leaf(c)).slot;
                    let same = entries.priority(slot) == priority && entries.values(slot) == values;
                    return same.then_some(slot);
                }
                Seat::Leaf(_) => return None,
            }
            at += STRIDE;
        }
    }

    pub(super) fn insert(&mut self, entries: &Entries, slot: u32) {
        let values = entries.values(slot);
        let end = self.end(entries.priority(slot));
        let (mut i, mut at) = (self.root, self.first);
        loop {
            let seat = self.seat(values, at, end);
            let node = *self.nodes.get(i);
            match seat {
                Seat::Leaf(c) if node.children >> c & 1 != 0 => i = node.child(c),
                Seat::Leaf(c) if node.leaves >> c & 1 != 0 => {
                    let other = self.items.get(node.leaf(c)).slot;
                    self.leave(i, seat);
                    i = self.grow(i, c);
                    self.sit(i, at + STRIDE, entries, other);
                }
                _ => return self.sit(i, at, entries, slot),
            }
            at += STRIDE;
        }
    }

    pub(super) fn remove(&mut self, entries: &Entries, slot: u32) {
        let values = entries.values(slot);
        let end = self.end(entries.priority(slot));
        let (mut i, mut at) = (self.root, self.first);
        let mut path: SmallVec<[(u32, u32); 32]> = SmallVec::new();
        loop {
            let seat = self.seat(values, at, end);
            match seat {
                Seat::Leaf(c) if self.nodes.get(i).children >> c & 1 != 0 => {
                    path.push((i, c));
                    i = self.nodes.get(i).child(c);
                    at += STRIDE;
                }
                _ => {
                    self.leave(i, seat);
                    break;
                }
            }
        }
        // A subtree with a single entry left is replaced by that entry.
        while let Some((parent, c)) = path.pop() {
            let node = *self.nodes.get(i);
            if node.children != 0 || node.len() != 1 {
                return;
            }
            let last = self.items.get(node.items).slot;
            self.items.remove(node.items, 1, 0);
            self.shrink(parent, c);
            at -= STRIDE;
            self.sit(parent, at, entries, last);
            i = parent;
        }
    }

    /// Inserts an entry into a free position of a node that begins at bit `at`.
    fn sit(&mut self, node: u32, at: usize, entries: &Entries, slot: u32) {
        let values = entries.values(slot);
        let end = self.end(entries.priority(slot));
        let seat = self.seat(values, at, end);
        let node = self.nodes.get_mut(node);
        let (start, len) = (node.items, node.len());
        let (place, rest) = match seat {
            Seat::Prefix(n) => {
                let place = below(node.prefixes, n);
                node.prefixes |= 1 << n;
                (place, MORE)
            }
            Seat::Leaf(c) => {
                let place = node.leaf(c) - start;
                node.leaves |= 1 << c;
                (place, rest(values, at + STRIDE, end))
            }
        };
        node.items = self
            .items
            .insert(start, len, place as usize, Item { slot, rest });
    }

    fn leave(&mut self, node: u32, seat: Seat) {
        let node = self.nodes.get_mut(node);
        let at = match seat {
            Seat::Prefix(n) => below(node.prefixes, n),
            Seat::Leaf(c) => node.leaf(c) - node.items,
        };
        node.items = self.items.remove(node.items, node.len(), at as usize);
        match seat {
            Seat::Prefix(n) => node.prefixes &= !(1 << n),
            Seat::Leaf(c) => node.leaves &= !(1 << c),
        }
    }

    /// Adds an empty child to a node.
    fn grow(&mut self, i: u32, chunk: u32) -> u32 {
        let node = *self.nodes.get(i);
        let (len, at) = (node.children.count_ones(), below(node.children, chunk));
        let start = self
            .nodes
            .insert(node.nodes, len as usize, at as usize, Node::default());
        let node = self.nodes.get_mut(i);
        node.nodes = start;
        node.children |= 1 << chunk;
        start + at
    }

    /// Removes an empty child from a node.
    fn shrink(&mut self, i: u32, chunk: u32) {
        let node = *self.nodes.get(i);
        let (len, at) = (node.children.count_ones(), below(node.children, chunk));
        let start = self.nodes.remove(node.nodes, len as usize, at as usize);
        let node = self.nodes.get_mut(i);
        node.nodes = start;
        node.children &= !(1 << chunk);
    }
}
