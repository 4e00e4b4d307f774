// SPDX-License-Identifier: Apache-2.0
//! The objects of P4Info with their roles (`@p4runtime_role`).

use std::collections::{BTreeSet, HashMap};

use crate::p4rt::annotation;
use crate::proto::p4::config::v1::{P4Info, Preamble};

/// The annotation's name.
const ANNOTATION: &str = "p4runtime_role";

/// The objects of a program that entities belong to, by P4Info id.
#[derive(Debug, Default)]
pub struct ObjectRoles {
    objects: HashMap<u32, Object>,
    /// The program assigns roles. Otherwise, every role may access every object.
    are_assigned: bool,
}

/// An object of P4Info.
#[derive(Debug)]
pub struct Object {
    /// Kind and name.
    pub name: String,
    /// The roles in its annotations.
    pub roles: BTreeSet<String>,
    /// It is a header of packets to or from controllers.
    pub is_header: bool,
}

impl ObjectRoles {
    /// Collects the objects of P4Info.
    ///
    /// # Errors
    /// If an annotation does not contain a name.
    pub fn new(p4info: &P4Info) -> Result<Self, String> {
        let mut objects = HashMap::new();
        let mut add = |kind: &str, preamble: &Option<Preamble>, suffix: &str| {
            let Some(p) = preamble else { return Ok(()) };
            let object = Object {
                name: format!("{kind} {}{suffix}", p.name),
                roles: roles(kind, p)?,
                is_header: !suffix.is_empty(),
            };
            objects.insert(p.id, object);
            Ok::<(), String>(())
        };
        macro_rules! add_all {
            ($($list:ident: $kind:literal $suffix:literal),* $(,)?) => {$(
                for object in &p4info.$list {
                    add($kind, &object.preamble, $suffix)?;
                }
            )*};
        }
        add_all! {
            tables: "table" "", action_profiles: "action profile" "", counters: "counter" "", meters: "meter" "",
            registers: "register" "", digests: "digest" "", value_sets: "value set" "",
            controller_packet_metadata: "the" " header",
        }
        inherit(&mut objects, p4info);
        let are_assigned = objects.values().any(|o| !o.roles.is_empty());
        Ok(Self {
            objects,
            are_assigned,
        })
    }

    /// Returns the object with this id.
    pub fn get(&self, id: u32) -> Option<&Object> {
        self.objects.get(&id)
    }

    /// Returns why the program refuses an object to a named role; `None` if it does not.
    pub fn refusal(&self, object: &Object, role: &str) -> Option<String> {
        let is_open = !self.are_assigned || object.is_header && object.roles.is_empty();
        if is_open || object.roles.contains(role) {
            return None;
        }
        if object.roles.is_empty() {
            return Some(format!(
                "it belongs to the default role: add @{ANNOTATION}(\"{role}\") in the program"
            ));
        }
        let roles: Vec<_> = object.roles.iter().map(|r| format!("'{r}'")).collect();
        Some(format!(
            "the program assigns it to {} (@{ANNOTATION}): use this role",
            roles.join(", ")
        ))
    }
}

fn roles(kind: &str, preamble: &Preamble) -> Result<BTreeSet<String>, String> {
    let bodies = annotation::bodies(&preamble.annotations, ANNOTATION);
    let names = bodies.map(|body| match annotation::text(body) {
        Ok(name) if name.is_empty() => Err(format!(
            "{kind} {}: the role's name is empty: name a role in @{ANNOTATION}",
            preamble.name
        )),
        Ok(name) => Ok(name),
        Err(e) => Err(format!("{kind} {}, @{ANNOTATION}: {e}", preamble.name)),
    });
    names.collect()
}

/// Gives action profiles without annotations the roles of their tables.
fn inherit(objects: &mut HashMap<u32, Object>, p4info: &P4Info) {
    let is_annotated = |id: u32| objects.get(&id).is_some_and(|o| !o.roles.is_empty());
    let profiles = p4info.action_profiles.iter();
    let ids = profiles.filter_map(|p| p.preamble.as_ref().map(|p| p.id));
    let own: BTreeSet<u32> = ids.filter(|id| !is_annotated(*id)).collect();
    for table in &p4info.tables {
        let id = table.preamble.as_ref().map_or(0, |p| p.id);
        if !own.contains(&table.implementation_id) {
            continue;
        }
        let roles = objects.get(&id).map(|o| o.roles.clone());
        if let Some(profile) = objects.get_mut(&table.implementation_id) {
            profile.roles.extend(roles.unwrap_or_default());
        }
    }
}
