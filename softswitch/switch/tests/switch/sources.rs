// SPDX-License-Identifier: Apache-2.0
//! Programs with unusual P4Info, compiled from source.

use crate::common::{Controller, IntoEntity, TestSwitch, p4info};
use p4::field_match::{Exact, FieldMatchType};
use p4::stream_message_request::Update as ToSwitch;
use softswitch::proto::p4::config::v1::P4Info;
use softswitch::proto::p4::v1 as p4;
use softswitch_p4c::diag::{Diagnostics, SourceMap};
use tonic::Code;

/// Compiles a program with these declarations, metadata fields and ingress control.
pub fn compile(
    declarations: &str,
    metadata: &str,
    ingress: &str,
) -> (P4Info, p4::ForwardingPipelineConfig) {
    let text = format!(
        "#include <core.p4>
        #include <v1model.p4>
        {declarations}
        header h_t {{ bit<8> a; bit<8> b; }}
        struct H {{ h_t h; }}
        struct M {{ {metadata} }}
        parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) {{
            state start {{ p.extract(h.h); transition accept; }}
        }}
        control V(inout H h, inout M m) {{ apply {{ }} }}
        control I(inout H h, inout M m, inout standard_metadata_t s) {{ {ingress} }}
        control E(inout H h, inout M m, inout standard_metadata_t s) {{ apply {{ }} }}
        control D(packet_out p, in H h) {{ apply {{ p.emit(h); }} }}
        V1Switch(P(), V(), I(), E(), V(), D()) main;"
    );
    let config = compile_text("small.p4", text);
    (config.p4info.clone().unwrap(), config)
}

/// Compiles a program with this name.
pub fn compile_text(name: &str, text: String) -> p4::ForwardingPipelineConfig {
    let (sources, diags) = (SourceMap::default(), Diagnostics::default());
    let options = softswitch_p4c::Options::default();
    let output = softswitch_p4c::compile(name, text, &options, &sources, &diags);
    let output = output.unwrap_or_else(|| panic!("{}", diags.render(&sources)));
    p4::ForwardingPipelineConfig {
        p4info: Some(p4info(&output.p4info)),
        p4_device_config: output.json.unwrap().to_string().into(),
        cookie: None,
    }
}

pub async fn start(config: p4::ForwardingPipelineConfig) -> (TestSwitch, Controller) {
    let switch = TestSwitch::start(3, &[]).await;
    let controller = switch.controller_with(config).await;
    (switch, controller)
}

#[tokio::test(flavor = "multi_thread")]
async fn key_of_no_bits_matches_zero() {
    let (info, config) = compile(
        "",
        "bit<0> z;",
        "action fwd() { s.egress_spec = 2; }
         table t { key = { h.h.a : exact; m.z : exact; } actions = { fwd; } }
         apply { s.egress_spec = 3; t.apply(); }",
    );
    let (switch, mut controller) = start(config).await;
    let fwd = info.actions.iter().map(|a| a.preamble.as_ref().unwrap());
    let fwd = fwd.filter(|p| p.name == "I.fwd").map(|p| p.id).next();
    let exact = |field_id, value: u8| p4::FieldMatch {
        field_id,
        field_match_type: Some(FieldMatchType::Exact(Exact {
            value: vec![value].into(),
        })),
    };
    let entry = |zero| p4::TableEntry {
        table_id: info.tables[0].preamble.as_ref().unwrap().id,
        r#match: vec![exact(1, 7), exact(2, zero)],
        action: Some(p4::TableAction {
            r#type: Some(p4::table_action::Type::Action(p4::Action {
                action_id: fwd.unwrap(),
                params: vec![],
            })),
        }),
        ..Default::default()
    };
    let error = controller.insert(entry(1)).await.unwrap_err();
    assert_eq!(error.0, Code::OutOfRange, "{}", error.1);
    controller.insert(entry(0)).await.unwrap();
    assert_eq!(controller.read_one(entry(0)).await, entry(0).entity());
    switch.wires[0].send(&[7, 1]);
    assert_eq!(switch.wires[1].receive(), [7, 1]);
    switch.wires[0].send(&[8, 1]);
    assert_eq!(switch.wires[2].receive(), [8, 1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn profile_of_hidden_table_is_accepted_without_members() {
    let (info, config) = compile(
        "",
        "",
        "action fwd(bit<9> p) { s.egress_spec = p; }
         action_profile(4) ap;
         @hidden table t { key = { h.h.b : exact; } actions = { fwd; } implementation = ap; }
         apply { s.egress_spec = 2; t.apply(); }",
    );
    let (switch, mut controller) = start(config).await;
    let profile = info.action_profiles[0].preamble.as_ref().unwrap().id;
    let member = p4::ActionProfileMember {
        action_profile_id: profile,
        member_id: 1,
        action: Some(p4::Action::default()),
    };
    let (code, message) = controller.insert(member).await.unwrap_err();
    assert_eq!(code, Code::InvalidArgument);
    assert!(message.contains("no table in P4Info uses it"), "{message}");
    let all = p4::ActionProfileMember::default();
    assert_eq!(controller.read(all).await.unwrap(), []);
    switch.wires[0].send(&[7, 1]);
    assert_eq!(switch.wires[1].receive(), [7, 1]);
}

fn packet_out(metadata: &[(u32, u8)], payload: &[u8]) -> ToSwitch {
    let metadata = metadata.iter().map(|(id, value)| p4::PacketMetadata {
        metadata_id: *id,
        value: vec![*value].into(),
    });
    ToSwitch::Packet(p4::PacketOut {
        payload: payload.to_vec().into(),
        metadata: metadata.collect(),
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn controller_header_need_not_fill_its_last_byte() {
    let (_, config) = compile(
        "@controller_header(\"packet_out\") header out_t { bit<9> port; }",
        "",
        "apply { s.egress_spec = 2; }",
    );
    let (switch, controller) = start(config).await;
    controller.send(packet_out(&[(1, 3)], &[7])).await;
    assert_eq!(switch.wires[1].receive(), [0x01, 0x80, 7]);
}

#[tokio::test(flavor = "multi_thread")]
async fn translated_fields_of_unused_controller_header_are_accepted() {
    let (_, config) = compile(
        "@p4runtime_translation(\"\", string) type bit<9> name_t;
         @p4runtime_translation(\"\", 32) type bit<9> port_t;
         @controller_header(\"packet_out\") header out_t { name_t name; port_t port; bit<8> x; }",
        "",
        "apply { s.egress_spec = 2; }",
    );
    let (switch, controller) = start(config).await;
    let out = packet_out(&[(1, b'a'), (2, 3), (3, 4)], &[7]);
    controller.send(out).await;
    assert_eq!(switch.wires[1].receive(), [0, 0, 0, 3, 4, 7]);
}

/// p4c removes tables that it finds unreachable after it has written P4Info.
#[tokio::test(flavor = "multi_thread")]
async fn table_that_the_compiler_removed_cannot_be_written() {
    const KEPT: &str = "table kept { key = { h.h.a : exact; } actions = { NoAction; } }";
    const GONE: &str = "action_profile(8) members;
        table gone {
            key = { h.h.a : exact @refers_to(kept, a); }
            actions = { NoAction; }
            implementation = members;
        }";
    let (p4info, whole) = compile(
        "",
        "",
        &format!("{KEPT} {GONE} apply {{ kept.apply(); gone.apply(); }}"),
    );
    let (_, reduced) = compile("", "", &format!("{KEPT} apply {{ kept.apply(); }}"));
    let (_, other) = compile(
        "",
        "",
        "table another { key = { h.h.a : exact; } actions = { NoAction; } } apply { another.apply(); }",
    );

    let switch = TestSwitch::start(3, &[]).await;
    let mut c = switch.controller().await;
    for config in [&other, &whole] {
        let mixed = p4::ForwardingPipelineConfig {
            p4info: reduced.p4info.clone(),
            ..config.clone()
        };
        // A program may have more tables than P4Info, but then it must have all of P4Info's.
        let accepted = c.set_pipeline(mixed).await;
        assert_eq!(
            accepted.is_ok(),
            std::ptr::eq(config, &whole),
            "{accepted:?}"
        );
    }
    let config = p4::ForwardingPipelineConfig {
        p4info: whole.p4info.clone(),
        ..reduced
    };
    c.set_pipeline(config).await.unwrap();

    let entry = |table: &str| p4::TableEntry {
        table_id: p4info
            .tables
            .iter()
            .filter_map(|t| t.preamble.as_ref())
            .find(|p| p.alias == table)
            .unwrap()
            .id,
        ..Default::default()
    };
    let (code, message) = c.insert(entry("gone")).await.unwrap_err();
    assert_eq!(code, Code::InvalidArgument);
    assert_eq!(
        message,
        "table I.gone: the compiler removed it, since the program never applies it"
    );
    let member = p4::ActionProfileMember {
        action_profile_id: p4info.action_profiles[0].preamble.as_ref().unwrap().id,
        member_id: 1,
        ..Default::default()
    };
    let (_, message) = c.insert(member).await.unwrap_err();
    assert!(message.starts_with("action profile I.members: the compiler removed it"));
    assert_eq!(c.read_table(p4::TableEntry::default()).await, []);
}
