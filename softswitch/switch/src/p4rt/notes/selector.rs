// SPDX-License-Identifier: Apache-2.0
//! Contents of action profiles and selectors.

use std::collections::BTreeMap;

use crate::p4rt::error::{P4Error, P4Result};
use crate::p4rt::schema::Profile;
use crate::proto::p4::v1::ActionProfileGroup;

/// The programming style of a selector's tables; only one at a time (specification, section "One Shot
/// Action Selector Programming").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// With members and groups.
    Members,
    /// With action sets.
    OneShot,
}

/// The contents of an action profile or selector.
#[derive(Debug, Default)]
pub struct Selector {
    members: usize,
    one_shots: usize,
    groups: BTreeMap<u32, Group>,
    size: u64,
}

#[derive(Debug)]
struct Group {
    written: ActionProfileGroup,
    size: u64,
}

impl Selector {
    /// Checks that the present contents have the same style.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if they have the other one.
    pub fn check_style(&self, style: Style, profile: &Profile) -> P4Result<()> {
        let mixed = match style {
            Style::Members => self.one_shots > 0,
            Style::OneShot => self.members > 0 || !self.groups.is_empty(),
        };
        if !mixed {
            return Ok(());
        }
        let (there, given) = match style {
            Style::Members => ("one-shot action sets", "members and groups"),
            Style::OneShot => ("members and groups", "one-shot action sets"),
        };
        Err(P4Error::invalid(format!(
            "action profile {} is programmed with {there}: it cannot have {given} at the same time",
            profile.name
        )))
    }

    /// Checks that an object of size `new` can replace one of size `old`.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED if there is not.
    pub fn check_room(&self, old: u64, new: u64, profile: &Profile) -> P4Result<()> {
        let size = self.size - old + new;
        if profile.size == 0 || size <= profile.size || new <= old {
            return Ok(());
        }
        let unit = match profile.size_in_members {
            true => "members",
            false => "the sum of weights",
        };
        Err(P4Error::resource_exhausted(format!(
            "action profile {}: {unit} of all groups would be {size}, but its size is {}",
            profile.name, profile.size
        )))
    }

    /// Records an added member.
    pub fn add_member(&mut self) {
        self.members += 1;
    }

    /// Records a removed member.
    pub fn remove_member(&mut self) {
        self.members -= 1;
    }

    pub(super) fn add_one_shot(&mut self, size: u64) {
        self.one_shots += 1;
        self.size += size;
    }

    pub(super) fn remove_one_shot(&mut self, size: u64) {
        self.one_shots -= 1;
        self.size -= size;
    }

    /// Returns the groups as written, by id.
    pub fn groups(&self) -> impl Iterator<Item = &ActionProfileGroup> {
        self.groups.values().map(|group| &group.written)
    }

    /// Returns a group as written.
    pub fn group(&self, id: u32) -> Option<&ActionProfileGroup> {
        Some(&self.groups.get(&id)?.written)
    }

    /// Returns a group's share of the selector's size; 0 if it does not exist.
    pub fn group_size(&self, id: u32) -> u64 {
        self.groups.get(&id).map_or(0, |group| group.size)
    }

    /// Sets or replaces a group.
    pub fn put_group(&mut self, written: ActionProfileGroup, size: u64) {
        self.remove_group(written.group_id);
        self.size += size;
        self.groups
            .insert(written.group_id, Group { written, size });
    }

    /// Removes a group, if it exists.
    pub fn remove_group(&mut self, id: u32) {
        if let Some(group) = self.groups.remove(&id) {
            self.size -= group.size;
        }
    }
}
