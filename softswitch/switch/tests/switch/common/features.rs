// SPDX-License-Identifier: Apache-2.0
//! The program `tests/programs/features.p4`, and its entities.

use std::path::Path;
use std::sync::LazyLock;

use softswitch::proto::p4::config::v1::{P4Info, Preamble};
use softswitch::proto::p4::v1 as p4;

use super::p4info;

pub static P4INFO: LazyLock<P4Info> = LazyLock::new(|| p4info(&read("features.p4info.txtpb")));

fn read(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/programs")
        .join(name);
    std::fs::read_to_string(path).unwrap()
}

pub fn config() -> p4::ForwardingPipelineConfig {
    p4::ForwardingPipelineConfig {
        p4info: Some(P4INFO.clone()),
        p4_device_config: read("features.json").into(),
        cookie: Some(p4::forwarding_pipeline_config::Cookie { cookie: 99 }),
    }
}

fn find<'a>(mut preambles: impl Iterator<Item = Option<&'a Preamble>>, alias: &str) -> u32 {
    let found = preambles.find(|p| p.is_some_and(|p| p.alias == alias));
    found
        .flatten()
        .unwrap_or_else(|| panic!("no '{alias}' in P4Info"))
        .id
}

macro_rules! ids {
    ($($name:ident: $list:ident),* $(,)?) => {$(
        pub fn $name(alias: &str) -> u32 {
            find(P4INFO.$list.iter().map(|o| o.preamble.as_ref()), alias)
        }
    )*};
}

ids! {
    table: tables, action: actions, profile: action_profiles, counter: counters, meter: meters,
    register: registers, value_set: value_sets, digest: digests,
}

/// The match of one field, from one of the functions below.
pub type Match = Option<p4::field_match::FieldMatchType>;

pub fn bytes(value: u64) -> prost::bytes::Bytes {
    let all = value.to_be_bytes();
    let start = all.iter().position(|b| *b != 0).unwrap_or(7);
    all[start..].to_vec().into()
}

pub fn exact(value: u64) -> Match {
    let value = bytes(value);
    Some(p4::field_match::FieldMatchType::Exact(
        p4::field_match::Exact { value },
    ))
}

pub fn lpm(value: u64, prefix_len: i32) -> Match {
    let value = bytes(value);
    Some(p4::field_match::FieldMatchType::Lpm(p4::field_match::Lpm {
        value,
        prefix_len,
    }))
}

pub fn ternary(value: u64, mask: u64) -> Match {
    let (value, mask) = (bytes(value), bytes(mask));
    Some(p4::field_match::FieldMatchType::Ternary(
        p4::field_match::Ternary { value, mask },
    ))
}

pub fn range(low: u64, high: u64) -> Match {
    let (low, high) = (bytes(low), bytes(high));
    Some(p4::field_match::FieldMatchType::Range(
        p4::field_match::Range { low, high },
    ))
}

pub fn optional(value: u64) -> Match {
    let value = bytes(value);
    Some(p4::field_match::FieldMatchType::Optional(
        p4::field_match::Optional { value },
    ))
}

pub fn matches(fields: &[Match]) -> Vec<p4::FieldMatch> {
    let given = (1..).zip(fields).filter(|(_, m)| m.is_some());
    let fields = given.map(|(field_id, m)| p4::FieldMatch {
        field_id,
        field_match_type: m.clone(),
    });
    fields.collect()
}

pub fn call(name: &str, params: &[u64]) -> p4::Action {
    let params = (1..)
        .zip(params)
        .map(|(param_id, value)| p4::action::Param {
            param_id,
            value: bytes(*value),
        });
    p4::Action {
        action_id: action(name),
        params: params.collect(),
    }
}

pub fn direct(name: &str, params: &[u64]) -> Option<p4::TableAction> {
    Some(p4::TableAction {
        r#type: Some(p4::table_action::Type::Action(call(name, params))),
    })
}

pub fn entry(name: &str, fields: &[Match], action: Option<p4::TableAction>) -> p4::TableEntry {
    p4::TableEntry {
        table_id: table(name),
        r#match: matches(fields),
        action,
        ..Default::default()
    }
}

/// Returns an entry of `l2`, which forwards by port and destination address.
pub fn l2(port: u64, dst: u64, action: &str, params: &[u64]) -> p4::TableEntry {
    entry("l2", &[exact(port), exact(dst)], direct(action, params))
}

pub fn route(dst: u64, prefix_len: i32, port: u64) -> p4::TableEntry {
    entry(
        "routes",
        &[lpm(dst, prefix_len)],
        direct("route", &[9, port]),
    )
}

/// Returns a member of `balancer` that forwards to a port.
pub fn member(id: u32, port: u64) -> p4::ActionProfileMember {
    p4::ActionProfileMember {
        action_profile_id: profile("balancer"),
        member_id: id,
        action: Some(call("forward", &[port])),
    }
}

/// Returns a group of `balancer` with these members and weights.
pub fn group(id: u32, members: &[(u32, i32)]) -> p4::ActionProfileGroup {
    let members = members
        .iter()
        .map(|&(member_id, weight)| p4::action_profile_group::Member {
            member_id,
            weight,
            watch_kind: None,
        });
    p4::ActionProfileGroup {
        action_profile_id: profile("balancer"),
        group_id: id,
        members: members.collect(),
        max_size: 0,
    }
}

/// Returns an entry of the table that uses `balancer`.
pub fn spread(class: u64, kind: p4::table_action::Type) -> p4::TableEntry {
    let action = p4::TableAction { r#type: Some(kind) };
    entry("spread", &[exact(class)], Some(action))
}

pub fn replica(port: u64, instance: u32) -> p4::Replica {
    p4::Replica {
        port_kind: Some(p4::replica::PortKind::Port(bytes(port))),
        instance,
        ..Default::default()
    }
}

pub fn multicast_group(id: u32, replicas: Vec<p4::Replica>) -> p4::PacketReplicationEngineEntry {
    use p4::packet_replication_engine_entry::Type;
    p4::PacketReplicationEngineEntry {
        r#type: Some(Type::MulticastGroupEntry(p4::MulticastGroupEntry {
            multicast_group_id: id,
            replicas,
            metadata: "of a group".into(),
        })),
    }
}

pub fn clone_session(id: u32, replicas: Vec<p4::Replica>) -> p4::PacketReplicationEngineEntry {
    use p4::packet_replication_engine_entry::Type;
    p4::PacketReplicationEngineEntry {
        r#type: Some(Type::CloneSessionEntry(p4::CloneSessionEntry {
            session_id: id,
            replicas,
            ..Default::default()
        })),
    }
}

/// Returns an Ethernet frame.
pub fn frame(dst: u64, src: u64, ether_type: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    frame.extend(&dst.to_be_bytes()[2..]);
    frame.extend(&src.to_be_bytes()[2..]);
    frame.extend(ether_type.to_be_bytes());
    frame.extend(payload);
    frame
}
