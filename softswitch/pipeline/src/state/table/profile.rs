// SPDX-License-Identifier: Apache-2.0
//! Action profiles and selectors: members and groups that table entries share.
//!
//! A one-shot action set is stored as a group and members without ids.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use crate::entry::GroupMember;
use crate::error::StateError;
use crate::program::call::Call;

/// Members and groups of one action profile, by slot and by id.
#[derive(Debug, Clone)]
pub(crate) struct Profile {
    name: String,
    size: usize,
    member_ids: BTreeMap<u32, u32>,
    members: Slots<Member>,
    group_ids: BTreeMap<u32, u32>,
    groups: Slots<GroupState>,
}

#[derive(Debug, Clone)]
struct Member {
    id: Option<u32>,
    call: Call,
    /// Number of references by entries and groups.
    users: usize,
}

/// A group's members by slot.
#[derive(Debug, Clone)]
pub(crate) struct GroupState {
    pub(crate) id: Option<u32>,
    pub(crate) places: Vec<Place>,
    pub(crate) max_size: u32,
    users: usize,
    selection: Selection,
}

/// A member's place in a group.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) member: u32,
    pub(crate) weight: u32,
    pub(crate) watch_port: Option<u32>,
}

/// Members that are up, with the sum of weights up to and including each.
#[derive(Debug, Clone, Default)]
pub(crate) struct Selection {
    up: Vec<(u64, u32)>,
    is_random: bool,
}

impl Selection {
    /// Returns true if a random number selects, instead of a hash.
    #[inline]
    pub(crate) fn is_random(&self) -> bool {
        self.is_random
    }

    /// Returns the member that a hash or a random number selects; `None` if none is up.
    #[inline]
    pub(crate) fn choose(&self, number: u64) -> Option<u32> {
        let &(total, _) = self.up.last()?;
        let ticket = number % total;
        let at = if total == self.up.len() as u64 {
            ticket as usize
        } else {
            self.up.partition_point(|&(sum, _)| sum <= ticket)
        };
        Some(self.up[at].1)
    }
}

/// A slab of numbered, reusable slots.
#[derive(Debug, Clone)]
struct Slots<T> {
    used: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Slots<T> {
    fn new() -> Self {
        Self {
            used: Vec::new(),
            free: Vec::new(),
        }
    }

    fn put(&mut self, value: T) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.used.push(None);
            self.used.len() as u32 - 1
        });
        self.used[slot as usize] = Some(value);
        slot
    }

    fn take(&mut self, slot: u32) -> Option<T> {
        let value = self.used[slot as usize].take()?;
        self.free.push(slot);
        Some(value)
    }

    fn get(&self, slot: u32) -> &T {
        self.used[slot as usize].as_ref().expect("the slot is used")
    }

    fn get_mut(&mut self, slot: u32) -> &mut T {
        self.used[slot as usize].as_mut().expect("the slot is used")
    }
}

impl Profile {
    pub(crate) fn new(name: &str, size: usize) -> Self {
        Self {
            name: name.to_owned(),
            size,
            member_ids: BTreeMap::new(),
            members: Slots::new(),
            group_ids: BTreeMap::new(),
            groups: Slots::new(),
        }
    }

    fn what(&self, kind: &str, id: u32) -> String {
        format!("{kind} {id} of action profile {}", self.name)
    }

    fn member_ref(&self, slot: u32) -> &Member {
        self.members.get(slot)
    }

    fn member_mut(&mut self, slot: u32) -> &mut Member {
        self.members.get_mut(slot)
    }

    pub(crate) fn call(&self, slot: u32) -> &Call {
        &self.member_ref(slot).call
    }

    pub(crate) fn member_id(&self, slot: u32) -> Option<u32> {
        self.member_ref(slot).id
    }

    pub(crate) fn group(&self, slot: u32) -> &GroupState {
        self.groups.get(slot)
    }

    fn group_mut(&mut self, slot: u32) -> &mut GroupState {
        self.groups.get_mut(slot)
    }

    pub(crate) fn selection(&self, group: u32) -> &Selection {
        &self.group(group).selection
    }

    /// Returns the slot of a member.
    pub(crate) fn find_member(&self, id: u32) -> Result<u32, StateError> {
        let slot = self.member_ids.get(&id).copied();
        slot.ok_or_else(|| StateError::NotFound {
            what: self.what("member", id),
        })
    }

    /// Returns the slot of a group.
    pub(crate) fn find_group(&self, id: u32) -> Result<u32, StateError> {
        let slot = self.group_ids.get(&id).copied();
        slot.ok_or_else(|| StateError::NotFound {
            what: self.what("group", id),
        })
    }

    pub(crate) fn member_ids(&self) -> impl Iterator<Item = (u32, u32)> {
        self.member_ids.iter().map(|(&id, &slot)| (id, slot))
    }

    pub(crate) fn group_ids(&self) -> impl Iterator<Item = (u32, u32)> {
        self.group_ids.iter().map(|(&id, &slot)| (id, slot))
    }

    pub(crate) fn insert_member(&mut self, id: u32, call: Call) -> Result<(), StateError> {
        if self.member_ids.contains_key(&id) {
            return Err(StateError::AlreadyExists {
                what: self.what("member", id),
            });
        }
        if self.size != 0 && self.member_ids.len() >= self.size {
            let what = format!("action profile {}", self.name);
            return Err(StateError::Full {
                what,
                size: self.size,
            });
        }
        let slot = self.members.put(Member {
            id: Some(id),
            call,
            users: 0,
        });
        self.member_ids.insert(id, slot);
        Ok(())
    }

    pub(crate) fn modify_member(&mut self, id: u32, call: Call) -> Result<(), StateError> {
        let slot = self.find_member(id)?;
        self.member_mut(slot).call = call;
        Ok(())
    }

    pub(crate) fn delete_member(&mut self, id: u32) -> Result<(), StateError> {
        let slot = self.find_member(id)?;
        let users = self.member_ref(slot).users;
        if users > 0 {
            let by = format!("{users} entries or groups");
            return Err(StateError::InUse {
                what: self.what("member", id),
                by,
            });
        }
        self.member_ids.remove(&id);
        self.members.take(slot);
        Ok(())
    }

    /// Inserts or replaces a group, all of whose members exist.
    pub(crate) fn set_group(
        &mut self,
        id: u32,
        members: &[GroupMember],
        max_size: u32,
        replace: bool,
        down: &BTreeSet<u32>,
    ) -> Result<(), StateError> {
        let what = self.what("group", id);
        let old = self.group_ids.get(&id).copied();
        match (old, replace) {
            (Some(_), false) => return Err(StateError::AlreadyExists { what }),
            (None, true) => return Err(StateError::NotFound { what }),
            _ => {}
        }
        let mut places = Vec::new();
        for m in members {
            let member = self.find_member(m.member)?;
            if places.iter().any(|p: &Place| p.member == member) {
                let reason = format!("member {} is listed twice", m.member);
                return Err(StateError::Invalid { what, reason });
            }
            if m.weight == 0 {
                let reason = format!("member {} has weight 0", m.member);
                return Err(StateError::Invalid { what, reason });
            }
            places.push(Place {
                member,
                weight: m.weight,
                watch_port: m.watch_port,
            });
        }
        let total: u64 = members.iter().map(|m| u64::from(m.weight)).sum();
        if max_size != 0 && total > u64::from(max_size) {
            return Err(StateError::Full {
                what,
                size: max_size as usize,
            });
        }
        for p in &places {
            self.member_mut(p.member).users += 1;
        }
        let selection = self.select(&places, false, down);
        match old {
            Some(slot) => {
                let g = self.group_mut(slot);
                g.max_size = max_size;
                g.selection = selection;
                let old = std::mem::replace(&mut g.places, places);
                self.release_members(&old);
            }
            None => {
                let group = GroupState {
                    id: Some(id),
                    places,
                    max_size,
                    users: 0,
                    selection,
                };
                let slot = self.groups.put(group);
                self.group_ids.insert(id, slot);
            }
        }
        Ok(())
    }

    fn release_members(&mut self, places: &[Place]) {
        for p in places {
            let m = self.member_mut(p.member);
            m.users -= 1;
            if m.id.is_none() && m.users == 0 {
                self.members.take(p.member);
            }
        }
    }

    pub(crate) fn delete_group(&mut self, id: u32) -> Result<(), StateError> {
        let slot = self.find_group(id)?;
        let users = self.group(slot).users;
        if users > 0 {
            let by = format!("{users} entries");
            return Err(StateError::InUse {
                what: self.what("group", id),
                by,
            });
        }
        self.group_ids.remove(&id);
        self.drop_group(slot);
        Ok(())
    }

    fn drop_group(&mut self, slot: u32) {
        if let Some(g) = self.groups.take(slot) {
            self.release_members(&g.places);
        }
    }

    /// Adds a group without id for a one-shot action set; returns its slot.
    pub(crate) fn insert_one_shot(
        &mut self,
        actions: Vec<(Call, u32, Option<u32>)>,
        is_random: bool,
        down: &BTreeSet<u32>,
    ) -> u32 {
        let mut places = Vec::new();
        for (call, weight, watch_port) in actions {
            let member = self.members.put(Member {
                id: None,
                call,
                users: 1,
            });
            places.push(Place {
                member,
                weight,
                watch_port,
            });
        }
        let selection = self.select(&places, is_random, down);
        self.groups.put(GroupState {
            id: None,
            places,
            max_size: 0,
            users: 0,
            selection,
        })
    }

    pub(crate) fn use_member(&mut self, slot: u32) {
        self.member_mut(slot).users += 1;
    }

    pub(crate) fn use_group(&mut self, slot: u32) {
        self.group_mut(slot).users += 1;
    }

    pub(crate) fn release_member(&mut self, slot: u32) {
        self.member_mut(slot).users -= 1;
    }

    pub(crate) fn release_group(&mut self, slot: u32) {
        let g = self.group_mut(slot);
        g.users -= 1;
        if g.id.is_none() && g.users == 0 {
            self.drop_group(slot);
        }
    }

    /// Returns the members that are up, by id as in BMv2, so that equal weights select the same member. The members of a
    /// one-shot set do not have ids and keep their order, so the selection does not depend on their slots.
    fn select(&self, places: &[Place], is_random: bool, down: &BTreeSet<u32>) -> Selection {
        let up = |p: &&Place| p.watch_port.is_none_or(|port| !down.contains(&port));
        let mut up: Vec<&Place> = places.iter().filter(up).collect();
        up.sort_by_key(|p| self.member_ref(p.member).id);
        let mut sum = 0;
        let cumulated = up.iter().map(|p| {
            sum += u64::from(p.weight);
            (sum, p.member)
        });
        Selection {
            up: cumulated.collect(),
            is_random,
        }
    }

    /// Updates all groups after a change of a port's state.
    pub(crate) fn reselect(&mut self, down: &BTreeSet<u32>) {
        for slot in 0..self.groups.used.len() {
            if let Some(g) = &self.groups.used[slot] {
                let selection = self.select(&g.places, g.selection.is_random, down);
                self.group_mut(slot as u32).selection = selection;
            }
        }
    }
}
