// SPDX-License-Identifier: Apache-2.0
//! Translated types (P4Runtime specification, sections "User-defined types" and "PSA Metadata
//! Translation"): ports are 9 bits in the data plane and 32 for the controller, next hops are strings.

use std::path::Path;
use std::sync::LazyLock;

use crate::common::features::frame;
use crate::common::{CPU_PORT, Controller, IntoEntity, TestSwitch};
use p4::field_match::{self, FieldMatchType as Match};
use p4::stream_message_request::Update as ToSwitch;
use p4::stream_message_response::Update as FromSwitch;
use softswitch::proto::p4::config::v1::P4Info;
use softswitch::proto::p4::v1 as p4;
use tonic::Code;

fn read(name: &str) -> String {
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    std::fs::read_to_string(programs.join(name)).unwrap()
}

static P4INFO: LazyLock<P4Info> =
    LazyLock::new(|| crate::common::p4info(&read("translated.p4info.txtpb")));

async fn start() -> (TestSwitch, Controller) {
    let switch = TestSwitch::start(2, &[]).await;
    let mut c = switch.controller().await;
    let config = p4::ForwardingPipelineConfig {
        p4info: Some(P4INFO.clone()),
        p4_device_config: read("translated.json").into(),
        cookie: None,
    };
    c.set_pipeline(config).await.unwrap();
    (switch, c)
}

fn bytes(value: &[u8]) -> prost::bytes::Bytes {
    value.to_vec().into()
}

fn exact(value: &[u8]) -> Match {
    let value = bytes(value);
    Match::Exact(field_match::Exact { value })
}

fn ternary(value: &[u8], mask: &[u8]) -> Match {
    let (value, mask) = (bytes(value), bytes(mask));
    Match::Ternary(field_match::Ternary { value, mask })
}

fn entry(
    table: &str,
    priority: i32,
    fields: &[(u32, Match)],
    action: &str,
    params: &[&[u8]],
) -> p4::TableEntry {
    let named = |alias: &str, preamble: &Option<softswitch::proto::p4::config::v1::Preamble>| {
        preamble.as_ref().is_some_and(|p| p.alias == alias)
    };
    let table = P4INFO.tables.iter().find(|t| named(table, &t.preamble));
    let action = P4INFO.actions.iter().find(|a| named(action, &a.preamble));
    let params = (1..)
        .zip(params)
        .map(|(param_id, value)| p4::action::Param {
            param_id,
            value: bytes(value),
        });
    let fields = fields.iter().map(|(field_id, m)| p4::FieldMatch {
        field_id: *field_id,
        field_match_type: Some(m.clone()),
    });
    p4::TableEntry {
        table_id: table.unwrap().preamble.as_ref().unwrap().id,
        r#match: fields.collect(),
        priority,
        action: Some(p4::TableAction {
            r#type: Some(p4::table_action::Type::Action(p4::Action {
                action_id: action.unwrap().preamble.as_ref().unwrap().id,
                params: params.collect(),
            })),
        }),
        ..Default::default()
    }
}

fn route(dst: u8, hop: &str) -> p4::TableEntry {
    entry(
        "routes",
        1,
        &[(1, exact(&[dst]))],
        "set_hop",
        &[hop.as_bytes()],
    )
}

fn hop(name: &str, port: u8) -> p4::TableEntry {
    entry(
        "hops",
        0,
        &[(1, exact(name.as_bytes()))],
        "forward",
        &[&[port]],
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn translated_entities_read_back_as_written() {
    let (_switch, mut c) = start().await;
    let all_ones = [0xff; 4];
    let range = |low: &[u8], high: &[u8]| {
        let (low, high) = (bytes(low), bytes(high));
        Match::Range(field_match::Range { low, high })
    };
    let lpm = |value: &[u8], prefix_len| {
        let value = bytes(value);
        Match::Lpm(field_match::Lpm { value, prefix_len })
    };
    let optional = Match::Optional(field_match::Optional { value: "b".into() });
    for entry in [
        route(1, "a router"),
        route(2, "7"),
        hop("a router", 2),
        entry(
            "routes",
            2,
            &[(1, exact(&[1])), (2, ternary(&[2], &all_ones))],
            "set_hop",
            &[b"b"],
        ),
        entry(
            "sources",
            1,
            &[(1, optional), (2, range(&[2], &[2])), (3, exact(&[9]))],
            "learn",
            &[],
        ),
        entry("ports", 0, &[(1, lpm(&[1, 0xff], 32))], "NoAction", &[]),
    ] {
        c.insert(entry.clone()).await.unwrap();
        assert_eq!(c.read_table(entry.clone()).await, [entry]);
    }
    for (bad, code) in [
        // Partial masks, prefixes and bounds cannot be translated.
        (
            entry(
                "routes",
                1,
                &[(1, exact(&[1])), (2, ternary(&[2], &[2]))],
                "set_hop",
                &[b"b"],
            ),
            Code::Unimplemented,
        ),
        (
            entry("ports", 0, &[(1, lpm(&[0], 31))], "NoAction", &[]),
            Code::Unimplemented,
        ),
        (
            entry(
                "sources",
                1,
                &[(2, range(&[2], &[3])), (3, exact(&[9]))],
                "learn",
                &[],
            ),
            Code::Unimplemented,
        ),
        // The data plane does not have this port.
        (
            entry("hops", 0, &[(1, exact(b"c"))], "forward", &[&[2, 0]]),
            Code::OutOfRange,
        ),
        (
            entry("hops", 0, &[(1, exact(b""))], "forward", &[&[2]]),
            Code::OutOfRange,
        ),
    ] {
        assert_eq!(c.insert(bad.clone()).await.unwrap_err().0, code, "{bad:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn packets_digests_and_registers_use_translated_values() {
    let (switch, mut c) = start().await;
    c.insert(route(1, "a router")).await.unwrap();
    c.insert(hop("a router", 2)).await.unwrap();
    c.insert(entry("sources", 1, &[(3, exact(&[0]))], "learn", &[]))
        .await
        .unwrap();
    let digest_id = P4INFO.digests[0].preamble.as_ref().unwrap().id;
    let config = Some(Default::default());
    c.insert(p4::DigestEntry { digest_id, config })
        .await
        .unwrap();

    let through = frame(1, 9, 0x1234, b"to the router");
    switch.wires[0].send(&through);
    assert_eq!(switch.wires[1].receive(), through);
    let FromSwitch::Digest(list) = c.receive().await.unwrap() else {
        panic!("expected a digest");
    };
    let Some(p4::p4_data::Data::Struct(members)) = list.data[0].data.clone() else {
        panic!("expected a struct");
    };
    let strings = members.members.into_iter().map(|m| match m.data {
        Some(p4::p4_data::Data::Bitstring(b)) => b,
        other => panic!("expected bits, not {other:?}"),
    });
    let strings: Vec<_> = strings.collect();
    assert_eq!(strings, [bytes(&[9]), bytes(&[1]), "a router".into()]);

    let register = |index, value: Option<&'static str>| p4::RegisterEntry {
        register_id: P4INFO.registers[0].preamble.as_ref().unwrap().id,
        index: Some(p4::Index { index }),
        data: value.map(|v| p4::P4Data {
            data: Some(p4::p4_data::Data::Bitstring(v.into())),
        }),
    };
    let read = c.read_one(register(0, None)).await;
    assert_eq!(read, register(0, Some("a router")).entity());
    c.modify(register(1, Some("another"))).await.unwrap();
    let read = c.read_one(register(1, None)).await;
    assert_eq!(read, register(1, Some("another")).entity());
    let read = c.read_one(register(2, None)).await;
    assert_eq!(
        read,
        register(2, Some("0")).entity(),
        "a number without a name"
    );

    // A route to the CPU, which also has the controller's highest port number.
    let cpu = CPU_PORT.to_be_bytes();
    let to_cpu = entry("hops", 0, &[(1, exact(b"cpu"))], "forward", &[&cpu[2..]]);
    c.insert(to_cpu).await.unwrap();
    c.modify(route(1, "cpu")).await.unwrap();
    switch.wires[0].send(&through);
    let packet = loop {
        match c.receive().await.unwrap() {
            FromSwitch::Packet(packet) => break packet,
            FromSwitch::Digest(_) => {}
            other => panic!("expected a packet, not {other:?}"),
        }
    };
    assert_eq!(packet.payload, through);
    let metadata: Vec<_> = packet.metadata.into_iter().map(|m| m.value).collect();
    assert_eq!(metadata, [bytes(&[1]), bytes(&[0]), "cpu".into()]);

    let metadata = |metadata_id, value: &[u8]| p4::PacketMetadata {
        metadata_id,
        value: bytes(value),
    };
    let out = p4::PacketOut {
        payload: through.clone().into(),
        metadata: vec![metadata(1, &[0, 0, 0, 2]), metadata(2, &[0])],
    };
    c.send(ToSwitch::Packet(out.clone())).await;
    assert_eq!(switch.wires[1].receive(), through);
    let mut no_port = out;
    no_port.metadata[0] = metadata(1, &[2, 0]);
    c.send(ToSwitch::Packet(no_port)).await;
    let error = loop {
        match c.receive().await.unwrap() {
            FromSwitch::Error(error) => break error,
            FromSwitch::Digest(_) => {}
            other => panic!("expected an error, not {other:?}"),
        }
    };
    assert_eq!(error.canonical_code, Code::InvalidArgument as i32);
}
