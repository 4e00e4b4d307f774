// SPDX-License-Identifier: Apache-2.0
//! Errors of programs: all are reported, at the right place.

mod common;

use common::{expect, ingress};

#[test]
fn frame_of_test_programs_is_valid() {
    assert_eq!(ingress("apply {}"), "");
}

#[test]
fn reports_unknown_and_duplicate_names() {
    expect("apply { hdr.h.x = 1; }", "10:15", "h_t has no field 'x'");
    expect(
        "apply { nothing = 1; }",
        "10:9",
        "'nothing' is not declared",
    );
    expect(
        "bit<8> x; bit<8> x; apply {}",
        "10:18",
        "'x' is already declared in this scope",
    );
    expect(
        "apply { meta.m = 1; \n t.apply(); }",
        "11:2",
        "'t' is not declared",
    );
}

#[test]
fn misspelt_type_has_a_suggestion() {
    for (body, at, wrong, right) in [
        (
            "action a(haeder_t h) {} apply {}",
            "10:10",
            "haeder_t",
            None,
        ),
        ("action a(h_tt h) {} apply {}", "10:10", "h_tt", Some("h_t")),
        ("apply { metdata x; }", "10:9", "metdata", Some("metadata")),
        ("apply { h_tx[2] x; }", "10:9", "h_tx", Some("h_t")),
        ("apply { boool x; }", "10:9", "boool", Some("bool")),
        (
            "const bool_t X = true; apply {}",
            "10:7",
            "bool_t",
            Some("bool"),
        ),
    ] {
        let messages = ingress(body);
        let error = format!("t.p4:{at}: error: '{wrong}' is not declared as a type");
        assert!(messages.contains(&error), "{messages}");
        match right {
            Some(right) => assert!(
                messages.contains(&format!("did you mean '{right}'?")),
                "{messages}"
            ),
            None => assert!(!messages.contains("did you mean"), "{messages}"),
        }
    }
}

#[test]
fn reports_type_errors() {
    expect(
        "apply { hdr.h.a = hdr.h.b; }",
        "10:19",
        "expected type bit<8>, found bit<16>",
    );
    expect(
        "apply { hdr.h.a = hdr.h.a + hdr.h.b; }",
        "10:19",
        "operator + does not work on bit<8> and bit<16>",
    );
    expect(
        "apply { if (hdr.h.a) {} }",
        "10:13",
        "expected type bool, found bit<8>",
    );
    expect(
        "apply { hdr.h.a = (bit<8>)hdr.h; }",
        "10:19",
        "h_t cannot be cast to bit<8>",
    );
    expect(
        "apply { hdr.h.b[20:16] = 1; }",
        "10:9",
        "bits [20:16] are out of range for bit<16>",
    );
    expect(
        "apply { hdr.s[5].a = 1; }",
        "10:15",
        "index 5 is out of range for a stack of 2 elements",
    );
    expect("apply { hdr.h.a = 8w1 / 0; }", "10:25", "division by zero");
}

#[test]
fn reports_writes_against_parameter_directions() {
    expect(
        "action f(in bit<8> x) { x = 1; } apply { f(1); }",
        "10:25",
        "'x' is an 'in' parameter",
    );
    expect(
        "action f(out bit<8> x) { x = 1; } apply { f(8w1 + 1); }",
        "10:45",
        "this expression cannot be written to",
    );
    expect(
        "action f(bit<8> x) { x = 1; } apply { f(1); }",
        "10:22",
        "parameter 'x' has no direction",
    );
}

#[test]
fn reports_errors_in_tables() {
    expect(
        "action a() {} table t { key = { hdr.h.a: sometimes; } actions = { a; } } apply { t.apply(); }",
        "10:42",
        "unknown match kind 'sometimes'",
    );
    expect(
        "action a() {} action b() {} table t { key = { hdr.h.a: exact; } actions = { a; } default_action = b; } apply { t.apply(); }",
        "10:99",
        "'b' is not in the table's action list",
    );
    expect(
        "action a() {} table t { key = { hdr.h: exact; } actions = { a; } } apply { t.apply(); }",
        "10:33",
        "h_t cannot be a table key",
    );
}

#[test]
fn reports_errors_in_calls() {
    expect(
        "apply { hdr.h.setValid(1); }",
        "10:9",
        "no arguments are allowed here",
    );
    expect(
        "register<bit<8>>(4) r; apply { r.red(meta.m, 0); }",
        "10:34",
        "register<bit<8>> has no method 'red'",
    );
    expect(
        "register<bit<8>>(4) r; apply { r.read(meta.m); }",
        "10:32",
        "missing argument for parameter 'index'",
    );
}

/// These errors are found without a `main`.
#[test]
fn reports_errors_in_declarations() {
    for (text, at, message) in [
        (
            "typedef int t;\nstruct s { _ x; }",
            "2:12",
            "'_' is allowed only as a type argument",
        ),
        (
            "header h<T> { T x; }\ntypedef h<int> t;",
            "2:9",
            "h<int> is invalid: its field 'x' would have type int",
        ),
        (
            "extern e<T> { e(); }\ne<e<bit<8>>>() x;",
            "2:1",
            "'e' is among its own type arguments",
        ),
        (
            "extern e { void m(e x); }",
            "1:19",
            "'e' cannot be used in its own declaration",
        ),
        (
            "extern e { void m(); void m(); }",
            "1:27",
            "duplicate declaration of 'm' with the same parameters",
        ),
        (
            "enum bit<8> e { A = 300 }",
            "1:21",
            "300 does not fit the underlying type bit<8>",
        ),
        (
            "parser p() { state x {} }",
            "1:8",
            "parser 'p' has no state 'start'",
        ),
        (
            "control c(inout bit<8> x) { apply { bit<8> x; } }",
            "1:44",
            "'x' hides a parameter of the same name",
        ),
        (
            "@name(1) const bit<8> x = 1;",
            "1:1",
            "annotation @name needs a string",
        ),
        (
            "@a[1] @a[2] const bit<8> x = 1;",
            "1:7",
            "duplicate annotation @a: an annotation with [ ] must be unique",
        ),
        (
            "const bit<8> y = 8w1;\n@a[k = {1, 2}] const bit<8> x = 1;",
            "2:8",
            "the value of an annotation must be",
        ),
        (
            "extern e<A, B> { e(A a); }\ncontrol c() { e(8w1) x; apply {} }",
            "2:22",
            "type parameter 'B' cannot be inferred",
        ),
        (
            "struct s { bit<8> x; }\nextern void f(in s x);\ncontrol c(in tuple<bit<8>> t) { apply { f(t); } }",
            "3:43",
            "expected type s, found tuple<bit<8>>",
        ),
        (
            "action a() {}\ncontrol c() { apply { a<bit<8>>(); } }",
            "2:23",
            "an action takes no type arguments",
        ),
        (
            "const int x = 1 << 1099511627776;",
            "1:20",
            "a shift by more than 2048 bits",
        ),
        (
            "error { E }\ncontrol c(in error x) { apply {} }\nparser p(in error e) { state start { transition select(e) { _: accept; } } }",
            "3:56",
            "error cannot be a select key",
        ),
    ] {
        let (_, messages) = common::compile_text("t.p4", text);
        let wanted = format!("t.p4:{at}: error: {message}");
        assert!(
            messages.contains(&wanted),
            "for\n{text}\nwanted {wanted}\ngot\n{messages}"
        );
    }
}

#[test]
fn all_independent_errors_are_reported() {
    let messages = ingress("apply {\n hdr.h.a = true;\n undeclared();\n hdr.h.b = hdr.h.a;\n }");
    assert_eq!(messages.matches(": error: ").count(), 3, "{messages}");
}

#[test]
fn all_syntax_errors_are_reported() {
    let messages = ingress("apply {\n hdr.h.a = ;\n meta.m = 1 +;\n }");
    assert!(
        messages.contains("t.p4:11:12: error: syntax error"),
        "{messages}"
    );
    assert!(
        messages.contains("t.p4:12:14: error: syntax error"),
        "{messages}"
    );
}

#[test]
fn message_shows_line_and_caret() {
    let messages = ingress("apply { hdr.h.a = hdr.h.b; }");
    assert!(
        messages.contains(
            "\napply { hdr.h.a = hdr.h.b; }\n                  ^^^^^^^\n  hint: write a cast"
        ),
        "{messages}"
    );
}

#[test]
fn preprocessor_errors_have_positions() {
    let (_, messages) = common::compile_text("t.p4", "#include \"missing.p4\"\n#if 1\n");
    assert!(
        messages.contains("t.p4:1:1: error: cannot find the included file 'missing.p4'"),
        "{messages}"
    );
    assert!(
        messages.contains("t.p4:2:1: error: conditional without #endif"),
        "{messages}"
    );
}

#[test]
fn unsupported_features_are_errors() {
    expect(
        "action a() {} table t { actions = { a; } } apply { for (bit<8> i = 0; i < hdr.h.a; i = i + 1) { t.apply(); } }",
        "10:52",
        "a loop whose number of iterations is known only at run time cannot apply tables",
    );
}

#[test]
fn select_cases_must_match_keys() {
    let text = "#include <core.p4>\nheader h_t { bit<8> a; bit<8> b; }\nstruct headers { h_t h; }\n\
                parser P(packet_in p, out headers hdr) {\nstate start {\n\
                transition select(hdr.h.a, hdr.h.b) {\n(1, 2): accept;\n1: reject;\n} } }\n";
    let messages = common::compile_text("t.p4", text).1;
    assert!(
        messages.contains("t.p4:6:12: error: 2 values expected, one given"),
        "{messages}"
    );
}

#[test]
fn numbers_without_width_need_a_context() {
    let unknown = "the width of the two results is unknown";
    expect("apply { meta.m = hdr.h.c ? 1 : 2; }", "10:18", unknown);
    expect(
        "apply { switch (5) { 5: { } } }",
        "10:17",
        "the width of the number is unknown",
    );
    assert_eq!(ingress("apply { hdr.h.a = hdr.h.a << (int<8>)2; }"), "");
}

#[test]
fn blocks_are_constructed_only_in_allowed_places() {
    let text = "#include <core.p4>\ncontrol s(inout bit<8> x)(bit<8> k) { apply { x = k; } }\n\
                parser P(packet_in p) {\ns(1) c;\nstate start { transition accept; } }\n\
                control I(inout bit<8> x) { apply {\ns.apply(x); } }\n";
    let messages = common::compile_text("t.p4", text).1;
    assert!(
        messages.contains("t.p4:4:1: error: a parser cannot have a control"),
        "{messages}"
    );
    assert!(
        messages.contains("t.p4:7:3: error: its constructor needs a value for 'k'"),
        "{messages}"
    );
}

#[test]
fn default_values_apply_only_to_calls() {
    let table = "action a(bit<8> x = 5) { hdr.h.a = x; }\ntable t { key = { hdr.h.a: exact; } actions = { a; }";
    let entry = format!("{table} const entries = {{ 1: a(); }} }} apply {{ t.apply(); }}");
    expect(&entry, "11:75", "missing argument for parameter x");
    assert_eq!(
        ingress(&format!("{table} }} apply {{ t.apply(); a(); }}")),
        ""
    );
}

#[test]
fn warns_of_unused_action_parameters() {
    let body = "action a(in bit<8> x,\nbit<8> y, @noWarn(\"unused\") bit<8> z) { meta.m = x; }\n\
                table t { actions = { a(1); } } apply { t.apply(); }";
    let messages = ingress(body);
    assert!(
        messages.starts_with("t.p4:11:8: warning: 'y' is unused [--Wwarn=unused]"),
        "{messages}"
    );
    assert_eq!(messages.matches("warning").count(), 1, "{messages}");
}

#[test]
fn only_constructors_take_blocks() {
    let text = |parameters: &str| {
        format!(
            "parser Type();\nparser Other{parameters} {{ state start {{ transition accept; }} }}"
        )
    };
    let messages = common::compile_text("t.p4", &text("(Type p)")).1;
    assert!(
        messages.starts_with("t.p4:2:14: error: a parameter cannot be a Type"),
        "{messages}"
    );
    let messages = common::compile_text("t.p4", &text("()(Type p)")).1;
    assert!(!messages.contains("a parameter cannot be"), "{messages}");
}

/// Returns the messages for a program of an architecture of its own, without that about the architecture itself.
fn messages_without_architecture(declarations: &str) -> Vec<String> {
    let text = format!("{declarations}\nMine(I()) main;\n");
    let messages = common::compile_text("t.p4", &text).1;
    let errors = messages.lines().filter(|l| l.contains(": error: "));
    errors
        .filter(|l| !l.contains("unsupported package Mine"))
        .map(str::to_owned)
        .collect()
}

#[test]
fn block_may_leave_out_optional_parameters_of_its_type() {
    let types = "control C<M>(inout M m, @optional in bit<8> a, @optional in bit<9> b); package Mine(C<bit<4>> c);";
    for parameters in ["", ", in bit<8> a", ", in bit<8> a, in bit<9> b"] {
        let block = format!("{types} control I(inout bit<4> m{parameters}) {{ apply {{}} }}");
        assert_eq!(messages_without_architecture(&block), [""; 0], "{block}");
    }
    for parameters in [", in bit<9> b", ", out bit<8> a"] {
        let block = format!("{types} control I(inout bit<4> m{parameters}) {{ apply {{}} }}");
        let errors = messages_without_architecture(&block);
        assert!(errors[0].contains("expected type C<"), "{errors:?}");
    }
}

#[test]
fn wildcard_of_a_parameter_stands_for_any_type() {
    let types = "extern R<T> { R(); } extern User { User(R<_> r); void use(); } control C(); package Mine(C c);";
    let block = |second: &str| {
        format!(
            "{types} control I() {{ R<bit<8>>() a; {second}() b; User(a) u; User(b) v; apply {{ u.use(); v.use(); }} }}"
        )
    };
    assert_eq!(messages_without_architecture(&block("R<bit<16>>")), [""; 0]);
    let errors = messages_without_architecture(
        &block("User2").replace("control C();", "extern User2 { User2(); } control C();"),
    );
    assert!(errors[0].contains("expected type R<"), "{errors:?}");
}
