//! Tuple space search: entries with the same masks share a hash table, and the hash tables are tried in the
//! order of the best priority that each holds.
//!
//! One structure serves all match kinds. An exact table has one tuple; a longest-prefix table has one
//! a prefix length, whose priority is the length; ternary tables have one a combination of masks. Ranges
//! are masked by the bits that their ends share, and checked when the rest matches.

use std::collections::BTreeMap;

use hashbrown::HashTable;

use super::key::{Criteria, KeyShape};

/// No entry.
const NIL: u32 = u32::MAX;

#[derive(Debug, Clone)]
struct Tuple {
    masks: Vec<u64>,
    /// All bits count, so that keys need no masking.
    whole: bool,
    /// First entry of each chain of entries with equal values, best first.
    heads: HashTable<u32>,
    /// How many entries have each priority.
    priorities: BTreeMap<i32, u32>,
}

impl Tuple {
    fn best(&self) -> i32 {
        self.priorities
            .last_key_value()
            .map_or(i32::MIN, |(&p, _)| p)
    }
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    priority: i32,
    tuple: u32,
    /// Next entry with equal values, or the next free slot.
    next: u32,
    /// Order of insertion; 0 is a free slot.
    seq: u64,
}

/// The entries of a table, by slot number; a slot keeps its number for the entry's life.
#[derive(Debug, Clone)]
pub(crate) struct Space {
    words: usize,
    range_limbs: usize,
    /// Every bit of every field.
    full: Vec<u64>,
    tuples: Vec<Tuple>,
    /// Tuples with entries and their best priorities, best first.
    order: Vec<(i32, u32)>,
    slots: Vec<Slot>,
    values: Vec<u64>,
    ranges: Vec<u64>,
    free: u32,
    len: usize,
    last_seq: u64,
}

#[inline]
fn hash(key: &[u64]) -> u64 {
    const SEED: u64 = 0x9e37_79b9_7f4a_7c15;
    const K: u64 = 0xd6e8_feb8_6659_fd93;
    key.iter().fold(SEED, |h, &w| {
        let product = u128::from(h ^ w) * u128::from(K);
        (product as u64) ^ (product >> 64) as u64 ^ w.rotate_left(32)
    })
}

impl Space {
    pub(crate) fn new(shape: &KeyShape) -> Self {
        Self {
            words: shape.words,
            range_limbs: shape.range_limbs,
            full: shape.full_mask(),
            tuples: Vec::new(),
            order: Vec::new(),
            slots: Vec::new(),
            values: Vec::new(),
            ranges: Vec::new(),
            free: NIL,
            len: 0,
            last_seq: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Slots that exist, used or free.
    pub(crate) fn capacity(&self) -> usize {
        self.slots.len()
    }

    pub(crate) fn is_used(&self, slot: u32) -> bool {
        self.slots.get(slot as usize).is_some_and(|s| s.seq != 0)
    }

    /// Order of insertion of a used slot.
    pub(crate) fn seq(&self, slot: u32) -> u64 {
        self.slots[slot as usize].seq
    }

    pub(crate) fn values(&self, slot: u32) -> &[u64] {
        &self.values[slot as usize * self.words..][..self.words]
    }

    pub(crate) fn masks(&self, slot: u32) -> &[u64] {
        &self.tuples[self.slots[slot as usize].tuple as usize].masks
    }

    pub(crate) fn ranges(&self, slot: u32) -> &[u64] {
        &self.ranges[slot as usize * self.range_limbs..][..self.range_limbs]
    }

    pub(crate) fn priority(&self, slot: u32) -> i32 {
        self.slots[slot as usize].priority
    }

    #[inline]
    fn has_values(&self, slot: u32, values: &[u64]) -> bool {
        match values {
            [v] => self.values[slot as usize] == *v,
            _ => self.values(slot) == values,
        }
    }

    fn head(&self, tuple: u32, values: &[u64]) -> Option<u32> {
        let heads = &self.tuples[tuple as usize].heads;
        heads
            .find(hash(values), |&s| self.values(s) == values)
            .copied()
    }

    fn chain(&self, head: u32) -> impl Iterator<Item = u32> {
        let next = |&s: &u32| Some(self.slots[s as usize].next).filter(|&n| n != NIL);
        std::iter::successors(Some(head), next)
    }

    fn tuple_of(&self, masks: &[u64]) -> Option<u32> {
        self.tuples
            .iter()
            .position(|t| t.masks == masks)
            .map(|t| t as u32)
    }

    /// The entry with exactly these criteria.
    pub(crate) fn find(&self, c: &Criteria) -> Option<u32> {
        let head = self.head(self.tuple_of(&c.masks)?, &c.values)?;
        self.chain(head)
            .find(|&s| self.priority(s) == c.priority && self.ranges(s) == c.ranges)
    }

    /// Adds an entry whose criteria are new, and returns its slot.
    pub(crate) fn insert(&mut self, c: &Criteria) -> u32 {
        let tuple = self.tuple_of(&c.masks).unwrap_or_else(|| {
            self.tuples.push(Tuple {
                masks: c.masks.clone(),
                whole: c.masks == self.full,
                heads: HashTable::new(),
                priorities: BTreeMap::new(),
            });
            self.tuples.len() as u32 - 1
        });
        self.last_seq += 1;
        let new = Slot {
            priority: c.priority,
            tuple,
            next: NIL,
            seq: self.last_seq,
        };
        let slot = if self.free == NIL {
            self.slots.push(new);
            self.values.extend_from_slice(&c.values);
            self.ranges.extend_from_slice(&c.ranges);
            self.slots.len() as u32 - 1
        } else {
            let slot = self.free;
            let i = slot as usize;
            self.free = self.slots[i].next;
            self.slots[i] = new;
            self.values[i * self.words..][..self.words].copy_from_slice(&c.values);
            self.ranges[i * self.range_limbs..][..self.range_limbs].copy_from_slice(&c.ranges);
            slot
        };
        self.link(tuple, slot);
        self.len += 1;
        let priorities = &mut self.tuples[tuple as usize].priorities;
        *priorities.entry(c.priority).or_insert(0) += 1;
        self.reorder(tuple);
        slot
    }

    /// Puts a slot into its chain: higher priorities first, then older entries.
    fn link(&mut self, tuple: u32, slot: u32) {
        let priority = self.priority(slot);
        let (values, words) = (&self.values, self.words);
        let value = |s: u32| &values[s as usize * words..][..words];
        let heads = &mut self.tuples[tuple as usize].heads;
        let h = hash(value(slot));
        let Some(head) = heads.find_mut(h, |&s| value(s) == value(slot)) else {
            heads.insert_unique(h, slot, |&s| hash(value(s)));
            return;
        };
        if self.slots[*head as usize].priority < priority {
            self.slots[slot as usize].next = *head;
            *head = slot;
            return;
        }
        let mut at = *head;
        loop {
            let next = self.slots[at as usize].next;
            if next == NIL || self.slots[next as usize].priority < priority {
                self.slots[slot as usize].next = next;
                self.slots[at as usize].next = slot;
                return;
            }
            at = next;
        }
    }

    /// Removes the entry in a used slot.
    pub(crate) fn remove(&mut self, slot: u32) {
        let Slot {
            priority,
            tuple,
            next,
            ..
        } = self.slots[slot as usize];
        let head = self
            .head(tuple, self.values(slot))
            .expect("a used slot is in a chain");
        if head == slot {
            let (values, words) = (&self.values, self.words);
            let value = |s: u32| &values[s as usize * words..][..words];
            let heads = &mut self.tuples[tuple as usize].heads;
            let found = heads.find_entry(hash(value(slot)), |&s| s == slot);
            let mut entry = found.unwrap_or_else(|_| unreachable!("the head is in the hash table"));
            if next == NIL {
                entry.remove();
            } else {
                *entry.get_mut() = next;
            }
        } else {
            let before = self
                .chain(head)
                .find(|&s| self.slots[s as usize].next == slot);
            let before = before.expect("a used slot is in its chain");
            self.slots[before as usize].next = next;
        }
        self.slots[slot as usize] = Slot {
            priority: 0,
            tuple: 0,
            next: self.free,
            seq: 0,
        };
        self.free = slot;
        self.len -= 1;
        let priorities = &mut self.tuples[tuple as usize].priorities;
        if let Some(n) = priorities.get_mut(&priority) {
            *n -= 1;
            if *n == 0 {
                priorities.remove(&priority);
            }
        }
        self.reorder(tuple);
    }

    /// Brings a tuple to its place in the order after its best priority may have changed.
    fn reorder(&mut self, tuple: u32) {
        let best = self.tuples[tuple as usize].best();
        let at = self.order.iter().position(|&(_, t)| t == tuple);
        if let Some(i) = at {
            if self.order[i].0 == best {
                return;
            }
            self.order.remove(i);
        }
        if best != i32::MIN {
            let i = self
                .order
                .partition_point(|&(p, t)| p > best || p == best && t < tuple);
            self.order.insert(i, (best, tuple));
        }
    }

    /// The matching entry of highest priority; of several, the oldest. `masked` is scratch.
    #[inline]
    pub(crate) fn lookup(
        &self,
        key: &[u64],
        shape: &KeyShape,
        masked: &mut Vec<u64>,
    ) -> Option<u32> {
        let mut best: Option<(u32, Slot)> = None;
        for &(priority, t) in &self.order {
            if best.is_some_and(|(_, b)| b.priority > priority) {
                break;
            }
            let tuple = &self.tuples[t as usize];
            let probe = if tuple.whole {
                key
            } else {
                masked.clear();
                masked.extend(key.iter().zip(&tuple.masks).map(|(k, m)| k & m));
                masked.as_slice()
            };
            let found = tuple
                .heads
                .find(hash(probe), |&s| self.has_values(s, probe));
            let Some(mut slot) = found.copied() else {
                continue;
            };
            if self.range_limbs != 0 {
                match self
                    .chain(slot)
                    .find(|&s| shape.in_ranges(key, self.ranges(s)))
                {
                    Some(s) => slot = s,
                    None => continue,
                }
            }
            let new = self.slots[slot as usize];
            let better = best.is_none_or(|(_, b)| {
                new.priority > b.priority || new.priority == b.priority && new.seq < b.seq
            });
            if better {
                best = Some((slot, new));
            }
        }
        best.map(|(slot, _)| slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::{EntryKey, MatchField};
    use crate::info::{KeyInfo, MatchKind};
    use crate::rng::Rng;

    /// Every lookup gives what a scan over all entries gives, while entries come and go.
    #[test]
    fn agrees_with_a_scan() {
        let key = |name: &str, kind, width| KeyInfo {
            name: name.to_owned(),
            kind,
            width,
        };
        let shape = KeyShape::new(
            "t",
            &[
                key("a", MatchKind::Ternary, 6),
                key("b", MatchKind::Range, 5),
                key("c", MatchKind::Optional, 3),
            ],
        );
        let mut rng = Rng::new(1);
        let mut space = Space::new(&shape);
        let mut model: Vec<(u32, Criteria)> = Vec::new();
        for _ in 0..3000 {
            let mask = rng.uniform(0, 63);
            let low = rng.uniform(0, 31);
            let c = shape
                .encode(&EntryKey {
                    fields: vec![
                        MatchField::Ternary {
                            value: (rng.uniform(0, 63) & mask).into(),
                            mask: mask.into(),
                        },
                        MatchField::Range {
                            low: low.into(),
                            high: rng.uniform(low, 31).into(),
                        },
                        MatchField::Optional(
                            (rng.next() & 1 == 0).then(|| rng.uniform(0, 7).into()),
                        ),
                    ],
                    priority: rng.uniform(1, 20) as i32,
                })
                .unwrap();
            let known = model.iter().find(|(_, m)| *m == c).map(|(s, _)| *s);
            assert_eq!(space.find(&c), known);
            if known.is_none() {
                model.push((space.insert(&c), c));
            }
            if model.len() > 60 {
                let (slot, _) = model.remove(rng.uniform(0, 60) as usize);
                space.remove(slot);
            }
            assert_eq!(space.len(), model.len());
            let k = [rng.uniform(0, 63) << 58 | rng.uniform(0, 31) << 53 | rng.uniform(0, 7) << 50];
            let matches =
                |c: &Criteria| k[0] & c.masks[0] == c.values[0] && shape.in_ranges(&k, &c.ranges);
            let expected = model
                .iter()
                .filter(|(_, c)| matches(c))
                .max_by_key(|(s, c)| (c.priority, std::cmp::Reverse(space.seq(*s))))
                .map(|(s, _)| *s);
            assert_eq!(space.lookup(&k, &shape, &mut Vec::new()), expected);
        }
    }
}
