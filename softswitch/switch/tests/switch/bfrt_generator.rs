// SPDX-License-Identifier: Apache-2.0
//! BfRuntime: the packet generators of Tofino 2, and ports in loopback.

use std::path::PathBuf;

use softswitch::address::Address;
use softswitch::bfrt::Config;
use softswitch::p4rt::deployment::LoadedProgram;
use softswitch::proto::bfrt as proto;
use softswitch::proto::bfrt::data_field::Value as Field;
use softswitch::proto::bfrt::update::Type;
use softswitch::proto::bfrt::write_request::Atomicity;
use softswitch_p4c::diag::{Diagnostics, SourceMap};
use tonic::Code;

use crate::common::TestSwitch;
use crate::common::bfrt::Match::Exact;
use crate::common::bfrt::{Client, Data, number, value};

const APPLICATIONS: &str = "tf2.pktgen.app_cfg";
const PORTS: &str = "tf2.pktgen.port_cfg";
const BUFFER: &str = "tf2.pktgen.pkt_buffer";
const MASKS: &str = "tf2.pktgen.port_mask";
const GENERATED: &[u8] = b"generated";
const GENERATOR_PORT: u64 = 6;
const COUNTS: [&str; 3] = ["trigger_counter", "batch_counter", "pkt_counter"];

/// Starts a switch with a program that sends packets to port 1, behind the number of their ingress port.
async fn connected() -> (TestSwitch, Client) {
    let text = include_str!("../../../pipeline/tests/programs/tofino_generator.p4").to_owned();
    let options = softswitch_p4c::Options {
        bfrt: true,
        ..Default::default()
    };
    let (sources, diags) = (SourceMap::default(), Diagnostics::default());
    let output = softswitch_p4c::compile("tofino_generator.p4", text, &options, &sources, &diags);
    let output = output.unwrap_or_else(|| panic!("{}", diags.render(&sources)));
    let schema = output.bfrt.unwrap().to_string().into_bytes();
    let program = LoadedProgram::load(output.json.unwrap().to_string()).unwrap();
    let switch = TestSwitch::start_with(3, &[], |config| softswitch::switch::Config {
        program: Some(program),
        bfrt: Some(Config {
            address: Address::Tcp("127.0.0.1:0".into()),
            program: Some(PathBuf::from("tofino_generator.json")),
            schema: Some(schema),
        }),
        ..config
    })
    .await;
    let client = Client::connect(&switch.switch, 0, "tofino_generator").await;
    (switch, client)
}

fn port(client: &Client, port: u64, flag: &'static str) -> proto::TableEntry {
    let data = vec![(flag, Field::BoolVal(true))];
    client.entry(PORTS, &[("dev_port", Exact(port))], "", data)
}

fn buffer(client: &Client, offset: u64, size: usize, bytes: &[u8]) -> proto::TableEntry {
    let key = [
        ("pkt_buffer_offset", Exact(offset)),
        ("pkt_buffer_size", Exact(size as u64)),
    ];
    let data = match bytes {
        [] => vec![],
        bytes => vec![("buffer", Field::Stream(bytes.to_vec()))],
    };
    client.entry(BUFFER, &key, "", data)
}

fn application(client: &Client, action: &str, data: Data) -> proto::TableEntry {
    client.entry(APPLICATIONS, &[("app_id", Exact(3))], action, data)
}

/// The settings of an application with 2 batches of 2 packets, which counts from 0.
fn settings() -> Data {
    vec![
        ("pkt_len", number(GENERATED.len() as u64)),
        ("pkt_buffer_offset", number(64)),
        ("batch_count_cfg", number(1)),
        ("packets_per_batch_cfg", number(1)),
        ("assigned_chnl_id", number(GENERATOR_PORT)),
        ("trigger_counter", number(0)),
        ("app_enable", Field::BoolVal(true)),
    ]
}

async fn prepare(client: &mut Client) {
    let enabled = port(client, GENERATOR_PORT, "pktgen_enable");
    client.write(Type::Modify, enabled).await.unwrap();
    let filled = buffer(client, 64, GENERATED.len(), GENERATED);
    client.write(Type::Insert, filled).await.unwrap();
}

async fn counts(client: &mut Client) -> [u64; 3] {
    let request = application(client, "", vec![]);
    let rows = client.read(APPLICATIONS, request).await.unwrap();
    COUNTS.map(|name| value(rows[0].get(name)))
}

/// A generated packet of the application, as it leaves.
fn packet(batch: u8, number: u8) -> Vec<u8> {
    [&[0, 0, 3, 0, 0, batch, 0, number][..], GENERATED].concat()
}

#[tokio::test(flavor = "multi_thread")]
async fn timer_sends_the_packets_of_an_application() {
    let (switch, mut client) = connected().await;
    prepare(&mut client).await;
    let mut data = settings();
    data.push(("timer_nanosec", number(1000)));
    let entry = application(&client, "trigger_timer_one_shot", data);
    client.write(Type::Modify, entry).await.unwrap();
    for (batch, number) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        assert_eq!(switch.wires[0].receive(), packet(batch, number));
    }
    assert_eq!(counts(&mut client).await, [1, 2, 4]);
    let all = client.entry(APPLICATIONS, &[], "", vec![]);
    client.write(Type::Delete, all).await.unwrap();
    assert_eq!(counts(&mut client).await, [0, 0, 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn failure_of_a_cleared_port_sends_packets() {
    let (switch, mut client) = connected().await;
    prepare(&mut client).await;
    let entry = application(&client, "trigger_port_down", settings());
    client.write(Type::Modify, entry).await.unwrap();
    let cleared = port(&client, 2, "clear_port_down_enable");
    client.write(Type::Modify, cleared).await.unwrap();
    switch.switch.metrics.dataplane.set_port_up(2, false);
    let sent: Vec<Vec<u8>> = (0..4).map(|_| switch.wires[0].receive()).collect();
    let first = [&[0, 0, 3, 0, 0, 2, 0, 0][..], GENERATED].concat();
    assert_eq!(sent[0], first);
    assert_eq!(counts(&mut client).await, [1, 2, 4]);
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_are_read_as_written() {
    let (_switch, mut client) = connected().await;
    prepare(&mut client).await;
    let read = buffer(&client, 66, 4, &[]);
    let rows = client.read(BUFFER, read).await.unwrap();
    let Field::IntArrVal(bytes) = rows[0].get("buffer") else {
        panic!("expected a list, not {rows:?}");
    };
    assert_eq!(bytes.val, b"nera".map(u32::from));
    let read = port(&client, GENERATOR_PORT, "pktgen_enable");
    let rows = client.read(PORTS, read).await.unwrap();
    assert_eq!(rows[0].get("pktgen_enable"), &Field::BoolVal(true));
    let mask = |data| client.entry(MASKS, &[("port_mask_sel", Exact(1))], "", data);
    let (written, read) = (mask(vec![("mask", number(0x3f))]), mask(vec![]));
    client.write(Type::Modify, written).await.unwrap();
    let rows = client.read(MASKS, read).await.unwrap();
    assert_eq!(value(rows[0].get("mask")), 0x3f);
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_settings_are_refused_and_batches_undone() {
    let (_switch, mut client) = connected().await;
    let short = buffer(&client, 0, 3, b"four");
    let beyond = buffer(&client, 16_383, 4, b"four");
    for entry in [short, beyond] {
        let refused = client.write(Type::Modify, entry).await;
        assert_eq!(refused, Err(Code::InvalidArgument));
    }
    let loopback = port(&client, 2, "recirculation_enable");
    let batch = vec![
        (Type::Modify, loopback.clone()),
        (Type::Modify, buffer(&client, 0, 4, b"four")),
        (Type::Modify, buffer(&client, 0, 3, b"four")),
    ];
    let written = client.write_all(batch, Atomicity::RollbackOnError).await;
    assert!(written.is_err());
    let rows = client
        .read(BUFFER, buffer(&client, 0, 1, &[]))
        .await
        .unwrap();
    let Field::IntArrVal(bytes) = rows[0].get("buffer") else {
        panic!("expected a list, not {rows:?}");
    };
    assert_eq!(bytes.val, [0]);
    let rows = client.read(PORTS, loopback).await.unwrap();
    assert_eq!(rows[0].get("recirculation_enable"), &Field::BoolVal(false));
}

#[tokio::test(flavor = "multi_thread")]
async fn near_loopback_of_a_port_recirculates() {
    let (switch, mut client) = connected().await;
    let mode = |mode: &str| vec![("$LOOPBACK_MODE", Field::StrVal(mode.into()))];
    let entry = |client: &Client, data| client.entry("$PORT", &[("$DEV_PORT", Exact(1))], "", data);
    switch.wires[1].send(b"frame");
    assert_eq!(switch.wires[0].receive(), b"\0\x02frame");
    let near = entry(&client, mode("BF_LPBK_MAC_NEAR"));
    client.write(Type::Insert, near.clone()).await.unwrap();
    let ports = port(&client, 1, "recirculation_enable");
    let rows = client.read(PORTS, ports.clone()).await.unwrap();
    assert_eq!(rows[0].get("recirculation_enable"), &Field::BoolVal(true));
    let far = entry(&client, mode("BF_LPBK_MAC_FAR"));
    client.write(Type::Modify, far).await.unwrap();
    let rows = client.read(PORTS, ports).await.unwrap();
    assert_eq!(rows[0].get("recirculation_enable"), &Field::BoolVal(false));
}
