//! What a loaded program contains, for the control plane: names, widths, sizes.

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
    /// Index of a parser value set in [`Info::value_sets`].
    ValueSetId,
    /// Index of a digest (learn list) in [`Info::digests`].
    DigestId,
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
    /// Parser value sets.
    pub value_sets: Vec<ValueSetInfo>,
    /// Digests.
    pub digests: Vec<DigestInfo>,
    /// Error names and their codes, as `standard_metadata.parser_error` holds them.
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
    /// The table of this name.
    table, tables, TableId;
    /// The first action of this name (the JSON may hold several copies of one action;
    /// [`TableInfo::action`] finds the copy that belongs to a table).
    action, actions, ActionId;
    /// The action profile or selector of this name.
    profile, profiles, ProfileId;
    /// The indirect counter of this name.
    counter, counters, CounterId;
    /// The indirect meter of this name.
    meter, meters, MeterId;
    /// The register of this name.
    register, registers, RegisterId;
    /// The parser value set of this name.
    value_set, value_sets, ValueSetId;
    /// The digest of this name.
    digest, digests, DigestId;
}

/// How one field of a key is matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MatchKind {
    /// Equal.
    Exact,
    /// Longest prefix.
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
    /// The name the program gives it.
    pub name: String,
    /// How it is matched.
    pub kind: MatchKind,
    /// Bits.
    pub width: u32,
}

/// Who chooses a table's action.
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
    /// The key, in order; empty for a table that only has a default action.
    pub key: Vec<KeyInfo>,
    /// Most entries it holds.
    pub size: usize,
    /// Its actions: name and id.
    pub actions: Vec<(String, ActionId)>,
    /// Direct actions or an action profile.
    pub implementation: Implementation,
    /// Entries are part of the program and cannot be written.
    pub const_entries: bool,
    /// The default action is part of the program and cannot be written.
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
    /// Entries carry a priority (a ternary, range or optional field is in the key).
    pub needs_priority: bool,
}

impl TableInfo {
    /// The table's own copy of the action of this name.
    pub fn action(&self, name: &str) -> Option<ActionId> {
        self.actions
            .iter()
            .find(|(n, _)| n == name)
            .map(|&(_, id)| id)
    }
}

/// An action and the parameters that the control plane gives.
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
    /// Most members it holds; 0 means unbounded.
    pub size: usize,
    /// It has groups: an action selector.
    pub selector: bool,
}

/// An indirect counter array.
#[derive(Debug, Clone)]
pub struct CounterInfo {
    /// Fully qualified P4 name.
    pub name: String,
    /// Cells.
    pub size: usize,
}

/// What a meter counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MeterUnit {
    /// Rates are bytes per second.
    Bytes,
    /// Rates are packets per second.
    Packets,
}

/// An indirect meter array.
#[derive(Debug, Clone)]
pub struct MeterInfo {
    /// Fully qualified P4 name.
    pub name: String,
    /// Cells.
    pub size: usize,
    /// What it counts.
    pub unit: MeterUnit,
}

/// A register array.
#[derive(Debug, Clone)]
pub struct RegisterInfo {
    /// Fully qualified P4 name.
    pub name: String,
    /// Cells.
    pub size: usize,
    /// Bits of each cell.
    pub width: u32,
}

/// A parser value set.
#[derive(Debug, Clone)]
pub struct ValueSetInfo {
    /// Fully qualified P4 name.
    pub name: String,
    /// Bits of a member: the sum of the key fields' widths, without padding.
    pub width: u32,
    /// Widths of the fields of the `select` key that the set is matched with.
    pub fields: Vec<u32>,
}

/// A digest.
#[derive(Debug, Clone)]
pub struct DigestInfo {
    /// The name of the learn list.
    pub name: String,
    /// The list's number in the JSON.
    pub id: u32,
    /// Widths of its fields, in order.
    pub fields: Vec<u32>,
}
