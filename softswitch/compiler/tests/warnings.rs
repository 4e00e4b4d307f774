// SPDX-License-Identifier: Apache-2.0
//! Warnings about valid but suspicious programs.

mod common;

/// Compiles a program with these declarations; returns the warnings of one kind as line and column.
fn warnings(kind: &str, declarations: &str) -> Vec<String> {
    let text = format!(
        "header h_t {{ bit<8> a; }} struct s_t {{ bit<8> a; bit<8> b; }}\n{declarations}\n"
    );
    let tag = format!(" [--Wwarn={kind}]");
    let messages = common::compile_text("t.p4", &text).1;
    let lines = messages.lines().filter(|line| line.ends_with(&tag));
    let place = |line: &str| line.split(": ").next().unwrap_or("").replace("t.p4:", "");
    lines.map(place).collect()
}

#[test]
fn warns_of_shifts_that_remove_all_bits() {
    let shifts = "const bit<8> X = 8w1 << 7;\nconst bit<8> Y = 8w1 << 8;\nconst int Z = 1 << 8;";
    assert_eq!(warnings("overflow", shifts), ["3:18"]);
}

/// Checks that the compiler reports exactly one warning of a kind, at `line:column`.
fn expect_one(messages: &str, at: &str, kind: &str) {
    let tag = format!(" [--Wwarn={kind}]");
    let said: Vec<&str> = messages
        .lines()
        .filter(|line| line.ends_with(&tag))
        .collect();
    let there = said.len() == 1 && said[0].starts_with(&format!("t.p4:{at}: warning: "));
    assert!(there, "wanted {at} of {kind}, got\n{messages}");
}

#[test]
fn warns_of_deviations_of_the_target() {
    let parser = |body: &str| {
        let text = common::program("apply {}").replace("state start { transition accept; }", body);
        common::compile_text("t.p4", &text).1
    };
    let select = "state start { transition select(meta.m) {\n1: accept;\ndefault: reject; } }";
    expect_one(&parser(select), "9:10", "unsupported");
    expect_one(
        &parser("state start { transition\nreject; }"),
        "8:1",
        "unsupported",
    );
    let without = "state start { transition select(meta.m) { 1: accept; } }";
    assert!(!parser(without).contains("unsupported"));
    let set = |kind: &str| {
        let body = "value_set<key_t>(4) set; state start { transition select(meta.m) { set: accept; default: accept; } }";
        let text = common::program("apply {}").replace("state start { transition accept; }", body);
        let key = format!("struct key_t {{\n@match({kind}) bit<8> f; }}\nstruct metadata");
        common::compile_text("t.p4", &text.replace("struct metadata", &key)).1
    };
    expect_one(&set("ternary"), "6:24", "unsupported");
    assert!(!set("exact").contains("unsupported"));
    let table = |default: &str| {
        common::ingress(&format!(
            "action a(bit<8> x) {{ meta.m = x; }}\ntable t {{ key = {{ meta.m: exact; }} actions = {{ a; NoAction; }}\n\
             implementation = action_profile(4); {default} }} apply {{ t.apply(); }}"
        ))
    };
    expect_one(&table("default_action = a(1);"), "11:7", "unsupported");
    assert!(!table("default_action = NoAction();").contains("unsupported"));
    assert!(!table("").contains("unsupported"));
}

#[test]
fn warns_of_division_at_run_time() {
    let messages = common::ingress("apply { hdr.h.a = hdr.h.a / 16 % 4; }");
    assert_eq!(messages, "");
    for statement in ["hdr.h.a = hdr.h.a / 3;", "hdr.h.a %= meta.m;"] {
        let messages = common::ingress(&format!("apply {{ {statement} }}"));
        assert!(messages.contains("a division at run time"), "{messages}");
    }
}
