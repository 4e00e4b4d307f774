//! P4Info linked to the objects of a loaded program: every id a client may use, and what it denotes.

mod link;

use std::collections::{BTreeSet, HashMap};

use softswitch_pipeline::{
    ActionId, CounterId, DigestId, MatchKind, MeterId, ProfileId, RegisterId, TableId, ValueSetId,
};

use super::packet_io::PacketHeader;
use super::translation::Codec;
use super::types;
use crate::proto::p4::config::v1::meter_spec::Type as MeterType;

/// Everything that P4Info declares, by P4Info id.
#[derive(Debug, Default)]
pub struct Schema {
    /// Tables, by id.
    pub tables: Objects<Table>,
    /// Actions, by id.
    pub actions: HashMap<u32, Action>,
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
    /// The device's ports.
    pub ports: BTreeSet<u32>,
}

/// Objects of one kind in P4Info's order, found by id.
#[derive(Debug)]
pub struct Objects<T> {
    list: Vec<(u32, T)>,
    index: HashMap<u32, usize>,
}

impl<T> Default for Objects<T> {
    fn default() -> Self {
        Self {
            list: Vec::new(),
            index: HashMap::new(),
        }
    }
}

impl<T> Objects<T> {
    /// The object with this id.
    pub fn get(&self, id: u32) -> Option<&T> {
        Some(&self.list[*self.index.get(&id)?].1)
    }

    /// All ids and objects.
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
    /// Its actions by P4Info id.
    pub actions: HashMap<u32, TableAction>,
    /// P4Info ids of its actions.
    pub action_ids: HashMap<ActionId, u32>,
    /// Its action profile's P4Info id.
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
    /// Entries meter, in this way.
    pub direct_meter: Option<MeterType>,
}

/// A field of a key.
#[derive(Debug)]
pub struct Field {
    /// P4Info id.
    pub id: u32,
    /// Name.
    pub name: String,
    /// How it is matched, as P4Info says.
    pub kind: MatchKind,
    /// How the program matches it: p4c makes `optional` fields `ternary` in BMv2 JSON.
    pub target: MatchKind,
    /// How its values are written.
    pub codec: Codec,
}

/// An action as one table has it.
#[derive(Debug, Clone, Copy)]
pub struct TableAction {
    /// The pipeline's copy for this table.
    pub target: ActionId,
    /// May it be used by entries.
    pub in_entries: bool,
    /// May it be the default action.
    pub as_default: bool,
}

/// An action.
#[derive(Debug)]
pub struct Action {
    /// Fully qualified name.
    pub name: String,
    /// Its parameters, in the pipeline's order.
    pub params: Vec<Param>,
}

/// An action's parameter.
#[derive(Debug)]
pub struct Param {
    /// P4Info id.
    pub id: u32,
    /// Name.
    pub name: String,
    /// How its values are written.
    pub codec: Codec,
}

/// An action profile or selector.
#[derive(Debug, Clone)]
pub struct Profile {
    /// Fully qualified name.
    pub name: String,
    /// The pipeline's profile.
    pub target: ProfileId,
    /// P4Info id of a table that uses it, whose actions members may have.
    pub table: u32,
    /// It has groups.
    pub selector: bool,
    /// Most that the groups of a selector may take together; 0 is no limit.
    pub size: u64,
    /// Largest size of a group; 0 is no limit.
    pub max_group_size: u32,
    /// Sizes count members instead of weights.
    pub size_in_members: bool,
    /// Largest weight of a member; 0 is no limit.
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
    /// Cells.
    pub size: usize,
}

/// An indexed meter.
#[derive(Debug)]
pub struct Meter {
    /// Fully qualified name.
    pub name: String,
    /// The pipeline's array.
    pub target: MeterId,
    /// Cells.
    pub size: usize,
    /// Its rates and colours.
    pub kind: MeterType,
}

/// A register.
#[derive(Debug)]
pub struct Register {
    /// Fully qualified name.
    pub name: String,
    /// The pipeline's register.
    pub target: RegisterId,
    /// Cells.
    pub size: usize,
    /// A cell's type.
    pub shape: types::Shape,
}

/// A parser value set.
#[derive(Debug)]
pub struct ValueSet {
    /// Fully qualified name.
    pub name: String,
    /// The pipeline's value set.
    pub target: ValueSetId,
    /// Fields of a member.
    pub fields: Vec<Field>,
    /// Most members.
    pub size: usize,
}

/// A digest.
#[derive(Debug)]
pub struct Digest {
    /// Name.
    pub name: String,
    /// The pipeline's digest.
    pub target: DigestId,
    /// A message's type.
    pub shape: types::Shape,
}

impl Schema {
    /// The table, by the pipeline's id.
    pub fn table_of(&self, target: TableId) -> Option<(u32, &Table)> {
        self.tables.iter().find(|(_, t)| t.target == target)
    }

    /// The digest, by the pipeline's id.
    pub fn digest_of(&self, target: DigestId) -> Option<(u32, &Digest)> {
        self.digests.iter().find(|(_, d)| d.target == target)
    }
}
