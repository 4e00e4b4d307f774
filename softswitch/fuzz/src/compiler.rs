//! P4 source through the compiler, and what it makes through the loader.

use softswitch_p4c::diag::{Diagnostics, SourceMap};
use softswitch_p4c::{Options, compile, on_deep_stack};
use softswitch_pipeline::Program;

/// Compiles a program. What is refused has an error that says why; what is not, loads.
pub fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data).into_owned();
    // Files outside must not matter to the result.
    if text.contains("#include")
        && !text.contains("#include <core.p4>")
        && !text.contains("#include <v1model.p4>")
    {
        return;
    }
    on_deep_stack(|| compiles_or_says_why(text))
        .expect("a thread can be made")
        .expect("the compiler does not panic");
}

fn compiles_or_says_why(text: String) {
    let (sources, diags) = (SourceMap::default(), Diagnostics::default());
    let output = compile("fuzz.p4", text, &Options::default(), &sources, &diags);
    let said = diags.render(&sources);
    match output.and_then(|output| output.json) {
        None => assert!(said.contains("error"), "refused without an error:\n{said}"),
        Some(json) => {
            let json = json.to_string();
            if let Err(e) = Program::load(&json) {
                panic!("compiled, but it does not load: {e}\n{json}");
            }
        }
    }
}
