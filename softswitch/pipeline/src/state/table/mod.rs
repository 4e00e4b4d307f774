// SPDX-License-Identifier: Apache-2.0
//! Match-action tables.

mod block;
mod blocks;
mod cells;
mod entries;
mod exact;
mod pool;
mod profile;
mod records;
mod relax;
mod space;
mod ternary;
#[cfg(test)]
mod tests;
mod trie;
mod tuple;

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use smallvec::SmallVec;

use crate::Nanos;
use crate::entry::{CounterValue, EntryKey};
use crate::error::StateError;
use crate::program::call::{Call, CallRef};
use crate::program::criteria::Criteria;
use crate::program::key::KeyShape;
use crate::state::meter::Meter;
use crate::state::view::TableView;
pub(crate) use profile::{GroupState, Place, Profile};
use records::Records;
pub(crate) use records::{NO_ACTION, record};
use space::Space;
use trie::Trie;
pub(crate) use trie::{MATCHING, MORE, REST, REST_LEN, STRIDE};

/// Width in bits of the slot in a handle, as in BMv2.
const SLOT_BITS: u32 = 24;
/// The largest slot that a handle can denote.
const MAX_SLOT: u32 = (1 << SLOT_BITS) - 1;

/// Time during which lanes do not note further hits of an entry, because each note moves the cell between processors.
const IDLE_RESOLUTION: Nanos = 1_000_000;

/// Initial value and factor of the multiplicative hash.
pub(crate) const HASH: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xd6e8_feb8_6659_fd93];

/// Returns the multiplicative hash, which mixes all bits of a word into all bits of the hash.
#[inline]
fn hash(words: impl IntoIterator<Item = u64>) -> u64 {
    let [seed, factor] = HASH;
    words.into_iter().fold(seed, |h, w| {
        let product = u128::from(h ^ w) * u128::from(factor);
        (product as u64) ^ (product >> 64) as u64 ^ w.rotate_left(32)
    })
}

/// The action of an entry.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Target<C = Call> {
    Call(C),
    /// A member of the table's profile, by slot.
    Member(u32),
    /// A group of the table's profile, by slot.
    Group(u32),
}

impl Target<CallRef<'_>> {
    fn to_owned(self) -> Target {
        match self {
            Self::Call(call) => Target::Call(Call {
                action: call.action,
                args: SmallVec::from_slice(call.args),
            }),
            Self::Member(member) => Target::Member(member),
            Self::Group(group) => Target::Group(group),
        }
    }
}

/// An entry's idle time-out and the time since which it is idle.
#[derive(Debug, Default)]
struct Idle {
    timeout: Nanos,
    /// Atomic, because lanes write it.
    last_hit: AtomicU64,
    /// Time of the last report; a later hit restarts the time-out.
    reported: Nanos,
}

/// A table's entries and default action.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) name: String,
    pub(crate) shape: KeyShape,
    space: Space,
    size: usize,
    with_counters: bool,
    with_meters: bool,
    with_idle: bool,
    targets: Records,
    /// By record number, as are the meters.
    counters: Vec<CounterValue>,
    meters: Vec<Mutex<Meter>>,
    idle: Vec<Idle>,
    /// Entries with an idle time-out.
    mortal: usize,
    /// Addresses in `space`, `targets` and `counters`.
    pub(crate) view: TableView,
}

/// The data that a table keeps per entry.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Options {
    pub(crate) size: usize,
    pub(crate) counters: bool,
    pub(crate) meters: bool,
    pub(crate) idle: bool,
}

impl Table {
    pub(crate) fn new(name: &str, shape: KeyShape, options: Options) -> Self {
        let mut table = Self {
            name: name.to_owned(),
            space: Space::new(&shape),
            shape,
            size: options.size,
            with_counters: options.counters,
            with_meters: options.meters,
            with_idle: options.idle,
            targets: Records::new(),
            counters: vec![CounterValue::default(); usize::from(options.counters)],
            meters: std::iter::repeat_with(Mutex::default)
                .take(options.meters.into())
                .collect(),
            idle: Vec::new(),
            mortal: 0,
            view: TableView::default(),
        };
        table.look();
        table
    }

    /// Renews the view for native code; must be called after each change of entries or meters.
    fn look(&mut self) {
        let default_meter = self.meters.first_mut();
        let meters_misses = default_meter.is_some_and(|m| m.get_mut().config().is_some());
        let trie = self.space.trie().map(Trie::parts);
        self.view = TableView {
            len: self.len() as u64,
            meters_misses: meters_misses.into(),
            dense: self.space.dense().map_or(std::ptr::null(), <[u32]>::as_ptr),
            cells: match self.space.cells() {
                [] => std::ptr::null(),
                cells => cells.as_ptr(),
            },
            cells_mask: (self.space.cells().len() as u64).wrapping_sub(1),
            entries: self.space.records().as_ptr(),
            root: trie.map_or(std::ptr::null(), |(root, _, _)| root),
            nodes: trie.map_or(std::ptr::null(), |(_, nodes, _)| nodes.as_ptr()),
            items: trie.map_or(std::ptr::null(), |(_, _, items)| items.as_ptr()),
            records: self.targets.words().as_ptr(),
            record_bytes: self.targets.stride() * size_of::<u64>(),
            counters: self.counters.as_mut_ptr(),
        };
    }

    pub(crate) fn len(&self) -> usize {
        self.space.len()
    }

    /// Sets the bits of the exact key that matter, as the values of a key; `None` for all. Packets and entries ignore the
    /// others.
    pub(crate) fn set_key_mask(&mut self, mask: Option<&EntryKey>) -> Result<(), StateError> {
        self.check_no_entries()?;
        let mask = mask.map(|mask| self.shape.encode(mask)).transpose()?;
        let mask = mask.map(|criteria| criteria.values.into_boxed_slice());
        let is_exact = self.space.set_mask(mask);
        self.look();
        match is_exact {
            true => Ok(()),
            false => Err(StateError::Invalid {
                what: format!("table {}", self.name),
                reason: "only exact keys have masks".to_owned(),
            }),
        }
    }

    /// Checks that the mask of the key can change.
    pub(crate) fn check_no_entries(&self) -> Result<(), StateError> {
        if self.len() == 0 {
            return Ok(());
        }
        Err(StateError::Invalid {
            what: format!("table {}", self.name),
            reason: "the mask of the key can change only without entries".to_owned(),
        })
    }

    fn what(&self) -> String {
        format!("entry of table {}", self.name)
    }

    /// Returns the slot of the entry with this key.
    pub(crate) fn find(&self, key: &EntryKey) -> Result<u32, StateError> {
        let criteria = self.shape.encode(key)?;
        self.space
            .find(&criteria)
            .ok_or_else(|| StateError::NotFound { what: self.what() })
    }

    /// Returns the criteria of an entry with this key if it could be inserted now.
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
            reason: "the table does not support idle time-outs".to_owned(),
        })
    }

    /// Inserts an entry that [`check_insert`](Self::check_insert) has passed, and returns its slot.
    pub(crate) fn insert(
        &mut self,
        criteria: &Criteria,
        target: Target,
        idle_timeout: Nanos,
        now: Nanos,
    ) -> u32 {
        let slot = self.space.insert(criteria, &self.shape);
        let slots = self.space.capacity();
        self.targets.set(Some(slot), Some(&target));
        if self.with_counters {
            self.counters.resize(1 + slots, CounterValue::default());
            self.counters[record(Some(slot))] = CounterValue::default();
        }
        if self.with_meters {
            self.meters.resize_with(1 + slots, Mutex::default);
            self.meters[record(Some(slot))] = Mutex::default();
        }
        if self.with_idle {
            self.idle.resize_with(slots, Idle::default);
            self.set_idle(slot, idle_timeout, now);
        }
        self.look();
        slot
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
            last_hit: now.into(),
            reported: now,
        };
    }

    /// Replaces an entry's action, and returns the previous one.
    pub(crate) fn modify(
        &mut self,
        slot: u32,
        target: Target,
        idle_timeout: Nanos,
        now: Nanos,
    ) -> Target {
        self.set_idle(slot, idle_timeout, now);
        let old = self.target(slot).to_owned();
        self.targets.set(Some(slot), Some(&target));
        self.look();
        old
    }

    /// Returns the default action, if any.
    pub(crate) fn default(&self) -> Option<Target<CallRef<'_>>> {
        self.targets.get(None)
    }

    /// Replaces the default action, and returns the previous one.
    pub(crate) fn set_default(&mut self, target: Option<&Target>) -> Option<Target> {
        let old = self.default().map(Target::to_owned);
        self.targets.set(None, target);
        self.look();
        old
    }

    /// Removes an entry, and returns its action.
    pub(crate) fn remove(&mut self, slot: u32) -> Target {
        self.set_idle(slot, 0, 0);
        self.space.remove(slot, &self.shape);
        let old = self.target(slot).to_owned();
        self.targets.set(Some(slot), None);
        self.look();
        old
    }

    /// Returns the used slots from `from` on, in ascending order.
    pub(crate) fn slots(&self, from: usize) -> impl Iterator<Item = u32> {
        (from..self.space.capacity())
            .map(|s| s as u32)
            .filter(|&s| self.space.is_used(s))
    }

    /// Returns the handle of a used slot: the slot's number, with the number of earlier entries modulo 256 in the upper 8 bits.
    pub(crate) fn handle(&self, slot: u32) -> u32 {
        u32::from(self.space.version(slot)) << SLOT_BITS | slot & MAX_SLOT
    }

    /// Returns the slot of the entry with a handle.
    pub(crate) fn slot_of(&self, handle: u32) -> Result<u32, StateError> {
        let slot = handle & MAX_SLOT;
        if !self.space.is_used(slot) {
            return Err(StateError::NotFound { what: self.what() });
        }
        match u32::from(self.space.version(slot)) == handle >> SLOT_BITS {
            true => Ok(slot),
            false => Err(StateError::Expired { what: self.what() }),
        }
    }

    pub(crate) fn seq(&self, slot: u32) -> u64 {
        self.space.seq(slot)
    }

    pub(crate) fn key(&self, slot: u32) -> EntryKey {
        let criteria = self.space.criteria(slot, &self.shape);
        self.shape.describe(&criteria)
    }

    pub(crate) fn target(&self, slot: u32) -> Target<CallRef<'_>> {
        self.targets.get(Some(slot)).expect("the slot is used")
    }

    /// Returns the counter of the entry in a slot, or of the default entry; `None` if the table does not have counters.
    pub(crate) fn counter(&self, slot: Option<u32>) -> Option<&CounterValue> {
        self.counters.get(record(slot))
    }

    pub(crate) fn counter_mut(&mut self, slot: Option<u32>) -> Option<&mut CounterValue> {
        self.counters.get_mut(record(slot))
    }

    /// Returns the state of the meter of the entry in a slot, or of the default entry; `None` if the table does not have
    /// meters.
    pub(crate) fn meter(&self, slot: Option<u32>) -> Option<Meter> {
        self.meter_cell(slot).map(|cell| cell.lock().clone())
    }

    /// Returns the meter for packets of several threads.
    pub(crate) fn meter_cell(&self, slot: Option<u32>) -> Option<&Mutex<Meter>> {
        self.meters.get(record(slot))
    }

    pub(crate) fn meter_mut(&mut self, slot: Option<u32>) -> Option<&mut Meter> {
        self.meters.get_mut(record(slot)).map(Mutex::get_mut)
    }

    /// Changes the meter of the entry in a slot, or of the default entry; `None` if the table does not have meters.
    pub(crate) fn change_meter(
        &mut self,
        slot: Option<u32>,
        change: impl FnOnce(&mut Meter),
    ) -> Option<()> {
        change(self.meter_mut(slot)?);
        self.look();
        Some(())
    }

    /// Returns the number of counters: one per record, or none.
    pub(super) fn counters(&self) -> usize {
        self.counters.len()
    }

    /// Returns the idle time-out and the time of the last hit.
    pub(crate) fn idle(&self, slot: u32) -> (Nanos, Nanos) {
        self.idle
            .get(slot as usize)
            .map_or((0, 0), |i| (i.timeout, i.last_hit.load(Ordering::Relaxed)))
    }

    /// Returns the keys of the entries with an idle time-out, and the times of their last hits.
    pub(crate) fn hits(&self) -> impl Iterator<Item = (EntryKey, Nanos)> {
        let idle = if self.mortal == 0 {
            &[]
        } else {
            &self.idle[..]
        };
        let mortal = (0..).zip(idle).filter(|(_, i)| i.timeout != 0);
        mortal.map(|(slot, i)| (self.key(slot), i.last_hit.load(Ordering::Relaxed)))
    }

    /// Notes a hit of an entry at a time, if it exists.
    pub(crate) fn hit_at(&mut self, key: &EntryKey, time: Nanos) {
        if let Ok(slot) = self.find(key)
            && let Some(idle) = self.idle.get_mut(slot as usize)
        {
            let last_hit = idle.last_hit.get_mut();
            *last_hit = time.max(*last_hit);
        }
    }

    /// Returns the entries whose idle time-out has expired at `now`, and marks them as reported. With each, true if it was
    /// reported before, and has had no hit since.
    pub(crate) fn poll_idle(&mut self, now: Nanos) -> Vec<(u32, bool)> {
        if self.mortal == 0 {
            return Vec::new();
        }
        let expired = |i: &mut Idle| {
            let last_hit = *i.last_hit.get_mut();
            let since = last_hit.max(i.reported);
            let has_expired = i.timeout != 0 && now.saturating_sub(since) >= i.timeout;
            has_expired.then(|| std::mem::replace(&mut i.reported, now) > last_hit)
        };
        (0..)
            .zip(&mut self.idle)
            .filter_map(|(slot, i)| Some((slot, expired(i)?)))
            .collect()
    }

    /// Returns the entry that a key hits.
    #[inline]
    pub(crate) fn hit(&self, key: &[u64]) -> Option<u32> {
        self.space.lookup(key, &self.shape)
    }

    /// Counts a packet that hits no entry.
    #[inline]
    pub(crate) fn miss(&mut self, len: u32) {
        if self.with_counters {
            self.counters[record(None)].add(len);
        }
    }

    /// Counts the hit or the miss, and returns the entry that a key hits.
    #[inline]
    pub(crate) fn lookup(&mut self, key: &[u64], len: u32, now: Nanos) -> Option<u32> {
        let Some(slot) = self.hit(key) else {
            self.miss(len);
            return None;
        };
        if self.with_counters {
            self.counters[record(Some(slot))].add(len);
        }
        if self.with_idle {
            *self.idle[slot as usize].last_hit.get_mut() = now;
        }
        Some(slot)
    }

    /// Returns the entry that a lane's key hits. The lane counts the hit.
    #[inline]
    pub(super) fn lookup_in_lane(&self, key: &[u64], now: Nanos) -> Option<u32> {
        let slot = self.hit(key)?;
        if let Some(idle) = self.idle.get(slot as usize) {
            let last_hit = idle.last_hit.load(Ordering::Relaxed);
            if now.saturating_sub(last_hit) >= IDLE_RESOLUTION {
                idle.last_hit.store(now, Ordering::Relaxed);
            }
        }
        Some(slot)
    }
}
