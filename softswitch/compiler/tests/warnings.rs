//! What is not wrong but may not be meant.

mod common;

/// Compiles a program with these declarations; the warnings of one kind, as line and column.
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
fn out_parameters_are_set() {
    let unset = |body: &str| {
        warnings(
            "uninitialized-out-param",
            &format!("action a(in bit<8> i,\nout bit<8> x) {{ {body} }}"),
        )
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
    ] {
        assert_eq!(unset(body), ["3:12"], "{body}");
    }
    let others = "action a(out h_t h) { }\naction b(out s_t s) { s.a = 1; }\naction c(out bit<8> x) { x = 1; }\n\
                  action d(out bit<8> x) { c(x); }\nbool f(out bit<8> x) { return true; }";
    assert_eq!(warnings("uninitialized-out-param", others), ["6:19"]);
}

#[test]
fn shifts_leave_something() {
    let shifts = "const bit<8> X = 8w1 << 7;\nconst bit<8> Y = 8w1 << 8;\nconst int Z = 1 << 8;";
    assert_eq!(warnings("overflow", shifts), ["3:18"]);
}
