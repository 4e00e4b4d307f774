// SPDX-License-Identifier: Apache-2.0
//! Control-plane access to action profiles: members, groups, watch ports.

use super::no_such;
use crate::entry::{ActionCall, Group, GroupMember};
use crate::error::StateError;
use crate::info::{ActionId, Implementation, ProfileId};
use crate::pipeline::Pipeline;
use crate::program::call::{Call, pack, unpack};
use crate::state::table::{GroupState, Profile};

type Result<T> = std::result::Result<T, StateError>;

impl Pipeline {
    fn profile(&self, id: ProfileId) -> Result<&Profile> {
        self.state()
            .profiles
            .get(id.index())
            .ok_or_else(|| no_such("action profile", id.0))
    }

    fn profile_mut(&mut self, id: ProfileId) -> Result<&mut Profile> {
        self.core
            .state
            .profiles
            .write()
            .get_mut(id.index())
            .ok_or_else(|| no_such("action profile", id.0))
    }

    fn pack_member(&self, id: ProfileId, call: &ActionCall) -> Result<Call> {
        self.profile(id)?;
        let info = self.program.info();
        let allowed = |a: ActionId| {
            let mut tables = info.tables.iter();
            tables.any(|t| {
                t.implementation == Implementation::Profile(id)
                    && t.actions.iter().any(|x| x.1 == a)
            })
        };
        let name = &info.profiles[id.index()].name;
        pack(info, name, allowed, call)
    }

    /// Inserts a member.
    pub fn insert_member(&mut self, profile: ProfileId, id: u32, call: ActionCall) -> Result<()> {
        let call = self.pack_member(profile, &call)?;
        self.change(|p| p.profile_mut(profile)?.insert_member(id, call.clone()))
    }

    /// Replaces a member's action, with immediate effect on the entries and groups that use it.
    pub fn modify_member(&mut self, profile: ProfileId, id: u32, call: ActionCall) -> Result<()> {
        let call = self.pack_member(profile, &call)?;
        self.change(|p| p.profile_mut(profile)?.modify_member(id, call.clone()))
    }

    /// Deletes a member that neither entries nor groups use.
    pub fn delete_member(&mut self, profile: ProfileId, id: u32) -> Result<()> {
        self.change(|p| p.profile_mut(profile)?.delete_member(id))
    }

    /// Reads a member.
    pub fn member(&self, profile: ProfileId, id: u32) -> Result<ActionCall> {
        let p = self.profile(profile)?;
        Ok(unpack(self.program.info(), p.call(p.find_member(id)?)))
    }

    /// Returns all members, by id.
    pub fn members(&self, profile: ProfileId) -> Result<Vec<(u32, ActionCall)>> {
        let p = self.profile(profile)?;
        let call = |slot| unpack(self.program.info(), p.call(slot));
        Ok(p.member_ids().map(|(id, slot)| (id, call(slot))).collect())
    }

    /// Inserts a group.
    pub fn insert_group(&mut self, profile: ProfileId, id: u32, group: Group) -> Result<()> {
        self.set_group(profile, id, &group, false)
    }

    /// Replaces a group.
    pub fn modify_group(&mut self, profile: ProfileId, id: u32, group: Group) -> Result<()> {
        self.set_group(profile, id, &group, true)
    }

    fn set_group(
        &mut self,
        profile: ProfileId,
        id: u32,
        group: &Group,
        replace: bool,
    ) -> Result<()> {
        self.profile(profile)?;
        let info = &self.program.info().profiles[profile.index()];
        if !info.selector {
            return Err(StateError::Invalid {
                what: format!("action profile {}", info.name),
                reason: "only action selectors have groups".to_owned(),
            });
        }
        self.change(|p| {
            let state = &mut *p.core.state;
            state.profiles.write()[profile.index()].set_group(
                id,
                &group.members,
                group.max_size,
                replace,
                &state.ports_down,
            )
        })
    }

    /// Deletes a group that no entry uses.
    pub fn delete_group(&mut self, profile: ProfileId, id: u32) -> Result<()> {
        self.change(|p| p.profile_mut(profile)?.delete_group(id))
    }

    /// Reads a group.
    pub fn group(&self, profile: ProfileId, id: u32) -> Result<Group> {
        let p = self.profile(profile)?;
        Ok(describe(p, p.group(p.find_group(id)?)))
    }

    /// Returns all groups, by id.
    pub fn groups(&self, profile: ProfileId) -> Result<Vec<(u32, Group)>> {
        let p = self.profile(profile)?;
        Ok(p.group_ids()
            .map(|(id, slot)| (id, describe(p, p.group(slot))))
            .collect())
    }

    /// Sets whether a port is up, for watch ports of selectors and backups of replicas. Initially all ports are up.
    pub fn set_port_up(&mut self, port: u32, up: bool) {
        let down = &mut self.core.state.ports_down;
        let changed = if up {
            down.remove(&port)
        } else {
            down.insert(port)
        };
        if !up {
            self.generator_of_mut(port).port_down(port);
        }
        if !changed {
            return;
        }
        for pipe in 0..self.core.state.count() {
            self.core.state.select(pipe);
            let state = &mut *self.core.state;
            for p in state.profiles.write() {
                p.reselect(&state.ports_down);
            }
        }
        let state = &mut *self.core.state;
        state.pre.write().reselect(&state.ports_down);
    }
}

fn describe(p: &Profile, g: &GroupState) -> Group {
    let place = |place: &crate::state::table::Place| GroupMember {
        member: p.member_id(place.member).unwrap_or(0),
        weight: place.weight,
        watch_port: place.watch_port,
    };
    Group {
        members: g.places.iter().map(place).collect(),
        max_size: g.max_size,
    }
}
