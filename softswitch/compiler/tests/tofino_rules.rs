// SPDX-License-Identifier: Apache-2.0
//! The rules of Tofino's pipelines: what breaks them, and the chains of dependent steps.

mod common;

use common::{compile_text, errors, expect_message};

/// A program with these declarations and statements in both gresses' controls. Those of ingress start at line 10.
fn program(ingress: &str, egress: &str) -> String {
    format!(
        r"#include <core.p4>
#include <tna.p4>
header h_t {{ bit<8> a; bit<8> b; bit<32> c; bit<32> d; bit<64> w; }}
struct H {{ h_t h; }} struct M {{ bit<32> x; bit<32> y; }} struct pair {{ bit<32> lo; bit<32> hi; }}
parser IP(packet_in p, out H h, out M m, out ingress_intrinsic_metadata_t i) {{
    state start {{ p.extract(i); p.advance(PORT_METADATA_SIZE); p.extract(h.h); m = {{ 0, 0 }}; transition accept; }} }}
Register<bit<32>, bit<8>>(256) shared;
control I(inout H h, inout M m, in ingress_intrinsic_metadata_t i, in ingress_intrinsic_metadata_from_parser_t f,
    inout ingress_intrinsic_metadata_for_deparser_t d, inout ingress_intrinsic_metadata_for_tm_t t) {{
{ingress}
}}
control ID(packet_out p, inout H h, in M m, in ingress_intrinsic_metadata_for_deparser_t d) {{ apply {{ p.emit(h); }} }}
parser EP(packet_in p, out H h, out M m, out egress_intrinsic_metadata_t e) {{
    state start {{ p.extract(e); p.extract(h.h); m = {{ 0, 0 }}; transition accept; }} }}
control E(inout H h, inout M m, in egress_intrinsic_metadata_t e, in egress_intrinsic_metadata_from_parser_t f,
    inout egress_intrinsic_metadata_for_deparser_t d, inout egress_intrinsic_metadata_for_output_port_t o) {{
{egress}
}}
control ED(packet_out p, inout H h, in M m, in egress_intrinsic_metadata_for_deparser_t d) {{ apply {{ p.emit(h); }} }}
Pipeline(IP(), I(), ID(), EP(), E(), ED()) pipe;
Switch(pipe) main;
"
    )
}

/// A program that resubmits a header of these fields.
fn resubmitting(fields: &str) -> String {
    let emits = format!(
        "Resubmit() r; apply {{ if (d.resubmit_type == 1) {{ r.emit<r_t>({{ {fields} }}); }} p.emit(h); }}"
    );
    let types = match fields {
        "h.h.c, h.h.d" => "header r_t { bit<32> a; bit<32> b; }",
        _ => "header r_t { bit<32> a; bit<64> b; }",
    };
    program("apply { d.resubmit_type = 1; }", "apply {}")
        .replacen("struct H", &format!("{types} struct H"), 1)
        .replacen(
            "in ingress_intrinsic_metadata_for_deparser_t d) { apply { p.emit(h); }",
            &format!("in ingress_intrinsic_metadata_for_deparser_t d) {{ {emits}"),
            1,
        )
}

/// Declarations of a register and of two actions on it.
const REGISTER: &str = "Register<bit<32>, bit<8>>(256) r; RegisterAction<bit<32>, bit<8>, bit<32>>(r) add = { void apply(inout bit<32> v, out bit<32> o) { v = v + 1; o = v; } }; RegisterAction<bit<32>, bit<8>, bit<32>>(r) get = { void apply(inout bit<32> v, out bit<32> o) { o = v; } };";

const SHARED: &str = "RegisterAction<bit<32>, bit<8>, bit<32>>(shared) all = { void apply(inout bit<32> v, out bit<32> o) { v = v + 1; o = v; } };";

fn messages(ingress: &str) -> String {
    errors(&program(ingress, "apply {}"))
}

fn with_register(statements: &str) -> String {
    messages(&format!("{REGISTER}\napply {{ {statements} }}"))
}

#[test]
fn packet_accesses_register_once() {
    let text = with_register("m.x = add.execute(h.h.a);\nm.y = get.execute(h.h.b);");
    expect_message(
        &text,
        "t.p4:12:1: error: a packet can access register 'I.r' only once, and may have done so already in line 11",
    );
    expect_message(&text, "do everything in one RegisterAction");
}

#[test]
fn branches_and_actions_of_one_table_exclude_each_other() {
    let branches = with_register(
        "if (h.h.a == 0) { m.x = add.execute(h.h.a); } else { m.x = get.execute(h.h.a); }",
    );
    assert_eq!(branches, "");
    let table = messages(&format!(
        "{REGISTER} action one() {{ m.x = add.execute(0); }} action two() {{ m.x = get.execute(0); }}
         table t {{ key = {{ h.h.a: exact; }} actions = {{ one; two; }} default_action = one(); }} apply {{ t.apply(); }}"
    ));
    assert_eq!(table, "");
}

#[test]
fn path_that_ends_does_not_count() {
    let left =
        with_register("if (h.h.a == 0) { m.x = add.execute(0); exit; }\nm.x = get.execute(0);");
    assert_eq!(left, "");
    let stays = with_register("if (h.h.a == 0) { m.x = add.execute(0); }\nm.x = get.execute(0);");
    expect_message(
        &stays,
        "t.p4:12:1: error: a packet can access register 'I.r' only once",
    );
}

#[test]
fn action_after_switch_counts_only_where_its_table_ran_it() {
    let body = |case: &str| {
        messages(&format!(
            "{REGISTER} action one() {{ m.x = add.execute(0); }} action two() {{}}
             table t {{ key = {{ h.h.a: exact; }} actions = {{ one; two; }} default_action = two(); }}
             apply {{ switch (t.apply().action_run) {{ {case}: {{ m.y = get.execute(0); }} default: {{}} }} }}"
        ))
    };
    assert_eq!(body("two"), "");
    expect_message(&body("one"), "a packet can access register 'I.r' only once");
}

#[test]
fn register_belongs_to_one_gress() {
    let both = program(
        &format!("{SHARED}\napply {{ m.x = all.execute(0); }}"),
        &format!("{SHARED}\napply {{ m.x = all.execute(0); }}"),
    );
    let text = errors(&both);
    expect_message(
        &text,
        "error: ingress and egress cannot share register 'shared', which ingress accesses in line 11",
    );
    expect_message(&text, "use a register for each gress");
}

#[test]
fn alu_shifts_by_constants_and_adds_up_to_32_bits() {
    assert_eq!(
        messages("apply { h.h.c = h.h.c << 3; h.h.d = h.h.c + h.h.d; }"),
        ""
    );
    expect_message(
        &messages("apply { h.h.c = h.h.c << h.h.a; }"),
        "t.p4:10:9: error: an ALU shifts only by a constant",
    );
    expect_message(
        &messages("apply { h.h.w = h.h.w + 1; }"),
        "t.p4:10:9: error: an ALU adds at most 32 bits, not 64",
    );
    expect_message(
        &messages("apply { h.h.c = h.h.c * h.h.d; }"),
        "t.p4:10:9: error: no ALU multiplies or divides",
    );
    expect_message(
        &messages("apply { if (h.h.w > 5) { h.h.a = 1; } }"),
        "error: values of more than 32 bits cannot be ordered, and these have 64",
    );
}

#[test]
fn resubmitted_data_has_8_bytes() {
    assert_eq!(errors(&resubmitting("h.h.c, h.h.d")), "");
    expect_message(
        &errors(&resubmitting("h.h.c, h.h.w")),
        "error: a resubmitted packet carries at most 8 bytes of data, not 12",
    );
}

#[test]
fn rules_are_only_for_tofino() {
    assert_eq!(
        common::ingress("apply { hdr.h.a = hdr.h.a * hdr.h.a; hdr.h.a = hdr.h.a << hdr.h.a; }"),
        ""
    );
}

fn report(ingress: &str) -> Vec<String> {
    let (output, messages) = compile_text("t.p4", &program(ingress, "apply {}"));
    let output = output.unwrap_or_else(|| panic!("{messages}"));
    let lines = output.report.lines().map(str::trim).map(str::to_owned);
    lines
        .take_while(|line| !line.starts_with("egress"))
        .collect()
}

#[test]
fn chain_contains_tables_that_read_what_others_write() {
    let lines = report(
        "action set(bit<32> v) { m.x = v; } action next(bit<32> v) { m.y = v; } action free() { h.h.b = 1; }
         table first { key = { h.h.a: exact; } actions = { set; } }
         table second { key = { m.x: exact; } actions = { next; } }
         table aside { key = { h.h.c: exact; } actions = { free; } }
         apply { first.apply(); aside.apply(); second.apply(); h.h.d = m.y + 1; }",
    );
    assert_eq!(
        lines,
        [
            "ingress: the longest chain of dependent steps needs 3 stages at least",
            "1  table I.first  t.p4:14",
            "2  table I.second  t.p4:14",
            "3  assignment  t.p4:14",
        ]
    );
}

#[test]
fn register_and_its_result_are_a_step() {
    let lines = report(&format!(
        "{REGISTER}\napply {{ m.x = add.execute(h.h.a); if (m.x > 3) {{ h.h.d = 1; }} }}"
    ));
    assert_eq!(
        lines,
        [
            "ingress: the longest chain of dependent steps needs 2 stages at least",
            "1  register I.r  t.p4:11",
            "2  assignment  t.p4:11",
        ]
    );
}

#[test]
fn table_and_register_of_its_action_are_a_step() {
    let lines = report(&format!(
        "{REGISTER}\naction use(bit<8> i) {{ m.x = add.execute(i); }}
         table t {{ key = {{ h.h.b: exact; }} actions = {{ use; }} }}
         apply {{ t.apply(); if (m.x > 3) {{ h.h.d = 1; }} }}"
    ));
    assert_eq!(
        lines,
        [
            "ingress: the longest chain of dependent steps needs 2 stages at least",
            "1  table I.t  t.p4:13",
            "2  assignment  t.p4:13",
        ]
    );
}

#[test]
fn exclusive_branches_do_not_wait_for_each_other() {
    let lines = report(
        "action set(bit<32> v) { m.x = v; } action next(bit<32> v) { m.y = v; }
         table first { key = { h.h.a: exact; } actions = { set; } }
         table second { key = { m.x: exact; } actions = { next; } }
         apply { if (h.h.b == 0) { first.apply(); } else { second.apply(); } }",
    );
    assert_eq!(
        lines,
        [
            "ingress: the longest chain of dependent steps needs 1 stages at least",
            "1  table I.first  t.p4:13",
        ]
    );
}
