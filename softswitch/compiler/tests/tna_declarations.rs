// SPDX-License-Identifier: Apache-2.0
//! Checks the declarations of TNA and T2NA, and what they need of the language.

mod common;

use softswitch_p4c::diag::{Diagnostics, SourceMap};
use softswitch_p4c::{Options, compile, preprocess};

fn options(architecture: Option<&str>) -> Options {
    Options {
        architecture: architecture.map(str::to_string),
        ..common::options()
    }
}

/// Returns the errors of declarations without `main`, whose absence is found only in a valid program.
fn errors(architecture: &str, declarations: &str) -> Vec<String> {
    let (sources, diags) = (SourceMap::default(), Diagnostics::default());
    let text = format!("#include <core.p4>\n#include <{architecture}.p4>\n{declarations}\n");
    let options = options(Some(architecture));
    compile("p.p4", text, &options, &sources, &diags);
    let rendered = diags.render(&sources);
    let messages = rendered.lines().filter_map(|l| l.split_once("error: "));
    messages.map(|(_, message)| message.to_string()).collect()
}

#[track_caller]
fn assert_valid(architecture: &str, declarations: &str) {
    let found = errors(architecture, declarations);
    assert_eq!(found, ["the program has no 'main'"], "{architecture}");
}

/// Returns a control with an action on a register, of which `body` are the methods.
fn action(body: &str) -> String {
    format!(
        "control c(inout bit<32> x) {{\n\
         Register<bit<32>, bit<8>>(16, 1) r;\n\
         RegisterAction<bit<32>, bit<8>, bit<32>>(r) a = {{ {body} }};\n\
         apply {{ x = a.execute(3); }}\n}}"
    )
}

/// Returns what the program text prints for each macro, after an architecture and before any include.
fn preprocessed(options: &Options, text: &str) -> String {
    let (sources, diags) = (SourceMap::default(), Diagnostics::default());
    let printed = preprocess("p.p4", text.into(), options, &sources, &diags);
    let printed = printed.unwrap_or_else(|| panic!("{}", diags.render(&sources)));
    let lines = printed.lines().filter(|l| !l.starts_with('#'));
    lines.collect::<Vec<_>>().join("\n").trim().to_string()
}

#[test]
fn intrinsic_headers_have_the_lengths_of_the_chip() {
    for (architecture, egress) in [("tna", 27), ("t2na", 28)] {
        let declarations = format!(
            "control c(in ingress_intrinsic_metadata_t i, in egress_intrinsic_metadata_t e) {{ apply {{\n\
             static_assert(i.minSizeInBytes() == 8);\n\
             static_assert(e.minSizeInBytes() == {egress});\n}} }}"
        );
        assert_valid(architecture, &declarations);
    }
}

#[test]
fn port_metadata_is_larger_on_tofino_2() {
    assert_valid(
        "tna",
        "const bool b = static_assert(PORT_METADATA_SIZE == 64);",
    );
    assert_valid(
        "t2na",
        "const bool b = static_assert(PORT_METADATA_SIZE == 192);",
    );
}

#[test]
fn action_may_leave_out_optional_results_and_methods() {
    for architecture in ["tna", "t2na"] {
        assert_valid(
            architecture,
            &action("void apply(inout bit<32> v) { v = 2; }"),
        );
        assert_valid(
            architecture,
            &action("void apply(inout bit<32> v, out bit<32> r) { r = v; }"),
        );
    }
    let more = "void apply(inout bit<32> v) { v = 2; } void overflow(inout bit<32> v) { v = 3; }";
    assert_valid("t2na", &action(more));
    assert_eq!(
        errors("tna", &action(more)),
        ["RegisterAction<bit<32>, bit<8>, bit<32>> has no abstract method 'overflow'"]
    );
}

#[test]
fn action_must_implement_the_declared_signature() {
    let differs = "the signature of 'apply' differs from its declaration in RegisterAction<bit<32>, bit<8>, bit<32>>";
    for body in [
        "void apply() { }",
        "void apply(inout bit<8> v) { v = 2; }",
        "void apply(in bit<32> v) { }",
        "void apply(inout bit<32> v, out bit<32> r, out bit<32> s) { r = v; s = v; }",
    ] {
        assert_eq!(errors("tna", &action(body)), [differs], "{body}");
    }
    assert_eq!(
        errors("tna", &action("")),
        ["abstract method 'apply' is not implemented"]
    );
}

#[test]
fn architecture_defines_the_chip_before_the_program() {
    let chip = "__TARGET_TOFINO__";
    assert_eq!(preprocessed(&options(None), chip), chip);
    assert_eq!(preprocessed(&options(Some("v1model")), chip), chip);
    assert_eq!(preprocessed(&options(Some("tna")), chip), "1");
    assert_eq!(preprocessed(&options(Some("t2na")), chip), "2");
}

#[test]
fn macro_of_the_command_line_selects_another_chip() {
    let mut options = options(Some("tna"));
    options.defines = vec![("__TARGET_TOFINO__".into(), Some("2".into()))];
    let text = "#include <tna.p4>\nlast: QUEUE_ID_WIDTH";
    assert!(preprocessed(&options, text).ends_with("last: 7"));
}

#[test]
fn included_file_selects_the_chip_without_an_architecture() {
    for (file, chip) in [
        ("tna", "1"),
        ("t2na", "2"),
        ("tofino1_arch", "1"),
        ("tofino2_arch", "2"),
    ] {
        let text = format!("#include <{file}.p4>\nlast: __TARGET_TOFINO__");
        let printed = preprocessed(&options(None), &text);
        assert!(printed.ends_with(&format!("last: {chip}")), "{file}");
    }
}

#[test]
fn t2na_rejects_tofino_1() {
    let (sources, diags) = (SourceMap::default(), Diagnostics::default());
    let text = "#include <t2na.p4>\n".to_string();
    compile("p.p4", text, &options(Some("tna")), &sources, &diags);
    let message = "#error T2NA needs __TARGET_TOFINO__ == 2";
    assert!(diags.render(&sources).contains(message));
}
