// SPDX-License-Identifier: Apache-2.0
//! Random batches on a program with `@refers_to`, compared with a model.

use std::collections::{BTreeMap, BTreeSet};

use crate::common::features::{self, direct, entry, exact, l2, replica};
use crate::common::{IntoEntity, update};
use p4::update::Type;
use p4::write_request::Atomicity::{ContinueOnError, DataplaneAtomic};
use proptest::prelude::*;
use softswitch::p4rt::deployment::{Deployment, Target};
use softswitch::p4rt::role::Role;
use softswitch::proto::p4::v1 as p4;

/// Returns features.p4, where entries of `l2` refer to entries of `seen`, and `flood` to multicast groups.
fn deployment() -> Deployment {
    let mut config = features::config();
    let info = config.p4info.as_mut().unwrap();
    for table in &mut info.tables {
        if table.preamble.as_ref().unwrap().alias == "l2" {
            let to_seen = "@refers_to(seen , hdr . ethernet . src)";
            table.match_fields[1].annotations.push(to_seen.into());
        }
    }
    for action in &mut info.actions {
        if action.preamble.as_ref().unwrap().alias == "flood" {
            let to_group = "@refers_to(builtin : : multicast_group_table , multicast_group_id)";
            action.params[0].annotations.push(to_group.into());
        }
    }
    Deployment::new(config, &Target::default()).unwrap()
}

#[derive(Debug, Clone, Copy)]
enum Object {
    Seen(u64),
    Group(u64),
    /// A destination and its group.
    Flow(u64, u64),
}

impl Object {
    fn entity(self) -> p4::Entity {
        match self {
            Self::Seen(address) => {
                entry("seen", &[exact(address)], direct("NoAction", &[])).entity()
            }
            Self::Group(id) => {
                let id = u32::try_from(id).unwrap();
                features::multicast_group(id, vec![replica(1, 0)]).entity()
            }
            Self::Flow(address, group) => l2(1, address, "flood", &[group]).entity(),
        }
    }
}

#[derive(Debug, Clone, Default)]
struct Model {
    seen: BTreeSet<u64>,
    groups: BTreeSet<u64>,
    flows: BTreeMap<u64, u64>,
}

impl Model {
    /// Applies an update; returns false and changes nothing if it is invalid.
    fn apply(&mut self, kind: Type, object: Object) -> bool {
        let exists = match object {
            Object::Seen(address) => self.seen.contains(&address),
            Object::Group(id) => self.groups.contains(&id),
            Object::Flow(address, _) => self.flows.contains_key(&address),
        };
        if exists != (kind != Type::Insert) {
            return false;
        }
        let is_delete = kind == Type::Delete;
        let is_valid = match object {
            Object::Seen(address) => !is_delete || !self.flows.contains_key(&address),
            Object::Group(id) => !is_delete || self.flows.values().all(|group| *group != id),
            Object::Flow(address, group) => {
                is_delete || self.seen.contains(&address) && self.groups.contains(&group)
            }
        };
        match (object, is_delete) {
            _ if !is_valid => {}
            (Object::Seen(address), false) => drop(self.seen.insert(address)),
            (Object::Seen(address), true) => drop(self.seen.remove(&address)),
            (Object::Group(id), false) => drop(self.groups.insert(id)),
            (Object::Group(id), true) => drop(self.groups.remove(&id)),
            (Object::Flow(address, group), false) => drop(self.flows.insert(address, group)),
            (Object::Flow(address, _), true) => drop(self.flows.remove(&address)),
        }
        is_valid
    }
}

fn updates() -> impl Strategy<Value = (Type, Object)> {
    let kinds = prop::sample::select(vec![Type::Insert, Type::Insert, Type::Modify, Type::Delete]);
    let objects = prop_oneof![
        (1..3u64).prop_map(Object::Seen),
        (1..3u64).prop_map(Object::Group),
        (1..3u64, 1..3u64).prop_map(|(address, group)| Object::Flow(address, group)),
    ];
    (kinds, objects)
}

fn count(deployment: &Deployment, request: p4::Entity) -> usize {
    let (entities, results) = deployment.read(&[request], &Role::default(), 0);
    assert_eq!(results, [Ok(())]);
    entities.len()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn updates_succeed_if_and_only_if_references_stay_intact(
        batches in prop::collection::vec((any::<bool>(), prop::collection::vec(updates(), 1..6)), 1..16),
    ) {
        let deployment = deployment();
        let mut model = Model::default();
        for (is_atomic, batch) in batches {
            let before = model.clone();
            let mut expected: Vec<_> = batch.iter().map(|(kind, o)| model.apply(*kind, *o)).collect();
            if is_atomic && expected.contains(&false) {
                model = before;
                expected.fill(false);
            }
            let atomicity = if is_atomic { DataplaneAtomic } else { ContinueOnError };
            let updates: Vec<_> = batch.iter().map(|(kind, o)| update(*kind, o.entity())).collect();
            let results = deployment.write(deployment.decode(&updates), &Role::default(), atomicity, 0);
            let succeeded: Vec<_> = results.iter().map(Result::is_ok).collect();
            prop_assert_eq!(&succeeded, &expected, "{:?}: {:?}", batch, results);
        }
        prop_assert_eq!(count(&deployment, entry("l2", &[], None).entity()), model.flows.len());
        prop_assert_eq!(count(&deployment, entry("seen", &[], None).entity()), model.seen.len());
        let groups = features::multicast_group(0, vec![]).entity();
        prop_assert_eq!(count(&deployment, groups), model.groups.len());
    }
}
