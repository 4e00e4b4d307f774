// SPDX-License-Identifier: Apache-2.0
use prost_types::Any;

use super::config::PacketIns;
use super::*;
use crate::proto::p4::config::v1::{
    ActionProfile, ControllerPacketMetadata, Counter, P4Info, Preamble, Table,
};
use crate::proto::p4::v1::{CounterEntry, PacketReplicationEngineEntry, TableEntry};

const TABLE: u32 = 1;
const OTHER: u32 = 2;
const PROFILE: u32 = 3;
const COUNTER: u32 = 4;
const HEADER: u32 = 5;

fn preamble(id: u32, name: &str, roles: &[&str]) -> Option<Preamble> {
    let annotations = roles.iter().map(|r| format!("@p4runtime_role(\"{r}\")"));
    Some(Preamble {
        id,
        name: name.into(),
        annotations: annotations.collect(),
        ..Default::default()
    })
}

/// A program with a table for role "a" and its action profile, and a table and a counter without role.
fn p4info(role: &[&str]) -> P4Info {
    P4Info {
        tables: vec![
            Table {
                preamble: preamble(TABLE, "t", role),
                implementation_id: PROFILE,
                ..Default::default()
            },
            Table {
                preamble: preamble(OTHER, "u", &[]),
                ..Default::default()
            },
        ],
        action_profiles: vec![ActionProfile {
            preamble: preamble(PROFILE, "p", &[]),
            ..Default::default()
        }],
        counters: vec![Counter {
            preamble: preamble(COUNTER, "c", &[]),
            ..Default::default()
        }],
        controller_packet_metadata: vec![ControllerPacketMetadata {
            preamble: preamble(HEADER, "packet_out", &[]),
            ..Default::default()
        }],
        ..Default::default()
    }
}

fn role(name: &str, config: Option<&Any>) -> Role {
    Role {
        name: name.into(),
        config: config.map(|c| Arc::new(RoleConfig::decode(c).unwrap())),
        ..Default::default()
    }
}

fn allowed(role: &Role, objects: &ObjectRoles) -> Vec<u32> {
    let access = role.access(objects);
    let all = [TABLE, OTHER, PROFILE, COUNTER, HEADER];
    let allowed = all
        .into_iter()
        .filter(|id| access.check_object(*id).is_ok());
    allowed.collect()
}

fn any(value: &[u8]) -> Any {
    Any {
        type_url: "type.googleapis.com/stratum.P4RoleConfig".into(),
        value: value.into(),
    }
}

#[test]
fn program_without_roles_is_open_to_every_role() {
    let objects = ObjectRoles::new(&p4info(&[])).unwrap();
    let all = [TABLE, OTHER, PROFILE, COUNTER, HEADER];
    assert_eq!(allowed(&role("a", None), &objects), all);
    assert_eq!(allowed(&role("", None), &objects), all);
}

#[test]
fn annotated_objects_and_their_profiles_belong_to_their_roles() {
    let objects = ObjectRoles::new(&p4info(&["a", "b"])).unwrap();
    for name in ["a", "b"] {
        let allowed = allowed(&role(name, None), &objects);
        assert_eq!(allowed, [TABLE, PROFILE, HEADER], "{name}");
    }
    assert_eq!(allowed(&role("c", None), &objects), [HEADER]);
    let all = [TABLE, OTHER, PROFILE, COUNTER, HEADER];
    assert_eq!(allowed(&role("", None), &objects), all);
}

#[test]
fn refusals_name_role_object_and_owner() {
    let objects = ObjectRoles::new(&p4info(&["a"])).unwrap();
    let c = role("c", None);
    let message = |id| c.access(&objects).check_object(id).unwrap_err().message;
    let to_a = message(TABLE);
    assert!(
        to_a.contains("role 'c' may not access table t") && to_a.contains("'a'"),
        "{to_a}"
    );
    let to_default = message(COUNTER);
    assert!(
        to_default.contains("counter c: it belongs to the default role"),
        "{to_default}"
    );
}

#[test]
fn wildcards_and_replication_are_not_objects() {
    let objects = ObjectRoles::new(&p4info(&["a"])).unwrap();
    let c = role("c", None);
    let access = c.access(&objects);
    for (kind, expected) in [
        (Kind::TableEntry(TableEntry::default()), true),
        (
            Kind::PacketReplicationEngineEntry(PacketReplicationEngineEntry::default()),
            true,
        ),
        (
            Kind::CounterEntry(CounterEntry {
                counter_id: COUNTER,
                ..Default::default()
            }),
            false,
        ),
        (
            Kind::CounterEntry(CounterEntry {
                counter_id: 99,
                ..Default::default()
            }),
            true,
        ),
    ] {
        let entity = Entity { entity: Some(kind) };
        assert_eq!(access.allows(&entity), expected, "{entity:?}");
    }
}

#[test]
fn config_allows_listed_objects_only() {
    let objects = ObjectRoles::new(&p4info(&[])).unwrap();
    // exclusive_p4_ids: 1, shared_p4_ids: 4
    let config = any(b"\x0a\x01\x01\x12\x01\x04");
    assert_eq!(
        allowed(&role("a", Some(&config)), &objects),
        [TABLE, COUNTER, HEADER]
    );
    // The program's annotations apply, too.
    let objects = ObjectRoles::new(&p4info(&["a"])).unwrap();
    assert_eq!(
        allowed(&role("a", Some(&config)), &objects),
        [TABLE, HEADER]
    );
    let mut other = role("b", None);
    other.exclusive_to_others = [(HEADER, "a".to_owned())].into();
    let refused = other.access(&objects).check_object(HEADER).unwrap_err();
    assert!(
        refused.message.contains("the packet_out header") && refused.message.contains("role 'a'"),
        "{refused}"
    );
}

#[test]
fn config_selects_packets_and_pipeline_access() {
    let metadata = |id, value: &'static [u8]| PacketMetadata {
        metadata_id: id,
        value: value.into(),
    };
    let nothing = RoleConfig::decode(&any(b"")).unwrap();
    assert_eq!(nothing.packet_ins, PacketIns::None);
    assert!(role("a", Some(&any(b""))).check_pushes_pipeline().is_err());
    assert!(!nothing.packet_ins.takes(&[]));
    // receives_packet_ins, can_push_pipeline
    let everything = any(b"\x20\x01\x28\x01");
    assert!(role("a", Some(&everything)).check_pushes_pipeline().is_ok());
    assert!(
        RoleConfig::decode(&everything)
            .unwrap()
            .packet_ins
            .takes(&[])
    );
    // packet_in_filter { metadata_id: 2, value: "\0\7" }
    let filter = any(b"\x1a\x06\x08\x02\x12\x02\x00\x07\x20\x01");
    let filter = RoleConfig::decode(&filter).unwrap().packet_ins;
    assert!(filter.takes(&[metadata(1, b"\x09"), metadata(2, b"\x07")]));
    assert!(!filter.takes(&[metadata(1, b"\x07"), metadata(2, b"\x09")]));
}

#[test]
fn invalid_configs_are_refused_with_reason() {
    for (config, reason) in [
        (Any::default(), "unknown type ''"),
        (any(b"\x0a\xff"), "not a stratum.P4RoleConfig"),
        (any(b"\x1a\x02\x08\x02"), "receives_packet_ins"),
        (any(b"\x1a\x02\x08\x02\x20\x01"), "value is empty"),
    ] {
        let error = RoleConfig::decode(&config).unwrap_err();
        assert!(error.message.contains(reason), "{error}");
        assert_eq!(error.code, tonic::Code::InvalidArgument);
    }
}

#[test]
fn malformed_annotations_are_refused_with_place() {
    let mut info = p4info(&[]);
    let annotations = &mut info.tables[0].preamble.as_mut().unwrap().annotations;
    annotations.push("@p4runtime_role(a)".into());
    let error = ObjectRoles::new(&info).unwrap_err();
    assert!(
        error.contains("table t, @p4runtime_role: expected"),
        "{error}"
    );
    assert!(ObjectRoles::new(&p4info(&[""])).is_err());
}
