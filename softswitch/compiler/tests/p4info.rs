// SPDX-License-Identifier: Apache-2.0
//! P4Info of programs, and the entries of their tables.

mod common;

use softswitch_p4c::Output;

/// A program with declarations of its own, and those of its ingress control.
fn compile(declarations: &str, ingress: &str) -> Output {
    let types = "header h_t { bit<8> a; bit<16> b; }\n\
         struct headers { h_t h; }\nstruct metadata { }\n";
    common::compile_frame(&format!("{types}{declarations}\n"), "", ingress)
}

/// The lines without their indentation.
fn flat(text: &str) -> String {
    text.lines().map(str::trim).collect::<Vec<_>>().join("\n")
}

fn says(text: &str, wanted: &str) {
    assert!(
        flat(text).contains(wanted),
        "wanted\n{wanted}\ngot\n{}",
        flat(text)
    );
}

const TABLE: &str = "action set(bit<16> b) { hdr.h.b = b; }";

#[test]
fn annotations_are_copied_verbatim() {
    let out = compile(
        "",
        "@plain() @numbers(0x10, 8w3) action a() { } \
         table t { key = { hdr.h.a: exact; } actions = { a; } } apply { t.apply(); }",
    );
    says(&out.p4info, "annotations: \"@plain\"\n");
    says(&out.p4info, "annotations: \"@numbers(0x10 , 8w3)\"");
}

#[test]
fn hidden_tables_and_their_resources_are_left_out() {
    let table = |hidden: &str| {
        format!(
            "direct_counter(CounterType.packets) cnt; direct_meter<bit<8>>(MeterType.packets) mtr;
             {hidden} action use() {{ cnt.count(); mtr.read(hdr.h.a); }}
             {hidden} table t {{
                key = {{ hdr.h.b: exact; }} actions = {{ use; }} counters = cnt; meters = mtr;
                const entries = {{ 1 : use(); }}
             }}
             apply {{ t.apply(); }}"
        )
    };
    let shown = compile("", &table(""));
    says(&shown.p4info, "direct_counters {");
    says(&shown.p4info, "direct_meters {");
    says(&shown.entries, "updates {");
    let hidden = compile("", &table("@hidden"));
    for word in [
        "tables",
        "direct_counters",
        "direct_meters",
        "I.use",
        "I.cnt",
        "I.mtr",
    ] {
        assert!(!hidden.p4info.contains(word), "{word}: {}", hidden.p4info);
    }
    assert!(!hidden.entries.contains("updates"), "{}", hidden.entries);
}

#[test]
fn multiline_string_is_preprocessed() {
    let out = compile(
        "#define LIMIT 7",
        "\n@check(\"\n    // less than LIMIT\n    a   < LIMIT;\n#if LIMIT > 9\n    a > 1;\n#endif\n\") \
         action a() { } table t { key = { hdr.h.a: exact; } actions = { a; } } apply { t.apply(); }",
    );
    let text = "@check(\\\"\\n    // less than LIMIT\\n    a < 7;\\n\\n\\n\\n\\\")";
    says(&out.p4info, text);
}

#[test]
fn line_marker_does_not_end_string() {
    let out = compile(
        "",
        "\n@check(\"\n    a > 1;\n# 9 \" t . p4 \"\n    a < 5;\n\") \
         action a() { } table t { key = { hdr.h.a: exact; } actions = { a; } } apply { t.apply(); }",
    );
    let text = "@check(\\\"\\n    a > 1;\\n\\n    a < 5;\\n\\\")";
    says(&out.p4info, text);
}

#[test]
fn structured_annotations_contain_values() {
    let out = compile(
        "const int SIZE = 3;",
        "@limits[SIZE * 2, 1 == 2, \"x\" ++ \"y\"] action a() { } \
         table t { key = { hdr.h.a: exact; } actions = { a; } } apply { t.apply(); }",
    );
    says(
        &out.p4info,
        "expressions {\nint64_value: 6\n}\nexpressions {\nbool_value: false\n}\n\
         expressions {\nstring_value: \"xy\"",
    );
}

#[test]
fn controller_header_is_flattened() {
    let out = compile(
        "struct inner_t { bit<7> x; bit<1> y; }\n\
         @controller_header(\"packet_in\") header in_t { inner_t i; bit<8> z; }",
        "apply {}",
    );
    for (id, name, bits) in [(1, "i.x", 7), (2, "i.y", 1), (3, "z", 8)] {
        says(
            &out.p4info,
            &format!("metadata {{\nid: {id}\nname: \"{name}\"\nbitwidth: {bits}\n}}"),
        );
    }
}

#[test]
fn unnamed_digests_are_numbered_separately() {
    let out = compile(
        "struct pair_t<T> { T x; T y; }",
        "apply { pair_t<bit<8>> q = { 1, 2 }; digest(1, q); digest(2, { hdr.h.a, hdr.h.b }); }",
    );
    says(&out.p4info, "name: \"pair_t_bit8\"");
    says(&out.p4info, "name: \"digest_0\"");
}

#[test]
fn code_after_exit_is_visible_but_dead_branch_is_not() {
    let out = compile(
        "",
        "action late() { hdr.h.a = 1; } action never() { hdr.h.a = 2; } apply { \
         switch (8w3) { 8w4: { never(); } default: { exit; } } late(); }",
    );
    says(&out.p4info, "name: \"I.late\"");
    assert!(!out.p4info.contains("never"), "{}", out.p4info);
}

#[test]
fn table_of_size_zero_gets_default_size() {
    let table =
        "table t { key = { hdr.h.a: exact; } actions = { set; } size = 0; } apply { t.apply(); }";
    says(
        &compile("", &format!("{TABLE} {table}")).p4info,
        "size: 1024",
    );
}

#[test]
fn constant_entries_have_decreasing_priorities() {
    let table = "table t { key = { hdr.h.a: ternary; } actions = { set; } \
                 const entries = { 1 &&& 3: set(5); _: set(6); } } apply { t.apply(); }";
    let entries = compile("", &format!("{TABLE} {table}")).entries;
    says(&entries, "ternary {\nvalue: \"\\001\"\nmask: \"\\003\"\n}");
    says(
        &entries,
        "value: \"\\000\\005\"\n}\n}\n}\npriority: 2\nis_const: true",
    );
    says(
        &entries,
        "value: \"\\000\\006\"\n}\n}\n}\npriority: 1\nis_const: true",
    );
}

#[test]
fn entries_are_in_order_of_priority() {
    let table = "table t { key = { hdr.h.a: ternary; } actions = { set; } largest_priority_wins = false; \
                 entries = { priority = 9: 1: set(1); const priority = 4: 2: set(2); } } apply { t.apply(); }";
    let entries = flat(&compile("", &format!("{TABLE} {table}")).entries);
    let (first, second) = (
        entries.find("priority: 4\nis_const"),
        entries.find("priority: 9\n"),
    );
    assert!(first.is_some() && first < second, "{entries}");
}

#[test]
fn branches_of_false_conditions_are_omitted() {
    let out = compile(
        "",
        "action never() { hdr.h.a = 2; } apply { \
         if (hdr.h.a < 0) { never(); } if (hdr.h.a > 3 && false) { never(); } }",
    );
    assert!(!out.p4info.contains("never"), "{}", out.p4info);
}

#[test]
fn target_accepts_converted_arguments_and_assertions() {
    let out = compile(
        "",
        "action pick(bit<8> base) { hash(hdr.h.b, HashAlgorithm.crc16, (bit<16>) base, { hdr.h.a }, 32w8); } \
         table t { key = { hdr.h.a: exact; } actions = { pick; } } \
         apply { assert(hdr.h.a != 5); t.apply(); }",
    );
    let json = out.json.unwrap().to_string();
    let base = r#"{"type":"expression","value":{"type":"local","value":0}}"#;
    assert!(json.contains(base), "{json}");
    let assertion = r#"{"type":"expression","value":{"op":"b2d","left":null"#;
    assert!(json.contains(assertion), "{json}");
}

#[test]
fn macros_may_be_variadic() {
    let out = compile(
        "#define TABLE(n, ...) @name(#n) __VA_ARGS__ table t\n\
         enum bit<8> kind_t { A = 1 }",
        "TABLE(first, @one(1) @two(2, 3)) { actions = { NoAction; } } \
         apply { kind_t k = kind_t.A; if (k != 0) { t.apply(); } }",
    );
    says(&out.p4info, "name: \"I.first\"");
    says(&out.p4info, "annotations: \"@two(2 , 3)\"");
}

#[test]
fn action_parameters_use_name_annotations() {
    let out = compile(
        "",
        "action set(@name(\"value\") bit<16> v) { hdr.h.b = v; } \
         table t { key = { hdr.h.a: exact; } actions = { set; } } apply { t.apply(); }",
    );
    says(&out.p4info, "name: \"value\"");
    let json = out.json.unwrap();
    let actions = json["actions"].as_array().unwrap();
    let set = actions.iter().find(|a| a["name"] == "I.set").unwrap();
    assert_eq!(set["runtime_data"][0]["name"], "value");
}
