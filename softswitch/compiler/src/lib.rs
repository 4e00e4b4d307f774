//! A compiler for P4_16 programs of the v1model architecture: emits the JSON that BMv2's
//! `simple_switch` loads, and the P4Info that P4Runtime controllers read.
//!
//! The stages, each in a module of its own: preprocessor ([`pp`]) and lexer ([`token`]), parser
//! ([`parse`]), name resolution and types ([`check`]), data flow ([`flow`]), lowering to a flat program ([`lower`],
//! [`ir`]), and the two outputs ([`bmv2`], [`p4info`]).

mod ast;
mod bmv2;
mod check;
pub mod diag;
mod flow;
mod ir;
mod lower;
mod near;
mod p4info;
mod parse;
mod pp;
mod token;
mod types;

use std::path::PathBuf;
use std::{io, thread};

use diag::{Diagnostics, SourceMap};
pub use p4info::Format;

/// What to compile, and how.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Where `#include` looks, after the folder of the including file.
    pub include_dirs: Vec<PathBuf>,
    /// Macros that are defined from the start, or not: a later one replaces an earlier one.
    pub defines: Vec<(String, Option<String>)>,
    /// Take externs that v1model does not declare for operations that the target has.
    pub emit_externs: bool,
    /// Make no P4Info: what the control plane could not tell apart or has no width for is no mistake then.
    pub without_p4info: bool,
}

/// The result of a compilation.
pub struct Output {
    /// BMv2 JSON; none if the target cannot do what the program wants, as errors tell.
    pub json: Option<serde_json::Value>,
    /// P4Info in the text format of protocol buffers; empty if none is wanted.
    pub p4info: String,
    /// The tables' entries, a P4Runtime `WriteRequest` in the same format.
    pub entries: String,
}

/// Deeply nested programs recurse; a main thread's stack is too small for the worst of them.
const STACK: usize = 256 << 20;

/// Runs what compiles on a stack that is large enough; the inner error is its panic.
///
/// # Errors
/// If there can be no thread for it.
pub fn on_deep_stack<T: Send + 'static>(
    f: impl FnOnce() -> T + Send + 'static,
) -> io::Result<thread::Result<T>> {
    let worker = thread::Builder::new().stack_size(STACK).spawn(f)?;
    Ok(worker.join())
}

/// Compiles one program; `None` if it is wrong, as `diags` tells. P4Info is of the language, not of the target: as with
/// p4c, it is there also if the target cannot run the program.
pub fn compile(
    name: &str,
    text: String,
    options: &Options,
    sources: &SourceMap,
    diags: &Diagnostics,
) -> Option<Output> {
    let file = sources.add(name.to_string(), text);
    let tokens = pp::preprocess(
        sources,
        diags,
        file,
        &options.include_dirs,
        &options.defines,
    );
    let program = parse::parse(tokens, diags);
    if diags.has_errors() {
        return None;
    }
    let typed = check::check(&program, diags);
    if diags.has_mistakes() {
        return None;
    }
    flow::warn(&typed, diags, sources);
    if diags.has_mistakes() {
        return None;
    }
    let lowered = lower::lower(&typed, diags, sources, options.emit_externs);
    if diags.has_mistakes() {
        return None;
    }
    let json = (!diags.has_errors()).then(|| bmv2::emit(name, &lowered, diags, sources));
    let (p4info, entries) = if options.without_p4info {
        Default::default()
    } else {
        p4info::emit(&typed, &lowered, diags)
    };
    if diags.has_mistakes() {
        return None;
    }
    let json = json.filter(|_| !diags.has_errors());
    Some(Output {
        json,
        p4info,
        entries,
    })
}
