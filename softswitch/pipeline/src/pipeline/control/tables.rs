// SPDX-License-Identifier: Apache-2.0
//! Control-plane access to tables: entries, default actions, idle time-outs.

use std::borrow::Borrow;

use smallvec::SmallVec;

use super::no_such;
use crate::Nanos;
use crate::entry::{ActionCall, Entry, EntryAction, EntryKey, EntryState, WeightedAction};
use crate::error::StateError;
use crate::info::{Implementation, TableId, TableInfo};
use crate::pipeline::Pipeline;
use crate::program::call::{Call, CallRef, pack, unpack};
use crate::program::criteria::Criteria;
use crate::state::table::{Profile, Table, Target};
use crate::value::Value;

type Result<T> = std::result::Result<T, StateError>;

/// The match fields of a packet for one table, packed for repeated lookups.
#[derive(Debug, Clone)]
pub struct LookupKey {
    table: TableId,
    words: SmallVec<[u64; 4]>,
}

/// An entry's action after all checks, before any change.
enum Checked {
    Target(Target),
    /// The actions of a set, and whether they are chosen at random.
    OneShot(Vec<(Call, u32, Option<u32>)>, bool),
}

impl Pipeline {
    pub(super) fn table(&self, id: TableId) -> Result<(&TableInfo, &Table)> {
        let info = self.program.info().tables.get(id.index());
        let table = self.state().tables.get(id.index());
        info.zip(table).ok_or_else(|| no_such("table", id.0))
    }

    pub(super) fn table_mut(&mut self, id: TableId) -> Result<&mut Table> {
        self.core
            .state
            .tables
            .write()
            .get_mut(id.index())
            .ok_or_else(|| no_such("table", id.0))
    }

    fn writable(&self, id: TableId) -> Result<(&TableInfo, &Table)> {
        let (info, table) = self.table(id)?;
        if info.const_entries {
            return Err(StateError::Constant {
                table: info.name.clone(),
                what: "entries",
            });
        }
        Ok((info, table))
    }

    fn check_action(&self, info: &TableInfo, action: &EntryAction) -> Result<Checked> {
        let allowed = |a| info.actions.iter().any(|&(_, id)| id == a);
        let pack = |call| pack(self.program.info(), &info.name, allowed, call);
        let profile = match info.implementation {
            Implementation::Direct => None,
            Implementation::Profile(p) => Some(p.index()),
        };
        let selector = profile.is_some_and(|p| self.program.info().profiles[p].selector);
        let bad = |reason: &str| {
            Err(StateError::BadAction {
                table: info.name.clone(),
                reason: reason.to_owned(),
            })
        };
        match (action, profile) {
            (EntryAction::Direct(call), None) => Ok(Checked::Target(Target::Call(pack(call)?))),
            (EntryAction::Direct(_), Some(_)) => {
                bad("the table has an action profile: use a member, a group or an action set")
            }
            (_, None) => bad("the table has no action profile: use an action"),
            (EntryAction::Member(id), Some(p)) => Ok(Checked::Target(Target::Member(
                self.state().profiles[p].find_member(*id)?,
            ))),
            (_, Some(_)) if !selector => bad("the action profile has no selector: use a member"),
            (EntryAction::Group(id), Some(p)) => Ok(Checked::Target(Target::Group(
                self.state().profiles[p].find_group(*id)?,
            ))),
            (EntryAction::OneShot(set) | EntryAction::RandomOneShot(set), Some(_)) => {
                let mut calls = Vec::new();
                for a in set {
                    if a.weight == 0 {
                        return bad("an action of the set has weight 0: use at least 1");
                    }
                    calls.push((pack(&a.call)?, a.weight, a.watch_port));
                }
                let is_random = matches!(action, EntryAction::RandomOneShot(_));
                Ok(Checked::OneShot(calls, is_random))
            }
        }
    }

    /// Sets the bits of a table's key that matter, while the table is empty; `None` for all. The mask is the exact key
    /// with a 1 in these bits. Packets and entries ignore the other bits.
    pub fn set_key_mask(&mut self, table: TableId, mask: Option<&EntryKey>) -> Result<()> {
        self.change_checked(
            |p| p.table(table)?.1.check_no_entries(),
            |p| p.table_mut(table)?.set_key_mask(mask),
        )
    }

    /// Applies a checked action and counts its references to the profile.
    fn acquire(&mut self, table: TableId, checked: Checked) -> Target {
        let target = match checked {
            Checked::Target(t) => t,
            Checked::OneShot(calls, is_random) => {
                let down = self.core.state.ports_down.clone();
                let profile = self
                    .profile_of(table)
                    .expect("only profiles take action sets");
                Target::Group(profile.insert_one_shot(calls, is_random, &down))
            }
        };
        if let Some(profile) = self.profile_of(table) {
            match target {
                Target::Call(_) => {}
                Target::Member(m) => profile.use_member(m),
                Target::Group(g) => profile.use_group(g),
            }
        }
        target
    }

    fn release(&mut self, table: TableId, target: &Target) {
        if let Some(profile) = self.profile_of(table) {
            match target {
                Target::Call(_) => {}
                Target::Member(m) => profile.release_member(*m),
                Target::Group(g) => profile.release_group(*g),
            }
        }
    }

    fn profile_of(&mut self, table: TableId) -> Option<&mut Profile> {
        match self.program.info().tables[table.index()].implementation {
            Implementation::Direct => None,
            Implementation::Profile(p) => self.core.state.profiles.write().get_mut(p.index()),
        }
    }

    fn describe(&self, info: &TableInfo, target: Target<CallRef>) -> EntryAction {
        let calls = self.program.info();
        let profile = match info.implementation {
            Implementation::Profile(p) => self.state().profiles.get(p.index()),
            Implementation::Direct => None,
        };
        match (target, profile) {
            (Target::Call(call), _) => EntryAction::Direct(unpack(calls, call)),
            (Target::Member(m), Some(p)) => EntryAction::Member(p.member_id(m).unwrap_or(0)),
            (Target::Group(g), Some(p)) => {
                let group = p.group(g);
                if let Some(id) = group.id {
                    return EntryAction::Group(id);
                }
                let action = |place: &crate::state::table::Place| WeightedAction {
                    call: unpack(calls, p.call(place.member)),
                    weight: place.weight,
                    watch_port: place.watch_port,
                };
                let actions = group.places.iter().map(action).collect();
                match p.selection(g).is_random() {
                    true => EntryAction::RandomOneShot(actions),
                    false => EntryAction::OneShot(actions),
                }
            }
            (Target::Member(_) | Target::Group(_), None) => EntryAction::OneShot(Vec::new()),
        }
    }

    /// Inserts an entry; `now` starts its idle time-out.
    pub fn insert_entry(
        &mut self,
        table: TableId,
        entry: impl Borrow<Entry>,
        now: Nanos,
    ) -> Result<()> {
        let entry = entry.borrow();
        let check = |p: &Self| p.check_insert(table, entry).map(drop);
        self.change_checked(check, |p| {
            let (criteria, checked) = p.check_insert(table, entry)?;
            let target = p.acquire(table, checked);
            let t = p.table_mut(table)?;
            let slot = t.insert(&criteria, target, entry.idle_timeout, now);
            p.reset_direct_state(table, slot);
            p.clear_lanes(table, Some(slot));
            Ok(())
        })
    }

    fn check_insert(&self, table: TableId, entry: &Entry) -> Result<(Criteria, Checked)> {
        let (info, t) = self.writable(table)?;
        let criteria = t.check_insert(&entry.key, entry.idle_timeout)?;
        Ok((criteria, self.check_action(info, &entry.action)?))
    }

    /// Replaces the action and the idle time-out of the entry with the same key. Its counter and meter stay.
    pub fn modify_entry(&mut self, table: TableId, entry: Entry, now: Nanos) -> Result<()> {
        let check = |p: &Self| p.check_modify(table, &entry).map(drop);
        self.change_checked(check, |p| {
            let (slot, checked) = p.check_modify(table, &entry)?;
            let target = p.acquire(table, checked);
            let t = p.table_mut(table)?;
            let old = t.modify(slot, target, entry.idle_timeout, now);
            p.release(table, &old);
            Ok(())
        })
    }

    fn check_modify(&self, table: TableId, entry: &Entry) -> Result<(u32, Checked)> {
        let (info, t) = self.writable(table)?;
        let slot = t.find(&entry.key)?;
        t.check_idle(entry.idle_timeout)?;
        Ok((slot, self.check_action(info, &entry.action)?))
    }

    /// Deletes an entry.
    pub fn delete_entry(&mut self, table: TableId, key: &EntryKey) -> Result<()> {
        let find = |p: &Self| p.writable(table)?.1.find(key);
        self.change_checked(
            |p| find(p).map(drop),
            |p| {
                let slot = find(p)?;
                let old = p.table_mut(table)?.remove(slot);
                p.release(table, &old);
                Ok(())
            },
        )
    }

    /// Returns the number of an entry in its table, as traces show it ([`Hit::handle`](crate::Hit::handle)).
    pub fn entry_handle(&self, table: TableId, key: &EntryKey) -> Result<u32> {
        self.table(table)?.1.find(key)
    }

    fn entry_state(&self, id: TableId, slot: u32) -> Result<EntryState> {
        let (info, t) = self.table(id)?;
        let (idle_timeout, last_hit) = t.idle(slot);
        let mut counter = t.counter(Some(slot)).copied();
        let key = t.key(slot);
        if let Some(counter) = &mut counter {
            self.add_other_counters(t, &key, counter);
            *counter = *counter + self.counted_in_lanes(id, Some(slot));
        }
        Ok(EntryState {
            entry: Entry {
                key,
                action: self.describe(info, t.target(slot)),
                idle_timeout,
            },
            counter,
            meter: t.meter(Some(slot)).and_then(|meter| meter.config()),
            last_hit,
            handle: t.handle(slot),
        })
    }

    /// Reads the entry with a handle. Entries keep their handles, and a handle is not used again before 256 entries have had
    /// its slot.
    pub fn entry_of_handle(&self, table: TableId, handle: u32) -> Result<EntryState> {
        self.entry_state(table, self.table(table)?.1.slot_of(handle)?)
    }

    /// Reads one entry.
    pub fn entry(&self, table: TableId, key: &EntryKey) -> Result<EntryState> {
        self.entry_state(table, self.table(table)?.1.find(key)?)
    }

    /// Returns all entries of a table, in order of insertion.
    pub fn entries(&self, table: TableId) -> Result<Vec<EntryState>> {
        let (_, t) = self.table(table)?;
        let mut slots: Vec<u32> = t.slots(0).collect();
        slots.sort_by_key(|&s| t.seq(s));
        let entries = slots.into_iter().map(|s| self.entry_state(table, s));
        entries.collect()
    }

    /// Returns at most `max` entries from position `from` (initially 0), and the position of the next page; `None` after
    /// the last page. The order is stable: an entry inserted or deleted between two pages may or may not be returned, all
    /// others are returned once.
    pub fn entries_page(
        &self,
        table: TableId,
        from: usize,
        max: usize,
    ) -> Result<(Vec<EntryState>, Option<usize>)> {
        let (_, t) = self.table(table)?;
        let mut slots = t.slots(from);
        let page: Vec<u32> = slots.by_ref().take(max).collect();
        let next = slots.next().map(|s| s as usize);
        let entries = page.into_iter().map(|s| self.entry_state(table, s));
        Ok((entries.collect::<Result<_>>()?, next))
    }

    /// Builds a lookup key from these values, one per field of the table's key.
    pub fn lookup_key(&self, table: TableId, values: &[Value]) -> Result<LookupKey> {
        let words = SmallVec::from_vec(self.table(table)?.1.shape.pack(values)?);
        Ok(LookupKey { table, words })
    }

    /// Returns the position, as in [`entries_page`](Self::entries_page), of the entry that a packet with this key would
    /// hit. The lookup does not count.
    pub fn hit(&self, key: &LookupKey) -> Option<usize> {
        let table = self.state().tables.get(key.table.index())?;
        table.hit(&key.words).map(|slot| slot as usize)
    }

    /// Returns the number of entries of a table.
    pub fn entry_count(&self, table: TableId) -> Result<usize> {
        Ok(self.table(table)?.1.len())
    }

    /// Returns the default action; `None` if the table has none (a miss then does nothing).
    pub fn default_action(&self, table: TableId) -> Result<Option<EntryAction>> {
        let (info, t) = self.table(table)?;
        Ok(t.default().map(|d| self.describe(info, d)))
    }

    /// Sets the default action; `None` restores the program's own.
    pub fn set_default_action(
        &mut self,
        table: TableId,
        action: Option<EntryAction>,
    ) -> Result<()> {
        let (info, _) = self.table(table)?;
        if info.const_default {
            return Err(StateError::Constant {
                table: info.name.clone(),
                what: "default action",
            });
        }
        self.change(|p| {
            let (info, _) = p.table(table)?;
            let target = match &action {
                Some(action) => {
                    let checked = p.check_action(info, action)?;
                    Some(p.acquire(table, checked))
                }
                None => p.program.compiled().tables[table.index()]
                    .default
                    .clone()
                    .map(Target::Call),
            };
            let old = p.table_mut(table)?.set_default(target.as_ref());
            if let Some(old) = old {
                p.release(table, &old);
            }
            Ok(())
        })
    }
}

impl Pipeline {
    /// Returns the default action that the program defines for a table, if any.
    pub fn program_default_action(&self, table: TableId) -> Result<Option<ActionCall>> {
        self.table(table)?;
        let default = self.program.compiled().tables[table.index()]
            .default
            .as_ref();
        Ok(default.map(|call| unpack(self.program.info(), call)))
    }
}
