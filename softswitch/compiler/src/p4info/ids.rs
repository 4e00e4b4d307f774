// SPDX-License-Identifier: Apache-2.0
//! Ids and aliases.
//!
//! An id contains the object's type in the first byte and a hash of its name (Jenkins one-at-a-time) in
//! the other three. After a collision the next number is used, with names in alphabetical order. So the ids
//! equal p4c's. In programs for Tofino, the hash of all objects but actions includes the name of the pipe.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use crate::diag::Span;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    Action,
    Table,
    ValueSet,
    ControllerHeader,
    ActionProfile,
    Counter,
    DirectCounter,
    Meter,
    DirectMeter,
    Register,
    Digest,
}

impl Kind {
    pub fn prefix(self) -> u32 {
        match self {
            Kind::Action => 0x01,
            Kind::Table => 0x02,
            Kind::ValueSet => 0x03,
            Kind::ControllerHeader => 0x04,
            Kind::ActionProfile => 0x11,
            Kind::Counter => 0x12,
            Kind::DirectCounter => 0x13,
            Kind::Meter => 0x14,
            Kind::DirectMeter => 0x15,
            Kind::Register => 0x16,
            Kind::Digest => 0x17,
        }
    }
}

#[derive(Default)]
pub struct Symbols {
    /// Precedes the names of objects other than actions in the hash.
    prefix: String,
    /// 0: not yet assigned.
    ids: BTreeMap<(Kind, String), u32>,
    assigned: HashSet<u32>,
    names: BTreeSet<String>,
    /// Number of names with each dotted suffix.
    suffixes: HashMap<String, usize>,
}

impl Symbols {
    /// The symbols of a program, or of one for Tofino whose pipe has this name.
    pub fn of(pipe: Option<&str>) -> Self {
        Self {
            prefix: pipe.map(|name| format!("{name}.")).unwrap_or_default(),
            ..Self::default()
        }
    }

    /// Registers an object; `Err` if the program's id is already in use.
    pub fn add(&mut self, kind: Kind, name: &str, id: Option<(u32, Span)>) -> Result<(), Span> {
        let key = (kind, name.to_string());
        if self.ids.contains_key(&key) {
            return Ok(());
        }
        let mut clash = None;
        let id = match id {
            Some((id, span)) => {
                let id = id | kind.prefix() << 24;
                if self.assigned.insert(id) {
                    id
                } else {
                    clash = Some(span);
                    0
                }
            }
            None => 0,
        };
        self.ids.insert(key, id);
        if self.names.insert(name.to_string()) {
            for suffix in suffixes(name) {
                *self.suffixes.entry(suffix.to_string()).or_insert(0) += 1;
            }
        }
        clash.map_or(Ok(()), Err)
    }

    /// Assigns an id to all objects without one.
    pub fn assign(&mut self) {
        for ((kind, name), id) in &mut self.ids {
            if *id != 0 {
                continue;
            }
            let prefix = if *kind == Kind::Action {
                ""
            } else {
                &self.prefix
            };
            let mut hash = jenkins_one_at_a_time(format!("{prefix}{name}").as_bytes());
            loop {
                let candidate = kind.prefix() << 24 | hash & 0x00ff_ffff;
                if self.assigned.insert(candidate) {
                    *id = candidate;
                    break;
                }
                hash = hash.wrapping_add(1);
            }
        }
    }

    pub fn id(&self, kind: Kind, name: &str) -> u32 {
        self.ids
            .get(&(kind, name.to_string()))
            .copied()
            .unwrap_or(0)
    }

    /// Returns the shortest unique dotted suffix.
    pub fn alias(&self, name: &str) -> String {
        let mut all: Vec<&str> = suffixes(name).collect();
        all.reverse();
        all.into_iter()
            .find(|s| self.suffixes.get(*s).is_some_and(|n| *n < 2))
            .unwrap_or(name)
            .to_string()
    }
}

/// Returns all suffixes that begin at a component, longest first.
fn suffixes(name: &str) -> impl Iterator<Item = &str> {
    std::iter::once(name).chain(name.match_indices('.').map(|(i, _)| &name[i + 1..]))
}

/// Returns the hash of a name that ids contain.
pub fn jenkins_one_at_a_time(key: &[u8]) -> u32 {
    let mut hash = 0u32;
    for b in key {
        hash = hash.wrapping_add(u32::from(*b));
        hash = hash.wrapping_add(hash << 10);
        hash ^= hash >> 6;
    }
    hash = hash.wrapping_add(hash << 3);
    hash ^= hash >> 11;
    hash.wrapping_add(hash << 15)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_equal_those_of_p4c() {
        let mut s = Symbols::default();
        let _ = s.add(Kind::Action, "NoAction", None);
        let _ = s.add(Kind::Table, "ingress.mac_da", None);
        s.assign();
        assert_eq!(s.id(Kind::Action, "NoAction"), 21257015);
        assert_eq!(s.id(Kind::Table, "ingress.mac_da"), 43424410);
    }

    #[test]
    fn ids_in_a_pipe_equal_those_of_the_open_compiler_for_tofino() {
        let mut s = Symbols::of(Some("pipe"));
        let _ = s.add(Kind::Action, "SwitchIngress.hit", None);
        let _ = s.add(Kind::Table, "SwitchIngress.forward", None);
        let _ = s.add(Kind::Counter, "SwitchIngress.indirect_counter", None);
        s.assign();
        assert_eq!(s.id(Kind::Action, "SwitchIngress.hit"), 32848556);
        assert_eq!(s.id(Kind::Table, "SwitchIngress.forward"), 37882547);
        assert_eq!(
            s.id(Kind::Counter, "SwitchIngress.indirect_counter"),
            302996598
        );
    }

    #[test]
    fn alias_is_shortest_unique_suffix() {
        let mut s = Symbols::default();
        for n in ["a.x.t", "a.y.t", "u", "b.u", "c.v"] {
            let _ = s.add(Kind::Table, n, None);
        }
        assert_eq!(s.alias("a.x.t"), "x.t");
        assert_eq!(s.alias("c.v"), "v");
        assert_eq!(s.alias("u"), "u");
        assert_eq!(s.alias("b.u"), "b.u");
    }
}
