// SPDX-License-Identifier: Apache-2.0
//! The tables that the control plane sees of code that never runs. p4c's P4Info for the same programs has the same tables.

mod common;

use serde_json::Value;
use softswitch_p4c::Output;

/// Compiles a program whose ingress control has tables `t`, `u` and `v` with this body, after these declarations.
fn compile(declarations: &str, body: &str) -> Output {
    let tables: String = ["t", "u", "v"]
        .iter()
        .map(|name| {
            format!(
                "action of_{name}() {{ hdr.h.b = 1; }} \
                 table {name} {{ key = {{ hdr.h.a: exact; }} actions = {{ of_{name}; }} }}\n"
            )
        })
        .collect();
    let types = "header h_t { bit<8> a; bit<8> b; }\nstruct headers { h_t h; }\nstruct metadata { bool flag; }\n";
    common::compile_frame(
        &format!("{types}{declarations}\n"),
        "",
        &format!("{tables}{body}"),
    )
}

/// Returns the names of the tables in P4Info, without the name of the control.
fn visible_tables(output: &Output) -> Vec<String> {
    let mut objects = output.p4info.split("\ntables {").skip(1);
    let name = |object: &str| {
        let quoted = object.split("name: \"").nth(1)?;
        Some(quoted.split('"').next()?.strip_prefix("I.")?.to_owned())
    };
    objects.by_ref().filter_map(name).collect()
}

fn check(declarations: &str, body: &str, expected: &str) {
    let output = compile(declarations, body);
    let visible = visible_tables(&output);
    assert_eq!(visible.join(" "), expected, "for {declarations} {body}");
    let json = output.json.expect("a program without errors");
    let pipelines = json["pipelines"].as_array().expect("a list");
    let nodes: Vec<&Value> = pipelines
        .iter()
        .flat_map(|p| p["tables"].as_array().expect("a list"))
        .map(|table| &table["name"])
        .collect();
    for name in visible {
        let name = format!("I.{name}");
        assert!(
            nodes.iter().any(|node| **node == name),
            "{name} is not in the JSON of {body}"
        );
    }
}

/// Checks the visible tables of bodies of the ingress control.
fn check_all(cases: &[(&str, &str)]) {
    for (body, expected) in cases {
        check("", &format!("apply {{ {body} }}"), expected);
    }
}

#[test]
fn tables_behind_constant_short_circuit_are_left_out() {
    check_all(&[
        ("if (false && t.apply().hit) { u.apply(); }", ""),
        (
            "if (true || t.apply().hit) { u.apply(); } else { v.apply(); }",
            "u",
        ),
        (
            "if (!(true || t.apply().hit)) { u.apply(); } else { v.apply(); }",
            "v",
        ),
        ("if (true && t.apply().hit) { u.apply(); }", "t u"),
        ("if (false || t.apply().miss) { u.apply(); }", "t u"),
        (
            "if (hdr.h.isValid() && false && t.apply().hit) { u.apply(); }",
            "",
        ),
        (
            "if (hdr.h.isValid() || (true || t.apply().hit)) { u.apply(); } else { v.apply(); }",
            "u",
        ),
        (
            "if ((false && t.apply().hit) || u.apply().hit) { v.apply(); }",
            "u v",
        ),
        ("if (8w3 > 8w5 && t.apply().hit) { u.apply(); }", ""),
        ("meta.flag = true || t.apply().hit;", ""),
        (
            "bool never = false && t.apply().hit; if (never) { u.apply(); }",
            "u",
        ),
    ]);
    check(
        "const bool DEBUG = false;",
        "apply { if (DEBUG && t.apply().hit) { u.apply(); } }",
        "",
    );
}

#[test]
fn tables_of_constant_choices_are_left_out() {
    check_all(&[
        (
            "if (true ? t.apply().hit : u.apply().hit) { v.apply(); }",
            "t v",
        ),
        (
            "hdr.h.b = (false && t.apply().hit) ? 8w1 : (u.apply().hit ? 8w2 : 8w3);",
            "u",
        ),
        (
            "if (hdr.h.a == 1 ? false && t.apply().hit : false) { u.apply(); } else { v.apply(); }",
            "v",
        ),
        (
            "switch (8w3) { 3: { t.apply(); } 4: { u.apply(); } default: { v.apply(); } }",
            "t",
        ),
        (
            "switch (false && t.apply().hit ? 8w1 : 8w2) { 1: { u.apply(); } 2: { v.apply(); } }",
            "v",
        ),
    ]);
}

#[test]
fn branches_stay_visible_if_condition_applies_tables() {
    check_all(&[
        ("if (t.apply().hit && false) { u.apply(); }", "t u"),
        (
            "if (t.apply().hit || true) { u.apply(); } else { v.apply(); }",
            "t u v",
        ),
        (
            "if (t.apply().hit && (false && u.apply().hit)) { v.apply(); }",
            "t v",
        ),
        ("if (t.apply().hit ? false : false) { v.apply(); }", "t v"),
        (
            "if ((t.apply().hit ? 8w1 : 8w2) * 0 == 0) { u.apply(); } else { v.apply(); }",
            "t u v",
        ),
    ]);
}

#[test]
fn branches_of_algebraic_identities_are_left_out() {
    for (constant, value) in [
        ("hdr.h.a == hdr.h.a", true),
        ("hdr.h == hdr.h", true),
        ("hdr.h.a != hdr.h.a", false),
        ("hdr.h.a - hdr.h.a == 0", true),
        ("hdr.h.a |-| hdr.h.a == 0", true),
        ("hdr.h.a ^ hdr.h.a == 0", true),
        ("(hdr.h.a & 0) == 0", true),
        ("0 * hdr.h.a == 0", true),
        ("hdr.h.a % 1 == 0", true),
        ("8w0 << hdr.h.a == 0", true),
        ("hdr.h.a - 3 + 3 == hdr.h.a", true),
        ("1 + hdr.h.a + 2 == hdr.h.a + 3", true),
        ("(hdr.h.a & 3 & 4) == 0", true),
        ("~~hdr.h.a == hdr.h.a", true),
        ("(~hdr.h.a & ~hdr.h.b) == ~(hdr.h.a | hdr.h.b)", true),
        ("hdr.h.a < hdr.h.a", false),
        ("hdr.h.a >= 0", true),
        ("(int<8>) hdr.h.a < -128", false),
        ("(int<8>) hdr.h.a <= 127", true),
        ("!(hdr.h.a < 5) == (hdr.h.a >= 5)", true),
        ("hdr.h.a == 1 ? true : !(hdr.h.a != hdr.h.a)", true),
        ("hdr.h.a[7:0] == hdr.h.a", true),
        ("(hdr.h.a == 1 ? hdr.h.b : hdr.h.b) - hdr.h.b > 0", false),
    ] {
        let body = format!("apply {{ if ({constant}) {{ t.apply(); }} else {{ u.apply(); }} }}");
        check("", &body, if value { "t" } else { "u" });
    }
    check_all(&[
        // These conditions are constant, too, but neither compiler finds out.
        (
            "if ((hdr.h.a | 0xff) == 0xff) { t.apply(); } else { u.apply(); }",
            "t u",
        ),
        (
            "if ((hdr.h.a < hdr.h.b) == (hdr.h.b > hdr.h.a)) { t.apply(); } else { u.apply(); }",
            "t u",
        ),
    ]);
}

#[test]
fn code_after_returning_paths_is_left_out() {
    check_all(&[
        (
            "if (hdr.h.a == 1) { return; } else { return; } t.apply();",
            "",
        ),
        (
            "if (hdr.h.a == 1) { exit; } else { return; } t.apply();",
            "",
        ),
        ("if (hdr.h.a == 1) { return; } exit; t.apply();", ""),
        ("if (true || t.apply().hit) { return; } u.apply();", ""),
        (
            "{ if (hdr.h.a == 1) { return; } else { { return; } } t.apply(); } u.apply();",
            "",
        ),
        (
            "if (t.apply().hit) { return; } else { return; } u.apply();",
            "t",
        ),
        ("switch (8w1) { 1: { return; } } t.apply();", ""),
        (
            "switch (hdr.h.a) { 1: { return; } default: { return; } } t.apply();",
            "t",
        ),
        (
            "switch (hdr.h.a) { 1: { return; t.apply(); } default: { exit; u.apply(); } } v.apply();",
            "v",
        ),
    ]);
}

#[test]
fn code_after_exit_is_visible_if_control_never_returns() {
    check_all(&[
        ("exit; t.apply();", "t"),
        ("if (hdr.h.a == 1) { exit; } else { exit; } t.apply();", "t"),
        ("if (hdr.h.a == 1) { exit; t.apply(); } u.apply();", "t u"),
        ("if (false) { return; } exit; t.apply();", "t"),
    ]);
    check(
        "",
        "action leave() { exit; } apply { if (hdr.h.a == 1) { return; } else { leave(); } t.apply(); }",
        "t",
    );
}

#[test]
fn conditions_after_exit_may_read_variables_of_their_block() {
    check_all(&[(
        "if (hdr.h.a == 1) { exit; } else { exit; } { bit<8> x = hdr.h.b; if (x == 2) { t.apply(); } }",
        "t",
    )]);
}

#[test]
fn bodies_of_loops_are_visible() {
    check_all(&[
        ("for (bit<8> i = 0; i < 0; i = i + 1) { t.apply(); }", "t"),
        (
            "for (bit<8> i = 0; i < 3 && false; i = i + 1) { t.apply(); }",
            "t",
        ),
        (
            "for (bit<8> i = 0; i < 2; i = i + 1) { if (i == 7) { t.apply(); } else { u.apply(); } }",
            "t u",
        ),
        (
            "for (bit<8> i = 0; i < 2; i = i + 1) { if (i == 7 && t.apply().hit) { hdr.h.b = 1; } }",
            "t",
        ),
        (
            "for (bit<8> i = 0; i < 2; i = i + 1) { switch (i) { 5: { t.apply(); } } }",
            "t",
        ),
        (
            "for (bit<8> i = 0; i < 2; i = i + 1) { hdr.h.b = i == 7 ? (t.apply().hit ? 8w1 : 8w2) : 8w3; }",
            "t",
        ),
        (
            "for (bit<8> i = 0; i < 2; i = i + 1) { if (false && t.apply().hit) { u.apply(); } }",
            "",
        ),
        (
            "for (bit<8> i = 0; i < 2; i = i + 1) { return; } t.apply();",
            "t",
        ),
        (
            "for (bit<8> i = 0; i < 2; i = i + 1) { break; t.apply(); }",
            "t",
        ),
    ]);
}

/// Checks the visible tables of a control with a table `inner`, called with these arguments.
fn check_inner(params: &str, body: &str, args: &str, expected: &str) {
    let inner = format!(
        "control Inner(inout headers hdr{params}) {{ \
         action x() {{ hdr.h.b = 2; }} table inner {{ key = {{ hdr.h.a: exact; }} actions = {{ x; }} }} \
         apply {{ {body} }} }}"
    );
    let ingress = format!("Inner() c; apply {{ c.apply(hdr{args}); }}");
    check(&inner, &ingress, expected);
}

#[test]
fn constant_arguments_decide_conditions_from_the_left() {
    check_inner(", in bool on", "if (on) { inner.apply(); }", ", false", "");
    check_inner(
        ", in bool on",
        "if (on && inner.apply().hit) { hdr.h.b = 1; }",
        ", false",
        "",
    );
    check_inner(
        ", in bool on",
        "if (hdr.h.isValid() && on) { inner.apply(); }",
        ", false",
        "c.inner",
    );
    check_inner(
        ", in bool off",
        "if (off) { return; } inner.apply();",
        ", true",
        "",
    );
    check_inner(
        ", in bit<8> n",
        "switch (n) { 1: { hdr.h.b = 1; } 2: { inner.apply(); } }",
        ", 1",
        "c.inner",
    );
    check_inner(
        ", in bit<8> n, in bit<8> m",
        "if (n == m) { hdr.h.b = 1; } else { inner.apply(); }",
        ", hdr.h.a, hdr.h.a",
        "c.inner",
    );
}
