// SPDX-License-Identifier: Apache-2.0
//! Loads programs, from P4 source or JSON.

use std::path::{Path, PathBuf};

use softswitch_p4c::diag::{Diagnostics, SourceMap};
use softswitch_pipeline::Program;

/// The result of a compilation.
pub struct Compiled {
    /// The program, ready to run.
    pub program: Program,
    /// The program as BMv2 JSON.
    pub json: String,
    /// The P4Info as text.
    pub p4info: String,
    /// The compiler's warnings.
    pub warnings: String,
}

/// Compiles P4_16 (v1model). `name` is the file's name in messages; `#include "..."` searches its folder.
///
/// # Errors
/// The compiler's messages, with file, line and source text.
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
        let texts = output.map(|o| (o.json.map(|json| json.to_string()), o.p4info));
        (texts, diags.render(&sources))
    });
    let (output, messages) = done
        .map_err(|e| format!("{name}: cannot start a thread: {e}"))?
        .map_err(|_| format!("{name}: the compiler panicked"))?;
    let refused = || messages.trim_end().to_owned();
    let (json, p4info) = output.ok_or_else(refused)?;
    let json = json.ok_or_else(refused)?;
    Ok(Compiled {
        program: Program::load(&json).map_err(|e| format!("{name}: {e}"))?,
        json,
        p4info,
        warnings: messages,
    })
}

/// Loads BMv2 JSON (`.json`), or compiles any other file.
///
/// # Errors
/// If the file cannot be read, compiled or loaded.
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
