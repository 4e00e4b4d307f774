// SPDX-License-Identifier: Apache-2.0
//! Features that the target does not support are reported at their place.

mod common;

use common::{expect, ingress, program};
use softswitch_p4c::diag::{Diagnostics, SourceMap};
use softswitch_p4c::{Options, compile};

/// Returns the compiler's messages without P4Info.
fn without_p4info(body: &str) -> String {
    let (sources, diags) = (SourceMap::default(), Diagnostics::default());
    let options = Options {
        without_p4info: true,
        ..Options::default()
    };
    compile("t.p4", program(body), &options, &sources, &diags);
    diags.render(&sources)
}

#[test]
fn operations_are_allowed_only_in_their_pipeline() {
    for (call, at) in [
        (
            "recirculate_preserving_field_list(1)",
            "this 'recirculate_preserving_field_list' is allowed only in egress",
        ),
        (
            "clone(CloneType.E2E, 5)",
            "this 'clone' is allowed only in egress",
        ),
        (
            "mark_to_drop()",
            "mark_to_drop() needs the standard metadata",
        ),
        (
            "hash(meta.m, HashAlgorithm.crc16, 8w0, hdr.h.a, 8w9)",
            "expected a list, a struct or a header",
        ),
        ("digest(1, hdr.h)", "a digest cannot contain a header"),
    ] {
        let messages = ingress(&format!("apply {{ {call}; }}"));
        assert!(messages.contains(at), "for {call} got\n{messages}");
    }
    assert_eq!(ingress("apply { clone(CloneType.I2E, 5); }"), "");
}

#[test]
fn externs_check_their_tables() {
    let table = "table t { key = { hdr.h.a: exact; } actions = { NoAction; }";
    let used = "table t { key = { hdr.h.a: exact; } actions = { a; NoAction; } }";
    let apply = "apply { t.apply(); }";
    expect(
        &format!(
            "direct_meter<bit<8>>(MeterType.bytes) d; action a() {{ d.read(meta.m); }} {used} {apply}"
        ),
        "10:1",
        "direct meter 'I.d' does not belong",
    );
    let unread = ingress(&format!(
        "direct_meter<bit<8>>(MeterType.bytes) d; {table} }} {apply}"
    ));
    assert!(!unread.contains("error"), "{unread}");
    expect(
        &format!(
            "direct_meter<bit<8>>(MeterType.bytes) d;\n{table} counters = d; meters = d; }} {apply}"
        ),
        "11:72",
        "the counters must be of direct_counter",
    );
    expect(
        "direct_counter(CounterType.bytes) d; table t { actions = { NoAction; } counters = d; }\n\
         table u { actions = { NoAction; } counters = d; } apply { t.apply(); u.apply(); }",
        "11:46",
        "this already belongs to another table",
    );
    expect(
        "@name(\"x\") counter(4, CounterType.bytes) c;\n@name(\"x\") counter(4, CounterType.bytes) d; apply { c.count(0); d.count(0); }",
        "11:12",
        "another object already has the name 'I.x'",
    );
    expect(
        &format!("{table} const entries = {{ priority = 3: 5: NoAction(); }} }} {apply}"),
        "10:90",
        "const entries cannot have priorities",
    );
}

#[test]
fn headers_parameter_must_be_struct_of_headers() {
    let text = "#include <v1model.p4>\nheader h_t { bit<8> a; }\nstruct headers { h_t h; bit<8> b; }\nstruct metadata { }\n\
                parser P(packet_in p,\nout headers hdr, inout metadata meta, inout standard_metadata_t std) {\n\
                state start { transition accept; } }\n\
                control V(inout headers hdr, inout metadata meta) { apply { } }\n\
                control I(inout headers hdr, inout metadata meta, inout standard_metadata_t std) { apply { } }\n\
                control D(packet_out p, in headers hdr) { apply { } }\n\
                V1Switch(P(), V(), I(), I(), V(), D()) main;\n";
    let messages = common::compile_text("t.p4", text).1;
    assert!(
        messages.contains("t.p4:6:5: error: the headers must be a struct of headers"),
        "{messages}"
    );
}

#[test]
fn stack_elements_in_parsers_are_restricted() {
    for (statement, at) in [
        (
            "m = s.next.a;",
            "5:5: error: the next header of a stack has no value",
        ),
        (
            "p.extract(s.next); s.last.a = m;",
            "5:20: error: 'last' of a stack cannot be written",
        ),
    ] {
        let text = format!(
            "#include <core.p4>\nheader h_t {{ bit<8> a; }}\n\
             parser P(packet_in p, out h_t[2] s, inout bit<8> m) {{\nstate start {{\n{statement}\n\
             m = s.last.a;\ntransition accept; }} }}\n"
        );
        let messages = common::compile_text("t.p4", &text).1;
        assert!(messages.starts_with(&format!("t.p4:{at}")), "{messages}");
    }
}

#[test]
fn widths_are_limited() {
    for (body, at) in [
        (
            "apply { bit<2049> x = 0; }",
            "10:13: error: 2049 is not a valid size",
        ),
        (
            "apply { bit<2048> x = 0; meta.m = (x ++ x)[7:0]; }",
            "10:36: error: 4096 bits exceed",
        ),
        (
            "const int x = 1 >> 2049; apply { }",
            "10:20: error: a shift by more than 2048 bits",
        ),
    ] {
        let messages = ingress(body);
        assert!(messages.contains(&format!("t.p4:{at}")), "{messages}");
    }
    let largest = "const int x = 1 << 2048; apply { bit<2048> y = 1; meta.m = y[7:0] + (bit<8>)(x >> 2048); }";
    assert!(!ingress(largest).contains("error"));
}

#[test]
fn table_actions_take_only_numbers() {
    let table = "table t { actions = { a; } } apply { t.apply(); }";
    for ty in ["bool", "error", "varbit<8>"] {
        let action = format!("action a({ty} x) {{ }}\n");
        expect(
            &format!("{action}{table}"),
            "10:10",
            "parameter 'x' of an action in a table must be a number",
        );
    }
    let own = "action a(in bool x) { if (x) { meta.m = 1; } }\ntable t { actions = { a(true); } } apply { t.apply(); }";
    assert_eq!(ingress(own), "");
}

#[test]
fn duplicate_action_names_are_errors_only_with_p4info() {
    let actions =
        "@name(\"x\") action a() { meta.m = 1; }\n@name(\"x\") action b() { meta.m = 2; }\n";
    let each =
        "table t { actions = { a; } } table u { actions = { b; } } apply { t.apply(); u.apply(); }";
    let both = "table t { actions = { a; b; } } apply { t.apply(); }";
    expect(
        &format!("{actions}{each}"),
        "11:19",
        "another action already has the control-plane name 'I.x'",
    );
    assert_eq!(without_p4info(&format!("{actions}{each}")), "");
    let messages = without_p4info(&format!("{actions}{both}"));
    assert!(
        messages.contains("t.p4:11:19: error: the table already has another action 'I.x'"),
        "{messages}"
    );

    let key = "CounterType k = CounterType.bytes;\n\
               table t { key = { k: exact; } actions = { NoAction; } } apply { t.apply(); }";
    expect(
        key,
        "11:19",
        "the values of this enum do not have numbers for the control plane",
    );
    assert_eq!(without_p4info(key), "");
}

/// The target knows fields of the standard metadata by their aliases, also in another `v1model.p4`.
#[test]
fn aliases_of_standard_metadata_are_honoured() {
    let model = include_str!("../p4include/v1model.p4").replace(
        "bit<1> checksum_error;",
        "bit<1> checksum_error; @alias(\"queueing_metadata.qid\") bit<5> qid;",
    );
    let text = common::program("apply { hdr.h.a = (bit<8>) std.qid; }")
        .replace("#include <v1model.p4>", &model);
    let (output, messages) = common::compile_text("t.p4", &text);
    let json = output.unwrap_or_else(|| panic!("{messages}")).json.unwrap();
    let aliases = json["field_aliases"].as_array().unwrap();
    let alias = serde_json::json!(["queueing_metadata.qid", ["standard_metadata", "qid"]]);
    assert_eq!(aliases.len(), 10);
    assert!(aliases.contains(&alias), "{aliases:?}");
}
