// SPDX-License-Identifier: Apache-2.0
//! The objects of the program, from P4Info, and the names by which commands address them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::error::{Error, Result};
use crate::proto::p4::config::v1 as info;

/// A kind of objects with names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    Table,
    Action,
    Profile,
    Counter,
    Meter,
    Register,
    ValueSet,
}

impl Kind {
    fn noun(self) -> &'static str {
        match self {
            Self::Table => "table",
            Self::Action => "action",
            Self::Profile => "action profile",
            Self::Counter => "counter",
            Self::Meter => "meter",
            Self::Register => "register",
            Self::ValueSet => "parser value set",
        }
    }
}

/// Most names in an error message.
const MAX_SUGGESTIONS: usize = 12;

/// The objects of one kind by name. A name is the full name or a suffix of whole components that only one object has.
#[derive(Debug, Default)]
struct Names {
    /// Full names, sorted.
    full: BTreeMap<String, u32>,
    /// Suffixes; `None` if several objects have it.
    suffixes: HashMap<String, Option<u32>>,
}

impl Names {
    fn insert(&mut self, name: &str, id: u32) {
        self.full.insert(name.into(), id);
        let dots = name.match_indices('.').map(|(at, _)| at + 1);
        for start in [0].into_iter().chain(dots) {
            self.suffixes
                .entry(name[start..].into())
                .and_modify(|found| *found = None)
                .or_insert(Some(id));
        }
    }
}

/// The objects of a program.
#[derive(Debug, Default)]
pub struct Schema {
    names: HashMap<Kind, Names>,
    tables: BTreeMap<u32, info::Table>,
    actions: BTreeMap<u32, info::Action>,
    profiles: BTreeMap<u32, info::ActionProfile>,
    counters: BTreeMap<u32, info::Counter>,
    direct_counters: BTreeMap<u32, info::DirectCounter>,
    meters: BTreeMap<u32, info::Meter>,
    direct_meters: BTreeMap<u32, info::DirectMeter>,
    registers: BTreeMap<u32, info::Register>,
    value_sets: BTreeMap<u32, info::ValueSet>,
    /// Types whose values are strings for controllers.
    strings: BTreeSet<String>,
}

/// Defines methods that return an object by its id.
macro_rules! getters {
    ($($(#[$doc:meta])* $name:ident, $list:ident, $type:ident;)*) => {
        impl Schema {$(
            $(#[$doc])*
            pub(crate) fn $name(&self, id: u32) -> Option<&info::$type> {
                self.$list.get(&id)
            }
        )*}
    };
}

getters! {
    /// Returns the table with this id.
    table, tables, Table;
    /// Returns the action with this id.
    action, actions, Action;
    /// Returns the action profile with this id.
    profile, profiles, ActionProfile;
    /// Returns the indexed counter with this id.
    counter, counters, Counter;
    /// Returns the direct counter with this id.
    direct_counter, direct_counters, DirectCounter;
    /// Returns the indexed meter with this id.
    meter, meters, Meter;
    /// Returns the direct meter with this id.
    direct_meter, direct_meters, DirectMeter;
    /// Returns the register with this id.
    register, registers, Register;
    /// Returns the value set with this id.
    value_set, value_sets, ValueSet;
}

impl Schema {
    /// Indexes P4Info.
    pub(crate) fn new(p4info: info::P4Info) -> Self {
        let mut schema = Self::default();
        macro_rules! collect {
            ($($list:ident: $from:ident, $kind:ident;)*) => {$(
                for object in p4info.$from {
                    let preamble = object.preamble.clone().unwrap_or_default();
                    let names = schema.names.entry(Kind::$kind).or_default();
                    names.insert(&preamble.name, preamble.id);
                    schema.$list.insert(preamble.id, object);
                }
            )*};
        }
        collect! {
            tables: tables, Table;
            actions: actions, Action;
            profiles: action_profiles, Profile;
            counters: counters, Counter;
            direct_counters: direct_counters, Counter;
            meters: meters, Meter;
            direct_meters: direct_meters, Meter;
            registers: registers, Register;
            value_sets: value_sets, ValueSet;
        }
        let types = p4info.type_info.unwrap_or_default().new_types;
        let strings = types.into_iter().filter(|(_, new)| is_string(new));
        schema.strings = strings.map(|(name, _)| name).collect();
        schema
    }

    /// Returns the id of an object by its full name or a unique suffix.
    ///
    /// # Errors
    /// If there is no object with this name, or several.
    pub(crate) fn id(&self, kind: Kind, name: &str) -> Result<u32> {
        let noun = kind.noun();
        if self.names.is_empty() {
            return Err(Error::new(format!(
                "unknown {noun} {name:?}: the switch has no program with P4Info; \
                 set one with load_new_config_file and swap_configs"
            )));
        }
        let names = self.names.get(&kind);
        match names.and_then(|names| names.suffixes.get(name)) {
            Some(Some(id)) => Ok(*id),
            Some(None) => Err(Error::new(format!(
                "ambiguous {noun} {name:?}: use the full name, {}",
                self.suggestions(kind, |full| full.ends_with(name))
            ))),
            None => Err(Error::new(format!(
                "unknown {noun} {name:?}: use {}",
                self.suggestions(kind, |_| true)
            ))),
        }
    }

    /// Returns the full names of a kind, sorted.
    pub(crate) fn names(&self, kind: Kind) -> impl Iterator<Item = (&str, u32)> {
        let names = self.names.get(&kind).into_iter();
        names.flat_map(|names| names.full.iter().map(|(name, id)| (name.as_str(), *id)))
    }

    /// Returns the actions of a table, sorted by full name.
    pub(crate) fn actions_of(&self, table: &info::Table) -> Vec<&info::Action> {
        let refs = table.action_refs.iter();
        let mut actions: Vec<_> = refs.filter_map(|r| self.action(r.id)).collect();
        actions.sort_by_key(|action| name(&action.preamble));
        actions
    }

    /// Returns whether controllers give values of this type as strings (P4Runtime specification, section
    /// "User-defined types").
    pub(crate) fn is_string(&self, type_name: Option<&info::P4NamedType>) -> bool {
        type_name.is_some_and(|named| self.strings.contains(&named.name))
    }

    fn suggestions(&self, kind: Kind, matches: impl Fn(&str) -> bool) -> String {
        let names = self.names(kind).map(|(name, _)| name);
        let mut names: Vec<&str> = names.filter(|name| matches(name)).collect();
        if names.is_empty() {
            return format!("a program with a {}", kind.noun());
        }
        if names.len() > MAX_SUGGESTIONS {
            names.truncate(MAX_SUGGESTIONS);
            names.push("...");
        }
        names.join(", ")
    }
}

fn is_string(new: &info::P4NewTypeSpec) -> bool {
    use info::p4_new_type_spec::Representation;
    use info::p4_new_type_translation::SdnType;
    let Some(Representation::TranslatedType(translation)) = &new.representation else {
        return false;
    };
    matches!(translation.sdn_type, Some(SdnType::SdnString(_)))
}

/// Returns the id of an object.
pub(crate) fn id_of(preamble: &Option<info::Preamble>) -> u32 {
    preamble.as_ref().map_or(0, |p| p.id)
}

/// Returns the full name of an object.
pub(crate) fn name(preamble: &Option<info::Preamble>) -> &str {
    preamble.as_ref().map_or("", |p| &p.name)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    fn preamble(id: u32, name: &str) -> Option<info::Preamble> {
        Some(info::Preamble {
            id,
            name: name.into(),
            ..Default::default()
        })
    }

    /// Returns a program with tables `A.x`, `B.x` and `B.y`, of which `B.y` has the action `B.go`.
    pub(crate) fn example() -> Schema {
        let table = |id, name, actions: &[u32]| info::Table {
            preamble: preamble(id, name),
            action_refs: actions
                .iter()
                .map(|id| info::ActionRef {
                    id: *id,
                    ..Default::default()
                })
                .collect(),
            ..Default::default()
        };
        let action = |id, name| info::Action {
            preamble: preamble(id, name),
            ..Default::default()
        };
        let counter = info::Counter {
            preamble: preamble(20, "B.packets"),
            ..Default::default()
        };
        Schema::new(info::P4Info {
            tables: vec![
                table(1, "A.x", &[]),
                table(2, "B.x", &[]),
                table(3, "B.y", &[10]),
            ],
            actions: vec![action(10, "B.go"), action(11, "B.stop")],
            counters: vec![counter],
            ..Default::default()
        })
    }

    #[test]
    fn finds_objects_by_unique_suffix() {
        let schema = example();
        assert_eq!(schema.id(Kind::Table, "y"), Ok(3));
        assert_eq!(schema.id(Kind::Table, "B.x"), Ok(2));
        let error = schema.id(Kind::Table, "x").unwrap_err().to_string();
        assert!(error.contains("A.x, B.x"), "{error}");
        let error = schema.id(Kind::Table, "z").unwrap_err().to_string();
        assert!(
            error.contains("unknown table \"z\": use A.x, B.x, B.y"),
            "{error}"
        );
        assert!(schema.id(Kind::Table, "").is_err());
        assert!(schema.id(Kind::Action, "y").is_err());
    }

    #[test]
    fn names_missing_program() {
        let error = Schema::default().id(Kind::Counter, "c").unwrap_err();
        assert!(error.to_string().contains("load_new_config_file"));
    }
}
