// SPDX-License-Identifier: Apache-2.0
//! Lines that begin with `#`.

mod common;

#[test]
fn other_lines_are_comments() {
    let lines =
        "# a comment\n#TODO: something\n#ident \"version 1\"\n#!shebang\n#\n# 7 \"other.p4\"\n";
    let text = format!("{lines}{}{lines}", common::program("apply { }"));
    let (output, messages) = common::compile_text("t.p4", &text);
    assert!(output.is_some(), "{messages}");
    assert_eq!(messages, "");
}

#[test]
fn misspelled_directive_gives_a_warning() {
    let (_, messages) = common::compile_text("t.p4", "#inlcude <core.p4>\n");
    assert!(
        messages.contains("t.p4:1:1: warning: #inlcude is not a directive"),
        "{messages}"
    );
    assert!(messages.contains("did you mean 'include'?"), "{messages}");
}

#[test]
fn import_includes_once() {
    let text = common::program("apply { }")
        .replace("#include <core.p4>", "#import <core.p4>\n#import <core.p4>");
    let (output, messages) = common::compile_text("t.p4", &text);
    assert!(output.is_some(), "{messages}");
}

#[test]
fn error_at_the_end_is_reported_once() {
    for text in [
        "header h { bit<8> x; @name(\"abc }\n",
        "control c() { @a(( action x() {} apply {} }\n",
        "control c() { apply { log_msg(\"abc); } }\n",
    ] {
        let (_, messages) = common::compile_text("t.p4", text);
        assert_eq!(messages.matches(": error: ").count(), 1, "{messages}");
    }
}
