// SPDX-License-Identifier: Apache-2.0
//! Data-flow warnings: uninitialized values, invalid headers and out parameters.

mod common;

use softswitch_p4c::compile;
use softswitch_p4c::diag::{Action, Diagnostics, Policy, SourceMap};

/// Returns the warnings of one kind as line and column; lines count from `first`.
fn places(messages: &str, kind: &str, first: usize) -> Vec<String> {
    let tag = format!(" [--Wwarn={kind}]");
    let place = |line: &str| {
        let mut parts = line.split(':').skip(1);
        let mut number = || parts.next().and_then(|n| n.parse().ok()).unwrap_or(0);
        let (line, column): (usize, usize) = (number(), number());
        format!("{}:{column}", line + 1 - first)
    };
    let lines = messages.lines().filter(|line| line.ends_with(&tag));
    lines.map(place).collect()
}

/// Returns the warnings for an ingress control with these statements.
fn of(kind: &str, statements: &str) -> Vec<String> {
    let body = format!("apply {{\n{statements} }}");
    places(&common::ingress(&body), kind, 11)
}

/// Returns the warnings for an ingress control with these declarations, the last of which is a block.
fn control_warnings(kind: &str, declarations: &str) -> Vec<String> {
    places(&common::ingress(declarations), kind, 10)
}

/// Returns the warnings for a parser in front of an empty ingress; its declarations begin in line 7.
fn parser_warnings(kind: &str, declarations: &str) -> Vec<String> {
    let empty = common::program("apply {}");
    let text = empty.replace("state start { transition accept; }", declarations);
    places(&common::compile_text("t.p4", &text).1, kind, 7)
}

const USE: &str = "uninitialized-use";
const HEADER: &str = "invalid-header";
const OUT: &str = "uninitialized-out-param";

#[test]
fn warns_of_uninitialized_values() {
    for statements in [
        "bit<8> x = 1; meta.m = x;",
        "bit<8> x; x = 1; meta.m = x;",
        "bit<8> x; if (meta.m == 1) { x = 1; } else { x = 2; } meta.m = x;",
        "bit<8> x; if (meta.m == 1) { x = 1; } else { exit; } meta.m = x;",
        "bit<8> x; if (meta.m == 1) { return; } else { x = 1; } meta.m = x;",
        "bit<8> x; if (true) { x = 1; } meta.m = x;",
        "bit<8> x; switch (meta.m) { 1: 2: { x = 1; } default: { x = 2; } } meta.m = x;",
        "h_t[2] t; t[0] = hdr.h; meta.m = t[0].a;",
        "h_t t; t = hdr.h; hdr.h = t;",
        "bit<8> x; hash(x, HashAlgorithm.crc16, 8w0, { meta.m }, 8w3); meta.m = x;",
        "bit<8> unused = 1;",
    ] {
        assert!(of(USE, statements).is_empty(), "{statements}");
    }
    for (statements, place) in [
        ("bit<8> x;\nmeta.m = x;", "2:10"),
        ("bit<8> x; bit<8> y; y =\nx;", "2:1"),
        ("bit<8> x; if (meta.m == 1) { x = 1; }\nmeta.m = x;", "2:10"),
        (
            "bit<8> x; switch (meta.m) { 1: { x = 1; } }\nmeta.m = x;",
            "2:10",
        ),
        ("bool x; if (\nx && hdr.h.isValid()) { meta.m = 1; }", "2:1"),
        ("bit<8> x;\nx[3:0] = 1;", "2:1"),
        ("bit<8> x;\nx += 1;", "2:1"),
        ("h_t t;\nhdr.h = t;", "2:9"),
        ("h_t[2] t; t[0] = hdr.h;\nhdr.s = t;", "2:9"),
        (
            "h_t[2] t; t[0] = hdr.h; hdr.s[0] = t[0];\nhdr.h = t[1];",
            "2:9",
        ),
        (
            "bit<8> x;\nhash(meta.m, HashAlgorithm.crc16, 8w0, { x }, 8w3);",
            "2:42",
        ),
        ("metadata t;\nmeta = t;", "2:8"),
    ] {
        assert_eq!(of(USE, statements), [place], "{statements}");
    }
}

#[test]
fn loops_are_analysed_to_a_fixed_point() {
    let twice =
        "bit<8> x; bit<8> y = 1;\nfor (bit<8> i in 1..4) {\nif (i > 1) { meta.m = x; }\nx = i; }";
    assert_eq!(of(USE, twice), ["3:23"]);
    let before = "bit<8> x;\nfor (x = 0; x < 4; x = x + 1) { meta.m = x; }\nmeta.m = x;";
    assert!(of(USE, before).is_empty());
    let left =
        "bit<8> x;\nfor (bit<8> i in 1..4) { if (i == meta.m) { break; } x = i; }\nmeta.m = x;";
    assert_eq!(of(USE, left), ["3:10"]);
    let next = "for (bit<8> i in 1..4) {\nhdr.h.a = 1;\nif (i == meta.m) { hdr.h.setInvalid(); continue; } }";
    assert_eq!(of(HEADER, next), ["2:1"]);
}

#[test]
fn warns_of_fields_of_invalid_headers() {
    for statements in [
        "hdr.h.a = 1;",
        "h_t t; t.setValid(); t.a = 1;",
        "h_t t; t = hdr.h; t.a = 1;",
        "h_t t = { 1, 2, true, 3 }; meta.m = t.a;",
        "hdr.h.setInvalid(); if (hdr.h.isValid()) { hdr.h.a = 1; }",
        "hdr.h.setInvalid(); if (hdr.h.isValid() && hdr.h.a == 1) { meta.m = 1; }",
        "hdr.s.push_front(1); hdr.s[0].a = 1;",
        "if (meta.m == 1) { hdr.h.setInvalid(); return; } hdr.h.a = 1;",
        "hdr.s[0].setInvalid(); meta.m = hdr.s[meta.m].a;",
        "headers t = hdr; t.h.a = 1; t.s[1].a = 2;",
    ] {
        assert!(of(HEADER, statements).is_empty(), "{statements}");
    }
    for (statements, place) in [
        ("hdr.h.setInvalid();\nhdr.h.a = 1;", "2:1"),
        ("h_t t;\nt.a = 1;", "2:1"),
        (
            "if (meta.m == 1) { hdr.h.setInvalid(); }\nmeta.m = hdr.h.a;",
            "2:10",
        ),
        (
            "hdr.h.setInvalid(); if (hdr.h.isValid()) { meta.m = 1; }\nhdr.h.a = 1;",
            "2:1",
        ),
        (
            "hdr.s[1].setInvalid(); hdr.s[0].a = 1;\nhdr.s[1].a = 1;",
            "2:1",
        ),
        ("hdr.h.setInvalid(); h_t t = hdr.h;\nt.a = 1;", "2:1"),
        (
            "hdr.h.setInvalid(); headers t = { hdr.h, hdr.s };\nt.h.a = 1; t.s[0].a = 1;",
            "2:1",
        ),
        ("hdr.h = {#};\nhdr.h.a = 1;", "2:1"),
        (
            "hdr.s[0].setInvalid(); hdr.s[1].setInvalid();\nmeta.m = hdr.s[meta.m].a;",
            "2:10",
        ),
    ] {
        assert_eq!(of(HEADER, statements), [place], "{statements}");
    }
    let said = common::ingress("apply {\nhdr.h.setInvalid(); hdr.h.a = 1; }");
    let wanted = "t.p4:11:21: warning: header 'hdr.h' is not valid here [--Wwarn=invalid-header]\n\
                  hdr.h.setInvalid(); hdr.h.a = 1; }\n                    ^^^^^\n  hint: ";
    assert!(said.contains(wanted), "{said}");
}

#[test]
fn actions_are_analysed_at_their_calls() {
    let action = "action a(inout h_t t) {\nt.a = 1; }\naction b() { hdr.h.setInvalid(); }\n";
    assert!(control_warnings(HEADER, &format!("{action}apply {{ a(hdr.h); b(); }}")).is_empty());
    let invalid = format!("{action}apply {{ b(); a(hdr.h); }}");
    assert_eq!(control_warnings(HEADER, &invalid), ["2:1"]);
    let unused = format!("{action}table t {{ actions = {{ b; }} }}\napply {{ }}");
    assert!(control_warnings(HEADER, &unused).is_empty());
    let table = |after: &str| {
        format!(
            "action n() {{ }} action b() {{ hdr.h.setValid(); }} action g(inout bit<8> x) {{ x = x + 1; }}\n\
             table t {{ key = {{ hdr.h.isValid(): exact; hdr.h.a: exact; }} actions = {{ n; b; }} default_action = n(); }}\n\
             apply {{ hdr.h.setInvalid();\nt.apply();\n{after} }}"
        )
    };
    assert_eq!(control_warnings(HEADER, &table("hdr.h.a = 1;")), ["5:1"]);
    assert!(control_warnings(HEADER, &table("hdr.h.setValid(); hdr.h.a = 1;")).is_empty());
    // The entries determine which action runs.
    let may = "action n() {} action b() { hdr.h.setInvalid(); }\ntable t { actions = { n; b; } default_action = n(); }\n";
    assert!(
        control_warnings(HEADER, &format!("{may}apply {{ t.apply(); hdr.h.a = 1; }}")).is_empty()
    );
    let set = "action n() {} action b(out bit<8> x) { x = 1; }\n\
               table t { actions = { n; b(x); } default_action = n(); }\napply { t.apply(); meta.m =\nx; }";
    assert_eq!(control_warnings(USE, &format!("bit<8> x;\n{set}")), ["5:1"]);
}

#[test]
fn controls_are_analysed_at_their_calls() {
    let of_program = |sub: &str, ingress: &str| {
        let text = common::program(ingress).replace("control I(", &format!("{sub}\ncontrol I("));
        places(&common::compile_text("t.p4", &text).1, HEADER, 9)
    };
    let sub = "control S(inout h_t t) { apply {\nt.a = 1; t.setInvalid(); } }";
    let used = "S() s; apply { s.apply(hdr.h);\nhdr.h.a = 1; }";
    assert_eq!(of_program(sub, used), ["5:1"]);
    let invalid = "S() s; apply { hdr.h.setInvalid(); s.apply(hdr.h); }";
    assert_eq!(of_program(sub, invalid), ["2:1"]);
    // A control that is a constructor argument is assumed to set everything.
    let given = "control T(inout h_t t);\ncontrol S(inout h_t t)(T inner) { apply { t.setInvalid(); inner.apply(t);\nt.a = 1; } }\n\
                 control N(inout h_t t) { apply { } }";
    assert!(of_program(given, "S(N()) s; apply { s.apply(hdr.h); }").is_empty());
}

#[test]
fn parser_states_merge_all_predecessors() {
    let states = |a: &str| {
        format!(
            "bit<8> x;\nstate start {{ transition select(meta.m) {{ 1: a; default: b; }} }}\n\
             state a {{ {a} transition b; }}\n\
             state b {{\nmeta.m = x;\nhdr.h.a = 1; transition select(meta.m) {{ 1: a; default: accept; }} }}"
        )
    };
    assert_eq!(
        parser_warnings(USE, &states("x = 1; p.extract(hdr.h);")),
        ["5:10"]
    );
    assert_eq!(
        parser_warnings(HEADER, &states("x = 1; p.extract(hdr.h);")),
        ["6:1"]
    );
    let straight = "bit<8> x;\nstate start { x = 1; p.extract(hdr.h); transition next; }\n\
                    state next { meta.m = x + hdr.h.a; transition start; }\n";
    assert!(
        parser_warnings(USE, straight).is_empty() && parser_warnings(HEADER, straight).is_empty()
    );
    let stack = "state start { p.extract(hdr.s.next); meta.m = hdr.s.last.a; transition accept; }";
    assert!(parser_warnings(USE, stack).is_empty() && parser_warnings(HEADER, stack).is_empty());
}

#[test]
fn warns_of_uninitialized_out_parameters() {
    let unset = |body: &str| {
        let action =
            format!("action a(in bit<8> i,\nout bit<8> x) {{ {body} }}\napply {{ a(1, meta.m); }}");
        control_warnings(OUT, &action)
    };
    for body in [
        "x = 1;",
        "x[3:0] = 1;",
        "if (i == 1) { x = 1; } else { x = 2; }",
        "if (i == 1) { exit; } x = 1;",
        "switch (i) { 1: { x = 1; } default: { x = 2; } }",
        "x = 1; return;",
    ] {
        assert!(unset(body).is_empty(), "{body}");
    }
    for body in [
        "",
        "if (i == 1) { x = 1; }",
        "if (i == 1) { return; } x = 1;",
        "switch (i) { 1: { x = 1; } }",
        "for (bit<8> k in 1..4) { x = k; }",
    ] {
        assert_eq!(unset(body), ["2:12"], "{body}");
    }
    // An out header is initialized as invalid. If it becomes valid, the warning about its fields is at the call.
    let header = "action a(out h_t x) { x.setValid(); x.a = 1; }\napply { a(hdr.h); }";
    assert!(control_warnings(OUT, header).is_empty());
    assert_eq!(control_warnings(USE, header), ["1:18"]);
    assert!(control_warnings(OUT, "action unused(out bit<8> x) { }\napply { }").is_empty());
}

#[test]
fn analysis_of_exploding_programs_stops() {
    let mut actions = "action a0(inout bit<8> x) { x = x + 1; }\n".to_string();
    for i in 1..40 {
        let below = i - 1;
        actions += &format!("action a{i}(inout bit<8> x) {{ a{below}(x); a{below}(x); }}\n");
    }
    let loops = "for (bit<8> i in 1..4) { ".repeat(60) + "meta.m = 1;" + &"}".repeat(60);
    for statements in ["a39(meta.m);", &loops] {
        // The first finding is reported, as an error, so that later stages do not run.
        let body = format!("{actions}apply {{ bit<8> x; meta.m = x; {statements} }}");
        let mut policy = Policy::default();
        policy.set(Some(USE), Action::Error);
        let (sources, diags) = (SourceMap::default(), Diagnostics::new(policy));
        let text = common::program(&body);
        let output = compile("t.p4", text, &common::options(), &sources, &diags);
        assert!(output.is_none() && diags.error_count() == 1);
    }
}
