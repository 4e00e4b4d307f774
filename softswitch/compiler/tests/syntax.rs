// SPDX-License-Identifier: Apache-2.0
//! The grammar: valid programs, and the lines of syntax errors.

mod common;

/// The parts of a program: declarations at the top (line 3), in its parser (line 8) and in its ingress
/// control (line 14), and statements of the ingress control (line 16).
#[derive(Default)]
struct Parts<'a> {
    top: &'a str,
    parser: &'a str,
    control: &'a str,
    apply: &'a str,
}

fn messages(parts: &Parts) -> String {
    let Parts {
        top,
        parser,
        control,
        apply,
    } = parts;
    let text = format!(
        "#include <core.p4>\n#include <v1model.p4>\n{top}\n\
         header h_t {{ bit<8> a; bit<16> b; }}\n\
         struct headers {{ h_t h; h_t[2] s; }}\n\
         struct metadata {{ bit<8> m; }}\n\
         parser P(packet_in p, out headers hdr, inout metadata meta, inout standard_metadata_t std) {{\n\
         {parser}\n\
         state start {{\n\
         p.extract(hdr.h);\n\
         transition accept; }} }}\n\
         control V(inout headers hdr, inout metadata meta) {{ apply {{}} }}\n\
         control I(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {{\n\
         {control}\n\
         apply {{\n\
         {apply}\n\
         }} }}\n\
         control E(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {{ apply {{}} }}\n\
         control C(inout headers hdr, inout metadata meta) {{ apply {{}} }}\n\
         control D(packet_out p, in headers hdr) {{ apply {{ p.emit(hdr); }} }}\n\
         V1Switch(P(), V(), I(), E(), C(), D()) main;\n"
    );
    common::compile_text("t.p4", &text).1
}

fn accepted(parts: Parts) {
    let messages = messages(&parts);
    assert!(!messages.contains("error"), "{messages}");
}

/// The first message is an error on this line.
fn refused(line: u32, parts: Parts) {
    let messages = messages(&parts);
    let at = format!("t.p4:{line}:");
    let first = messages.lines().next().unwrap_or_default();
    assert!(
        first.starts_with(&at) && first.contains(": error: "),
        "wanted an error on line {line}, got\n{messages}"
    );
}

fn top(top: &str) -> Parts<'_> {
    Parts {
        top,
        ..Parts::default()
    }
}

fn parser(parser: &str) -> Parts<'_> {
    Parts {
        parser,
        ..Parts::default()
    }
}

fn control(control: &str) -> Parts<'_> {
    Parts {
        control,
        ..Parts::default()
    }
}

fn apply(apply: &str) -> Parts<'_> {
    Parts {
        apply,
        ..Parts::default()
    }
}

#[test]
fn frame_of_test_programs_is_valid() {
    accepted(Parts::default());
}

#[test]
fn width_may_be_any_expression_without_greater_than() {
    accepted(apply(
        "bit<4 * 2> x = 1; bit<(3 > 2 ? 8 : 4)> y = x; meta.m = y;",
    ));
    accepted(control("register<bit<2 + 6>>(4) r;"));
    refused(16, apply("bit<3 > 2 ? 8 : 4> y = 1;"));
}

#[test]
fn stack_size_may_follow_name() {
    accepted(Parts {
        control: "h_t more[2];",
        apply: "more[1].setValid(); more[1].a = 3; hdr.h.a = more[1].a;",
        ..Parts::default()
    });
}

#[test]
fn dots_mean_default_value() {
    accepted(apply(
        "metadata x = ...; bit<8> y = ...; x = { m = ... }; meta.m = x.m + y;",
    ));
    refused(16, apply("meta.m = meta.m + ...;"));
}

#[test]
fn annotations_precede_blocks_and_declarations() {
    accepted(apply("switch (meta.m) { 1: @here { } default: { } }"));
    accepted(apply("@here { meta.m = 1; }"));
    refused(16, apply("@here if (true) { }"));
    refused(16, apply("@here meta.m = 1;"));
}

#[test]
fn commas_separate_items() {
    refused(14, control("action a(bit<8> x,) { }"));
    refused(
        16,
        apply("hash(meta.m, HashAlgorithm.crc16, 8w0, { hdr.h.a }, 8w9,);"),
    );
    accepted(apply(
        "hash(meta.m, HashAlgorithm.crc16, 8w0, { hdr.h.a, }, 8w9);",
    ));
    accepted(top("enum e { A, B, }"));
    refused(3, top("error { A, }"));
}

#[test]
fn enum_members_all_have_values_or_none() {
    refused(3, top("enum e { }"));
    refused(3, top("enum bit<8> e { A = 1, B }"));
    refused(3, top("enum e { A = 1 }"));
    refused(3, top("error { }"));
}

#[test]
fn states_come_last_in_parsers() {
    refused(8, parser("state other { transition accept; } bit<8> late;"));
    refused(8, parser("action a() { }"));
    refused(
        8,
        parser("state other { transition select(hdr.h.a) { default: accept; }; }"),
    );
    refused(3, top("parser empty(packet_in p) { }"));
    accepted(parser("value_set<bit<8>>(4) set;"));
    refused(14, control("value_set<bit<8>>(4) set;"));
}

#[test]
fn table_properties_have_a_fixed_syntax() {
    refused(14, control("table t { }"));
    refused(14, control("table t { actions = { NoAction; }; }"));
    refused(14, control("table t { const actions = { NoAction; } }"));
    refused(14, control("table t { actions = { hdr.h; } }"));
}

#[test]
fn declaration_cannot_be_a_branch() {
    refused(16, apply("if (true) bit<8> x;"));
    refused(16, apply("for (bit<8> i in 8w1..2) const bit<8> x = 1;"));
}

#[test]
fn keywords_cannot_be_names() {
    refused(16, apply("hdr.h.default = 1;"));
    refused(3, top("apply f(in bit<8> x) { }"));
}

#[test]
fn types_must_be_declared_before_use() {
    refused(3, top("struct early { late x; } struct late { bit<8> y; }"));
    // The parameter hides the type in the body, but not for the following parameter.
    accepted(top(
        "bit<8> f(in bit<8> h_t2, in bit<8> y) { return h_t2 + y; }",
    ));
    accepted(top(
        "struct pair { bit<8> l; } bit<8> f(in bit<8> pair, in pair y) { return pair + y.l; }",
    ));
}

#[test]
fn missing_end_is_reported_on_last_nonempty_line() {
    let text = "#include <core.p4>\nstruct s {\n    bit<8> x;\n\n\n";
    let messages = common::compile_text("t.p4", text).1;
    assert!(messages.starts_with("t.p4:3:"), "{messages}");
}

#[test]
fn invalid_header_is_one_token() {
    accepted(apply("hdr.h = {#};"));
    refused(16, apply("hdr.h = { # };"));
}
