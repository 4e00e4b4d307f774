// SPDX-License-Identifier: Apache-2.0
//! BfRuntime with several pipes: entries, registers and counters of a pipe.

use std::path::PathBuf;

use softswitch::address::Address;
use softswitch::bfrt::Config;
use softswitch::p4rt::deployment::LoadedProgram;
use softswitch::proto::bfrt::data_field::Value as Field;
use softswitch::proto::bfrt::entity::Entity as Kind;
use softswitch::proto::bfrt::idle_table::IdleTableMode;
use softswitch::proto::bfrt::mode::{PredefinedMode, Scope};
use softswitch::proto::bfrt::table_attribute::Attribute;
use softswitch::proto::bfrt::update::Type;
use softswitch::proto::bfrt::write_request::Atomicity;
use softswitch::proto::bfrt::{self as proto};
use softswitch_p4c::diag::{Diagnostics, SourceMap};
use softswitch_pipeline::Options;
use tonic::Code;

use crate::common::TestSwitch;
use crate::common::bfrt::Match::Exact;
use crate::common::bfrt::{Client, number, target, value};

pub const TAGS: &str = "Ingress.tags";
const ARRIVALS: &str = "Ingress.arrivals";
const FIELD: &str = "Ingress.arrivals.f1";
pub const PORTS: [u16; 2] = [1, 128 + 7];

/// Compiles a program for TNA: its JSON and its schema.
pub fn compiled() -> (String, Vec<u8>) {
    let text = include_str!("../../../pipeline/tests/programs/tofino_pipes.p4").to_owned();
    let options = softswitch_p4c::Options {
        bfrt: true,
        ..Default::default()
    };
    let (sources, diags) = (SourceMap::default(), Diagnostics::default());
    let output = softswitch_p4c::compile("tofino_pipes.p4", text, &options, &sources, &diags);
    let output = output.unwrap();
    let schema = output.bfrt.unwrap().to_string();
    (output.json.unwrap().to_string(), schema.into_bytes())
}

/// Starts a switch with a port in each of two pipes.
async fn connected() -> (TestSwitch, Client) {
    let (json, schema) = compiled();
    let switch = TestSwitch::start_with(2, &[], |mut config| {
        for (port, number) in config.ports.iter_mut().zip(PORTS) {
            port.number = number.into();
        }
        softswitch::switch::Config {
            program: Some(LoadedProgram::load(json).unwrap()),
            options: Options {
                pipes: 2,
                ..config.options
            },
            bfrt: Some(Config {
                address: Address::Tcp("127.0.0.1:0".into()),
                program: Some(PathBuf::from("tofino_pipes.json")),
                schema: Some(schema),
            }),
            ..config
        }
    })
    .await;
    let client = Client::connect(&switch.switch, 0, "tofino_pipes").await;
    (switch, client)
}

/// Sends a packet that returns to its port, and returns its tag and the register's value.
pub fn visit(switch: &TestSwitch, pipe: usize) -> (u16, u16) {
    visit_to(switch, pipe, pipe)
}

/// Sends a packet that leaves through the port of another pipe, and returns its tag and the register's value.
pub fn visit_to(switch: &TestSwitch, from: usize, to: usize) -> (u16, u16) {
    let mut frame = [0; 64];
    frame[1] = 3;
    frame[2..4].copy_from_slice(&PORTS[to].to_be_bytes());
    switch.wires[from].send(&frame);
    let frame = switch.wires[to].receive();
    let word = |i: usize| u16::from_be_bytes([frame[2 * i], frame[2 * i + 1]]);
    (word(4), word(5))
}

pub fn in_pipe(pipe_id: u32, entry: proto::TableEntry) -> proto::TableEntry {
    let entry_tgt = Some(proto::TargetDevice {
        pipe_id,
        ..target()
    });
    proto::TableEntry { entry_tgt, ..entry }
}

/// An entry that sets a tag.
pub fn tag(client: &Client, value: u64) -> proto::TableEntry {
    let data = vec![("tag", number(value))];
    client.entry(TAGS, &[("key", Exact(3))], "set_tag", data)
}

fn cell(client: &Client, data: Option<u64>) -> proto::TableEntry {
    let data = data.map(|value| (FIELD, number(value)));
    let key = [("$REGISTER_INDEX", Exact(1))];
    client.entry(ARRIVALS, &key, "", data.into_iter().collect())
}

/// The values of a register in the pipes of a target.
pub async fn arrivals(client: &mut Client, pipe: u32) -> Vec<u64> {
    let cell = in_pipe(pipe, cell(client, None));
    let rows = client.read(ARRIVALS, cell).await.unwrap();
    rows[0]
        .fields
        .iter()
        .map(|(_, field)| value(field))
        .collect()
}

pub async fn set_scope(client: &mut Client, scope: Scope) {
    let mode = proto::Mode {
        scope: Some(scope),
        args: 0,
    };
    let attribute = proto::TableAttribute {
        table_id: tag(client, 0).table_id,
        attribute: Some(Attribute::EntryScope(proto::EntryScope {
            pipe_scope: Some(mode),
            ..Default::default()
        })),
    };
    set_attribute(client, attribute).await;
}

async fn set_attribute(client: &mut Client, attribute: proto::TableAttribute) {
    let request = proto::WriteRequest {
        target: Some(target()),
        updates: vec![proto::Update {
            r#type: Type::Insert.into(),
            entity: Some(proto::Entity {
                entity: Some(Kind::TableAttribute(attribute)),
            }),
        }],
        ..Default::default()
    };
    client.rpc.write(request).await.unwrap();
}

/// Gives each pipe an entry of its own, with the number of the pipe plus one as its tag.
async fn insert_in_each_pipe(client: &mut Client) {
    set_scope(client, Scope::Predef(PredefinedMode::Single.into())).await;
    for pipe in [0, 1] {
        let entry = in_pipe(pipe, tag(client, 1 + u64::from(pipe)));
        client.write(Type::Insert, entry).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn registers_have_a_value_in_each_pipe() {
    let (switch, mut client) = connected().await;
    visit(&switch, 0);
    visit(&switch, 1);
    assert_eq!(visit(&switch, 1), (0, 2));
    assert_eq!(arrivals(&mut client, 0xffff).await, [1, 2]);
    assert_eq!(arrivals(&mut client, 1).await, [2]);
    let everywhere = cell(&client, Some(10));
    client.write(Type::Modify, everywhere).await.unwrap();
    let second = in_pipe(1, cell(&client, Some(20)));
    client.write(Type::Modify, second).await.unwrap();
    assert_eq!(arrivals(&mut client, 0xffff).await, [10, 20]);
    assert_eq!((visit(&switch, 0), visit(&switch, 1)), ((0, 11), (0, 21)));
    let missing = in_pipe(2, cell(&client, Some(1)));
    let written = client.write(Type::Modify, missing).await;
    assert_eq!(written, Err(Code::InvalidArgument));
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_of_a_pipe_need_a_scope() {
    let (switch, mut client) = connected().await;
    let entry = in_pipe(1, tag(&client, 9));
    let refused = client.write(Type::Insert, entry.clone()).await;
    assert_eq!(refused, Err(Code::InvalidArgument));
    set_scope(&mut client, Scope::Predef(PredefinedMode::Single.into())).await;
    client.write(Type::Insert, entry.clone()).await.unwrap();
    assert_eq!((visit(&switch, 0).0, visit(&switch, 1).0), (0, 9));
    let everywhere = tag(&client, 8);
    let refused = client.write(Type::Insert, everywhere.clone()).await;
    assert_eq!(refused, Err(Code::InvalidArgument));
    assert_eq!(client.read(TAGS, entry).await.unwrap().len(), 1);
    let first = in_pipe(0, tag(&client, 0));
    assert_eq!(client.read(TAGS, first).await.unwrap_err(), Code::NotFound);
    // A scope of both pipes.
    let second = in_pipe(1, tag(&client, 9));
    client.write(Type::Delete, second).await.unwrap();
    set_scope(&mut client, Scope::UserDefined(0b11)).await;
    let both = in_pipe(0, tag(&client, 7));
    client.write(Type::Insert, both).await.unwrap();
    assert_eq!((visit(&switch, 0).0, visit(&switch, 1).0), (7, 7));
}

#[tokio::test(flavor = "multi_thread")]
async fn all_entries_of_single_pipes_are_read_at_once() {
    let (_switch, mut client) = connected().await;
    insert_in_each_pipe(&mut client).await;
    let all = client.entry(TAGS, &[], "", vec![]);
    let rows = client.read(TAGS, all).await.unwrap();
    let tags: Vec<_> = rows.iter().map(|row| value(row.get("tag"))).collect();
    assert_eq!(tags, [1, 2]);
    let mut second = in_pipe(1, tag(&client, 0));
    second.data = None;
    let rows = client.read(TAGS, second.clone()).await.unwrap();
    assert_eq!(
        rows[0].entry.entry_tgt, second.entry_tgt,
        "the answer has the target of the request"
    );
}

/// Returns the handle of the entry with the tag in a pipe.
async fn handle(client: &mut Client, pipe_id: u32) -> u32 {
    let entry = tag(client, 0);
    let Some(proto::table_entry::Value::Key(key)) = entry.value else {
        panic!("expected a key");
    };
    let entity = Kind::Handle(proto::HandleId {
        table_id: entry.table_id,
        value: Some(proto::handle_id::Value::Key(key)),
    });
    let request = proto::ReadRequest {
        target: Some(proto::TargetDevice {
            pipe_id,
            ..target()
        }),
        entities: vec![proto::Entity {
            entity: Some(entity),
        }],
        ..Default::default()
    };
    let mut stream = client.rpc.read(request).await.unwrap().into_inner();
    let response = stream.message().await.unwrap().unwrap();
    let Some(Kind::Handle(proto::HandleId {
        value: Some(proto::handle_id::Value::HandleId(handle)),
        ..
    })) = response.entities[0].entity
    else {
        panic!("expected a handle");
    };
    handle
}

/// Reads the tag of the entry with a handle in a pipe.
async fn tag_of(client: &mut Client, handle: u32, pipe: u32, from_hw: bool) -> Result<u64, Code> {
    let mut entry = in_pipe(pipe, client.entry(TAGS, &[], "", vec![]));
    entry.value = Some(proto::table_entry::Value::HandleId(handle));
    entry.table_flags = Some(proto::TableFlags {
        from_hw,
        ..Default::default()
    });
    let rows = client.read(TAGS, entry).await?;
    Ok(value(rows[0].get("tag")))
}

#[tokio::test(flavor = "multi_thread")]
async fn handles_tell_entries_of_different_pipes_apart() {
    let (_switch, mut client) = connected().await;
    insert_in_each_pipe(&mut client).await;
    for (pipe, other) in [(0, 1), (1, 0)] {
        let handle = handle(&mut client, pipe).await;
        let tag = Ok(1 + u64::from(pipe));
        for from_hw in [false, true] {
            assert_eq!(tag_of(&mut client, handle, pipe, from_hw).await, tag);
            assert_eq!(tag_of(&mut client, handle, 0xffff, from_hw).await, tag);
        }
        let known = tag_of(&mut client, handle, other, false).await;
        assert_eq!(known, Err(Code::NotFound));
        let in_hardware = tag_of(&mut client, handle, other, true).await;
        assert_eq!(in_hardware, Err(Code::InvalidArgument));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_of_several_pipes_belong_to_the_first_one() {
    let (_switch, mut client) = connected().await;
    set_scope(&mut client, Scope::UserDefined(0b11)).await;
    let both = in_pipe(0, tag(&client, 7));
    client.write(Type::Insert, both).await.unwrap();
    let handle = handle(&mut client, 0).await;
    assert_eq!(tag_of(&mut client, handle, 0, false).await, Ok(7));
    assert_eq!(tag_of(&mut client, handle, 1, true).await, Ok(7));
    let known = tag_of(&mut client, handle, 1, false).await;
    assert_eq!(known, Err(Code::NotFound));
}

#[tokio::test(flavor = "multi_thread")]
async fn masks_of_keys_apply_to_all_pipes() {
    let (switch, mut client) = connected().await;
    let entry = tag(&client, 5);
    let attribute = proto::TableAttribute {
        table_id: entry.table_id,
        attribute: Some(Attribute::DynKeyMask(proto::DynKeyMask {
            fields: vec![proto::KeyFieldMask {
                field_id: client.key(TAGS, &[("key", Exact(0))]).fields[0].field_id,
                mask: vec![0, 0],
            }],
        })),
    };
    set_attribute(&mut client, attribute).await;
    let any = client.entry(
        TAGS,
        &[("key", Exact(0))],
        "set_tag",
        vec![("tag", number(5))],
    );
    client.write(Type::Insert, any).await.unwrap();
    assert_eq!((visit(&switch, 0).0, visit(&switch, 1).0), (5, 5));
}

#[tokio::test(flavor = "multi_thread")]
async fn hits_in_all_pipes_make_an_entry_active() {
    let (switch, mut client) = connected().await;
    let entry = tag(&client, 5);
    let attribute = proto::TableAttribute {
        table_id: entry.table_id,
        attribute: Some(Attribute::IdleTable(proto::IdleTable {
            enable: true,
            idle_table_mode: IdleTableMode::IdleTablePollMode.into(),
            ..Default::default()
        })),
    };
    set_attribute(&mut client, attribute).await;
    client.write(Type::Insert, entry.clone()).await.unwrap();
    for (is_visited, state) in [(false, "ENTRY_IDLE"), (true, "ENTRY_ACTIVE")] {
        if is_visited {
            visit(&switch, 1);
        }
        let mut request = entry.clone();
        request.table_flags = Some(proto::TableFlags {
            from_hw: true,
            ..Default::default()
        });
        request.data = None;
        let rows = client.read(TAGS, request).await.unwrap();
        assert_eq!(
            rows[0].get("$ENTRY_HIT_STATE"),
            &Field::StrVal(state.into())
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn batch_is_undone_in_its_pipe() {
    let (switch, mut client) = connected().await;
    insert_in_each_pipe(&mut client).await;
    let updates = vec![
        (Type::Modify, in_pipe(1, tag(&client, 9))),
        (Type::Delete, in_pipe(0, tag(&client, 0))),
        (Type::Insert, in_pipe(1, tag(&client, 9))),
    ];
    let written = client.write_all(updates, Atomicity::RollbackOnError).await;
    assert!(written.is_err());
    assert_eq!((visit(&switch, 0).0, visit(&switch, 1).0), (1, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn counters_are_sums_and_each_pipe_can_be_read() {
    let (switch, mut client) = connected().await;
    let entry = tag(&client, 5);
    client.write(Type::Insert, entry.clone()).await.unwrap();
    visit(&switch, 0);
    visit(&switch, 1);
    visit(&switch, 1);
    let mut counts = vec![];
    for pipe in [0xffff, 0, 1] {
        let flags = Some(proto::TableFlags {
            from_hw: true,
            ..Default::default()
        });
        let mut request = in_pipe(pipe, entry.clone());
        (request.table_flags, request.data) = (flags, None);
        let rows = client.read(TAGS, request).await.unwrap();
        counts.push(value(rows[0].get("$COUNTER_SPEC_PKTS")));
    }
    assert_eq!(counts, [3, 1, 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn program_with_more_pipelines_than_pipes_is_refused() {
    let text = include_str!("../../../pipeline/tests/programs/tofino_pipelines.p4").to_owned();
    let (sources, diags) = (SourceMap::default(), Diagnostics::default());
    let options = softswitch_p4c::Options::default();
    let output = softswitch_p4c::compile("pipelines.p4", text, &options, &sources, &diags);
    let program = LoadedProgram::load(output.unwrap().json.unwrap().to_string()).unwrap();
    let config = softswitch::switch::Config {
        program: Some(program),
        ..softswitch::switch::Config::new(Address::Tcp("127.0.0.1:0".into()))
    };
    let started = softswitch::switch::Switch::start(config).await;
    let error = started.err().expect("the switch has one pipe").to_string();
    assert!(error.contains("--pipes 2"), "{error}");
}
