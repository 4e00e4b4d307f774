// SPDX-License-Identifier: Apache-2.0
//! BfRuntime: tables, batches, replication, digests, configs, and what is refused.

use std::path::PathBuf;

use softswitch::address::Address;
use softswitch::bfrt::Config;
use softswitch::p4rt::deployment::LoadedProgram;
use softswitch::proto::bfrt::data_field::{BoolArray, IntArray, Value as Field};
use softswitch::proto::bfrt::entity::Entity as Kind;
use softswitch::proto::bfrt::set_forwarding_pipeline_config_request::Action;
use softswitch::proto::bfrt::stream_message_response::Update as Message;
use softswitch::proto::bfrt::update::Type;
use softswitch::proto::bfrt::write_request::Atomicity;
use softswitch::proto::bfrt::{self as proto, table_attribute::Attribute};
use softswitch_p4c::diag::{Diagnostics, SourceMap};
use tonic::Code;

use crate::common::TestSwitch;
use crate::common::bfrt::Match::{Exact, Lpm, Optional, Range, Ternary};
use crate::common::bfrt::{Client, Match, number, value};
use crate::common::features::frame;

const L2: &str = "FeaturesIngress.l2";
const ROUTES: &str = "FeaturesIngress.routes";
const ACL: &str = "FeaturesIngress.acl";
const SPREAD: &str = "FeaturesIngress.spread";
const SEEN: &str = "FeaturesIngress.seen";
const MEMBERS: &str = "FeaturesIngress.balancer";
const GROUPS: &str = "FeaturesIngress.balancer_sel";

/// Compiles `features.p4`: its JSON and its schema.
fn compiled() -> (String, Vec<u8>) {
    let text = include_str!("../programs/features.p4").to_owned();
    let options = softswitch_p4c::Options {
        bfrt: true,
        ..Default::default()
    };
    let (sources, diags) = (SourceMap::default(), Diagnostics::default());
    let output = softswitch_p4c::compile("features.p4", text, &options, &sources, &diags);
    let output = output.unwrap();
    let schema = output.bfrt.unwrap().to_string();
    (output.json.unwrap().to_string(), schema.into_bytes())
}

/// Starts a switch with the program and its schema.
async fn start(ports: u32) -> TestSwitch {
    let (json, schema) = compiled();
    TestSwitch::start_with(ports, &[], |config| softswitch::switch::Config {
        program: Some(LoadedProgram::load(json).unwrap()),
        bfrt: Some(Config {
            address: Address::Tcp("127.0.0.1:0".into()),
            program: Some(PathBuf::from("features.json")),
            schema: Some(schema),
        }),
        ..config
    })
    .await
}

/// Starts a switch, and a client that is bound to the program.
async fn connected(ports: u32) -> (TestSwitch, Client) {
    let switch = start(ports).await;
    let client = Client::connect(&switch.switch, 0, "features").await;
    (switch, client)
}

fn l2_key(port: u64, dst: u64) -> [(&'static str, Match); 2] {
    [("ingress_port", Exact(port)), ("dst", Exact(dst))]
}

/// An entry that forwards to a port.
fn forward(client: &Client, dst: u64, port: u64) -> proto::TableEntry {
    client.entry(L2, &l2_key(1, dst), "forward", vec![("port", number(port))])
}

pub fn ints(val: &[u32]) -> Field {
    Field::IntArrVal(IntArray { val: val.to_vec() })
}

pub fn bools(val: &[bool]) -> Field {
    Field::BoolArrVal(BoolArray { val: val.to_vec() })
}

#[tokio::test(flavor = "multi_thread")]
async fn packets_follow_entries() {
    let (switch, mut client) = connected(3).await;
    let packet = frame(7, 8, 0x1234, b"payload");
    let entry = forward(&client, 7, 2);
    client.write(Type::Insert, entry.clone()).await.unwrap();
    switch.wires[0].send(&packet);
    assert_eq!(switch.wires[1].receive(), packet);
    assert_eq!(
        client.write(Type::Insert, entry).await,
        Err(Code::AlreadyExists)
    );
    let entry = forward(&client, 7, 3);
    client.write(Type::Modify, entry).await.unwrap();
    switch.wires[0].send(&packet);
    assert_eq!(switch.wires[2].receive(), packet);
    let rows = client
        .read(L2, client.entry(L2, &l2_key(1, 7), "", vec![]))
        .await
        .unwrap();
    assert_eq!(value(rows[0].get("port")), 3);
    assert_eq!(client.usage(L2).await, 1);
    let all = client.entry(L2, &[], "", vec![]);
    client.write(Type::Delete, all).await.unwrap();
    assert_eq!(client.usage(L2).await, 0);
    let missing = client.entry(L2, &l2_key(1, 7), "", vec![]);
    assert_eq!(
        client.read(L2, missing.clone()).await.unwrap_err(),
        Code::NotFound
    );
    assert_eq!(
        client.write(Type::Delete, missing).await,
        Err(Code::NotFound)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn all_match_types_are_read_as_written() {
    let (_switch, mut client) = connected(1).await;
    let key = [
        ("src", Ternary(0x0a00_0000, 0xff00_0000)),
        ("len", Range(10, 20)),
        ("protocol", Optional(6)),
        ("$MATCH_PRIORITY", Exact(5)),
    ];
    let entry = client.entry(ACL, &key, "set_class", vec![("class", number(9))]);
    client.write(Type::Insert, entry).await.unwrap();
    let rows = client
        .read(ACL, client.entry(ACL, &[], "", vec![]))
        .await
        .unwrap();
    let Some(proto::table_entry::Value::Key(read)) = &rows[0].entry.value else {
        panic!("no key");
    };
    assert_eq!(read.fields.len(), 4);
    assert_eq!(value(rows[0].get("class")), 9);
    let again = client.entry(ACL, &key, "", vec![]);
    assert_eq!(client.read(ACL, again).await.unwrap().len(), 1);

    let route = [("dst", Lpm(0x0a01_0203, 16))];
    let data = vec![
        ("dst", number(1)),
        ("port", number(2)),
        ("$COUNTER_SPEC_PKTS", number(3)),
        ("$METER_SPEC_CIR_KBPS", number(1000)),
        ("$METER_SPEC_PIR_KBPS", number(2000)),
        ("$METER_SPEC_CBS_KBITS", number(8)),
        ("$METER_SPEC_PBS_KBITS", number(16)),
    ];
    let entry = client.entry(ROUTES, &route, "route", data.clone());
    client.write(Type::Insert, entry).await.unwrap();
    let read = client.entry(ROUTES, &[("dst", Lpm(0x0a01_ffff, 16))], "", vec![]);
    let rows = client.read(ROUTES, read).await.unwrap();
    for (name, wanted) in &data {
        assert_eq!(value(rows[0].get(name)), value(wanted), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn default_entry_is_set_and_reset() {
    let (_switch, mut client) = connected(1).await;
    let default = |client: &Client, action: &str, data| proto::TableEntry {
        is_default_entry: true,
        ..client.entry(ACL, &[], action, data)
    };
    let entry = default(&client, "set_class", vec![("class", number(4))]);
    client.write(Type::Modify, entry).await.unwrap();
    let rows = client
        .read(ACL, default(&client, "", vec![]))
        .await
        .unwrap();
    assert!(rows[0].entry.is_default_entry);
    assert_eq!(value(rows[0].get("class")), 4);
    let entry = default(&client, "", vec![]);
    client.write(Type::Delete, entry).await.unwrap();
    let rows = client
        .read(ACL, default(&client, "", vec![]))
        .await
        .unwrap();
    let action = rows[0].entry.data.as_ref().unwrap().action_id;
    assert_eq!(action, client.action(ACL, "NoAction"));
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_select_active_members() {
    let (_switch, mut client) = connected(1).await;
    for id in [1, 2] {
        let key = [("$ACTION_MEMBER_ID", Exact(id))];
        let member = client.entry(MEMBERS, &key, "forward", vec![("port", number(id))]);
        client.write(Type::Insert, member).await.unwrap();
    }
    let group = [("$SELECTOR_GROUP_ID", Exact(9))];
    let data = vec![
        ("$ACTION_MEMBER_ID", ints(&[1, 2])),
        ("$ACTION_MEMBER_STATUS", bools(&[true, false])),
        ("$MAX_GROUP_SIZE", number(2)),
    ];
    let entry = client.entry(GROUPS, &group, "", data);
    client.write(Type::Insert, entry).await.unwrap();
    let rows = client
        .read(GROUPS, client.entry(GROUPS, &group, "", vec![]))
        .await
        .unwrap();
    assert_eq!(rows[0].get("$ACTION_MEMBER_ID"), &ints(&[1, 2]));
    let lookup = [("$SELECTOR_GROUP_ID", Exact(9)), ("hash_value", Exact(5))];
    let name = "balancer_sel_get_member";
    let rows = client
        .read(name, client.entry(name, &lookup, "", vec![]))
        .await
        .unwrap();
    assert_eq!(
        value(rows[0].get("$ACTION_MEMBER_ID")),
        1,
        "the only active member"
    );
    let entry = client.entry(
        SPREAD,
        &[("class", Exact(0))],
        "",
        vec![("$SELECTOR_GROUP_ID", number(9))],
    );
    client.write(Type::Insert, entry).await.unwrap();
    let used = client.entry(GROUPS, &group, "", vec![]);
    assert_eq!(
        client.write(Type::Delete, used).await,
        Err(Code::FailedPrecondition)
    );
    assert_eq!(
        client.usage(GROUPS).await,
        1,
        "a refused deletion changes nothing"
    );
    let remove = proto::TableEntry {
        table_flags: Some(proto::TableFlags {
            mod_del: true,
            ..Default::default()
        }),
        ..client.entry(GROUPS, &group, "", vec![("$ACTION_MEMBER_ID", ints(&[2]))])
    };
    client.write(Type::ModifyInc, remove).await.unwrap();
    let rows = client
        .read(GROUPS, client.entry(GROUPS, &group, "", vec![]))
        .await
        .unwrap();
    assert_eq!(rows[0].get("$ACTION_MEMBER_ID"), &ints(&[1]));
    assert_eq!(rows[0].get("$ACTION_MEMBER_STATUS"), &bools(&[true]));
}

#[tokio::test(flavor = "multi_thread")]
async fn arrays_are_written_and_read() {
    let (_switch, mut client) = connected(1).await;
    for (table, index, field, wanted) in [
        ("port_counter", "$COUNTER_INDEX", "$COUNTER_SPEC_BYTES", 77),
        ("port_meter", "$METER_INDEX", "$METER_SPEC_PBS_PKTS", 5),
        (
            "scratch",
            "$REGISTER_INDEX",
            "FeaturesIngress.scratch.f1",
            0x1234,
        ),
    ] {
        let key = [(index, Exact(3))];
        let entry = client.entry(table, &key, "", vec![(field, number(wanted))]);
        client.write(Type::Insert, entry).await.unwrap();
        let rows = client
            .read(table, client.entry(table, &key, "", vec![]))
            .await
            .unwrap();
        assert_eq!(value(rows[0].get(field)), wanted, "{table}");
        let beyond = client.entry(table, &[(index, Exact(1 << 20))], "", vec![]);
        assert!(client.read(table, beyond).await.is_err());
        client
            .write(Type::Delete, client.entry(table, &[], "", vec![]))
            .await
            .unwrap();
        let rows = client
            .read(table, client.entry(table, &key, "", vec![]))
            .await
            .unwrap();
        assert_ne!(value(rows[0].get(field)), wanted, "{table}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_batch_is_undone() {
    let (_switch, mut client) = connected(1).await;
    let group = |client: &Client| {
        let lists = ["$MULTICAST_NODE_ID", "$MULTICAST_NODE_L1_XID"].map(|name| (name, ints(&[])));
        client.entry("$pre.mgid", &[("$MGID", Exact(7))], "", lists.into())
    };
    let updates = vec![
        (Type::Insert, forward(&client, 1, 1)),
        (Type::Insert, group(&client)),
        (Type::Insert, forward(&client, 2, 1)),
        (Type::Delete, forward(&client, 3, 1)),
    ];
    let written = client.write_all(updates, Atomicity::RollbackOnError).await;
    let codes: Vec<_> = written
        .unwrap_err()
        .iter()
        .map(|e| e.canonical_code)
        .collect();
    assert_eq!(codes, [0, 0, 0, Code::NotFound as i32]);
    assert_eq!(client.usage(L2).await, 0);
    assert_eq!(client.usage("$pre.mgid").await, 0);
    let updates = vec![
        (Type::Delete, forward(&client, 3, 1)),
        (Type::Insert, forward(&client, 2, 1)),
    ];
    let written = client.write_all(updates, Atomicity::ContinueOnError).await;
    assert_eq!(written.unwrap_err().len(), 2);
    assert_eq!(client.usage(L2).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn multicast_group_copies_to_ports_of_its_nodes() {
    let (switch, mut client) = connected(4).await;
    let node = vec![
        ("$MULTICAST_RID", number(5)),
        ("$MULTICAST_LAG_ID", ints(&[])),
        ("$DEV_PORT", ints(&[2, 3])),
    ];
    let node = client.entry("$pre.node", &[("$MULTICAST_NODE_ID", Exact(30))], "", node);
    client.write(Type::Insert, node.clone()).await.unwrap();
    let group = |client: &Client, id, node| {
        let data = vec![
            ("$MULTICAST_NODE_ID", ints(&[node])),
            ("$MULTICAST_NODE_L1_XID_VALID", bools(&[false])),
            ("$MULTICAST_NODE_L1_XID", ints(&[0])),
        ];
        client.entry("$pre.mgid", &[("$MGID", Exact(id))], "", data)
    };
    let unknown = group(&client, 7, 31);
    assert_eq!(
        client.write(Type::Insert, unknown).await,
        Err(Code::InvalidArgument)
    );
    client
        .write(Type::Insert, group(&client, 7, 30))
        .await
        .unwrap();
    let key = l2_key(1, 9);
    let flood = client.entry(L2, &key, "flood", vec![("group", number(7))]);
    client.write(Type::Insert, flood).await.unwrap();
    let packet = frame(9, 8, 0x1234, b"payload");
    switch.wires[0].send(&packet);
    assert_eq!(switch.wires[1].receive(), packet);
    assert_eq!(switch.wires[2].receive(), packet);
    client.write(Type::Delete, node).await.unwrap();
    let entry = client.entry("$pre.mgid", &[("$MGID", Exact(7))], "", vec![]);
    let rows = client.read("$pre.mgid", entry).await.unwrap();
    assert_eq!(rows[0].get("$MULTICAST_NODE_ID"), &ints(&[]));
    assert_eq!(rows[0].get("$MULTICAST_NODE_L1_XID"), &ints(&[]));

    let mirror = vec![
        ("$session_enable", Field::BoolVal(true)),
        ("$ucast_egress_port", number(4)),
        ("$ucast_egress_port_valid", Field::BoolVal(true)),
    ];
    let mirror = client.entry("$mirror.cfg", &[("$sid", Exact(5))], "$normal", mirror);
    client.write(Type::Insert, mirror).await.unwrap();
    let entry = client.entry(L2, &key, "mirror", vec![("port", number(2))]);
    client.write(Type::Modify, entry).await.unwrap();
    switch.wires[0].send(&packet);
    assert_eq!(switch.wires[1].receive(), packet);
    assert_eq!(switch.wires[3].receive(), packet);
}

#[tokio::test(flavor = "multi_thread")]
async fn digests_and_idle_entries_reach_the_client() {
    let (switch, mut client) = connected(1).await;
    switch.wires[0].send(&frame(1, 0x42, 0x1234, b""));
    let Message::Digest(list) = client.receive().await.unwrap() else {
        panic!("expected a digest");
    };
    let fields = &list.data[0].fields;
    assert_eq!(
        fields[0].value,
        Some(Field::Stream(vec![0, 0, 0, 0, 0, 0x42]))
    );
    assert_eq!(fields[1].value, Some(Field::Stream(vec![0, 1])));

    let entry = client.entry(
        SEEN,
        &[("src", Exact(1))],
        "NoAction",
        vec![("$ENTRY_TTL", number(1))],
    );
    let attribute = proto::TableAttribute {
        table_id: entry.table_id,
        attribute: Some(Attribute::IdleTable(proto::IdleTable {
            enable: true,
            idle_table_mode: proto::idle_table::IdleTableMode::IdleTableNotifyMode.into(),
            ..Default::default()
        })),
    };
    let request = proto::WriteRequest {
        target: Some(crate::common::bfrt::target()),
        updates: vec![proto::Update {
            r#type: Type::Insert.into(),
            entity: Some(proto::Entity {
                entity: Some(Kind::TableAttribute(attribute.clone())),
            }),
        }],
        ..Default::default()
    };
    client.rpc.write(request).await.unwrap();
    let read = client
        .read_entities(vec![Kind::TableAttribute(attribute.clone())])
        .await;
    assert_eq!(
        read.unwrap()[0].entity,
        Some(Kind::TableAttribute(attribute))
    );
    client.write(Type::Insert, entry.clone()).await.unwrap();
    let Message::IdleTimeoutNotification(idle) = client.receive().await.unwrap() else {
        panic!("expected an idle entry");
    };
    assert_eq!(idle.table_entry.unwrap().table_id, entry.table_id);
    switch.wires[0].send(&frame(9, 1, 0x1234, b""));
    let Message::IdleTimeoutNotification(active) = client.receive().await.unwrap() else {
        panic!("expected an entry that is active again");
    };
    let kind = proto::idle_timeout_notification::NotificationType::EntryActive;
    assert_eq!(active.r#type(), kind);
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_updates_are_refused() {
    let (_switch, mut client) = connected(1).await;
    let good = forward(&client, 1, 2);
    let mut unknown_table = good.clone();
    unknown_table.table_id = 12345;
    let mut unknown_action = good.clone();
    unknown_action.data.as_mut().unwrap().action_id = 1;
    let mut no_action = good.clone();
    no_action.data = None;
    let mut too_wide = good.clone();
    too_wide.data.as_mut().unwrap().fields[0].value = Some(number(512));
    let mut wrong_type = good.clone();
    wrong_type.data.as_mut().unwrap().fields[0].value = Some(Field::BoolVal(true));
    let wrong_match = client.entry(
        L2,
        &[("ingress_port", Ternary(1, 1)), ("dst", Exact(1))],
        "forward",
        vec![("port", number(2))],
    );
    let no_key = client.entry(L2, &[], "forward", vec![("port", number(2))]);
    for (entry, code) in [
        (unknown_table, Code::NotFound),
        (unknown_action, Code::InvalidArgument),
        (no_action, Code::InvalidArgument),
        (too_wide, Code::InvalidArgument),
        (wrong_type, Code::InvalidArgument),
        (wrong_match, Code::InvalidArgument),
        (no_key, Code::InvalidArgument),
    ] {
        assert_eq!(
            client.write(Type::Insert, entry.clone()).await,
            Err(code),
            "{entry:?}"
        );
    }
    assert_eq!(client.usage(L2).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn program_has_one_client_until_it_disconnects() {
    let (switch, client) = connected(1).await;
    let mut other = Client::subscribe(&switch.switch, 1).await;
    assert_eq!(
        other.bind("features").await.unwrap_err().code(),
        Code::AlreadyExists
    );
    assert_eq!(
        other.bind("unknown").await.unwrap_err().code(),
        Code::NotFound
    );
    client.close().await;
    other.bind("features").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn client_replaces_the_program() {
    let (switch, mut client) = connected(2).await;
    let entry = forward(&client, 1, 2);
    client.write(Type::Insert, entry).await.unwrap();
    let request = proto::GetForwardingPipelineConfigRequest::default();
    let config = client.rpc.get_forwarding_pipeline_config(request).await;
    let config = config.unwrap().into_inner().config;
    let mut set = proto::SetForwardingPipelineConfigRequest {
        action: Action::VerifyAndWarmInitBeginAndEnd.into(),
        config,
        ..Default::default()
    };
    client
        .rpc
        .set_forwarding_pipeline_config(set.clone())
        .await
        .unwrap();
    for _ in 0..2 {
        assert!(matches!(
            client.receive().await.unwrap(),
            Message::SetForwardingPipelineConfigResponse(_)
        ));
    }
    assert_eq!(client.usage(L2).await, 0, "the new program has no entries");
    let entry = forward(&client, 1, 2);
    client.write(Type::Insert, entry).await.unwrap();
    set.config[0].bfruntime_info = b"{}]".to_vec();
    let refused = client.rpc.set_forwarding_pipeline_config(set.clone()).await;
    assert_eq!(refused.unwrap_err().code(), Code::InvalidArgument);
    set.config[0].profiles[0].binary = b"{}".to_vec();
    let refused = client.rpc.set_forwarding_pipeline_config(set).await;
    assert_eq!(refused.unwrap_err().code(), Code::InvalidArgument);
    assert_eq!(
        client.usage(L2).await,
        1,
        "a refused config changes nothing"
    );
    drop(switch);
}
