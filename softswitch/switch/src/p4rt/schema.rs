// SPDX-License-Identifier: Apache-2.0
//! P4Info linked to the objects of a loaded program: all ids for clients, and the objects that they denote.

mod link;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use softswitch_pipeline::{
    ActionId, CounterId, DigestId, MatchKind, MeterId, ProfileId, RegisterId, TableId, ValueSetId,
};

use super::constraint::Restriction;
use super::packet_io::PacketHeader;
use super::references::References;
use super::role::ObjectRoles;
use super::translation::Codec;
use super::types;
use crate::proto::p4::config::v1::meter_spec::Type as MeterType;

/// All objects of P4Info, by P4Info id.
#[derive(Debug, Default)]
pub struct Schema {
    /// Tables, by id.
    pub tables: Objects<Table>,
    /// Names of the tables and action profiles that P4Info has, but the compiler removed from the program, by id.
    pub removed: HashMap<u32, String>,
    /// Actions, by id.
    pub actions: BTreeMap<u32, Action>,
    /// Action profiles and selectors, by id.
    pub profiles: Objects<Profile>,
    /// Indirect counters, by id.
    pub counters: Objects<Counter>,
    /// Indirect meters, by id.
    pub meters: Objects<Meter>,
    /// Registers, by id.
    pub registers: Objects<Register>,
    /// Parser value sets, by id.
    pub value_sets: Objects<ValueSet>,
    /// Digests, by id.
    pub digests: Objects<Digest>,
    /// Header of packets to the controller.
    pub packet_in: Option<PacketHeader>,
    /// Header of packets from the controller.
    pub packet_out: Option<PacketHeader>,
    /// The roles of the objects.
    pub roles: ObjectRoles,
    /// The references between entries.
    pub references: References,
    /// The device's ports.
    pub ports: Option<BTreeSet<u32>>,
}

/// Objects of one kind in P4Info's order, indexed by id.
#[derive(Debug)]
pub struct Objects<T> {
    list: Vec<(u32, T)>,
    index: BTreeMap<u32, usize>,
}

impl<T> Default for Objects<T> {
    fn default() -> Self {
        Self {
            list: Vec::new(),
            index: BTreeMap::new(),
        }
    }
}

impl<T> Objects<T> {
    /// Returns the object with this id.
    pub fn get(&self, id: u32) -> Option<&T> {
        Some(&self.list[*self.index.get(&id)?].1)
    }

    /// Returns all ids and objects.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.list.iter().map(|(id, object)| (*id, object))
    }

    fn insert(&mut self, id: u32, object: T) -> Result<(), String> {
        if id == 0 {
            return Err("P4Info has an object with id 0".into());
        }
        if self.index.insert(id, self.list.len()).is_some() {
            return Err(format!("P4Info has two objects with id {id:#010x}"));
        }
        self.list.push((id, object));
        Ok(())
    }
}

/// A match-action table.
#[derive(Debug)]
pub struct Table {
    /// Fully qualified name.
    pub name: String,
    /// The pipeline's table.
    pub target: TableId,
    /// The key's fields, in the pipeline's order.
    pub fields: Vec<Field>,
    /// The table's actions, by P4Info id.
    pub actions: BTreeMap<u32, TableAction>,
    /// P4Info ids of the table's actions.
    pub action_ids: HashMap<ActionId, u32>,
    /// P4Info id of the action profile.
    pub profile: Option<u32>,
    /// Entries are part of the program.
    pub is_const: bool,
    /// The default action is part of the program.
    pub const_default: bool,
    /// Entries may carry idle time-outs.
    pub idle_timeout: bool,
    /// Entries need a priority.
    pub needs_priority: bool,
    /// Entries count.
    pub direct_counter: bool,
    /// The direct meter of the entries.
    pub direct_meter: Option<MeterType>,
    /// Restrictions of the entries (`@entry_restriction`).
    pub restrictions: Vec<Restriction>,
}

/// A field of a key.
#[derive(Debug)]
pub struct Field {
    /// P4Info id.
    pub id: u32,
    /// Name.
    pub name: String,
    /// The match kind in P4Info.
    pub kind: MatchKind,
    /// The match kind in the program: p4c writes `optional` fields as `ternary` in BMv2 JSON.
    pub target: MatchKind,
    /// The encoding of its values.
    pub codec: Codec,
}

/// An action of a table.
#[derive(Debug, Clone, Copy)]
pub struct TableAction {
    /// The pipeline's copy of the action for this table.
    pub target: ActionId,
    /// True if entries may use it.
    pub in_entries: bool,
    /// True if it may be the default action.
    pub as_default: bool,
}

/// An action.
#[derive(Debug)]
pub struct Action {
    /// Fully qualified name.
    pub name: String,
    /// The parameters, in the pipeline's order.
    pub params: Vec<Param>,
    /// Restrictions of the arguments (`@action_restriction`).
    pub restrictions: Vec<Restriction>,
}

/// An action's parameter.
#[derive(Debug)]
pub struct Param {
    /// P4Info id.
    pub id: u32,
    /// Name.
    pub name: String,
    /// The encoding of its values.
    pub codec: Codec,
}

/// An action profile or selector.
#[derive(Debug, Clone)]
pub struct Profile {
    /// Fully qualified name.
    pub name: String,
    /// The pipeline's profile.
    pub target: ProfileId,
    /// P4Info id of a table that uses the profile, whose actions members may have; `None` if all of them are hidden.
    pub table: Option<u32>,
    /// True for action selectors, which have groups.
    pub selector: bool,
    /// Maximum total size of a selector's groups; 0 means unlimited.
    pub size: u64,
    /// Maximum size of a group; 0 means unlimited.
    pub max_group_size: u32,
    /// Sizes count members instead of weights.
    pub size_in_members: bool,
    /// Maximum weight of a member; 0 means unlimited.
    pub max_member_weight: u32,
    /// Members have no weights.
    pub weights_disallowed: bool,
}

/// An indexed counter.
#[derive(Debug)]
pub struct Counter {
    /// Fully qualified name.
    pub name: String,
    /// The pipeline's array.
    pub target: CounterId,
    /// Number of cells.
    pub size: usize,
}

/// An indexed meter.
#[derive(Debug)]
pub struct Meter {
    /// Fully qualified name.
    pub name: String,
    /// The pipeline's array.
    pub target: MeterId,
    /// Number of cells.
    pub size: usize,
    /// The kind of meter: rates and colours.
    pub kind: MeterType,
}

/// A register.
#[derive(Debug)]
pub struct Register {
    /// Fully qualified name.
    pub name: String,
    /// The pipeline's arrays: one, or one for each member of a struct.
    pub targets: Vec<RegisterId>,
    /// Number of cells.
    pub size: usize,
    /// The type of a cell.
    pub shape: types::Shape,
}

/// A parser value set.
#[derive(Debug)]
pub struct ValueSet {
    /// Fully qualified name.
    pub name: String,
    /// The pipeline's value set.
    pub target: ValueSetId,
    /// The fields of a member.
    pub fields: Vec<Field>,
    /// Maximum number of members.
    pub size: usize,
}

/// A digest.
#[derive(Debug)]
pub struct Digest {
    /// Name.
    pub name: String,
    /// The pipeline's digest.
    pub target: DigestId,
    /// The type of a message.
    pub shape: types::Shape,
}

impl Schema {
    /// Returns the table with the pipeline's id.
    pub fn table_of(&self, target: TableId) -> Option<(u32, &Table)> {
        self.tables.iter().find(|(_, t)| t.target == target)
    }

    /// Returns the digest with the pipeline's id.
    pub fn digest_of(&self, target: DigestId) -> Option<(u32, &Digest)> {
        self.digests.iter().find(|(_, d)| d.target == target)
    }
}
