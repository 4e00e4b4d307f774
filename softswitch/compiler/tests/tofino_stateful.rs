// SPDX-License-Identifier: Apache-2.0
//! The rules of the ALUs of registers: what one register action can compute.

mod common;

use common::{errors, expect_message};

/// A program for an architecture with these declarations and statements in the ingress control. They start at line 10.
fn program(architecture: &str, ingress: &str) -> String {
    format!(
        r"#include <core.p4>
#include <{architecture}.p4>
header h_t {{ bit<8> a; bit<8> b; bit<32> c; bit<32> d; bit<32> e; bit<64> w; bit<16> s; }}
struct H {{ h_t h; }} struct M {{ bit<32> x; bit<32> y; bit<16> z; }} struct pair {{ bit<32> lo; bit<32> hi; }}
parser IP(packet_in p, out H h, out M m, out ingress_intrinsic_metadata_t i) {{
    state start {{ p.extract(i); p.advance(PORT_METADATA_SIZE); p.extract(h.h); m = {{ 0, 0, 0 }}; transition accept; }} }}

control I(inout H h, inout M m, in ingress_intrinsic_metadata_t i, in ingress_intrinsic_metadata_from_parser_t f,
    inout ingress_intrinsic_metadata_for_deparser_t d, inout ingress_intrinsic_metadata_for_tm_t t) {{
{ingress}
}}
control ID(packet_out p, inout H h, in M m, in ingress_intrinsic_metadata_for_deparser_t d) {{ apply {{ p.emit(h); }} }}
parser EP(packet_in p, out H h, out M m, out egress_intrinsic_metadata_t e) {{
    state start {{ p.extract(e); p.extract(h.h); m = {{ 0, 0, 0 }}; transition accept; }} }}
control E(inout H h, inout M m, in egress_intrinsic_metadata_t e, in egress_intrinsic_metadata_from_parser_t f,
    inout egress_intrinsic_metadata_for_deparser_t d, inout egress_intrinsic_metadata_for_output_port_t o) {{ apply {{}} }}
control ED(packet_out p, inout H h, in M m, in egress_intrinsic_metadata_for_deparser_t d) {{ apply {{ p.emit(h); }} }}
Pipeline(IP(), I(), ID(), EP(), E(), ED()) pipe;
Switch(pipe) main;
"
    )
}

/// Returns the errors of [`program`], without warnings.
fn errors_in(architecture: &str, ingress: &str) -> String {
    errors(&program(architecture, ingress))
}

/// The declaration of a register action on `r`, whose body starts in its second line.
fn action(name: &str, ty: &str, body: &str) -> String {
    format!(
        "RegisterAction<{ty}, bit<8>, bit<32>>(r) {name} = {{ void apply(inout {ty} v, out bit<32> o) {{\n{body} }} }};\n"
    )
}

/// Returns the errors of an action on a register of this type, for an architecture. Its body starts at line 12.
fn on(architecture: &str, ty: &str, body: &str) -> String {
    let action = action("act", ty, body);
    errors_in(
        architecture,
        &format!("Register<{ty}, bit<8>>(256) r;\n{action} apply {{ m.x = act.execute(h.h.a); }}"),
    )
}

fn single(body: &str) -> String {
    on("tna", "bit<32>", body)
}

fn pair(body: &str) -> String {
    on("tna", "pair", body)
}

#[test]
fn action_has_two_comparisons_on_tofino1_and_four_on_tofino2() {
    let three = "if (v == 1) { v = 2; }\nelse if (v == 3 || v == 5) { v = 4; }";
    let messages = single(three);
    expect_message(
        &messages,
        "t.p4:13:10: error: register action 'act' needs 3 comparisons, and Tofino 1 has 2",
    );
    expect_message(&messages, "compare before the action");
    assert_eq!(on("t2na", "bit<32>", three), "");
    expect_message(
        &on(
            "t2na",
            "bit<32>",
            "if (v == 1 || v == 3 || v == 5 || v == 7 || v == 9) { v = 4; }",
        ),
        "error: register action 'act' needs 5 comparisons, and Tofino 2 has 4",
    );
}

#[test]
fn comparison_and_its_negation_count_once() {
    assert_eq!(
        single(
            "if (v < h.h.c) { v = 1; } o = 0; if (h.h.c <= v && v != 7) { o = 1; } else if (v == 7) { o = v; }"
        ),
        ""
    );
}

#[test]
fn comparison_reads_one_word_one_packet_operand_and_one_constant() {
    assert_eq!(pair("if (v.lo - h.h.c > 5) { v.hi = 1; }"), "");
    expect_message(
        &pair("if (v.lo > v.hi) { v.lo = 1; }"),
        "t.p4:12:5: error: a comparison in a register action reads at most one word of the register",
    );
    expect_message(
        &single("if (v - h.h.c > h.h.d) { v = 1; }"),
        "t.p4:12:5: error: a comparison in a register action reads at most one packet operand",
    );
    expect_message(
        &single("if (v + 3 > h.h.d - 4) { v = 1; }"),
        "t.p4:12:5: error: a comparison in a register action uses at most one constant",
    );
}

#[test]
fn condition_compares_whole_words() {
    expect_message(
        &single("if (v[15:0] == h.h.s) { v = 1; }"),
        "t.p4:12:5: error: a condition compares whole words of a register, not slices",
    );
    expect_message(
        &single("if ((bit<16>)(h.h.c - v) <= 3) { v = 1; }"),
        "t.p4:12:5: error: a condition compares whole results, not slices of them",
    );
    assert_eq!(single("if (h.h.w[31:0] == v) { v = (bit<32>)h.h.s; }"), "");
}

#[test]
fn condition_has_one_addition_on_each_side() {
    expect_message(
        &single("if (v + h.h.c + 1 > 3) { v = 1; }"),
        "t.p4:12:5: error: each side of a comparison in a register action has at most one operation",
    );
    expect_message(
        &single("if (v ^ h.h.c == 3) { v = 1; }"),
        "t.p4:12:5: error: a condition of a register action can only add, subtract, or mask with a constant",
    );
}

#[test]
fn condition_after_assignment_compares_new_value() {
    assert_eq!(
        pair("v.lo = h.h.c; o = 0; if (v.lo < v.hi) { o = v.hi; }"),
        ""
    );
}

#[test]
fn register_has_four_actions() {
    let with = |count: usize| {
        let body = |i: usize| format!("v = v + {i}; o = v;");
        let actions: String = (1..=count)
            .map(|i| action(&format!("act{i}"), "bit<32>", &body(i)))
            .collect();
        let cases: String = (1..=count)
            .map(|i| format!("if (h.h.b == {i}) {{ m.x = act{i}.execute(0); }} else "))
            .collect();
        errors_in(
            "tna",
            &format!("Register<bit<32>, bit<8>>(256) r;\n{actions} apply {{ {cases} {{}} }}"),
        )
    };
    assert_eq!(with(4), "");
    let messages = with(5);
    expect_message(
        &messages,
        "t.p4:19:1: error: 5 register actions access register 'r', and its ALU stores 4",
    );
    expect_message(&messages, "let one action do the work of two");
}

#[test]
fn assignment_has_one_operation() {
    expect_message(
        &single("v = v + h.h.c + 1;"),
        "t.p4:12:1: error: a register action computes one operation in each assignment, or two whose results are combined by |",
    );
    assert_eq!(single("v = (v & 5) | (v + h.h.c); o = 0;"), "");
    assert_eq!(single("v = v & ~h.h.c; o = ~h.h.c;"), "");
}

#[test]
fn operation_combines_a_word_and_a_packet_operand() {
    expect_message(
        &pair("v.lo = v.lo + v.hi;"),
        "t.p4:12:1: error: an operation in a register action reads at most one word of the register",
    );
    expect_message(
        &single("v = h.h.c + h.h.d;"),
        "t.p4:12:1: error: an operation in a register action reads at most one packet operand",
    );
}

#[test]
fn minimum_is_one_operation() {
    assert_eq!(
        single("if (v == 1 || v == 2) { v = max(v, h.h.c); } o = v;"),
        ""
    );
}

#[test]
fn alu_of_register_lacks_shifts_divisions_and_wide_operations() {
    expect_message(
        &single("v = v << 1;"),
        "t.p4:12:1: error: the ALU of a register does not shift, multiply or concatenate",
    );
    expect_message(
        &single("v = v / 3;"),
        "t.p4:12:1: error: the ALU of a register does not divide",
    );
    expect_message(
        &on("t2na", "bit<64>", "v = v & h.h.w;"),
        "t.p4:12:1: error: the ALU of a register computes at most 32 bits; it can only copy more",
    );
    expect_message(
        &single("o = (bit<32>)(bit<16>)(v + 1);"),
        "t.p4:12:1: error: a register action cannot slice the result of an operation",
    );
}

#[test]
fn value_is_set_once_in_each_case() {
    let messages = single("o = v;\nv = v + 1;\nif (v >= h.h.c) { v = 0; }");
    expect_message(
        &messages,
        "t.p4:14:19: error: register action 'act' may set the register's value twice",
    );
    expect_message(&messages, "with if and else");
    assert_eq!(
        single("o = 0; if (v >= h.h.c) { v = 0; o = 1; } else { v = v + 1; }"),
        ""
    );
}

#[test]
fn word_gets_two_different_values() {
    let expected = "t.p4:12:90: error: register action 'act' computes more than 2 different values for the register's word 'lo'";
    expect_message(
        &pair(
            "if (v.lo == 0) { v.lo = h.h.c; } else if (v.hi == 0) { v.lo = v.lo + h.h.c; } else     { v.lo = 7; }",
        ),
        expected,
    );
}

#[test]
fn output_of_a_pair_has_one_source() {
    let messages = pair("if (v.hi == 0) { o = v.lo; }\nelse { o = h.h.c; }");
    expect_message(
        &messages,
        "t.p4:13:8: error: register action 'act' returns different values in its output, and a register of this width has one source for each output",
    );
    assert_eq!(
        pair("o = 0; if (v.hi == 0) { v.lo = h.h.c; o = v.lo; } else if (v.lo == 5) { o = v.lo; }"),
        ""
    );
    expect_message(
        &pair("o = v.lo + 1;"),
        "t.p4:12:1: error: register action 'act' returns a computed value in its output, and a register of this width has no unit for it",
    );
    assert_eq!(pair("v.lo = v.lo + 1; o = v.lo;"), "");
    expect_message(
        &pair("o = 0; if (v.lo == 0) { o = 6; }"),
        "t.p4:12:25: error: register action 'act' returns a constant with more than one bit set in its output",
    );
}

#[test]
fn actions_on_a_pair_return_one_constant() {
    let actions = action("one", "pair", "o = 0; if (v.lo == 0) { o = 1; }")
        + &action("two", "pair", "o = 0; if (v.lo == 0) { o = 2; }");
    expect_message(
        &errors_in(
            "tna",
            &format!(
                "Register<pair, bit<8>>(256) r;\n{actions} apply {{ if (h.h.a == 0) {{ m.x = one.execute(0); }} else {{ m.x = two.execute(0); }} }}"
            ),
        ),
        "t.p4:14:25: error: an action on a register of this width returns the constant 1, so no action on it can return 2",
    );
}

#[test]
fn outputs_of_a_pair_share_the_conditions() {
    let two = |second: &str| {
        errors_in(
            "t2na",
            &format!(
                "Register<pair, bit<8>>(256) r;
RegisterAction2<pair, bit<8>, bit<32>, bit<32>>(r) act = {{ void apply(inout pair v, out bit<32> o, out bit<32> q) {{
o = 0; q = 0; if (v.lo > h.h.c) {{ o = 1; }} if ({second}) {{ q = 1; }} }} }};
apply {{ m.x = act.execute(0, m.y); }}"
            ),
        )
    };
    assert_eq!(two("v.lo > h.h.c"), "");
    expect_message(
        &two("v.hi > h.h.c"),
        "t.p4:12:64: error: register action 'act' returns constants in several outputs under different conditions",
    );
}

#[test]
fn output_of_a_single_word_has_two_values() {
    assert_eq!(single("if (v == 0) { o = 5; } else { o = v + 1; }"), "");
    expect_message(
        &single("if (v == 0) { o = 5; } else if (v == 9) { o = h.h.c; }\nelse { o = v + 1; }"),
        "t.p4:13:8: error: register action 'act' returns more than 2 different values in its output",
    );
}

#[test]
fn actions_on_a_register_read_two_packet_operands() {
    let with = |second: &str| {
        let actions = action("one", "pair", "v.lo = h.h.c; v.hi = h.h.d; o = 0;")
            + &action("two", "pair", &format!("v.lo = {second}; o = v.hi;"));
        errors_in(
            "tna",
            &format!(
                "Register<pair, bit<8>>(256) r;\n{actions} apply {{ if (h.h.a == 0) {{ m.x = one.execute(0); }} else {{ m.x = two.execute(0); }} }}"
            ),
        )
    };
    assert_eq!(with("h.h.d"), "");
    let messages = with("h.h.e");
    expect_message(
        &messages,
        "t.p4:13:1: error: the actions on register 'r' read 3 packet operands (h.c, h.d, h.e), and its ALU has inputs for 2",
    );
    expect_message(&messages, "choose between operands before the action");
}

#[test]
fn register_of_bits_has_no_conditions() {
    let bits = |body: &str| {
        errors_in(
            "tna",
            &format!(
                "Register<bit<1>, bit<8>>(256) r;\nRegisterAction<bit<1>, bit<8>, bit<1>>(r) act = {{ void apply(inout bit<1> v, out bit<1> o) {{\n{body} }} }};
                 apply {{ h.h.b[0:0] = act.execute(0); }}"
            ),
        )
    };
    assert_eq!(bits("o = v; v = 1;"), "");
    assert_eq!(bits("v = 0; o = ~v;"), "");
    let expected = "t.p4:12:5: error: a register of single bits only reads, sets and clears them";
    expect_message(&bits("if (v == 0) { v = 1; } o = v;"), expected);
}

#[test]
fn cells_are_one_or_two_words() {
    let of = |ty: &str| {
        errors_in(
            "tna",
            &format!(
                "Register<{ty}, bit<8>>(256) r;\nRegisterAction<{ty}, bit<8>, bit<32>>(r) act = {{ void apply(inout {ty} v) {{ }} }};
                 apply {{ act.execute(0); }}"
            ),
        )
    };
    for ty in ["bit<8>", "int<16>", "bit<32>", "bit<64>", "pair"] {
        assert_eq!(of(ty), "");
    }
    expect_message(
        &of("bit<24>"),
        "t.p4:10:1: error: register 'r' has cells of 24 bits, and the ALU of a register works on one word of 1, 8, 16, 32 or 64 bits, or on two of the same width up to 32",
    );
    expect_message(
        &of("M"),
        "error: register 'r' has cells of 32 + 32 + 16 bits",
    );
}

#[test]
fn rules_hold_for_registers_of_tables() {
    let messages = errors_in(
        "tna",
        "DirectRegister<pair>() r;
DirectRegisterAction<pair, bit<32>>(r) act = { void apply(inout pair v, out bit<32> o) {
if (v.lo < v.hi) { v.lo = 0; } o = v.lo; } };
action run() { m.x = act.execute(); }
table table_of_r { key = { h.h.a: exact; } actions = { run; } registers = r; } apply { table_of_r.apply(); }",
    );
    expect_message(
        &messages,
        "t.p4:12:5: error: a comparison in a register action reads at most one word of the register",
    );
}

#[test]
fn assignments_to_slices_of_outputs_are_not_followed() {
    assert_eq!(on("tna", "bit<16>", "o = 0; o[15:0] = v; v = v + 1;"), "");
}

#[test]
fn special_units_are_not_conditions() {
    assert_eq!(single("o = this.predicate(v == 0, v == 1);"), "");
    assert_eq!(
        on("t2na", "bit<128>", "o = (bit<32>)this.min8(v, 0xffff);")
            .matches("comparisons")
            .count(),
        0
    );
}
