// SPDX-License-Identifier: Apache-2.0
//! PSA: its package, what it refuses, and the names in JSON and P4Info.

use softswitch_p4c::diag::{Diagnostics, SourceMap};
use softswitch_p4c::{Options, Output, compile};

/// A program with these statements in ingress, in its deparser, and declarations in the deparser.
fn program(ingress: &str, locals: &str, deparser: &str) -> String {
    format!(
        r"
#include <core.p4>
#include <psa.p4>
struct E {{}}
header h_t {{ bit<8> a; bit<8> b; }}
struct H {{ h_t h; }}
parser IP(packet_in b, out H h, inout E m, in psa_ingress_parser_input_metadata_t i, in E r, in E c) {{
    state start {{ b.extract(h.h); transition accept; }}
}}
control I(inout H h, inout E m, in psa_ingress_input_metadata_t i, inout psa_ingress_output_metadata_t o) {{
    {ingress}
}}
control ID(packet_out b, out E c, out E r, out E n, inout H h, in E m, in psa_ingress_output_metadata_t o) {{
    {locals}
    apply {{ {deparser} }}
}}
parser EP(packet_in b, out H h, inout E m, in psa_egress_parser_input_metadata_t i, in E n, in E c, in E d) {{
    state start {{ b.extract(h.h); transition accept; }}
}}
control EI(inout H h, inout E m, in psa_egress_input_metadata_t i, inout psa_egress_output_metadata_t o) {{
    apply {{}}
}}
control ED(packet_out b, out E c, out E r, inout H h, in E m, in psa_egress_output_metadata_t o,
    in psa_egress_deparser_input_metadata_t e) {{
    apply {{ b.emit(h.h); }}
}}
IngressPipeline(IP(), I(), ID()) ip;
EgressPipeline(EP(), EI(), ED()) ep;
PSA_Switch(ip, PacketReplicationEngine(), ep, BufferingQueueingEngine()) main;
"
    )
}

/// Compiles a program; returns its output and the messages.
fn compiled(text: String, architecture: Option<&str>) -> (Option<Output>, String) {
    let (sources, diags) = (SourceMap::default(), Diagnostics::default());
    let options = Options {
        architecture: architecture.map(str::to_owned),
        ..Options::default()
    };
    let output = compile("t.p4", text, &options, &sources, &diags);
    (output, diags.render(&sources))
}

fn messages(ingress: &str, locals: &str, deparser: &str) -> String {
    compiled(program(ingress, locals, deparser), None).1
}

#[test]
fn architecture_is_that_of_the_package_and_checked() {
    let text = || program("apply {}", "", "b.emit(h.h);");
    for architecture in [None, Some("psa")] {
        let (output, messages) = compiled(text(), architecture);
        assert_eq!(messages, "");
        let p4info = output.expect("valid program").p4info;
        assert!(p4info.contains("arch: \"psa\""), "{p4info}");
    }
    let (output, messages) = compiled(text(), Some("v1model"));
    assert!(output.is_none());
    assert!(
        messages.contains("the program is for psa, not for v1model"),
        "{messages}"
    );
    assert!(messages.contains("use --arch psa"), "{messages}");
}

#[test]
fn blocks_have_the_names_of_psa_switch() {
    let (output, _) = compiled(program("apply {}", "", "b.emit(h.h);"), None);
    let json = output.and_then(|o| o.json).expect("valid program");
    let names = |list: &str| -> Vec<String> {
        let blocks = json[list].as_array().expect("a list");
        blocks
            .iter()
            .map(|b| b["name"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(names("parsers"), ["ingress_parser", "egress_parser"]);
    assert_eq!(names("pipelines"), ["ingress", "egress"]);
    assert_eq!(names("deparsers"), ["ingress_deparser", "egress_deparser"]);
    // Both gresses share headers of one type.
    let headers = names("headers");
    assert_eq!(
        headers.iter().filter(|h| *h == "h").count(),
        1,
        "{headers:?}"
    );
    for parser in json["parsers"].as_array().unwrap() {
        assert_eq!(parser["init_state"], "start");
    }
}

#[test]
fn externs_have_their_attributes() {
    let ingress = r"
        Counter<bit<32>, bit<8>>(100, PSA_CounterType_t.BYTES) c;
        Meter<bit<8>>(50, PSA_MeterType_t.PACKETS) m1;
        Hash<bit<16>>(PSA_HashAlgorithm_t.ONES_COMPLEMENT16) f;
        apply { c.count(h.h.a); m1.execute(h.h.a); h.h.b = (bit<8>) f.get_hash({ h.h.a }); }";
    let (output, messages) = compiled(program(ingress, "", "b.emit(h.h);"), None);
    let output = output.unwrap_or_else(|| panic!("{messages}"));
    let json = output.json.expect("the target supports it");
    let attributes = |name: &str| {
        let all = json["extern_instances"].as_array().unwrap();
        let one = all.iter().find(|e| e["name"] == name).expect("an instance");
        let list = one["attribute_values"].as_array().unwrap();
        let pair = |a: &serde_json::Value| {
            (
                a["name"].as_str().unwrap().to_owned(),
                a["value"].as_str().unwrap().to_owned(),
            )
        };
        list.iter().map(pair).collect::<Vec<_>>()
    };
    let pairs = |list: &[(&str, &str)]| -> Vec<(String, String)> {
        list.iter()
            .map(|(a, b)| ((*a).to_owned(), (*b).to_owned()))
            .collect()
    };
    assert_eq!(
        attributes("I.c"),
        pairs(&[("n_counters", "0x64"), ("type", "0x1")])
    );
    assert_eq!(attributes("I.f"), pairs(&[("algo", "csum16")]));
    let meter = [
        ("is_direct", "0x0"),
        ("n_meters", "0x32"),
        ("rate_count", "0x2"),
        ("type", "packets"),
    ];
    assert_eq!(attributes("I.m1"), pairs(&meter));
    assert_eq!(json["meter_arrays"].as_array().unwrap().len(), 0);
    for kind in [
        "counters {",
        "unit: BYTES",
        "meters {",
        "unit: PACKETS",
        "size: 100",
    ] {
        assert!(output.p4info.contains(kind), "{kind} in {}", output.p4info);
    }
}

#[test]
fn unsupported_features_are_reported_at_their_place() {
    let emit_in_if = messages("apply {}", "", "if (psa_normal(o)) { b.emit(h.h); }");
    assert!(
        emit_in_if.contains("cannot be used in a deparser"),
        "{emit_in_if}"
    );
    let coloured = messages(
        "DirectMeter(PSA_MeterType_t.PACKETS) d;
         action a() { PSA_MeterColor_t c = d.execute(PSA_MeterColor_t.RED); h.h.a = c == PSA_MeterColor_t.RED ? 8w1 : 8w0; }
         table t { key = { h.h.b: exact; } actions = { a; NoAction; } psa_direct_meter = d; }
         apply { t.apply(); }",
        "",
        "b.emit(h.h);",
    );
    assert!(
        coloured.contains("direct meters ignore the colour"),
        "{coloured}"
    );
    let of_other_table = messages(
        "DirectCounter<bit<32>>(PSA_CounterType_t.PACKETS) d;
         action a() { d.count(); }
         table t { key = { h.h.b: exact; } actions = { a; NoAction; } psa_direct_counter = d; }
         table u { key = { h.h.b: exact; } actions = { a; NoAction; } }
         apply { t.apply(); u.apply(); }",
        "",
        "b.emit(h.h);",
    );
    assert!(
        of_other_table.contains("'I.d' can be called only in actions of its table"),
        "{of_other_table}"
    );
    let profile = messages(
        "DirectMeter(PSA_MeterType_t.PACKETS) d;
         table t { key = { h.h.b: exact; } actions = { NoAction; } psa_implementation = d; }
         apply { t.apply(); }",
        "",
        "b.emit(h.h);",
    );
    assert!(
        profile.contains("ActionProfile or ActionSelector"),
        "{profile}"
    );
}

#[test]
fn digest_in_a_deparser_has_the_name_of_its_instance() {
    let (output, messages) = compiled(
        program(
            "apply {}",
            "Digest<h_s>() d;",
            "if (h.h.a == 1) { d.pack({ h.h.b }); } b.emit(h.h);",
        )
        .replace("struct H {", "struct h_s { bit<8> b; } struct H {"),
        None,
    );
    let output = output.unwrap_or_else(|| panic!("{messages}"));
    assert!(
        output.p4info.contains("name: \"ID.d\""),
        "{}",
        output.p4info
    );
    let json = output.json.expect("the target supports it");
    assert_eq!(json["learn_lists"][0]["name"], "ID.d");
    let primitives = json["deparsers"][0]["primitives"].as_array().unwrap();
    let ops: Vec<&str> = primitives
        .iter()
        .map(|p| p["op"].as_str().unwrap())
        .collect();
    assert_eq!(ops, ["_jump_if_zero", "assign", "generate_digest"]);
}

#[test]
fn p4info_names_types_and_orders_actions_as_p4c_does() {
    let ingress = "table t { key = { h.h.b: exact; } actions = { NoAction; } }
        apply { send_to_port(o, i.ingress_port); t.apply(); }";
    let text = program(
        ingress,
        "Digest<note_t>() d;",
        "d.pack({ h.x, { h.h.b } }); b.emit(h.h);",
    )
    .replace(
        "struct H { h_t h; }",
        "struct s_t { bit<8> c; bit<16> d; } header x_t { s_t s; bit<8> e; }
         @name(\"inner\") struct g_t<T> { T f; }
         struct note_t { x_t x; g_t<bit<8>> g; } struct H { h_t h; x_t x; }",
    );
    let (output, messages) = compiled(text, None);
    let p4info = output.unwrap_or_else(|| panic!("{messages}")).p4info;
    for name in [
        "key: \"inner\"",
        "name: \"s.c\"",
        "name: \"s.d\"",
        "name: \"e\"",
    ] {
        assert!(p4info.contains(name), "{name} in {p4info}");
    }
    let position = |name: &str| {
        p4info
            .find(&format!("alias: \"{name}\""))
            .expect("an action")
    };
    assert!(
        position("NoAction") < position("send_to_port"),
        "actions of tables come first"
    );
}
