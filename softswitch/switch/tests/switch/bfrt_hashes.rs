// SPDX-License-Identifier: Apache-2.0
//! BfRuntime: the input, the algorithm and the results of a hash.

use std::path::PathBuf;

use softswitch::address::Address;
use softswitch::bfrt::Config;
use softswitch::p4rt::deployment::LoadedProgram;
use softswitch::proto::bfrt as proto;
use softswitch::proto::bfrt::data_field::container_array::Container;
use softswitch::proto::bfrt::data_field::{ContainerArray, Value as Field};
use softswitch::proto::bfrt::update::Type;
use softswitch_p4c::diag::{Diagnostics, SourceMap};
use tonic::Code;

use crate::common::TestSwitch;
use crate::common::bfrt::Match::Exact;
use crate::common::bfrt::{Client, Data, number, value};

const INPUT: &str = "flow_hash.configure";
const ALGORITHM: &str = "flow_hash.algorithm";
const RESULT: &str = "flow_hash.compute";
/// The ids of the fields of a slice.
const SLICE: [u32; 3] = [65584, 65585, 65586];

async fn connected() -> (TestSwitch, Client) {
    let text = include_str!("../programs/tofino_hash.p4").to_owned();
    let options = softswitch_p4c::Options {
        bfrt: true,
        ..Default::default()
    };
    let (sources, diags) = (SourceMap::default(), Diagnostics::default());
    let output = softswitch_p4c::compile("tofino_hash.p4", text, &options, &sources, &diags);
    let output = output.unwrap_or_else(|| panic!("{}", diags.render(&sources)));
    let schema = output.bfrt.unwrap().to_string().into_bytes();
    let program = LoadedProgram::load(output.json.unwrap().to_string()).unwrap();
    let switch = TestSwitch::start_with(1, &[], |config| softswitch::switch::Config {
        program: Some(program),
        bfrt: Some(Config {
            address: Address::Tcp("127.0.0.1:0".into()),
            program: Some(PathBuf::from("tofino_hash.json")),
            schema: Some(schema),
        }),
        ..config
    })
    .await;
    let client = Client::connect(&switch.switch, 0, "tofino_hash").await;
    (switch, client)
}

fn default_entry(client: &Client, table: &str, action: &str, data: Data) -> proto::TableEntry {
    proto::TableEntry {
        is_default_entry: true,
        ..client.entry(table, &[], action, data)
    }
}

/// A list of slices: start, length and order.
fn slices(list: &[[u64; 3]]) -> Field {
    let container = list.iter().map(|slice| Container {
        val: (SLICE.iter().zip(slice))
            .map(|(id, n)| proto::DataField {
                field_id: *id,
                value: Some(number(*n)),
            })
            .collect(),
    });
    Field::ContainerArrVal(ContainerArray {
        container: container.collect(),
    })
}

/// Sends two numbers, and returns their hash.
fn hash(switch: &TestSwitch, a: u16, b: u16) -> u32 {
    let frame = [&a.to_be_bytes()[..], &b.to_be_bytes(), &[0; 60]].concat();
    switch.wires[0].send(&frame);
    let frame = switch.wires[0].receive();
    u32::from_be_bytes(frame[4..8].try_into().unwrap())
}

/// Reads the hash of two numbers from the table of results.
async fn computed(client: &mut Client, a: u16, b: u16) -> u64 {
    let key = [
        ("numbers.a", Exact(a.into())),
        ("numbers.b", Exact(b.into())),
    ];
    let request = client.entry(RESULT, &key, "", vec![]);
    let rows = client.read(RESULT, request).await.unwrap();
    value(rows[0].get("hash_value"))
}

#[tokio::test(flavor = "multi_thread")]
async fn result_is_the_hash_of_packets() {
    let (switch, mut client) = connected().await;
    let sent = hash(&switch, 0x1234, 0x5678);
    assert_eq!(sent, 0x17bf_9d3e, "the CRC-32 of 12 34 05 56 78");
    assert_eq!(u64::from(sent), computed(&mut client, 0x1234, 0x5678).await);
    assert_ne!(sent, hash(&switch, 0x1234, 0x5679));
}

#[tokio::test(flavor = "multi_thread")]
async fn input_selects_bits_and_makes_them_symmetric() {
    let (switch, mut client) = connected().await;
    let read = default_entry(&client, INPUT, "", vec![]);
    let rows = client.read(INPUT, read.clone()).await.unwrap();
    assert_eq!(rows[0].get("hdr.numbers.b"), &slices(&[[0, 16, 3]]));
    let low = vec![("hdr.numbers.a", slices(&[[0, 8, 1]]))];
    let entry = default_entry(&client, INPUT, "", low);
    client.write(Type::Modify, entry).await.unwrap();
    assert_eq!(hash(&switch, 0x1234, 1), hash(&switch, 0x5634, 2));
    assert_ne!(hash(&switch, 0x1234, 1), hash(&switch, 0x1235, 1));
    let symmetric = vec![
        ("hdr.numbers.a", slices(&[[0, 16, 1]])),
        ("hdr.numbers.b", slices(&[[0, 16, 1]])),
    ];
    let entry = default_entry(&client, INPUT, "", symmetric);
    client.write(Type::Modify, entry).await.unwrap();
    let sent = hash(&switch, 0x1234, 0x5678);
    assert_eq!(sent, hash(&switch, 0x5678, 0x1234));
    assert_eq!(u64::from(sent), computed(&mut client, 0x5678, 0x1234).await);
    let reset = default_entry(&client, INPUT, "", vec![]);
    client.write(Type::Delete, reset).await.unwrap();
    assert_ne!(hash(&switch, 0x1234, 0x5678), hash(&switch, 0x5678, 0x1234));
    for invalid in [&[[16, 1, 1]][..], &[[0, 4, 1], [3, 4, 2]]] {
        let entry = default_entry(&client, INPUT, "", vec![("hdr.numbers.a", slices(invalid))]);
        let refused = client.write(Type::Modify, entry).await;
        assert_eq!(refused, Err(Code::InvalidArgument));
    }
    let rows = client.read(INPUT, read).await.unwrap();
    assert_eq!(rows[0].get("hdr.numbers.a"), &slices(&[[0, 16, 1]]));
}

#[tokio::test(flavor = "multi_thread")]
async fn algorithm_replaces_that_of_the_program() {
    let (switch, mut client) = connected().await;
    let before = hash(&switch, 1, 2);
    let predefined = |name: &str| vec![("algorithm_name", Field::StrVal(name.into()))];
    let identity = default_entry(&client, ALGORITHM, "pre_defined", predefined("identity"));
    client.write(Type::Modify, identity).await.unwrap();
    assert_eq!(hash(&switch, 0x1234, 0x5678), 0x3405_5678);
    let rotated = default_entry(&client, ALGORITHM, "", vec![("rotate", number(8))]);
    client.write(Type::Modify, rotated).await.unwrap();
    assert_eq!(hash(&switch, 0x1234, 0x5678), 0x0556_7834);
    let parameters = vec![
        ("polynomial", number(0x07)),
        ("hash_bit_width", number(8)),
        ("rotate", number(0)),
        ("extend", Field::BoolVal(true)),
    ];
    let own = default_entry(&client, ALGORITHM, "user_defined", parameters);
    client.write(Type::Modify, own).await.unwrap();
    let bytes = hash(&switch, 1, 2).to_be_bytes();
    assert_eq!(bytes, [bytes[0]; 4]);
    let reset = default_entry(&client, ALGORITHM, "", vec![]);
    client.write(Type::Delete, reset).await.unwrap();
    assert_eq!(hash(&switch, 1, 2), before);
    let unknown = default_entry(&client, ALGORITHM, "pre_defined", predefined("md5"));
    let refused = client.write(Type::Modify, unknown).await;
    assert_eq!(refused, Err(Code::InvalidArgument));
}
