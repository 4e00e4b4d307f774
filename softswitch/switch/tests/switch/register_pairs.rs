// SPDX-License-Identifier: Apache-2.0
//! Registers of structs, which programs for Tofino have, over P4Runtime.

use p4::p4_data::Data;
use softswitch::proto::p4::v1 as p4;
use softswitch_p4c::diag::{Diagnostics, SourceMap};
use tonic::Code;

use crate::common::features::frame;
use crate::common::{Controller, IntoEntity, TestSwitch};

const CELLS: i64 = 4;

/// Starts a switch with `pair.p4`. Also returns the id of its register.
async fn start() -> (TestSwitch, Controller, u32) {
    let text = include_str!("../programs/pair.p4").to_owned();
    let options = softswitch_p4c::Options::default();
    let (sources, diags) = (SourceMap::default(), Diagnostics::default());
    let output = softswitch_p4c::compile("pair.p4", text, &options, &sources, &diags);
    let output = output.unwrap();
    let p4info = crate::common::p4info(&output.p4info);
    let id = p4info.registers[0].preamble.as_ref().unwrap().id;
    let switch = TestSwitch::start(2, &[]).await;
    let mut controller = switch.controller().await;
    let config = p4::ForwardingPipelineConfig {
        p4info: Some(p4info),
        p4_device_config: output.json.unwrap().to_string().into(),
        cookie: None,
    };
    controller.set_pipeline(config).await.unwrap();
    (switch, controller, id)
}

fn number(value: &'static [u8]) -> p4::P4Data {
    p4::P4Data {
        data: Some(Data::Bitstring(value.into())),
    }
}

fn pair(members: &[&'static [u8]]) -> p4::P4Data {
    let members = members.iter().map(|m| number(m)).collect();
    p4::P4Data {
        data: Some(Data::Struct(p4::P4StructLike { members })),
    }
}

fn cell(id: u32, index: Option<i64>, data: Option<p4::P4Data>) -> p4::RegisterEntry {
    p4::RegisterEntry {
        register_id: id,
        index: index.map(|index| p4::Index { index }),
        data,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn packets_and_controllers_share_pairs() {
    let (switch, mut c, id) = start().await;
    let written = cell(id, Some(1), Some(pair(&[b"\x07", b"\x01\x00"])));
    c.modify(written.clone()).await.unwrap();
    assert_eq!(c.read_one(cell(id, Some(1), None)).await, written.entity());
    switch.wires[0].send(&frame(1, 0x0203, 0x1234, b"payload"));
    switch.wires[1].receive();
    let seen = cell(id, Some(1), Some(pair(&[b"\x08", b"\x02\x03"])));
    assert_eq!(c.read_one(cell(id, Some(1), None)).await, seen.entity());
    c.modify(cell(id, None, Some(pair(&[b"\x00", b"\x00"]))))
        .await
        .unwrap();
    let all = c.read(cell(id, None, None)).await.unwrap();
    let zero = |index| cell(id, Some(index), Some(pair(&[b"\x00", b"\x00"]))).entity();
    assert_eq!(all, (0..CELLS).map(zero).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_structs_change_nothing() {
    let (_switch, mut c, id) = start().await;
    for (bad, code) in [
        (number(b"\x01"), Code::InvalidArgument),
        (pair(&[b"\x01"]), Code::InvalidArgument),
        (pair(&[b"\x01", b"\x01\x00\x00\x00\x00"]), Code::OutOfRange),
    ] {
        let refused = c.modify(cell(id, Some(1), Some(bad))).await.unwrap_err();
        assert_eq!(refused.0, code);
    }
    let zero = cell(id, Some(1), Some(pair(&[b"\x00", b"\x00"])));
    assert_eq!(c.read_one(cell(id, Some(1), None)).await, zero.entity());
}
