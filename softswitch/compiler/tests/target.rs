//! What the target cannot do is refused where it stands.

mod common;

/// Compiles a program with `body` in its ingress control, from line 20 on.
fn ingress(body: &str) -> String {
    let text = format!(
        "#include <core.p4>\n#include <v1model.p4>\n{}{body}\n{}",
        "header h_t { bit<8> a; bit<16> b; bool c; bit<7> d; }\n\
         struct headers { h_t h; h_t[2] s; }\n\
         struct metadata { bit<8> m; }\n\
         parser P(packet_in p, out headers hdr, inout metadata meta, inout standard_metadata_t std) {\n\
         state start { transition accept; } }\n\
         control V(inout headers hdr, inout metadata meta) { apply {} }\n\
         control I(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {\n",
        "}\ncontrol E(inout headers hdr, inout metadata meta, inout standard_metadata_t std) { apply {} }\n\
         control C(inout headers hdr, inout metadata meta) { apply {} }\n\
         control D(packet_out p, in headers hdr) { apply { p.emit(hdr); } }\n\
         V1Switch(P(), V(), I(), E(), C(), D()) main;\n"
    );
    common::compile_text("t.p4", &text).1
}

/// The first line of `body` is line 10 of the program.
fn expect(body: &str, at: &str, message: &str) {
    let messages = ingress(body);
    let wanted = format!("t.p4:{at}: error: {message}");
    assert!(
        messages.contains(&wanted),
        "for\n{body}\nwanted {wanted}\ngot\n{messages}"
    );
}

#[test]
fn pipelines_have_operations_of_their_own() {
    for (call, at) in [
        (
            "recirculate_preserving_field_list(1)",
            "this 'recirculate_preserving_field_list' belongs into egress",
        ),
        (
            "clone(CloneType.E2E, 5)",
            "this 'clone' belongs into egress",
        ),
        (
            "mark_to_drop()",
            "mark_to_drop() needs the standard metadata",
        ),
        (
            "hash(meta.m, HashAlgorithm.crc16, 8w0, hdr.h.a, 8w9)",
            "a list, a struct or a header expected",
        ),
        ("digest(1, hdr.h)", "a digest of a header"),
    ] {
        let messages = ingress(&format!("apply {{ {call}; }}"));
        assert!(messages.contains(at), "for {call} got\n{messages}");
    }
    assert_eq!(ingress("apply { clone(CloneType.I2E, 5); }"), "");
}

#[test]
fn externs_and_their_tables() {
    let table = "table t { key = { hdr.h.a: exact; } actions = { NoAction; }";
    let apply = "apply { t.apply(); }";
    expect(
        &format!("direct_meter<bit<8>>(MeterType.bytes) d; {table} }} {apply}"),
        "10:1",
        "direct meter 'I.d' belongs",
    );
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
        "this belongs to another table already",
    );
    expect(
        "@name(\"x\") counter(4, CounterType.bytes) c;\n@name(\"x\") counter(4, CounterType.bytes) d; apply { c.count(0); d.count(0); }",
        "11:12",
        "another object has the name 'I.x' already",
    );
    expect(
        &format!("{table} const entries = {{ priority = 3: 5: NoAction(); }} }} {apply}"),
        "10:90",
        "const entries have no priorities",
    );
}

#[test]
fn headers_are_a_struct_of_headers() {
    let text = "#include <v1model.p4>\nheader h_t { bit<8> a; }\nstruct headers { h_t h; bit<8> b; }\nstruct metadata { }\n\
                parser P(packet_in p,\nout headers hdr, inout metadata meta, inout standard_metadata_t std) {\n\
                state start { transition accept; } }\n\
                control V(inout headers hdr, inout metadata meta) { apply { } }\n\
                control I(inout headers hdr, inout metadata meta, inout standard_metadata_t std) { apply { } }\n\
                control D(packet_out p, in headers hdr) { apply { } }\n\
                V1Switch(P(), V(), I(), I(), V(), D()) main;\n";
    let messages = common::compile_text("t.p4", text).1;
    assert!(
        messages.starts_with("t.p4:6:5: error: the headers must be a struct of headers"),
        "{messages}"
    );
}

#[test]
fn elements_of_a_stack_in_a_parser() {
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
