//! What the control plane keeps of entities besides what the pipeline knows: only to be read back.

use std::collections::{BTreeMap, HashMap};

use prost::bytes::Bytes;
use softswitch_pipeline::{EntryKey, TableId};

use crate::proto::p4::v1::digest_entry;

/// Notes on all entities of a pipeline.
#[derive(Debug, Default)]
pub struct Notes {
    entries: HashMap<TableId, HashMap<EntryKey, EntryNote>>,
    defaults: HashMap<TableId, EntryNote>,
    /// Metadata of multicast groups, by id.
    pub multicast: HashMap<u32, Bytes>,
    /// Digests that are enabled, by P4Info id.
    pub digests: BTreeMap<u32, digest_entry::Config>,
}

/// What the controller attached to a table entry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EntryNote {
    /// `metadata`.
    pub metadata: Bytes,
    /// `controller_metadata`.
    pub controller_metadata: u64,
}

impl EntryNote {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Notes {
    /// The note on an entry, empty if there is none.
    pub fn entry(&self, table: TableId, key: &EntryKey) -> EntryNote {
        let note = self.entries.get(&table).and_then(|notes| notes.get(key));
        note.cloned().unwrap_or_default()
    }

    /// Sets the note on an entry; an empty one takes no room.
    pub fn set_entry(&mut self, table: TableId, key: EntryKey, note: EntryNote) {
        if !note.is_empty() {
            self.entries.entry(table).or_default().insert(key, note);
        } else if let Some(notes) = self.entries.get_mut(&table) {
            notes.remove(&key);
        }
    }

    /// The note on a table's default entry, empty if there is none.
    pub fn default(&self, table: TableId) -> EntryNote {
        self.defaults.get(&table).cloned().unwrap_or_default()
    }

    /// Sets the note on a table's default entry.
    pub fn set_default(&mut self, table: TableId, note: EntryNote) {
        self.defaults.insert(table, note);
    }
}
