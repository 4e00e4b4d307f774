//! Compiles test programs.
#![allow(dead_code, reason = "not every test uses every helper")]

use std::path::PathBuf;

use softswitch_p4c::diag::{Diagnostics, SourceMap};
use softswitch_p4c::{Options, Output, compile};

/// The folder of this crate's tests.
pub fn tests_dir() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests")
}

/// The result if there is no error, and what the compiler says.
pub fn compile_text(name: &str, text: &str) -> (Option<Output>, String) {
    let (sources, diags) = (SourceMap::default(), Diagnostics::default());
    let options = Options {
        include_dirs: vec![tests_dir().join("programs")],
        ..Options::default()
    };
    let output = compile(name, text.to_string(), &options, &sources, &diags);
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
