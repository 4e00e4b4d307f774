// SPDX-License-Identifier: Apache-2.0
//! Description of a loaded program for the control plane: names, widths, sizes.

use crate::value::Value;

macro_rules! id {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            /// Position in the program's list of these objects.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    )*};
}

id! {
    /// Index of a table in [`Info::tables`].
    TableId,
    /// Index of an action in [`Info::actions`].
    ActionId,
    /// Index of an action profile or selector in [`Info::profiles`].
    ProfileId,
    /// Index of an indirect counter array in [`Info::counters`].
    CounterId,
    /// Index of an indirect meter array in [`Info::meters`].
    MeterId,
    /// Index of a register array in [`Info::registers`].
    RegisterId,
    /// Index of a direct register in [`Info::direct_registers`].
    DirectRegisterId,
    /// Index of a filter in [`Info::filters`].
    FilterId,
    /// Index of a parser value set in [`Info::value_sets`].
    ValueSetId,
    /// Index of a digest (learn list) in [`Info::digests`].
    DigestId,
    /// Index of a hash in [`Info::hashes`].
    HashId,
    /// Index of a named calculation in [`Info::calculations`].
    CalculationId,
}

/// All objects of a program that the control plane can see.
#[derive(Debug, Clone, Default)]
pub struct Info {
    /// Match-action tables of both pipelines, in the JSON's order (ingress first).
    pub tables: Vec<TableInfo>,
    /// All actions, in the JSON's order.
    pub actions: Vec<ActionInfo>,
    /// Action profiles and selectors.
    pub profiles: Vec<ProfileInfo>,
    /// Indirect counters (direct ones belong to their table).
    pub counters: Vec<CounterInfo>,
    /// Indirect meters (direct ones belong to their table).
    pub meters: Vec<MeterInfo>,
    /// Registers.
    pub registers: Vec<RegisterInfo>,
    /// Direct registers.
    pub direct_registers: Vec<DirectRegisterInfo>,
    /// Low-pass filters, and random early detection.
    pub filters: Vec<FilterInfo>,
    /// Parser value sets.
    pub value_sets: Vec<ValueSetInfo>,
    /// Digests.
    pub digests: Vec<DigestInfo>,
    /// Header types, in the JSON's order.
    pub header_types: Vec<HeaderTypeInfo>,
    /// Hashes of TNA.
    pub hashes: Vec<HashInfo>,
    /// Named hash calculations.
    pub calculations: Vec<CalculationInfo>,
    /// Error names and their codes in `standard_metadata.parser_error`.
    pub errors: Vec<(String, u64)>,
}

macro_rules! by_name {
    ($($(#[$doc:meta])* $fn:ident, $list:ident, $id:ident);* $(;)?) => {
        impl Info {$(
            $(#[$doc])*
            pub fn $fn(&self, name: &str) -> Option<$id> {
                self.$list.iter().position(|o| o.name == name).map(|i| $id(i as u32))
            }
        )*}
    };
}

by_name! {
    /// Returns the table of this name.
    table, tables, TableId;
    /// Returns the first action of this name (the JSON may contain several copies of one action;
    /// [`TableInfo::action`] finds the copy that belongs to a table).
    action, actions, ActionId;
    /// Returns the action profile or selector of this name.
    profile, profiles, ProfileId;
    /// Returns the indirect counter of this name.
    counter, counters, CounterId;
    /// Returns the indirect meter of this name.
    meter, meters, MeterId;
    /// Returns the register of this name.
    register, registers, RegisterId;
    /// Returns the direct register of this name.
    direct_register, direct_registers, DirectRegisterId;
    /// Returns the filter of this name.
    filter, filters, FilterId;
    /// Returns the parser value set of this name.
    value_set, value_sets, ValueSetId;
    /// Returns the digest of this name.
    digest, digests, DigestId;
    /// Returns the calculation of this name.
    calculation, calculations, CalculationId;
    /// Returns the hash of this name.
    hash, hashes, HashId;
}

/// A header type.
#[derive(Debug, Clone)]
pub struct HeaderTypeInfo {
    /// Name in the program.
    pub name: String,
    /// Names and widths in bits of the fields; the width of a variable-length field is 0.
    pub fields: Vec<(String, u32)>,
}

/// The match kind of one key field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MatchKind {
    /// The field equals a value.
    Exact,
    /// Longest prefix match.
    Lpm,
    /// Value and mask, with priority.
    Ternary,
    /// Inclusive range, with priority.
    Range,
    /// Equal or anything, with priority.
    Optional,
    /// Validity of a header: an exact match of one bit.
    Valid,
}

/// One field of a table's key.
#[derive(Debug, Clone)]
pub struct KeyInfo {
    /// The field's name in the program.
    pub name: String,
    /// The match kind.
    pub kind: MatchKind,
    /// The field's width in bits.
    pub width: u32,
}

/// Where a table's entries keep their actions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Implementation {
    /// Each entry holds its action.
    Direct,
    /// Entries refer to a member of an action profile, or to a group if it is a selector.
    Profile(ProfileId),
}

/// A match-action table.
#[derive(Debug, Clone)]
pub struct TableInfo {
    /// Fully qualified P4 name.
    pub name: String,
    /// The table's id in the JSON; 0 if it has none.
    pub id: u32,
    /// The key, in order; empty for a table that only has a default action.
    pub key: Vec<KeyInfo>,
    /// Maximum number of entries.
    pub size: usize,
    /// The actions of the table: name and id.
    pub actions: Vec<(String, ActionId)>,
    /// Direct actions, or an action profile.
    pub implementation: Implementation,
    /// The entries are part of the program and read-only.
    pub const_entries: bool,
    /// The default action is part of the program and read-only.
    pub const_default: bool,
    /// Each entry counts packets and bytes.
    pub direct_counter: bool,
    /// Name of the direct counter, if any.
    pub direct_counter_name: Option<String>,
    /// Unit of the direct meter, if there is one.
    pub direct_meter: Option<MeterUnit>,
    /// Name of the direct meter, if any.
    pub direct_meter_name: Option<String>,
    /// Entries may carry an idle time-out.
    pub idle_timeout: bool,
    /// Entries need a priority, because the key has a ternary, range or optional field.
    pub needs_priority: bool,
}

impl TableInfo {
    /// Returns the table's own copy of the action of this name.
    pub fn action(&self, name: &str) -> Option<ActionId> {
        self.actions
            .iter()
            .find(|(n, _)| n == name)
            .map(|&(_, id)| id)
    }
}

/// An action, with the parameters that the control plane sets.
#[derive(Debug, Clone)]
pub struct ActionInfo {
    /// Fully qualified P4 name.
    pub name: String,
    /// Parameter names and widths in bits.
    pub params: Vec<(String, u32)>,
}

/// An action profile.
#[derive(Debug, Clone)]
pub struct ProfileInfo {
    /// Fully qualified P4 name.
    pub name: String,
    /// Maximum number of members; 0 means unlimited.
    pub size: usize,
    /// True for an action selector, which has groups.
    pub selector: bool,
}

/// An indirect counter array.
#[derive(Debug, Clone)]
pub struct CounterInfo {
    /// Fully qualified P4 name.
    pub name: String,
    /// Number of cells.
    pub size: usize,
}

/// The unit of a meter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MeterUnit {
    /// Rates are bytes per second.
    Bytes,
    /// Rates are packets per second.
    Packets,
}

impl MeterUnit {
    /// Returns the amount that a meter counts for a packet.
    pub(crate) fn amount(self, bytes: u32) -> u64 {
        match self {
            Self::Bytes => bytes.into(),
            Self::Packets => 1,
        }
    }
}

/// An indirect meter array.
#[derive(Debug, Clone)]
pub struct MeterInfo {
    /// Fully qualified P4 name.
    pub name: String,
    /// Number of cells.
    pub size: usize,
    /// The unit.
    pub unit: MeterUnit,
}

/// A register array.
#[derive(Debug, Clone)]
pub struct RegisterInfo {
    /// Fully qualified P4 name.
    pub name: String,
    /// Number of cells.
    pub size: usize,
    /// Width of each cell in bits.
    pub width: u32,
    /// Value of each cell at the start and after a reset.
    pub initial: Value,
}

/// A direct register of a table, with one cell per entry.
#[derive(Debug, Clone)]
pub struct DirectRegisterInfo {
    /// Fully qualified P4 name.
    pub name: String,
    /// The table.
    pub table: TableId,
    /// Width of each cell in bits.
    pub width: u32,
    /// Value of the cell of a new entry.
    pub initial: Value,
}

/// A low-pass filter, or random early detection over one.
#[derive(Debug, Clone)]
pub struct FilterInfo {
    /// Fully qualified P4 name.
    pub name: String,
    /// Number of cells; 0 for a direct filter.
    pub size: usize,
    /// The table of a direct filter, which has one cell per entry.
    pub table: Option<TableId>,
    /// True for random early detection.
    pub is_wred: bool,
}

/// A parser value set.
#[derive(Debug, Clone)]
pub struct ValueSetInfo {
    /// Fully qualified P4 name.
    pub name: String,
    /// Width of a member in bits: the sum of the key fields' widths, without padding.
    pub width: u32,
    /// Widths of the `select` key's fields.
    pub fields: Vec<u32>,
}

/// A digest.
#[derive(Debug, Clone)]
pub struct DigestInfo {
    /// The name of the learn list.
    pub name: String,
    /// The learn list's id in the JSON.
    pub id: u32,
    /// Widths of the fields, in order.
    pub fields: Vec<u32>,
}

/// A named hash calculation.
#[derive(Debug, Clone)]
pub struct CalculationInfo {
    /// The name in the JSON.
    pub name: String,
    /// The parameters that the control plane can set.
    pub kind: HashKind,
}

/// A hash of TNA, whose input and algorithm the control plane can change.
#[derive(Debug, Clone)]
pub struct HashInfo {
    /// Fully qualified P4 name.
    pub name: String,
}

/// The parameters of a hash that the control plane can set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HashKind {
    /// None.
    Fixed,
    /// Those of a CRC of 16 bits.
    Crc16Custom,
    /// Those of a CRC of 32 bits.
    Crc32Custom,
    /// The key of a Toeplitz hash.
    Toeplitz,
}

impl HashKind {
    /// Returns the kind of an algorithm by its name in the JSON.
    pub(crate) fn by_name(algorithm: &str) -> Self {
        match algorithm {
            "crc16_custom" => Self::Crc16Custom,
            "crc32_custom" => Self::Crc32Custom,
            "toeplitz" => Self::Toeplitz,
            _ => Self::Fixed,
        }
    }
}
