// SPDX-License-Identifier: Apache-2.0
//! The size of the JSON grows linearly with the program.

mod common;

/// Returns the size of the JSON for an ingress control that runs the statement, in its body or in a table's action.
fn json_bytes(statement: &str, in_action: bool) -> usize {
    let ingress = if in_action {
        format!(
            "action a() {{ {statement} }} table t {{ actions = {{ a; }} }} apply {{ t.apply(); }}"
        )
    } else {
        format!("apply {{ {statement} }}")
    };
    let types = "header h_t { bit<8> a; bit<8> b; bit<8> c; }\nstruct headers { h_t h; }\n\
                 struct pair_t { bit<8> x; bit<8> y; }\nstruct metadata { bool flag; pair_t pair; }\n";
    let output = common::compile_frame(types, "", &ingress);
    output
        .json
        .expect("a program without errors")
        .to_string()
        .len()
}

/// Checks that the JSON grows linearly with the number of levels or statements of which `statement` consists.
fn check_growth(what: &str, statement: impl Fn(usize) -> String) {
    for in_action in [false, true] {
        let [few, more, most] = [5, 10, 15].map(|n| json_bytes(&statement(n), in_action));
        assert!(
            most - more < (more - few) * 5 / 4,
            "{what}: {few}, {more} and {most} bytes for 5, 10 and 15"
        );
    }
}

/// Nests an expression `depth` times.
fn nest(innermost: &str, depth: usize, outer: impl Fn(&str, usize) -> String) -> String {
    (0..depth).fold(innermost.to_owned(), |inner, level| outer(&inner, level))
}

#[test]
fn nested_conditional_expressions_grow_linearly() {
    type Statement = fn(usize) -> String;
    let statements: [(&str, Statement); 7] = [
        ("as condition of a condition", |n| {
            let e = nest("meta.flag", n, |e, i| {
                format!("({e} ? hdr.h.a == {i} : hdr.h.b == {i})")
            });
            format!("if ({e}) {{ hdr.h.c = 1; }}")
        }),
        ("as alternative of a condition", |n| {
            let e = nest("meta.flag", n, |e, i| {
                format!("(hdr.h.a == {i} ? {e} : hdr.h.b == {i})")
            });
            format!("if ({e}) {{ hdr.h.c = 1; }}")
        }),
        ("as assigned condition", |n| {
            let e = nest("meta.flag", n, |e, i| {
                format!("({e} ? hdr.h.isValid() : hdr.h.b == {i})")
            });
            format!("meta.flag = {e};")
        }),
        ("as number", |n| {
            let e = nest("hdr.h.a", n, |e, i| {
                format!("({e} == {i} ? hdr.h.b : hdr.h.c)")
            });
            format!("hdr.h.a = {e};")
        }),
        ("as struct", |n| {
            let e = nest("meta.pair", n, |e, i| {
                format!("(hdr.h.a == {i} ? {e} : {{ hdr.h.b, {i} }})")
            });
            format!("pair_t p = {e}; hdr.h.c = p.x;")
        }),
        ("as header", |n| {
            let e = nest("hdr.h", n, |e, i| format!("(hdr.h.a == {i} ? {e} : hdr.h)"));
            format!("h_t other; other.setInvalid(); if ({e} == other) {{ hdr.h.c = 1; }}")
        }),
        ("in conditions of nested statements", |n| {
            nest("hdr.h.c = 1;", n, |s, i| {
                format!(
                    "if (hdr.h.a == {i} ? hdr.h.b == 1 : hdr.h.c == 2) {{ {s} }} else {{ hdr.h.b = {i}; }}"
                )
            })
        }),
    ];
    for (what, statement) in statements {
        check_growth(what, statement);
    }
}

#[test]
fn conditional_expressions_in_sequence_grow_linearly() {
    let statement = |n: usize| -> String {
        (0..n)
            .map(|i| {
                format!("if (hdr.h.a == {i} ? hdr.h.b == {i} : meta.flag) {{ hdr.h.c = {i}; }}")
            })
            .collect()
    };
    check_growth("in sequence", statement);
}
