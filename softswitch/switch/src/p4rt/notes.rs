// SPDX-License-Identifier: Apache-2.0
//! The control plane's own state of entities, which the pipeline does not store: data for reading them back as written,
//! and their sizes.

mod selector;

use std::collections::{BTreeMap, HashMap};

use prost::bytes::Bytes;
use softswitch_pipeline::{EntryKey, ProfileId, TableId};

use super::references::Counts;
use crate::proto::p4::v1::{
    ActionProfileActionSet, CloneSessionEntry, MulticastGroupEntry, digest_entry,
};

pub use selector::{Selector, Style};

/// Notes on all entities of a pipeline.
#[derive(Debug, Default)]
pub struct Notes {
    entries: BTreeMap<TableId, HashMap<EntryKey, EntryNote>>,
    defaults: HashMap<TableId, EntryNote>,
    selectors: HashMap<ProfileId, Selector>,
    /// Multicast groups, by id.
    pub multicast: BTreeMap<u32, MulticastGroupEntry>,
    /// Clone sessions, by id.
    pub sessions: BTreeMap<u32, CloneSessionEntry>,
    /// Digests that are enabled, by P4Info id.
    pub digests: BTreeMap<u32, digest_entry::Config>,
    /// Counts of the values that references name; `None` if they must be counted again.
    pub references: Option<Counts>,
}

/// The data that the controller attached to a table entry.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EntryNote {
    /// `metadata`.
    pub metadata: Bytes,
    /// `controller_metadata`.
    pub controller_metadata: u64,
    /// The action set of an entry (one-shot programming).
    pub one_shot: Option<Box<OneShot>>,
}

/// An action set with byte strings in canonical form.
#[derive(Debug, Clone, PartialEq)]
pub struct OneShot {
    /// The selector.
    pub selector: ProfileId,
    /// The action set as the controller wrote it.
    pub set: ActionProfileActionSet,
    /// Its share of the selector's size.
    pub size: u64,
}

impl Notes {
    /// Returns the note on an entry, which may be empty.
    pub fn entry(&self, table: TableId, key: &EntryKey) -> EntryNote {
        let note = self.entries.get(&table).and_then(|notes| notes.get(key));
        note.cloned().unwrap_or_default()
    }

    /// Sets the note on an entry; an empty note is not stored.
    pub fn set_entry(&mut self, table: TableId, key: &EntryKey, note: EntryNote) {
        if let Some(new) = &note.one_shot {
            self.selector_mut(new.selector).add_one_shot(new.size);
        }
        let old = match note == EntryNote::default() {
            true => self
                .entries
                .get_mut(&table)
                .and_then(|notes| notes.remove(key)),
            false => self
                .entries
                .entry(table)
                .or_default()
                .insert(key.clone(), note),
        };
        if let Some(old) = old.and_then(|old| old.one_shot) {
            self.selector_mut(old.selector).remove_one_shot(old.size);
        }
    }

    /// Returns the note on a table's default entry, which may be empty.
    pub fn default(&self, table: TableId) -> EntryNote {
        self.defaults.get(&table).cloned().unwrap_or_default()
    }

    /// Sets the note on a table's default entry.
    pub fn set_default(&mut self, table: TableId, note: EntryNote) {
        self.defaults.insert(table, note);
    }

    /// Returns the contents of an action profile, if it was ever written.
    pub fn selector(&self, profile: ProfileId) -> Option<&Selector> {
        self.selectors.get(&profile)
    }

    /// Returns the contents of an action profile.
    pub fn selector_mut(&mut self, profile: ProfileId) -> &mut Selector {
        self.selectors.entry(profile).or_default()
    }
}
