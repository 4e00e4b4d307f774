//! Match-action tables.

mod block;
mod blocks;
mod criteria;
mod entries;
mod exact;
mod key;
mod part;
mod pool;
mod profile;
mod relax;
mod space;
mod ternary;
#[cfg(test)]
mod tests;
mod trie;
mod tuple;

use smallvec::SmallVec;

use crate::Nanos;
use crate::entry::{CounterValue, EntryKey};
use crate::error::StateError;
use crate::extern_state::meter::Meter;
pub(crate) use criteria::Criteria;
pub(crate) use key::KeyShape;
pub(crate) use part::{ComputedPart, KeyPart};
pub(crate) use profile::{GroupState, Place, Profile};
use space::Space;

/// Multiplication folds all bits of a word into all bits of the hash.
#[inline]
fn hash(words: impl IntoIterator<Item = u64>) -> u64 {
    const SEED: u64 = 0x9e37_79b9_7f4a_7c15;
    const K: u64 = 0xd6e8_feb8_6659_fd93;
    words.into_iter().fold(SEED, |h, w| {
        let product = u128::from(h ^ w) * u128::from(K);
        (product as u64) ^ (product >> 64) as u64 ^ w.rotate_left(32)
    })
}

/// An action with its arguments, as 64-bit limbs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) action: u32,
    pub(crate) args: SmallVec<[u64; 3]>,
}

/// What an entry does.
#[derive(Debug, Clone)]
pub(crate) enum Target {
    Call(Call),
    /// A member of the table's profile, by slot.
    Member(u32),
    /// A group of the table's profile, by slot.
    Group(u32),
}

/// How long an entry may stay idle, and since when it is.
#[derive(Debug, Clone, Copy, Default)]
struct Idle {
    timeout: Nanos,
    last_hit: Nanos,
    /// When it was last reported; hits after it make it count anew.
    reported: Nanos,
}

/// A table's entries and default action.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    pub(crate) name: String,
    pub(crate) shape: KeyShape,
    space: Space,
    size: usize,
    with_counters: bool,
    with_meters: bool,
    with_idle: bool,
    targets: Vec<Option<Target>>,
    counters: Vec<CounterValue>,
    meters: Vec<Meter>,
    idle: Vec<Idle>,
    /// Entries with an idle time-out.
    mortal: usize,
    /// What the default entry does.
    pub(crate) default: Option<Target>,
    default_counter: CounterValue,
    default_meter: Meter,
}

/// What a table keeps for each entry.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Options {
    pub(crate) size: usize,
    pub(crate) counters: bool,
    pub(crate) meters: bool,
    pub(crate) idle: bool,
}

impl Table {
    pub(crate) fn new(name: &str, shape: KeyShape, options: Options) -> Self {
        Self {
            name: name.to_owned(),
            space: Space::new(&shape),
            shape,
            size: options.size,
            with_counters: options.counters,
            with_meters: options.meters,
            with_idle: options.idle,
            targets: Vec::new(),
            counters: Vec::new(),
            meters: Vec::new(),
            idle: Vec::new(),
            mortal: 0,
            default: None,
            default_counter: CounterValue::default(),
            default_meter: Meter::default(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.space.len()
    }

    fn what(&self) -> String {
        format!("entry of table {}", self.name)
    }

    /// The slot of the entry with this key.
    pub(crate) fn find(&self, key: &EntryKey) -> Result<u32, StateError> {
        let criteria = self.shape.encode(key)?;
        self.space
            .find(&criteria)
            .ok_or_else(|| StateError::NotFound { what: self.what() })
    }

    /// What an entry with this key asks for, if it could be inserted now.
    pub(crate) fn check_insert(
        &self,
        key: &EntryKey,
        idle_timeout: Nanos,
    ) -> Result<Criteria, StateError> {
        self.check_idle(idle_timeout)?;
        let criteria = self.shape.encode(key)?;
        if self.space.find(&criteria).is_some() {
            return Err(StateError::AlreadyExists { what: self.what() });
        }
        if self.space.len() >= self.size {
            return Err(StateError::Full {
                what: format!("table {}", self.name),
                size: self.size,
            });
        }
        Ok(criteria)
    }

    pub(crate) fn check_idle(&self, timeout: Nanos) -> Result<(), StateError> {
        if timeout == 0 || self.with_idle {
            return Ok(());
        }
        Err(StateError::Invalid {
            what: format!("table {}", self.name),
            reason: "an idle time-out was given, but the table does not support them".to_owned(),
        })
    }

    /// Inserts an entry that [`check_insert`](Self::check_insert) has passed.
    pub(crate) fn insert(
        &mut self,
        criteria: &Criteria,
        target: Target,
        idle_timeout: Nanos,
        now: Nanos,
    ) {
        let slot = self.space.insert(criteria, &self.shape);
        let slots = self.space.capacity();
        self.targets.resize(slots, None);
        self.targets[slot as usize] = Some(target);
        if self.with_counters {
            self.counters.resize(slots, CounterValue::default());
            self.counters[slot as usize] = CounterValue::default();
        }
        if self.with_meters {
            self.meters.resize(slots, Meter::default());
            self.meters[slot as usize] = Meter::default();
        }
        if self.with_idle {
            self.idle.resize(slots, Idle::default());
            self.set_idle(slot, idle_timeout, now);
        }
    }

    fn set_idle(&mut self, slot: u32, timeout: Nanos, now: Nanos) {
        if !self.with_idle {
            return;
        }
        let idle = &mut self.idle[slot as usize];
        self.mortal -= usize::from(idle.timeout != 0);
        self.mortal += usize::from(timeout != 0);
        *idle = Idle {
            timeout,
            last_hit: now,
            reported: now,
        };
    }

    /// Replaces what an entry does, and returns what it did.
    pub(crate) fn modify(
        &mut self,
        slot: u32,
        target: Target,
        idle_timeout: Nanos,
        now: Nanos,
    ) -> Target {
        self.set_idle(slot, idle_timeout, now);
        self.targets[slot as usize]
            .replace(target)
            .expect("the slot is used")
    }

    /// Removes an entry, and returns what it did.
    pub(crate) fn remove(&mut self, slot: u32) -> Target {
        self.set_idle(slot, 0, 0);
        self.space.remove(slot, &self.shape);
        self.targets[slot as usize]
            .take()
            .expect("the slot is used")
    }

    /// Used slots from `from` on, in order of number.
    pub(crate) fn slots(&self, from: usize) -> impl Iterator<Item = u32> {
        (from..self.space.capacity())
            .map(|s| s as u32)
            .filter(|&s| self.space.is_used(s))
    }

    pub(crate) fn seq(&self, slot: u32) -> u64 {
        self.space.seq(slot)
    }

    pub(crate) fn key(&self, slot: u32) -> EntryKey {
        let criteria = self.space.criteria(slot, &self.shape);
        self.shape.describe(&criteria)
    }

    pub(crate) fn target(&self, slot: u32) -> &Target {
        self.targets[slot as usize]
            .as_ref()
            .expect("the slot is used")
    }

    /// The counter of the entry in a slot, or of the default entry; `None` if the table has no counters.
    pub(crate) fn counter(&self, slot: Option<u32>) -> Option<&CounterValue> {
        match slot {
            Some(slot) => self.counters.get(slot as usize),
            None => self.with_counters.then_some(&self.default_counter),
        }
    }

    pub(crate) fn counter_mut(&mut self, slot: Option<u32>) -> Option<&mut CounterValue> {
        match slot {
            Some(slot) => self.counters.get_mut(slot as usize),
            None => self.with_counters.then_some(&mut self.default_counter),
        }
    }

    /// The meter of the entry in a slot, or of the default entry; `None` if the table has no meters.
    pub(crate) fn meter(&self, slot: Option<u32>) -> Option<&Meter> {
        match slot {
            Some(slot) => self.meters.get(slot as usize),
            None => self.with_meters.then_some(&self.default_meter),
        }
    }

    pub(crate) fn meter_mut(&mut self, slot: Option<u32>) -> Option<&mut Meter> {
        match slot {
            Some(slot) => self.meters.get_mut(slot as usize),
            None => self.with_meters.then_some(&mut self.default_meter),
        }
    }

    /// Idle time-out and time of the last hit.
    pub(crate) fn idle(&self, slot: u32) -> (Nanos, Nanos) {
        self.idle
            .get(slot as usize)
            .map_or((0, 0), |i| (i.timeout, i.last_hit))
    }

    /// Entries that have been idle for too long at `now`, marked as reported.
    pub(crate) fn poll_idle(&mut self, now: Nanos) -> Vec<u32> {
        if self.mortal == 0 {
            return Vec::new();
        }
        let expired = |i: &mut Idle| {
            let since = i.last_hit.max(i.reported);
            let expired = i.timeout != 0 && now.saturating_sub(since) >= i.timeout;
            if expired {
                i.reported = now;
            }
            expired
        };
        (0..)
            .zip(&mut self.idle)
            .filter_map(|(s, i)| expired(i).then_some(s))
            .collect()
    }

    /// The entry that a key hits.
    #[inline]
    pub(crate) fn hit(&self, key: &[u64]) -> Option<u32> {
        self.space.lookup(key, &self.shape)
    }

    /// Counts a packet that hits no entry.
    #[inline]
    pub(crate) fn miss(&mut self, len: u32) {
        if self.with_counters {
            self.default_counter.add(len);
        }
    }

    /// The entry that a key hits, after counting the hit or the miss.
    #[inline]
    pub(crate) fn lookup(&mut self, key: &[u64], len: u32, now: Nanos) -> Option<u32> {
        let Some(slot) = self.hit(key) else {
            self.miss(len);
            return None;
        };
        if self.with_counters {
            self.counters[slot as usize].add(len);
        }
        if self.with_idle {
            self.idle[slot as usize].last_hit = now;
        }
        Some(slot)
    }
}
