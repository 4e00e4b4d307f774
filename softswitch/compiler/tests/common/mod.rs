// SPDX-License-Identifier: Apache-2.0
//! Compiles test programs.
#![allow(dead_code, reason = "not every test uses every helper")]

use std::path::PathBuf;

use softswitch_p4c::diag::{Diagnostics, SourceMap};
use softswitch_p4c::{Options, Output, compile};

/// The folder of this crate's tests.
pub fn tests_dir() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests")
}

/// Returns options with the include folder of the test programs.
pub fn options() -> Options {
    Options {
        include_dirs: vec![tests_dir().join("programs")],
        ..Options::default()
    }
}

/// Compiles a text; returns the result if there is no error, and the messages.
pub fn compile_text(name: &str, text: &str) -> (Option<Output>, String) {
    let (sources, diags) = (SourceMap::default(), Diagnostics::default());
    let output = compile(name, text.to_string(), &options(), &sources, &diags);
    let output = output.filter(|output| output.json.is_some());
    (output, diags.render(&sources))
}

/// Compiles `tests/programs/NAME.p4`, which must have no error.
pub fn compile_program(name: &str) -> Output {
    let path = tests_dir().join("programs").join(format!("{name}.p4"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let (output, messages) = compile_text(&format!("{name}.p4"), &text);
    output.unwrap_or_else(|| panic!("{name}.p4:\n{messages}"))
}

/// Returns the errors of a program, without warnings.
pub fn errors(program: &str) -> String {
    let (_, messages) = compile_text("t.p4", program);
    match messages.contains(" error: ") {
        true => messages,
        false => String::new(),
    }
}

/// Checks that the compiler's messages contain `wanted`.
#[track_caller]
pub fn expect_message(messages: &str, wanted: &str) {
    assert!(
        messages.contains(wanted),
        "wanted {wanted}\ngot\n{messages}"
    );
}

/// Returns a program with `body` in its ingress control; the body starts at line 10.
pub fn program(body: &str) -> String {
    format!(
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
    )
}

/// Returns the compiler's messages for [`program`].
pub fn ingress(body: &str) -> String {
    compile_text("t.p4", &program(body)).1
}

/// Checks that [`ingress`] reports an error at `line:column`.
pub fn expect(body: &str, at: &str, message: &str) {
    let messages = ingress(body);
    let wanted = format!("t.p4:{at}: error: {message}");
    assert!(
        messages.contains(&wanted),
        "for\n{body}\nwanted {wanted}\ngot\n{messages}"
    );
}

/// Compiles a program of these `types`, among them `headers` with a first header `h` and `metadata`, which must have no
/// error: `parsing` follows the extraction of `h`, `ingress` is the body of the ingress control.
pub fn compile_frame(types: &str, parsing: &str, ingress: &str) -> Output {
    let text = format!(
        "#include <core.p4>\n#include <v1model.p4>\n{types}\
         parser P(packet_in p, out headers hdr, inout metadata meta, inout standard_metadata_t std) {{\n\
         state start {{ p.extract(hdr.h); {parsing} transition accept; }} }}\n\
         control V(inout headers hdr, inout metadata meta) {{ apply {{}} }}\n\
         control I(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {{ {ingress} }}\n\
         control E(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {{ apply {{}} }}\n\
         control C(inout headers hdr, inout metadata meta) {{ apply {{}} }}\n\
         control D(packet_out p, in headers hdr) {{ apply {{ p.emit(hdr); }} }}\n\
         V1Switch(P(), V(), I(), E(), C(), D()) main;\n"
    );
    let (output, messages) = compile_text("t.p4", &text);
    output.unwrap_or_else(|| panic!("{messages}"))
}
