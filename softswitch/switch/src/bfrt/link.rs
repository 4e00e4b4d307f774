// SPDX-License-Identifier: Apache-2.0
//! Links the tables of a schema to the objects of a program.
//!
//! Names in the schema may begin with the name of a pipe, which names in the program lack.

use std::collections::BTreeMap;

use softswitch_pipeline::{
    ActionId, CounterId, DigestId, DirectRegisterId, FilterId, HashId, Implementation, Info,
    MeterId, ProfileId, RegisterId, TableId, TableInfo, ValueSetId,
};

use super::schema::{Schema, Table};

/// The object that a table stands for.
#[derive(Debug, Clone)]
pub enum Object {
    /// A match-action table.
    Match(MatchTable),
    /// The members of an action profile.
    Members(ProfileId, Actions),
    /// The groups of an action selector.
    Groups(ProfileId),
    /// The lookup of a hash in the groups of an action selector.
    GroupLookup(ProfileId),
    /// A counter.
    Counter(CounterId),
    /// A meter.
    Meter(MeterId),
    /// The arrays of a register, by field id. A register of a structure has an array for each member.
    Register(Vec<(u32, RegisterId)>),
    /// A parameter of a register, which is a register with one cell.
    RegisterParameter(RegisterId),
    /// A low-pass filter, or random early detection.
    Filter(FilterId),
    /// A parser value set.
    ValueSet(ValueSetId),
    /// The metadata of ports.
    PortMetadata,
    /// A part of a hash.
    Hash(HashId, HashTable),
    /// A table that does not depend on the program.
    Fixed(Fixed),
    /// An object that the program does not have, because it is never used, or that the pipeline does not support.
    Missing,
}

/// A table that does not depend on the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fixed {
    /// Ports.
    Ports,
    /// Counters of ports.
    PortCounters,
    /// Ports by connector and channel.
    PortsByConnector,
    /// Ports by their number on the front panel.
    PortsByIndex,
    /// Ports by name.
    PortsByName,
    /// Mirror sessions.
    Mirror,
    /// Multicast nodes, groups and so on.
    Multicast,
    /// The packet generators of Tofino.
    Generator(GeneratorTable),
    /// The device.
    Device,
}

/// A table of a hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HashTable {
    /// The slices of the input.
    Input,
    /// The algorithm.
    Algorithm,
    /// The hashes of given inputs.
    Result,
}

/// A table of the packet generators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GeneratorTable {
    /// The applications.
    Applications,
    /// The use of ports.
    Ports,
    /// The buffer with the packets.
    Buffer,
    /// Sets of ports whose failures trigger applications.
    Masks,
}

/// A match-action table.
#[derive(Debug, Clone)]
pub struct MatchTable {
    /// The table.
    pub id: TableId,
    /// The actions.
    pub actions: Actions,
    /// The action profile to which entries refer, if any.
    pub profile: Option<ProfileId>,
    /// The direct registers, by field id. A register of a structure has one for each member.
    pub registers: Vec<(u32, DirectRegisterId)>,
    /// The direct filter.
    pub filter: Option<FilterId>,
}

/// Actions by their id in the schema, with the ids of their parameters in order.
pub type Actions = BTreeMap<u32, (ActionId, Vec<u32>)>;

/// The objects of a schema.
#[derive(Debug, Clone, Default)]
pub struct Objects {
    /// The objects, by the id of their table.
    pub tables: BTreeMap<u32, Object>,
    /// The digests of the program, with the ids and the fields' ids in the schema.
    pub digests: BTreeMap<u32, (u32, Vec<u32>)>,
}

/// Looks an object up, with and without the name of its pipe.
fn find<T>(name: &str, lookup: impl Fn(&str) -> Option<T>) -> Option<T> {
    lookup(name).or_else(|| lookup(name.split_once('.')?.1))
}

impl Objects {
    /// Links a schema to a program.
    pub fn link(schema: &Schema, info: &Info) -> Self {
        let tables = schema.tables.values();
        let tables = tables.map(|t| (t.id, object(schema, t, info).unwrap_or(Object::Missing)));
        let digests = schema.digests.iter().filter_map(|digest| {
            let DigestId(id) = find(&digest.name, |name| info.digest(name))?;
            let fields = digest.fields.iter().map(|field| field.id);
            Some((id, (digest.id, fields.collect())))
        });
        Self {
            tables: tables.collect(),
            digests: digests.collect(),
        }
    }
}

fn object(schema: &Schema, table: &Table, info: &Info) -> Option<Object> {
    let name = table.name.as_str();
    Some(match table.kind.as_str() {
        "MatchAction_Direct" | "MatchAction_Indirect" | "MatchAction_Indirect_Selector" => {
            Object::Match(match_table(table, info)?)
        }
        "Action" => {
            let own = find(name, |name| info.profile(name));
            let id = own.or_else(|| profile_of_selector(schema, table, info))?;
            Object::Members(id, profile_actions(table, info, id))
        }
        "Selector" => Object::Groups(selector(schema, table, info)?),
        "SelectorGetMember" => Object::GroupLookup(selector(schema, table, info)?),
        "Counter" => Object::Counter(find(name, |name| info.counter(name))?),
        "Meter" => Object::Meter(find(name, |name| info.meter(name))?),
        "Register" => Object::Register(register(table, info)?),
        "RegisterParam" => Object::RegisterParameter(find(name, |name| info.register(name))?),
        "Lpf" | "Wred" => Object::Filter(find(name, |name| info.filter(name))?),
        "ParserValueSet" => Object::ValueSet(find(name, |name| info.value_set(name))?),
        "PortMetadata" => Object::PortMetadata,
        "DynHashConfigure" => Object::Hash(hash(name, info)?, HashTable::Input),
        "DynHashAlgorithm" => Object::Hash(hash(name, info)?, HashTable::Algorithm),
        "DynHashCompute" => Object::Hash(hash(name, info)?, HashTable::Result),
        kind => Object::Fixed(fixed(kind)?),
    })
}

/// Returns the hash of a table, whose name is that of the hash and of the part.
fn hash(table: &str, info: &Info) -> Option<HashId> {
    let (name, _) = table.rsplit_once('.')?;
    find(name, |name| info.hash(name))
}

fn fixed(kind: &str) -> Option<Fixed> {
    Some(match kind {
        "PortConfigure" => Fixed::Ports,
        "PortStat" => Fixed::PortCounters,
        "PortHdlInfo" => Fixed::PortsByConnector,
        "PortFpIdxInfo" => Fixed::PortsByIndex,
        "PortStrInfo" => Fixed::PortsByName,
        "MirrorCfg" => Fixed::Mirror,
        "PreMgid" | "PreNode" | "PreEcmp" | "PreLag" | "PrePrune" | "PrePort" => Fixed::Multicast,
        "PktgenAppCfg" => Fixed::Generator(GeneratorTable::Applications),
        "PktgenPortCfg" => Fixed::Generator(GeneratorTable::Ports),
        "PktgenPktBufferCfg" => Fixed::Generator(GeneratorTable::Buffer),
        "PktgenPortMaskCfg" => Fixed::Generator(GeneratorTable::Masks),
        "DevConfigure" => Fixed::Device,
        _ => return None,
    })
}

fn match_table(table: &Table, info: &Info) -> Option<MatchTable> {
    let id = find(&table.name, |name| info.table(name))?;
    let target = &info.tables[id.index()];
    let profile = match target.implementation {
        Implementation::Direct => None,
        Implementation::Profile(profile) => Some(profile),
    };
    let actions = actions(table, |name| {
        action_of(table, name, |name| target.action(name))
    });
    let mut filters = info.filters.iter().zip(0..);
    let filter = filters.find(|(filter, _)| filter.table == Some(id));
    Some(MatchTable {
        id,
        actions,
        profile,
        registers: direct_registers(table, info),
        filter: filter.map(|(_, index)| FilterId(index)),
    })
}

fn direct_registers(table: &Table, info: &Info) -> Vec<(u32, DirectRegisterId)> {
    let fields = table.data.iter().filter(|field| field.is_register);
    let registers = fields.filter_map(|field| {
        let whole = || info.direct_register(field.name.strip_suffix(".f1")?);
        let in_pipeline = || info.direct_register(&in_pipeline_of(table, &field.name)?);
        let found = info.direct_register(&field.name);
        let found = found.or_else(whole).or_else(in_pipeline)?;
        Some((field.id, found))
    });
    registers.collect()
}

fn profile_actions(table: &Table, info: &Info, profile: ProfileId) -> Actions {
    let mut tables = info.tables.iter();
    let user = tables.find(|t| t.implementation == Implementation::Profile(profile));
    let find = |t: &TableInfo, name: &str| action_of(table, name, |name| t.action(name));
    user.map_or_else(Actions::new, |t| actions(table, |name| find(t, name)))
}

fn actions(table: &Table, lookup: impl Fn(&str) -> Option<ActionId>) -> Actions {
    let actions = table.actions.iter().filter_map(|action| {
        let target = find(&action.name, &lookup)?;
        let fields = action.fields.iter().map(|field| field.id);
        Some((action.id, (target, fields.collect())))
    });
    actions.collect()
}

/// Looks an action up, also with the name of the table's pipeline, which names of actions in the schema lack.
fn action_of(
    table: &Table,
    name: &str,
    lookup: impl Fn(&str) -> Option<ActionId>,
) -> Option<ActionId> {
    lookup(name).or_else(|| lookup(&in_pipeline_of(table, name)?))
}

/// Puts the name of a table's pipeline in front of a name.
fn in_pipeline_of(table: &Table, name: &str) -> Option<String> {
    let (pipeline, _) = table.name.split_once('.')?;
    Some(format!("{pipeline}.{name}"))
}

/// Returns the profile of a selector: of the same name, or of a table on which the selector depends.
fn selector(schema: &Schema, table: &Table, info: &Info) -> Option<ProfileId> {
    let own = find(&table.name, |name| info.profile(name));
    own.or_else(|| {
        let others = table
            .depends_on
            .iter()
            .filter_map(|id| schema.tables.get(id));
        others
            .filter(|other| other.id != table.id)
            .find_map(|other| match other.kind.as_str() {
                "Selector" => selector(schema, other, info),
                _ => find(&other.name, |name| info.profile(name)),
            })
    })
}

/// Returns the profile that the program has under the name of a selector, which depends on it.
fn profile_of_selector(schema: &Schema, profile: &Table, info: &Info) -> Option<ProfileId> {
    let mut tables = schema.tables.values();
    let uses = |t: &&Table| t.kind == "Selector" && t.depends_on.contains(&profile.id);
    let selector = tables.find(uses)?;
    find(&selector.name, |name| info.profile(name))
}

/// Returns the arrays of a register. A field is called like the register and the member; `f1` is the whole register.
fn register(table: &Table, info: &Info) -> Option<Vec<(u32, RegisterId)>> {
    let array = |name: &str| find(name, |name| info.register(name));
    let fields = table.data.iter().map(|field| {
        let member = field.name.rsplit('.').next().unwrap_or_default();
        let found = array(&format!("{}.{member}", table.name));
        let whole = || array(&table.name).filter(|_| table.data.len() == 1);
        Some((field.id, found.or_else(whole)?))
    });
    fields.collect()
}
