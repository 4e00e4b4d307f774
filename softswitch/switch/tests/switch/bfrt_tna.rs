// SPDX-License-Identifier: Apache-2.0
//! BfRuntime with a program for TNA: port metadata, masks of keys, counters, multicast, handles and errors.

use std::path::PathBuf;

use softswitch::address::Address;
use softswitch::bfrt::Config;
use softswitch::p4rt::deployment::LoadedProgram;
use softswitch::proto::bfrt::data_field::Value as Field;
use softswitch::proto::bfrt::entity::Entity as Kind;
use softswitch::proto::bfrt::update::Type;
use softswitch::proto::bfrt::write_request::Atomicity;
use softswitch::proto::bfrt::{self as proto, table_attribute::Attribute};
use softswitch_p4c::diag::{Diagnostics, SourceMap};
use tonic::{Code, Request};

use crate::bfrt::{bools, ints};
use crate::common::TestSwitch;
use crate::common::bfrt::Match::Exact;
use crate::common::bfrt::{Client, Match, number, target, value};
use crate::common::features::frame;

const PORT_METADATA: &str = "pipe.IngressParser.$PORT_METADATA";
const STATIONS: &str = "pipe.Ingress.stations";
const COLORS: &str = "pipe.Ingress.colors";
const SEEN: &str = "pipe.Ingress.seen";

/// The port metadata's VRF of tests.
const VRF: u64 = 0x1234;

/// Starts a switch with `tofino.p4`, and a client that is bound to it.
async fn connected(ports: u32) -> (TestSwitch, Client) {
    let text = include_str!("../programs/tofino.p4").to_owned();
    let options = softswitch_p4c::Options {
        bfrt: true,
        ..Default::default()
    };
    let (sources, diags) = (SourceMap::default(), Diagnostics::default());
    let output = softswitch_p4c::compile("tofino.p4", text, &options, &sources, &diags);
    let output = output.unwrap_or_else(|| panic!("{}", diags.render(&sources)));
    let schema = output.bfrt.unwrap().to_string().into_bytes();
    let program = LoadedProgram::load(output.json.unwrap().to_string()).unwrap();
    let switch = TestSwitch::start_with(ports, &[], |config| softswitch::switch::Config {
        program: Some(program),
        bfrt: Some(Config {
            address: Address::Tcp("127.0.0.1:0".into()),
            program: Some(PathBuf::from("tofino.json")),
            schema: Some(schema),
        }),
        ..config
    })
    .await;
    let client = Client::connect(&switch.switch, 0, "tofino").await;
    (switch, client)
}

/// The metadata of a port: the egress port of packets without an entry, and a VRF.
fn port_metadata(client: &Client, port: u64, egress: u64, vrf: u64) -> proto::TableEntry {
    let data = vec![
        ("egress", number(egress)),
        ("unused", number(0)),
        ("vrf", number(vrf)),
    ];
    client.entry(PORT_METADATA, &[("ingress_port", Exact(port))], "", data)
}

fn station(dst: u64, vrf: u64) -> [(&'static str, Match); 3] {
    [
        ("$valid", Exact(1)),
        ("dst", Exact(dst)),
        ("vrf", Exact(vrf)),
    ]
}

fn forward(client: &Client, dst: u64, vrf: u64, port: u64) -> proto::TableEntry {
    client.entry(
        STATIONS,
        &station(dst, vrf),
        "forward",
        vec![("port", number(port))],
    )
}

/// Reads an entry from the pipeline, or as it was at the last synchronization.
async fn read(
    client: &mut Client,
    table: &str,
    key: &[(&str, Match)],
    from_hw: bool,
) -> crate::common::bfrt::Row {
    let mut entry = client.entry(table, key, "", vec![]);
    entry.table_flags = Some(proto::TableFlags {
        from_hw,
        ..Default::default()
    });
    let mut rows = client.read(table, entry).await.unwrap();
    rows.remove(0)
}

/// Writes an entity that is not an entry.
async fn write_kind(client: &mut Client, kind: Kind) -> Result<(), Code> {
    let request = proto::WriteRequest {
        target: Some(target()),
        client_id: client.id,
        updates: vec![proto::Update {
            r#type: Type::Insert.into(),
            entity: Some(proto::Entity { entity: Some(kind) }),
        }],
        ..Default::default()
    };
    let written = client.rpc.write(request).await;
    written.map(drop).map_err(|status| status.code())
}

#[tokio::test(flavor = "multi_thread")]
async fn parser_receives_the_metadata_of_the_port() {
    let (switch, mut client) = connected(3).await;
    let entry = port_metadata(&client, 1, 2, VRF);
    client.write(Type::Insert, entry.clone()).await.unwrap();
    assert_eq!(
        client.write(Type::Insert, entry).await,
        Err(Code::AlreadyExists)
    );
    let packet = frame(7, 8, 0x800, b"payload");
    switch.wires[0].send(&packet);
    assert_eq!(switch.wires[1].receive(), packet);
    let entry = port_metadata(&client, 1, 3, VRF);
    client.write(Type::Modify, entry).await.unwrap();
    switch.wires[0].send(&packet);
    assert_eq!(switch.wires[2].receive(), packet);
    let row = read(
        &mut client,
        PORT_METADATA,
        &[("ingress_port", Exact(1))],
        false,
    )
    .await;
    assert_eq!(value(row.get("vrf")), VRF);
    assert_eq!(client.usage(PORT_METADATA).await, 1);

    let updates = vec![
        (Type::Modify, port_metadata(&client, 1, 2, VRF)),
        (Type::Delete, forward(&client, 1, 1, 1)),
    ];
    let undone = client.write_all(updates, Atomicity::RollbackOnError).await;
    undone.unwrap_err();
    switch.wires[0].send(&packet);
    assert_eq!(switch.wires[2].receive(), packet);
    let all = client.entry(PORT_METADATA, &[], "", vec![]);
    client.write(Type::Delete, all).await.unwrap();
    assert_eq!(client.usage(PORT_METADATA).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_match_only_in_the_bits_of_their_masks() {
    let (switch, mut client) = connected(2).await;
    let id = client.entry(STATIONS, &[], "", vec![]).table_id;
    let whole = client.key(STATIONS, &station(0xffff_ffff_ff00, 0));
    let fields = whole.fields.iter().map(|field| {
        let Some(proto::key_field::MatchType::Exact(exact)) = &field.match_type else {
            panic!("expected an exact match");
        };
        proto::KeyFieldMask {
            field_id: field.field_id,
            mask: exact.value.clone(),
        }
    });
    let masks = Kind::TableAttribute(proto::TableAttribute {
        table_id: id,
        attribute: Some(Attribute::DynKeyMask(proto::DynKeyMask {
            fields: fields.collect(),
        })),
    });
    client
        .write(Type::Insert, forward(&client, 7, VRF, 2))
        .await
        .unwrap();
    assert_eq!(
        write_kind(&mut client, masks.clone()).await,
        Err(Code::Unknown),
        "the table has entries"
    );
    let packet = |dst| frame(dst, 8, 0x800, b"payload");
    let all = client.entry(STATIONS, &[], "", vec![]);
    client.write(Type::Delete, all).await.unwrap();
    write_kind(&mut client, masks).await.unwrap();
    client
        .write(Type::Insert, forward(&client, 0x100, 0, 2))
        .await
        .unwrap();
    assert_eq!(
        client
            .write(Type::Insert, forward(&client, 0x1aa, 5, 2))
            .await,
        Err(Code::AlreadyExists)
    );
    switch.wires[0].send(&packet(0x1ff));
    assert_eq!(switch.wires[1].receive(), packet(0x1ff));
    client
        .write(Type::Delete, forward(&client, 0x1bb, 6, 2))
        .await
        .unwrap();
    assert_eq!(client.usage(STATIONS).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn counters_are_those_of_the_last_synchronization() {
    let (switch, mut client) = connected(2).await;
    client
        .write(Type::Insert, port_metadata(&client, 1, 2, VRF))
        .await
        .unwrap();
    client
        .write(Type::Insert, forward(&client, 7, VRF, 2))
        .await
        .unwrap();
    let packet = frame(7, 8, 0x800, b"payload");
    switch.wires[0].send(&packet);
    switch.wires[1].receive();
    let index = [("$COUNTER_INDEX", Exact(0))];
    for (table, key, operation) in [
        (STATIONS, &station(7, VRF)[..], "SyncCounters"),
        (SEEN, &index[..], "Sync"),
    ] {
        let count = |row: crate::common::bfrt::Row| value(row.get("$COUNTER_SPEC_PKTS"));
        assert_eq!(
            count(read(&mut client, table, key, false).await),
            0,
            "{table}"
        );
        let operation = proto::TableOperation {
            table_id: client.entry(table, &[], "", vec![]).table_id,
            table_operations_type: operation.into(),
        };
        write_kind(&mut client, Kind::TableOperation(operation))
            .await
            .unwrap();
        assert_eq!(
            count(read(&mut client, table, key, false).await),
            1,
            "{table}"
        );
        assert_eq!(
            count(read(&mut client, table, key, true).await),
            1,
            "{table}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn meters_without_a_rate_have_the_limits_of_the_chip() {
    let (_switch, mut client) = connected(1).await;
    let key = [("src", Exact(1))];
    let entry = client.entry(COLORS, &key, "set_color", vec![]);
    client.write(Type::Insert, entry).await.unwrap();
    let row = read(&mut client, COLORS, &key, false).await;
    assert_eq!(value(row.get("$METER_SPEC_CIR_KBPS")), 5_195_848_221);
    assert_eq!(value(row.get("$METER_SPEC_PBS_KBITS")), 4_380_866_642);
}

#[tokio::test(flavor = "multi_thread")]
async fn filters_are_read_as_written() {
    let (_switch, mut client) = connected(1).await;
    let key = [("$WRED_INDEX", Exact(3))];
    let time = Field::FloatVal(7.990_755);
    let data = vec![
        ("$WRED_SPEC_TIME_CONSTANT_NS", time.clone()),
        ("$WRED_SPEC_MIN_THRESH_CELLS", number(4)),
        ("$WRED_SPEC_MAX_THRESH_CELLS", number(6)),
        ("$WRED_SPEC_MAX_PROBABILITY", Field::FloatVal(0.12)),
    ];
    let entry = client.entry("pipe.Ingress.wred", &key, "", data);
    client.write(Type::Insert, entry).await.unwrap();
    let row = read(&mut client, "pipe.Ingress.wred", &key, false).await;
    assert_eq!(row.get("$WRED_SPEC_TIME_CONSTANT_NS"), &time);
    assert_eq!(
        row.get("$WRED_SPEC_MAX_PROBABILITY"),
        &Field::FloatVal(0.12)
    );
    let other = [("$WRED_INDEX", Exact(4))];
    let row = read(&mut client, "pipe.Ingress.wred", &other, false).await;
    assert_eq!(value(row.get("$WRED_SPEC_MIN_THRESH_CELLS")), 0xff00_0000);
}

#[tokio::test(flavor = "multi_thread")]
async fn handles_name_entries_of_all_tables() {
    let (_switch, mut client) = connected(1).await;
    client
        .write(Type::Insert, port_metadata(&client, 5, 2, VRF))
        .await
        .unwrap();
    for (table, key) in [
        (PORT_METADATA, ("ingress_port", Exact(5))),
        (SEEN, ("$COUNTER_INDEX", Exact(3))),
    ] {
        let entry = client.entry(table, std::slice::from_ref(&key), "", vec![]);
        let wanted = entry.value.clone();
        let Some(proto::table_entry::Value::Key(key)) = entry.value else {
            panic!("expected a key");
        };
        let request = proto::HandleId {
            table_id: entry.table_id,
            value: Some(proto::handle_id::Value::Key(key)),
        };
        let found = client
            .read_entities(vec![Kind::Handle(request)])
            .await
            .unwrap();
        let Some(Kind::Handle(proto::HandleId {
            value: Some(proto::handle_id::Value::HandleId(handle)),
            ..
        })) = found[0].entity
        else {
            panic!("expected a handle");
        };
        let mut entry = client.entry(table, &[], "", vec![]);
        entry.value = Some(proto::table_entry::Value::HandleId(handle));
        let rows = client.read(table, entry).await.unwrap();
        let (Some(proto::table_entry::Value::Key(read)), Some(proto::table_entry::Value::Key(key))) =
            (&rows[0].entry.value, &wanted)
        else {
            panic!("expected keys");
        };
        assert_eq!(read.fields[0].field_id, key.fields[0].field_id, "{table}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_entries_can_be_ignored_in_atomic_batches() {
    let (_switch, mut client) = connected(1).await;
    client
        .write(Type::Insert, forward(&client, 1, 1, 1))
        .await
        .unwrap();
    let update = |kind: Type, entry| proto::Update {
        r#type: kind.into(),
        entity: Some(proto::Entity {
            entity: Some(Kind::TableEntry(entry)),
        }),
    };
    let updates = vec![
        update(Type::Delete, forward(&client, 2, 1, 1)),
        update(Type::Delete, forward(&client, 1, 1, 1)),
        update(Type::InsertOrModify, forward(&client, 3, 1, 1)),
        update(Type::InsertOrModify, forward(&client, 3, 1, 2)),
    ];
    let mut request = Request::new(proto::WriteRequest {
        target: Some(target()),
        client_id: client.id,
        updates,
        atomicity: Atomicity::RollbackOnError.into(),
        ..Default::default()
    });
    let metadata = request.metadata_mut();
    metadata.insert("error_in_resp", "1".parse().unwrap());
    metadata.insert("ignore_not_found", "1".parse().unwrap());
    let response = client.rpc.write(request).await.unwrap().into_inner();
    let codes = response.status.iter().map(|s| (s.canonical_code, s.code));
    let (missing, exists) = (Code::NotFound as i32, Code::AlreadyExists as i32);
    let codes: Vec<_> = codes.collect();
    assert_eq!(codes, [(0, missing), (0, 0), (0, 0), (0, exists)]);
    assert_eq!(client.usage(STATIONS).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn metadata_of_packets_choose_multicast_copies() {
    let (switch, mut client) = connected(4).await;
    client
        .write(Type::Insert, port_metadata(&client, 1, 0x1ff, VRF))
        .await
        .unwrap();
    let lag = vec![("$DEV_PORT", ints(&[2, 3]))];
    let lag = client.entry("$pre.lag", &[("$MULTICAST_LAG_ID", Exact(6))], "", lag);
    client.write(Type::Insert, lag).await.unwrap();
    let prune = vec![("$DEV_PORT", ints(&[4]))];
    let prune = client.entry("$pre.prune", &[("$MULTICAST_L2_XID", Exact(9))], "", prune);
    client.write(Type::Insert, prune).await.unwrap();
    for (id, rid, lags, ports) in [(1, 20, vec![6], vec![]), (2, 30, vec![], vec![4])] {
        let data = vec![
            ("$MULTICAST_RID", number(rid)),
            ("$MULTICAST_LAG_ID", ints(&lags)),
            ("$DEV_PORT", ints(&ports)),
        ];
        let node = client.entry("$pre.node", &[("$MULTICAST_NODE_ID", Exact(id))], "", data);
        client.write(Type::Insert, node).await.unwrap();
    }
    let group = vec![
        ("$MULTICAST_NODE_ID", ints(&[1, 2])),
        ("$MULTICAST_NODE_L1_XID_VALID", bools(&[true, false])),
        ("$MULTICAST_NODE_L1_XID", ints(&[77, 0])),
    ];
    let group = client.entry("$pre.mgid", &[("$MGID", Exact(7))], "", group);
    client.write(Type::Insert, group).await.unwrap();
    // Destination, replication id, both exclusion ids and the second hash; the ports that receive a copy.
    for (dst, rid, l1_xid, l2_xid, hash, ports) in [
        (1, 0, 0, 0, 0, vec![2, 4]),
        (2, 0, 0, 0, 1, vec![3, 4]),
        (3, 0, 77, 0, 0, vec![4]),
        (4, 30, 0, 9, 1, vec![3]),
    ] {
        let data = vec![
            ("group", number(7)),
            ("rid", number(rid)),
            ("l1_xid", number(l1_xid)),
            ("l2_xid", number(l2_xid)),
            ("hash1", number(0)),
            ("hash2", number(hash)),
        ];
        let entry = client.entry(STATIONS, &station(dst, VRF), "flood", data);
        client.write(Type::Insert, entry).await.unwrap();
        let packet = frame(dst, 8, 0x800, b"payload");
        switch.wires[0].send(&packet);
        for port in ports {
            assert_eq!(switch.wires[port - 1].receive(), packet, "{dst} {port}");
        }
    }
    let to_cpu = vec![("$COPY_TO_CPU_PORT_ENABLE", Field::BoolVal(true))];
    let to_cpu = client.entry("$pre.port", &[("$DEV_PORT", Exact(3))], "", to_cpu);
    client.write(Type::Insert, to_cpu).await.unwrap();
    let entry = client.entry(STATIONS, &station(5, VRF), "copy", vec![]);
    client.write(Type::Insert, entry).await.unwrap();
    let packet = frame(5, 8, 0x800, b"payload");
    switch.wires[0].send(&packet);
    assert_eq!(switch.wires[2].receive(), packet);
    assert_eq!(client.usage("$pre.prune").await, 288);
}
