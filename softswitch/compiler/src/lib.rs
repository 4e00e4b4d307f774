// SPDX-License-Identifier: Apache-2.0
//! A compiler for P4_16 programs of the architectures v1model, PSA, TNA and T2NA.
//!
//! It writes the JSON that BMv2's `simple_switch` loads, and the P4Info that P4Runtime controllers read. [`compile`] runs
//! the stages in order:
//!
//! | module | stage | result |
//! |---|---|---|
//! | [`pp`], [`token`] | preprocessor on tokens; every token keeps its own source position | tokens |
//! | [`parse`] | recursive descent; knows which names are types; resynchronises after errors | [`ast::Program`] |
//! | [`check`] | name resolution, types, inference, implicit conversions | [`types::Typed`], by [`ast::NodeId`] |
//! | [`flow`] | data flow; warnings only | |
//! | [`lower`] | instantiation, constant evaluation, inlining | [`ir::Lowered`] |
//! | [`bmv2`] | BMv2 JSON | [`Output::json`] |
//! | [`p4info`] | P4Info, and the tables' entries | [`Output::p4info`], [`Output::entries`] |
//! | [`bfrt`] | the schema of BfRuntime, from P4Info | [`Output::bfrt`] |
//!
//! # Invariants
//!
//! - Every stage reports to one [`Diagnostics`] and continues after errors. The next stage runs only if the program is
//!   valid so far ([`Diagnostics::is_invalid_program`]), so later stages need not handle invalid programs.
//! - If a valid program needs a feature that the target lacks, there is no JSON, but there is P4Info, as in p4c
//!   ([`Diagnostics::unsupported`]).
//! - The syntax tree does not change after parsing. All later results refer to it by node id.
//! - Ids and names in P4Info follow p4c, so that P4Info of both compilers is interchangeable.
//!
//! # The lowered program
//!
//! [`ir::Lowered`] is flat: generics, nested types, calls and compile-time values are gone. A program consists of
//!
//! - *storage*: header instances, stacks and unions; all local variables and metadata are fields of one header,
//!   `scalars`;
//! - *parser states*, each with straight-line statements and one select;
//! - one list of *statements* ([`ir::St`]) per control, whose expressions ([`ir::Ex`]) read fields, and whose jumps leave
//!   labelled blocks;
//! - *tables* with keys, actions and entries, and *objects*, the instances of externs.
//!
//! # How to add an extern
//!
//! 1. Declare it in `p4include/v1model.p4` or `psa.p4`.
//! 2. If it has instances, add their kind to `ir::ObjectKind`, and emit them in `bmv2/objects.rs` or `bmv2/externs.rs`. If
//!    controllers access them, add the kind to `p4info/object.rs`.
//! 3. Lower its calls: functions in `lower/extern_function.rs`, methods in `lower/externs.rs`, `lower/psa_externs.rs`
//!    or `lower/tna_externs.rs`, methods of packets in `lower/packet.rs`, usually to one primitive of the target.
//! 4. Implement the primitive in the pipeline: `softswitch/pipeline/src/program/op.rs` defines its step, `load/action.rs` or
//!    `load/externs.rs` loads it, `interpreter/machine.rs` runs it, and `interpreter/trace.rs` shows it in traces. Native code leaves unknown steps
//!    to the interpreter.
//! 5. Add a program to `tests/programs`, whose golden output `tests/golden` contains, and a test of its packets to the
//!    pipeline.
//!
//! An extern that only the target knows needs none of this: with [`Options::emit_externs`], its calls become primitives
//! of the same name.
#![forbid(unsafe_code)]

mod annotation;
mod ast;
mod bfrt;
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
mod tofino;
mod token;
mod types;

use std::path::PathBuf;
use std::{io, thread};

use diag::{Diagnostics, SourceMap};
pub use p4info::Format;

/// Options of a compilation.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Folders of include files, searched after the including file's own folder.
    pub include_dirs: Vec<PathBuf>,
    /// Predefined macros, in order; `None` undefines. They come after the macro of the architecture: `__TARGET_TOFINO__`
    /// is 1 for `tna`, and 2 for `t2na`.
    pub defines: Vec<(String, Option<String>)>,
    /// The name of the architecture that the program must have; `None` for that of its package.
    pub architecture: Option<String>,
    /// Pass externs that the architecture does not declare to the target.
    pub emit_externs: bool,
    /// Omit P4Info, and the checks that only P4Info needs (unique names, known widths).
    pub without_p4info: bool,
    /// Emit the schema of BfRuntime, which needs P4Info.
    pub bfrt: bool,
}

/// The result of a compilation.
pub struct Output {
    /// BMv2 JSON; `None` if the target does not support the program, with errors that say why.
    pub json: Option<serde_json::Value>,
    /// P4Info in the text format of protocol buffers; empty if it was not requested.
    pub p4info: String,
    /// The tables' entries, a P4Runtime `WriteRequest` in the same format.
    pub entries: String,
    /// For Tofino, a lower bound on stages, with the steps that cause it; otherwise empty.
    pub report: String,
    /// The schema of BfRuntime (`bf-rt.json`), if it was requested.
    pub bfrt: Option<serde_json::Value>,
}

/// Stack size in bytes for the recursion over deeply nested programs, which can exceed a main thread's stack.
const STACK: usize = 256 << 20;

/// Runs a function on a stack that is large enough for any program. The inner error is its panic.
///
/// # Errors
/// If the thread cannot be started.
pub fn on_deep_stack<T: Send + 'static>(
    f: impl FnOnce() -> T + Send + 'static,
) -> io::Result<thread::Result<T>> {
    let worker = thread::Builder::new().stack_size(STACK).spawn(f)?;
    Ok(worker.join())
}

/// Runs only the preprocessor, and returns the program that it makes. `sources` then contains the included files.
///
/// # Errors
/// `None` if there is an error, which `diags` contains.
pub fn preprocess(
    name: &str,
    text: String,
    options: &Options,
    sources: &SourceMap,
    diags: &Diagnostics,
) -> Option<String> {
    let file = sources.add(name.to_string(), text);
    let tokens = pp::preprocess(sources, diags, file, options);
    (!diags.has_errors()).then(|| pp::print(&tokens, sources))
}

/// Compiles one program; returns `None` if it is invalid, with errors in `diags`. As with p4c, P4Info does not depend on the
/// target: it is present even if the target does not support the program.
pub fn compile(
    name: &str,
    text: String,
    options: &Options,
    sources: &SourceMap,
    diags: &Diagnostics,
) -> Option<Output> {
    let file = sources.add(name.to_string(), text);
    let tokens = pp::preprocess(sources, diags, file, options);
    let program = parse::parse(tokens, diags);
    if diags.has_errors() {
        return None;
    }
    let typed = check::check(&program, diags);
    if diags.is_invalid_program() {
        return None;
    }
    flow::warn(&typed, diags, sources);
    if diags.is_invalid_program() {
        return None;
    }
    let mut lowered = lower::lower(&typed, diags, sources, options);
    let report = tofino::finish(&mut lowered, diags, sources);
    if diags.is_invalid_program() {
        return None;
    }
    let json = (!diags.has_errors()).then(|| bmv2::emit(name, &lowered, diags, sources));
    let (p4info, entries) = if options.without_p4info {
        Default::default()
    } else {
        p4info::emit(&typed, &lowered, diags)
    };
    if diags.is_invalid_program() {
        return None;
    }
    let json = json.filter(|_| !diags.has_errors());
    let bfrt = options.bfrt && !options.without_p4info;
    let bfrt = bfrt.then(|| bfrt::emit(&p4info, &lowered));
    Some(Output {
        report,
        json,
        p4info,
        entries,
        bfrt,
    })
}
