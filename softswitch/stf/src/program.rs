//! Programs, compiled from source if they are not yet.

use std::path::{Path, PathBuf};

use softswitch_p4c::diag::{Diagnostics, SourceMap};
use softswitch_pipeline::Program;

/// What became of a source.
pub struct Compiled {
    /// The program, ready to run.
    pub program: Program,
    /// The same as BMv2 JSON.
    pub json: String,
    /// Its P4Info as text.
    pub p4info: String,
    /// What the compiler warns of.
    pub warnings: String,
}

/// Compiles P4_16 (v1model). `name` is what messages call the file; `#include "..."` looks beside it.
///
/// # Errors
/// What the compiler says, with file, line and the text there.
pub fn compile(
    name: &str,
    text: String,
    include_dirs: Vec<PathBuf>,
    defines: Vec<(String, String)>,
) -> Result<Compiled, String> {
    let defined = |(name, value)| (name, Some(value));
    let options = softswitch_p4c::Options {
        include_dirs,
        defines: defines.into_iter().map(defined).collect(),
        ..Default::default()
    };
    let file = name.to_owned();
    let done = softswitch_p4c::on_deep_stack(move || {
        let (sources, diags) = (SourceMap::default(), Diagnostics::default());
        let output = softswitch_p4c::compile(&file, text, &options, &sources, &diags);
        (output, diags.render(&sources))
    });
    let (output, messages) = done
        .map_err(|e| format!("{name}: no thread to compile it: {e}"))?
        .map_err(|_| format!("{name}: the compiler failed"))?;
    let refused = || messages.trim_end().to_owned();
    let output = output.ok_or_else(refused)?;
    let json = output.json.ok_or_else(refused)?.to_string();
    Ok(Compiled {
        program: Program::load(&json).map_err(|e| format!("{name}: {e}"))?,
        json,
        p4info: output.p4info,
        warnings: messages,
    })
}

/// Loads BMv2 JSON (`.json`), or compiles any other file.
///
/// # Errors
/// The file cannot be read, compiled or loaded.
pub fn load(
    path: &Path,
    include_dirs: Vec<PathBuf>,
    defines: Vec<(String, String)>,
) -> Result<Program, String> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|e| format!("{name}: {e}"))?;
    if path.extension().is_some_and(|e| e == "json") {
        return Program::load(&text).map_err(|e| format!("{name}: {e}"));
    }
    compile(&name, text, include_dirs, defines).map(|c| c.program)
}
