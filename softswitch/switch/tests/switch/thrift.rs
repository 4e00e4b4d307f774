// SPDX-License-Identifier: Apache-2.0
//! BMv2's Thrift services: what clients can do, what they are refused, and that both interfaces see the same state.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use proptest::prelude::*;
use softswitch::p4rt::deployment::LoadedProgram;
use softswitch::proto::p4::v1::{self as p4, entity::Entity as Kind};
use softswitch::thrift::Config;
use softswitch_thrift::calls::MAX_ELEMENTS;
use softswitch_thrift::client::{CallError, Client};
use softswitch_thrift::interface::*;
use softswitch_thrift::server::MAX_CONNECTIONS;
use softswitch_thrift::wire::Binary;
use tonic::Code;

use crate::common::features::{self, clone_session, frame, l2, multicast_group, replica};
use crate::common::{IntoEntity, TEST_TIMEOUT, TestSwitch};

const L2: &str = "FeaturesIngress.l2";
const ROUTES: &str = "FeaturesIngress.routes";
const ACL: &str = "FeaturesIngress.acl";
const SPREAD: &str = "FeaturesIngress.spread";
const BALANCER: &str = "FeaturesIngress.balancer";
const FORWARD: &str = "FeaturesIngress.forward";

/// Starts a switch with the program, without P4Info, and a client.
async fn start(ports: u32) -> (TestSwitch, Client) {
    let switch = start_with(ports, true).await;
    let client = connect(&switch);
    (switch, client)
}

async fn start_with(ports: u32, enable_swap: bool) -> TestSwitch {
    let json = String::from_utf8(features::config().p4_device_config.to_vec()).unwrap();
    TestSwitch::start_with(ports, &[], |config| softswitch::switch::Config {
        program: Some(LoadedProgram::load(json).unwrap()),
        thrift: Some(Config {
            listener: TcpListener::bind("127.0.0.1:0").unwrap(),
            enable_swap,
            priority_queues: 8,
        }),
        ..config
    })
    .await
}

fn address(switch: &TestSwitch) -> SocketAddr {
    switch.switch.thrift.as_ref().unwrap().address()
}

fn connect(switch: &TestSwitch) -> Client {
    Client::connect(address(switch)).unwrap()
}

/// Returns the code with which a call was refused.
fn refused<T: std::fmt::Debug, E: std::fmt::Debug>(result: Result<T, CallError<E>>) -> E {
    match result.expect_err("the call should be refused") {
        CallError::Refused(code) => code,
        CallError::Failed(error) => panic!("{error}"),
    }
}

fn exact(value: u64, bytes: usize) -> MatchParam {
    MatchParam {
        kind: match_kind::EXACT,
        exact: Some(MatchExact {
            key: binary(value, bytes),
        }),
        ..Default::default()
    }
}

fn lpm(value: u32, prefix_length: i32) -> MatchParam {
    MatchParam {
        kind: match_kind::LPM,
        lpm: Some(MatchLpm {
            key: binary(value.into(), 4),
            prefix_length,
        }),
        ..Default::default()
    }
}

fn ternary(value: u64, mask: u64, bytes: usize) -> MatchParam {
    MatchParam {
        kind: match_kind::TERNARY,
        ternary: Some(MatchTernary {
            key: binary(value, bytes),
            mask: binary(mask, bytes),
        }),
        ..Default::default()
    }
}

fn range(start: u64, end: u64, bytes: usize) -> MatchParam {
    MatchParam {
        kind: match_kind::RANGE,
        range: Some(MatchRange {
            start: binary(start, bytes),
            end: binary(end, bytes),
        }),
        ..Default::default()
    }
}

fn binary(value: u64, bytes: usize) -> Binary {
    Binary(value.to_be_bytes()[8 - bytes..].to_vec())
}

fn l2_key(port: u64, dst: u64) -> Vec<MatchParam> {
    vec![exact(port, 2), exact(dst, 6)]
}

fn forward_to(client: &mut Client, dst: u64, port: u64) -> Result<i32, CallError<TableError>> {
    let data = vec![binary(port, 2)];
    let options = EntryOptions::default();
    client.bm_mt_add_entry(0, L2.into(), l2_key(1, dst), FORWARD.into(), data, options)
}

fn priority(priority: i32) -> EntryOptions {
    EntryOptions {
        priority: Some(priority),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn entry_forwards_packets_without_p4info() {
    let (switch, mut client) = start(2).await;
    forward_to(&mut client, 2, 2).unwrap();
    let sent = frame(2, 1, 0x1234, b"hello");
    switch.wires[0].send(&sent);
    assert_eq!(switch.wires[1].receive(), sent);
    let value = client.bm_counter_read(0, "FeaturesIngress.port_counter".into(), 1);
    assert_eq!(value.unwrap().packets, 1);
    // P4Runtime still does not have a config.
    let mut controller = switch.controller().await;
    let read = controller.read(p4::TableEntry::default()).await;
    assert_eq!(read.unwrap_err().code(), Code::FailedPrecondition);
}

#[tokio::test(flavor = "multi_thread")]
async fn handles_are_numbered_as_in_bmv2() {
    let (_switch, mut client) = start(1).await;
    for (dst, handle) in [(10, 0), (11, 1), (12, 2)] {
        assert_eq!(forward_to(&mut client, dst, 1).unwrap(), handle);
    }
    assert_eq!(
        refused(forward_to(&mut client, 11, 1)),
        TableError::DuplicateEntry
    );
    client.bm_mt_delete_entry(0, L2.into(), 1).unwrap();
    client.bm_mt_delete_entry(0, L2.into(), 0).unwrap();
    // The lowest slot is used first, with the next version.
    assert_eq!(forward_to(&mut client, 13, 1).unwrap(), 1 << 24);
    assert_eq!(forward_to(&mut client, 14, 1).unwrap(), 1 << 24 | 1);
    let refused_delete =
        |client: &mut Client, handle| refused(client.bm_mt_delete_entry(0, L2.into(), handle));
    assert_eq!(refused_delete(&mut client, 0), TableError::ExpiredHandle);
    assert_eq!(refused_delete(&mut client, 3), TableError::InvalidHandle);
    assert_eq!(refused_delete(&mut client, -1), TableError::InvalidHandle);
    let data = vec![binary(7, 2)];
    client
        .bm_mt_modify_entry(0, L2.into(), 2, FORWARD.into(), data)
        .unwrap();
    let entries = client.bm_mt_get_entries(0, L2.into()).unwrap();
    let handles: Vec<_> = entries.iter().map(|entry| entry.entry_handle).collect();
    assert_eq!(handles, [1 << 24, 1 << 24 | 1, 2]);
    let modified = client.bm_mt_get_entry(0, L2.into(), 2).unwrap();
    assert_eq!(modified, entries[2]);
    assert_eq!(modified.match_key, l2_key(1, 12));
    assert_eq!(modified.action_entry.action_name.as_deref(), Some(FORWARD));
    assert_eq!(
        modified.action_entry.action_data,
        Some(vec![Binary(vec![7])])
    );
    let by_key = client.bm_mt_get_entry_from_key(0, L2.into(), l2_key(1, 12), Default::default());
    assert_eq!(by_key.unwrap(), modified);
    assert_eq!(client.bm_mt_get_num_entries(0, L2.into()).unwrap(), 3);
    client.bm_mt_clear_entries(0, L2.into(), true).unwrap();
    assert_eq!(client.bm_mt_get_num_entries(0, L2.into()).unwrap(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_entries_are_refused_with_bmv2s_codes() {
    let (_switch, mut client) = start(1).await;
    let one = || vec![binary(1, 2)];
    let add = |client: &mut Client, table: &str, key, action: &str, data| {
        let options = EntryOptions::default();
        refused(client.bm_mt_add_entry(0, table.into(), key, action.into(), data, options))
    };
    let short = vec![exact(1, 1), exact(2, 6)];
    let wrong_kind = vec![lpm(1, 1), exact(2, 6)];
    let missing_part = vec![MatchParam::default(), exact(2, 6)];
    let unknown_kind = vec![
        MatchParam {
            kind: 9,
            ..Default::default()
        },
        exact(2, 6),
    ];
    for (table, key, action, data, expected) in [
        (
            "nosuch",
            l2_key(1, 2),
            FORWARD,
            one(),
            TableError::InvalidTableName,
        ),
        (
            "",
            l2_key(1, 2),
            FORWARD,
            one(),
            TableError::InvalidTableName,
        ),
        (
            SPREAD,
            l2_key(1, 2),
            FORWARD,
            one(),
            TableError::WrongTableType,
        ),
        (
            L2,
            l2_key(1, 2),
            "nosuch",
            one(),
            TableError::InvalidActionName,
        ),
        (
            L2,
            l2_key(1, 2),
            "FeaturesIngress.route",
            one(),
            TableError::InvalidActionName,
        ),
        (L2, l2_key(1, 2), FORWARD, vec![], TableError::BadActionData),
        (
            L2,
            l2_key(1, 2),
            FORWARD,
            [one(), one()].concat(),
            TableError::BadActionData,
        ),
        (
            L2,
            l2_key(1, 2),
            FORWARD,
            vec![binary(512, 2)],
            TableError::BadActionData,
        ),
        (L2, vec![], FORWARD, one(), TableError::BadMatchKey),
        (
            L2,
            [l2_key(1, 2), l2_key(1, 2)].concat(),
            FORWARD,
            one(),
            TableError::BadMatchKey,
        ),
        (L2, short, FORWARD, one(), TableError::BadMatchKey),
        (L2, wrong_kind, FORWARD, one(), TableError::BadMatchKey),
        (L2, missing_part, FORWARD, one(), TableError::BadMatchKey),
        (L2, unknown_kind, FORWARD, one(), TableError::BadMatchKey),
        (
            ROUTES,
            vec![lpm(1, 33)],
            "FeaturesIngress.route_drop",
            vec![],
            TableError::BadMatchKey,
        ),
        (
            ROUTES,
            vec![lpm(1, -1)],
            "FeaturesIngress.route_drop",
            vec![],
            TableError::BadMatchKey,
        ),
        (
            "FeaturesIngress.constant",
            vec![exact(5, 2)],
            "FeaturesIngress.set_class",
            vec![binary(1, 1)],
            TableError::ImmutableTableEntries,
        ),
    ] {
        assert_eq!(
            add(&mut client, table, key, action, data),
            expected,
            "{table} {action}"
        );
    }
    for table in [L2, ROUTES] {
        assert_eq!(client.bm_mt_get_num_entries(0, table.into()).unwrap(), 0);
    }
    let constant = "FeaturesIngress.constant";
    let deleted = client.bm_mt_delete_entry(0, constant.into(), 0);
    assert_eq!(refused(deleted), TableError::ImmutableTableEntries);
    let default = client.bm_mt_set_default_action(0, L2.into(), FORWARD.into(), one());
    assert_eq!(refused(default), TableError::DefaultEntryIsConst);
    client.bm_mt_reset_default_entry(0, L2.into()).unwrap();
    let ttl = client.bm_mt_set_entry_ttl(0, L2.into(), 0, 1);
    assert_eq!(refused(ttl), TableError::AgeingDisabled);
    assert!(
        client
            .bm_mt_get_entries(0, "nosuch".into())
            .unwrap()
            .is_empty()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn smaller_priority_wins_and_fields_are_canonical() {
    let (_switch, mut client) = start(1).await;
    let key = || {
        vec![
            ternary(0x0a00_00ff, 0xffff_ff00, 4),
            range(0, 100, 2),
            ternary(6, 0, 1),
        ]
    };
    let add = |client: &mut Client, options| {
        let action = "FeaturesIngress.drop".into();
        client.bm_mt_add_entry(0, ACL.into(), key(), action, vec![], options)
    };
    assert_eq!(add(&mut client, priority(10)).unwrap(), 0);
    assert_eq!(add(&mut client, priority(0)).unwrap(), 1);
    assert_eq!(
        refused(add(&mut client, priority(10))),
        TableError::DuplicateEntry
    );
    assert_eq!(
        refused(add(&mut client, priority(-1))),
        TableError::BadMatchKey
    );
    let entries = client.bm_mt_get_entries(0, ACL.into()).unwrap();
    assert_eq!(entries[0].options, priority(10));
    assert_eq!(entries[1].options, priority(0));
    let canonical = [
        ternary(0x0a00_0000, 0xffff_ff00, 4),
        range(0, 100, 2),
        ternary(0, 0, 1),
    ];
    assert_eq!(entries[0].match_key, canonical);
    let reversed = vec![ternary(0, 0, 4), range(9, 8, 2), ternary(0, 0, 1)];
    let action = "FeaturesIngress.drop".into();
    let added = client.bm_mt_add_entry(0, ACL.into(), reversed, action, vec![], priority(1));
    assert_eq!(refused(added), TableError::BadMatchKey);
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_spread_over_their_members() {
    let (_switch, mut client) = start(1).await;
    let mut member = |port| {
        let data = vec![binary(port, 2)];
        client
            .bm_mt_act_prof_add_member(0, BALANCER.into(), FORWARD.into(), data)
            .unwrap()
    };
    assert_eq!([member(1), member(2)], [0, 1]);
    assert_eq!(
        client
            .bm_mt_act_prof_create_group(0, BALANCER.into())
            .unwrap(),
        0
    );
    let add_entry = |client: &mut Client, class, group| {
        let (key, options) = (vec![exact(class, 1)], EntryOptions::default());
        client.bm_mt_indirect_ws_add_entry(0, SPREAD.into(), key, group, options)
    };
    assert_eq!(refused(add_entry(&mut client, 3, 0)), TableError::EmptyGrp);
    assert_eq!(
        refused(add_entry(&mut client, 3, 7)),
        TableError::InvalidGrpHandle
    );
    let join = |client: &mut Client, member, group| {
        client.bm_mt_act_prof_add_member_to_group(0, BALANCER.into(), member, group)
    };
    join(&mut client, 1, 0).unwrap();
    join(&mut client, 0, 0).unwrap();
    assert_eq!(
        refused(join(&mut client, 0, 0)),
        TableError::MbrAlreadyInGrp
    );
    assert_eq!(
        refused(join(&mut client, 9, 0)),
        TableError::InvalidMbrHandle
    );
    assert_eq!(
        refused(join(&mut client, 0, 9)),
        TableError::InvalidGrpHandle
    );
    assert_eq!(add_entry(&mut client, 3, 0).unwrap(), 0);
    let group = client
        .bm_mt_act_prof_get_group(0, BALANCER.into(), 0)
        .unwrap();
    assert_eq!(group.members, [0, 1]);
    let entry = client
        .bm_mt_get_entry(0, SPREAD.into(), 0)
        .unwrap()
        .action_entry;
    assert_eq!((entry.kind, entry.group), (action_kind::GROUP, Some(0)));
    let delete = |client: &mut Client, group| {
        refused(client.bm_mt_act_prof_delete_group(0, BALANCER.into(), group))
    };
    assert_eq!(delete(&mut client, 0), TableError::GrpStillUsed);
    assert_eq!(delete(&mut client, 1), TableError::InvalidGrpHandle);
    let deleted = client.bm_mt_act_prof_delete_member(0, BALANCER.into(), 0);
    assert_eq!(refused(deleted), TableError::MbrStillUsed);
    // A member of its own, as entry and as default.
    client
        .bm_mt_indirect_modify_entry(0, SPREAD.into(), 0, 1)
        .unwrap();
    client
        .bm_mt_indirect_set_default_member(0, SPREAD.into(), 0)
        .unwrap();
    let default = client.bm_mt_get_default_entry(0, SPREAD.into()).unwrap();
    assert_eq!(
        (default.kind, default.member),
        (action_kind::MEMBER, Some(0))
    );
    client
        .bm_mt_indirect_reset_default_entry(0, SPREAD.into())
        .unwrap();
    let default = client.bm_mt_get_default_entry(0, SPREAD.into()).unwrap();
    assert_eq!(default.kind, action_kind::NONE);
    for member in [0, 1] {
        let left = client.bm_mt_act_prof_remove_member_from_group(0, BALANCER.into(), member, 0);
        left.unwrap();
    }
    let left = client.bm_mt_act_prof_remove_member_from_group(0, BALANCER.into(), 1, 0);
    assert_eq!(refused(left), TableError::MbrNotInGrp);
    client
        .bm_mt_act_prof_delete_group(0, BALANCER.into(), 0)
        .unwrap();
    client
        .bm_mt_indirect_delete_entry(0, SPREAD.into(), 0)
        .unwrap();
    client
        .bm_mt_act_prof_delete_member(0, BALANCER.into(), 1)
        .unwrap();
    assert_eq!(
        client
            .bm_mt_act_prof_get_members(0, BALANCER.into())
            .unwrap()
            .len(),
        1
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn arrays_keep_values_and_check_indices() {
    let (_switch, mut client) = start(1).await;
    let counter = || "FeaturesIngress.port_counter".to_owned();
    let value = CounterValue {
        bytes: 5,
        packets: 6,
    };
    client
        .bm_counter_write(0, counter(), 3, value.clone())
        .unwrap();
    assert_eq!(client.bm_counter_read(0, counter(), 3).unwrap(), value);
    for index in [64, -1, i32::MAX] {
        let read = client.bm_counter_read(0, counter(), index);
        assert_eq!(refused(read), CounterError::InvalidIndex);
    }
    client.bm_counter_reset_all(0, counter()).unwrap();
    assert_eq!(
        client.bm_counter_read(0, counter(), 3).unwrap(),
        CounterValue::default()
    );
    let read = client.bm_counter_read(0, "nosuch".into(), 0);
    assert_eq!(refused(read), CounterError::InvalidCounterName);

    let register = || "FeaturesIngress.scratch".to_owned();
    client.bm_register_write(0, register(), 1, -1).unwrap();
    assert_eq!(
        client.bm_register_read(0, register(), 1).unwrap(),
        0xffff_ffff
    );
    client
        .bm_register_write_range(0, register(), 126, 128, 9)
        .unwrap();
    let all = client.bm_register_read_all(0, register()).unwrap();
    assert_eq!((all.len(), &all[125..]), (128, &[0, 9, 9][..]));
    for (start, end) in [(127, 129), (3, 2), (-1, 2)] {
        let written = client.bm_register_write_range(0, register(), start, end, 1);
        assert_eq!(refused(written), RegisterError::InvalidIndex);
    }
    client.bm_register_reset(0, register()).unwrap();
    assert_eq!(client.bm_register_read(0, register(), 127).unwrap(), 0);

    let meter = || "FeaturesIngress.port_meter".to_owned();
    let rates = |cir: f64, pir: f64| {
        let rate = |units_per_micros| MeterRate {
            units_per_micros,
            burst_size: 10,
        };
        vec![rate(cir), rate(pir)]
    };
    assert!(client.bm_meter_get_rates(0, meter(), 0).unwrap().is_empty());
    client
        .bm_meter_set_rates(0, meter(), 0, rates(0.5, 1.25))
        .unwrap();
    let set = client.bm_meter_set_rates(0, meter(), 0, rates(2.0, 1.0));
    assert_eq!(refused(set), MeterError::InvalidInfoRateValue);
    let set = client.bm_meter_set_rates(0, meter(), 0, rates(2.0, 1.0)[..1].to_vec());
    assert_eq!(refused(set), MeterError::BadRatesList);
    let set = client.bm_meter_set_rates(0, meter(), 16, rates(1.0, 2.0));
    assert_eq!(refused(set), MeterError::InvalidIndex);
    assert_eq!(
        client.bm_meter_get_rates(0, meter(), 0).unwrap(),
        rates(0.5, 1.25)
    );
    client
        .bm_meter_array_set_rates(0, meter(), rates(0.1, 0.2))
        .unwrap();
    assert_eq!(
        client.bm_meter_get_rates(0, meter(), 15).unwrap(),
        rates(0.1, 0.2)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn direct_resources_belong_to_entries() {
    let (_switch, mut client) = start(1).await;
    let action = "FeaturesIngress.route_drop".into();
    let key = vec![lpm(0x0a01_0203, 16)];
    let handle = client.bm_mt_add_entry(0, ROUTES.into(), key, action, vec![], Default::default());
    let handle = handle.unwrap();
    let entry = client.bm_mt_get_entry(0, ROUTES.into(), handle).unwrap();
    assert_eq!(entry.match_key, [lpm(0x0a01_0000, 16)]);
    let value = CounterValue {
        bytes: 50,
        packets: 2,
    };
    client
        .bm_mt_write_counter(0, ROUTES.into(), handle, value.clone())
        .unwrap();
    assert_eq!(
        client.bm_mt_read_counter(0, ROUTES.into(), handle).unwrap(),
        value
    );
    client.bm_mt_reset_counters(0, ROUTES.into()).unwrap();
    let value = client.bm_mt_read_counter(0, ROUTES.into(), handle).unwrap();
    assert_eq!(value, CounterValue::default());
    let read = client.bm_mt_read_counter(0, ROUTES.into(), handle + 1);
    assert_eq!(refused(read), TableError::InvalidHandle);
    let read = client.bm_mt_read_counter(0, L2.into(), 0);
    assert_eq!(refused(read), TableError::CountersDisabled);
    let rate = |units_per_micros| MeterRate {
        units_per_micros,
        burst_size: 1,
    };
    let rates = vec![rate(0.1), rate(0.2)];
    client
        .bm_mt_set_meter_rates(0, ROUTES.into(), handle, rates.clone())
        .unwrap();
    assert_eq!(
        client
            .bm_mt_get_meter_rates(0, ROUTES.into(), handle)
            .unwrap(),
        rates
    );
    let set = client.bm_mt_set_meter_rates(0, ROUTES.into(), handle, vec![]);
    assert_eq!(refused(set), TableError::Error);
    let read = client.bm_mt_get_meter_rates(0, L2.into(), 0);
    assert_eq!(refused(read), TableError::MetersDisabled);
}

#[tokio::test(flavor = "multi_thread")]
async fn multicast_and_mirroring_copy_packets() {
    let (switch, mut client) = start(4).await;
    assert_eq!(client.bm_mc_mgrp_create(0, 7).unwrap(), 7);
    let node = client
        .bm_mc_node_create(0, 1, "10100".into(), "".into())
        .unwrap();
    client.bm_mc_node_associate(0, 7, node).unwrap();
    let flood = "FeaturesIngress.flood".into();
    let key = l2_key(1, 9);
    let added = client.bm_mt_add_entry(
        0,
        L2.into(),
        key,
        flood,
        vec![binary(7, 2)],
        Default::default(),
    );
    added.unwrap();
    let sent = frame(9, 1, 0x1234, b"flood");
    switch.wires[0].send(&sent);
    assert_eq!(switch.wires[1].receive(), sent);
    assert_eq!(switch.wires[3].receive(), sent);
    // The session follows the group.
    let session = MirroringSession {
        port: None,
        mgid: Some(7),
    };
    client.mirroring_session_add(5, session.clone()).unwrap();
    assert_eq!(client.mirroring_session_get(5).unwrap(), session);
    client
        .bm_mc_node_update(0, node, "1000".into(), "".into())
        .unwrap();
    let mirror = "FeaturesIngress.mirror".into();
    let key = l2_key(1, 8);
    let added = client.bm_mt_add_entry(
        0,
        L2.into(),
        key,
        mirror,
        vec![binary(2, 2)],
        Default::default(),
    );
    added.unwrap();
    let sent = frame(8, 1, 0x1234, b"mirror");
    switch.wires[0].send(&sent);
    assert_eq!(switch.wires[1].receive(), sent);
    assert_eq!(switch.wires[2].receive(), sent);
    client.mirroring_session_delete(5).unwrap();
    assert_eq!(
        refused(client.mirroring_session_get(5)),
        MirroringError::SessionNotFound
    );
    for id in [-1, 32768] {
        let added = client.mirroring_session_add(id, session.clone());
        assert_eq!(refused(added), MirroringError::SessionNotFound);
    }
    assert_eq!(
        refused(client.bm_mc_mgrp_create(0, 0)),
        MulticastError::InvalidMgid
    );
    assert_eq!(
        refused(client.bm_mc_mgrp_create(0, 65536)),
        MulticastError::InvalidMgid
    );
    let node = client.bm_mc_node_create(0, 65536, "1".into(), "".into());
    assert_eq!(refused(node), MulticastError::Error);
    client.bm_mc_mgrp_destroy(0, 7).unwrap();
    let entries = client.bm_mc_get_entries(0).unwrap();
    let entries: serde_json::Value = serde_json::from_str(&entries).unwrap();
    assert_eq!(entries["mgrps"], serde_json::json!([]));
    assert_eq!(entries["l2_handles"][0]["ports"], serde_json::json!([3]));
}

#[tokio::test(flavor = "multi_thread")]
async fn both_interfaces_see_the_same_state() {
    let (switch, mut client) = start(2).await;
    let mut controller = switch.controller_with(features::config()).await;
    controller.insert(l2(1, 20, "forward", &[2])).await.unwrap();
    assert_eq!(forward_to(&mut client, 21, 1).unwrap(), 1);
    let entries = client.bm_mt_get_entries(0, L2.into()).unwrap();
    assert_eq!(entries[0].match_key, l2_key(1, 20));
    let read = controller.read(p4::TableEntry {
        table_id: features::table("l2"),
        ..Default::default()
    });
    assert_eq!(read.await.unwrap().len(), 2);
    // P4Runtime may delete what Thrift has inserted, and the handle expires.
    let written = l2(1, 21, "forward", &[1]);
    controller.delete(written).await.unwrap();
    let deleted = client.bm_mt_delete_entry(0, L2.into(), 1);
    assert_eq!(refused(deleted), TableError::InvalidHandle);
    // Members, groups and multicast groups.
    let data = vec![binary(1, 2)];
    client
        .bm_mt_act_prof_add_member(0, BALANCER.into(), FORWARD.into(), data)
        .unwrap();
    client
        .bm_mt_act_prof_create_group(0, BALANCER.into())
        .unwrap();
    client
        .bm_mt_act_prof_add_member_to_group(0, BALANCER.into(), 0, 0)
        .unwrap();
    let read = controller.read(p4::ActionProfileGroup::default());
    let Some(Kind::ActionProfileGroup(group)) = read.await.unwrap()[0].entity.clone() else {
        panic!("not a group");
    };
    assert_eq!(group.action_profile_id, features::profile("balancer"));
    assert_eq!((group.group_id, group.members[0].member_id), (1, 1));
    client.bm_mc_mgrp_create(0, 3).unwrap();
    let read = controller.read(p4::PacketReplicationEngineEntry::default());
    assert_eq!(read.await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_of_p4runtime_stay_until_thrift_changes_them() {
    let (switch, mut client) = start(2).await;
    let mut controller = switch.controller_with(features::config()).await;
    // Thrift cannot express these: a mirroring session has one port, and replication id 0.
    let backed_up = p4::Replica {
        backup_replicas: vec![p4::BackupReplica {
            port: vec![3].into(),
            instance: 4,
        }],
        ..replica(1, 4)
    };
    let session = clone_session(5, vec![replica(2, 1), replica(1, 7)]);
    let group = multicast_group(2, vec![backed_up, replica(2, 0), replica(1, 0)]);
    controller.insert(session).await.unwrap();
    controller.insert(group).await.unwrap();
    let all = p4::PacketReplicationEngineEntry::default;
    let written = controller.read(all()).await.unwrap();
    for _ in 0..2 {
        let entries = client.bm_mc_get_entries(0).unwrap();
        let entries: serde_json::Value = serde_json::from_str(&entries).unwrap();
        assert_eq!(entries["mgrps"][0]["l1_handles"], serde_json::json!([0, 1]));
        assert_eq!(client.mirroring_mapping_get_egress_port(5).unwrap(), -1);
        assert!(client.bm_mc_node_destroy(0, 9).is_err());
        client.bm_mc_mgrp_create(0, 3).unwrap();
        client.bm_mc_mgrp_destroy(0, 3).unwrap();
        assert_eq!(controller.read(all()).await.unwrap(), written);
    }
    client.mirroring_mapping_add(5, 2).unwrap();
    client.bm_mc_mgrp_destroy(0, 2).unwrap();
    let expected = clone_session(5, vec![replica(2, 0)]);
    let read = controller.read(all()).await.unwrap();
    assert_eq!(read, [expected.entity()]);
}

#[tokio::test(flavor = "multi_thread")]
async fn value_set_has_the_values_added() {
    let (_switch, mut client) = start(1).await;
    let set = || "FeaturesParser.ip_types".to_owned();
    let value = Binary(vec![0x08, 0x06]);
    client.bm_parse_vset_add(0, set(), value.clone()).unwrap();
    client.bm_parse_vset_add(0, set(), value.clone()).unwrap();
    assert_eq!(
        client.bm_parse_vset_get(0, set()).unwrap(),
        std::slice::from_ref(&value)
    );
    let added = client.bm_parse_vset_add(0, set(), Binary(vec![1, 0, 0]));
    assert_eq!(refused(added), ValueSetError::Error);
    let added = client.bm_parse_vset_add(0, "nosuch".into(), value.clone());
    assert_eq!(refused(added), ValueSetError::InvalidParseVsetName);
    client
        .bm_parse_vset_remove(0, set(), value.clone())
        .unwrap();
    assert!(client.bm_parse_vset_get(0, set()).unwrap().is_empty());
    client.bm_parse_vset_add(0, set(), value).unwrap();
    client.bm_parse_vset_clear(0, set()).unwrap();
    assert!(client.bm_parse_vset_get(0, set()).unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn queue_limits_apply_to_packets() {
    let (switch, mut client) = start(2).await;
    forward_to(&mut client, 2, 2).unwrap();
    // Two packets wait for a very slow queue; the first one leaves at once.
    assert_eq!(client.set_egress_queue_rate(2, 1).unwrap(), 0);
    assert_eq!(client.set_egress_queue_depth(2, 2).unwrap(), 0);
    for n in 0..5 {
        switch.wires[0].send(&frame(2, 1, 0x1234, &[n]));
    }
    assert_eq!(switch.wires[1].receive()[14], 0);
    assert_eq!(
        switch.wires[1].receive_within(Duration::from_millis(100)),
        None
    );
    // Without the rate, what waits leaves at once.
    assert_eq!(client.set_all_egress_queue_rates(0).unwrap(), 0);
    assert_eq!(switch.wires[1].receive()[14], 1);
    assert_eq!(switch.wires[1].receive()[14], 2);
    assert_eq!(
        switch.wires[1].receive_within(Duration::from_millis(100)),
        None
    );
    for (port, priority) in [(9, 0), (2, 8), (2, -1), (-1, 0)] {
        let set = client.set_egress_priority_queue_rate(port, priority, 5);
        assert_eq!(set.unwrap(), 1, "port {port}, priority {priority}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn program_is_swapped_after_it_is_loaded() {
    let (switch, mut client) = start(2).await;
    forward_to(&mut client, 2, 2).unwrap();
    let json = client.bm_get_config().unwrap();
    assert_eq!(refused(client.bm_swap_configs()), SwapError::NoOngoingSwap);
    assert_eq!(
        refused(client.bm_load_new_config("{".into())),
        SwapError::NoOngoingSwap
    );
    client.bm_load_new_config(json.clone()).unwrap();
    assert_eq!(
        refused(client.bm_load_new_config(json)),
        SwapError::OngoingSwap
    );
    // The functions refer to the new program, and packets to the old one.
    assert_eq!(client.bm_mt_get_num_entries(0, L2.into()).unwrap(), 0);
    forward_to(&mut client, 3, 2).unwrap();
    switch.wires[0].send(&frame(2, 1, 0x1234, b"old"));
    assert_eq!(switch.wires[1].receive()[14..], *b"old");
    client.bm_swap_configs().unwrap();
    switch.wires[0].send(&frame(2, 1, 0x1234, b"old"));
    switch.wires[0].send(&frame(3, 1, 0x1234, b"new"));
    assert_eq!(switch.wires[1].receive()[14..], *b"new");

    let switch = start_with(1, false).await;
    let mut client = connect(&switch);
    assert_eq!(
        refused(client.bm_swap_configs()),
        SwapError::ConfigSwapDisabled
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn reset_keeps_only_what_the_program_defines() {
    let (_switch, mut client) = start(1).await;
    forward_to(&mut client, 2, 1).unwrap();
    client.bm_mc_mgrp_create(0, 3).unwrap();
    client.mirroring_mapping_add(4, 1).unwrap();
    client.bm_reset_state().unwrap();
    assert_eq!(client.bm_mt_get_num_entries(0, L2.into()).unwrap(), 0);
    let constant = client.bm_mt_get_num_entries(0, "FeaturesIngress.constant".into());
    assert_eq!(constant.unwrap(), 2);
    assert_eq!(client.mirroring_mapping_get_egress_port(4).unwrap(), -1);
    let digest = client.bm_get_config_md5().unwrap();
    assert_eq!(digest.0.len(), 16);
    let table = client.bm_get_id_from_name(0, resource::TABLE, L2.into());
    assert!(table.is_ok());
    let unknown = client.bm_get_id_from_name(0, resource::TABLE, "nosuch".into());
    assert_eq!(refused(unknown), IdError::InvalidResourceName);
    let unknown = client.bm_get_id_from_name(0, 17, L2.into());
    assert_eq!(refused(unknown), IdError::InvalidResourceType);
    let ports = client.bm_dev_mgr_show_ports().unwrap();
    assert_eq!((ports[0].port_num, &ports[0].iface_name[..]), (1, "wire1"));
    client.bm_dev_mgr_remove_port(1).unwrap();
    assert!(client.bm_dev_mgr_show_ports().unwrap().is_empty());
    let added = client.bm_dev_mgr_add_port("nosuchinterface".into(), 5, String::new());
    assert_eq!(refused(added), PortError::Error);
    assert_eq!(
        refused(client.bm_learning_ack_buffer(0, 77, 1)),
        LearningError::InvalidListId
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn switch_without_program_refuses_names() {
    let switch = TestSwitch::start_with(1, &[], |config| softswitch::switch::Config {
        thrift: Some(Config {
            listener: TcpListener::bind("127.0.0.1:0").unwrap(),
            enable_swap: true,
            priority_queues: 8,
        }),
        ..config
    })
    .await;
    let mut client = connect(&switch);
    assert_eq!(
        refused(forward_to(&mut client, 2, 1)),
        TableError::InvalidTableName
    );
    assert_eq!(client.bm_get_config().unwrap(), "");
    assert_eq!(
        refused(client.bm_mc_mgrp_create(0, 1)),
        MulticastError::Error
    );
}

/// Sends bytes on a new connection and returns the answer until the server closes it, or nothing more comes.
fn raw(address: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    // The server may close the connection before it has read everything.
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    answer
}

/// A call of a function with these arguments, in Thrift's binary protocol.
fn message(name: &str, arguments: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x80, 0x01, 0, 1];
    bytes.extend((name.len() as u32).to_be_bytes());
    bytes.extend(name.as_bytes());
    bytes.extend(1_u32.to_be_bytes());
    bytes.extend(arguments);
    bytes
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_messages_end_only_their_connection() {
    let (switch, mut client) = start(1).await;
    let address = address(&switch);
    const EXCEPTION: u8 = 3;
    let is_exception = |answer: Vec<u8>| answer.get(3) == Some(&EXCEPTION);
    assert!(is_exception(raw(
        address,
        &message("standard:nosuch", &[0])
    )));
    assert!(is_exception(raw(
        address,
        &message("nosuch:bm_mt_add_entry", &[0])
    )));
    assert!(is_exception(raw(
        address,
        &message("bm_mt_add_entry", &[0])
    )));
    // A list with too many elements, and one with a negative number of them.
    for elements in [MAX_ELEMENTS as u32 + 1, u32::MAX] {
        let list = [&[15, 0, 3, 12][..], &elements.to_be_bytes()].concat();
        assert!(is_exception(raw(
            address,
            &message("standard:bm_mt_add_entry", &list)
        )));
    }
    // A string that is too long, and one that is not UTF-8.
    for text in [&[0x7f, 0xff, 0xff, 0xff][..], &[0, 0, 0, 2, 0xff, 0xfe]] {
        let field = [&[11, 0, 2][..], text].concat();
        assert!(is_exception(raw(
            address,
            &message("standard:bm_mt_add_entry", &field)
        )));
    }
    // A message that ends too early, and bytes that are not a message.
    raw(
        address,
        &message("standard:bm_mt_add_entry", &[11, 0, 2, 0, 0]),
    );
    assert!(raw(address, b"GET / HTTP/1.1\r\n\r\n").is_empty());
    // Arguments of the wrong type are ignored, as in Thrift.
    let table = [8, 0, 2, 0, 0, 0, 1, 0];
    assert!(!is_exception(raw(
        address,
        &message("standard:bm_mt_get_num_entries", &table)
    )));
    assert_eq!(client.bm_mt_get_num_entries(0, L2.into()).unwrap(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_are_limited() {
    let (switch, mut client) = start(1).await;
    let mut others: Vec<_> = (0..MAX_CONNECTIONS + 1).map(|_| connect(&switch)).collect();
    assert!(others.pop().unwrap().get_time_elapsed_us().is_err());
    assert!(others[0].get_time_elapsed_us().unwrap() > 0);
    drop(others);
    assert!(client.get_time_since_epoch_us().unwrap() > 0);
}

/// Functions with arguments of all types.
const FUNCTIONS: [&str; 12] = [
    "standard:bm_mt_add_entry",
    "standard:bm_mt_get_entry_from_key",
    "standard:bm_mt_set_meter_rates",
    "standard:bm_mt_act_prof_add_member",
    "standard:bm_register_write_range",
    "standard:bm_parse_vset_add",
    "standard:bm_load_new_config",
    "standard:bm_learning_ack",
    "standard:bm_set_crc32_custom_parameters",
    "simple_pre_lag:bm_mc_node_create",
    "simple_switch:mirroring_session_add",
    "simple_switch:set_egress_queue_rate",
];

/// A field with a value of a random type, often a well-formed one.
fn field() -> impl Strategy<Value = Vec<u8>> {
    let name = prop_oneof![
        Just(L2.to_owned()),
        Just(BALANCER.to_owned()),
        Just("FeaturesIngress.scratch".to_owned()),
        "[a-z]{0,9}",
    ];
    let text =
        name.prop_map(|name| [&(name.len() as u32).to_be_bytes()[..], name.as_bytes()].concat());
    let value = prop_oneof![
        text.prop_map(|text| (11_u8, text)),
        any::<i32>().prop_map(|n| (8, n.to_be_bytes().to_vec())),
        any::<i64>().prop_map(|n| (10, n.to_be_bytes().to_vec())),
        (any::<u8>(), prop::collection::vec(any::<u8>(), 0..40)),
        (0_u8..20, -1_i32..9).prop_map(|(kind, n)| (15, [&[kind][..], &n.to_be_bytes()].concat())),
    ];
    (value, 0_i16..8)
        .prop_map(|((kind, value), id)| [&[kind][..], &id.to_be_bytes(), &value].concat())
}

#[tokio::test(flavor = "multi_thread")]
async fn random_messages_do_not_stop_the_switch() {
    let (switch, mut client) = start(2).await;
    forward_to(&mut client, 2, 2).unwrap();
    let address = address(&switch);
    let calls = (
        prop::sample::select(&FUNCTIONS[..]),
        prop::collection::vec(field(), 0..7),
    );
    let config = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(2000)
    };
    proptest!(config, |((name, fields) in calls)| {
        let arguments = [fields.concat(), vec![0]].concat();
        raw(address, &message(name, &arguments));
    });
    let key = client.bm_mt_get_entry_from_key(0, L2.into(), l2_key(1, 2), Default::default());
    assert_eq!(key.unwrap().entry_handle, 0);
}
