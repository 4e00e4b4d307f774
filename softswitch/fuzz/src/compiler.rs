// SPDX-License-Identifier: Apache-2.0
//! Compiles P4 source and loads the compiler's output.

use softswitch_p4c::diag::{Diagnostics, SourceMap};
use softswitch_p4c::{Options, compile, on_deep_stack};
use softswitch_pipeline::Program;

/// Compiles a program. If the compiler rejects it, there must be an error; if not, the output must load.
pub fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data).into_owned();
    // The result must not depend on files outside the input.
    if text.contains("#include")
        && !text.contains("#include <core.p4>")
        && !text.contains("#include <v1model.p4>")
    {
        return;
    }
    on_deep_stack(|| compile_and_load(text))
        .expect("spawns a thread")
        .expect("the compiler does not panic");
}

fn compile_and_load(text: String) {
    let (sources, diags) = (SourceMap::default(), Diagnostics::default());
    let output = compile("fuzz.p4", text, &Options::default(), &sources, &diags);
    let messages = diags.render(&sources);
    match output.and_then(|output| output.json) {
        None => assert!(
            messages.contains("error"),
            "rejected without an error:\n{messages}"
        ),
        Some(json) => {
            let json = json.to_string();
            if let Err(e) = Program::load(&json) {
                panic!("the compiler's output does not load: {e}\n{json}");
            }
        }
    }
}
