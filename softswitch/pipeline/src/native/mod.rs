// SPDX-License-Identifier: Apache-2.0
//! The native engine: compiles a program's parser and control flows to machine code of the host.
//!
//! The code works on the interpreter's state and leaves the same state after every step, so it can call the interpreter
//! for any step: unbounded numbers, variable-length fields, computed headers and rare operations. If a function cannot be
//! compiled, the interpreter runs it as a whole.

mod action;
mod calculation;
mod cond;
mod control;
mod deparser;
mod expr;
mod generator;
mod header;
mod key;
mod lookup;
mod memory;
mod parser;
mod prefix;
mod runtime;
mod sum;
mod table;
mod wide;

use std::fmt;

use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{AbiParam, Function, UserFuncName};
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{FuncId, Linkage, Module, default_libcall_names};

use crate::Nanos;
use crate::packet::Packet;
use crate::paths::Paths;
use crate::program::Compiled;
use crate::program::parser::Parsed;
use crate::state::State;
use generator::Gen;
use runtime::{Buffers, Code, Entry, enter};

/// The native code of a program; it may run only with this program.
pub(crate) struct Native {
    /// Each block in the architecture's order; `None` if the interpreter must run it.
    parsers: Vec<Option<Entry>>,
    /// Whether each parser takes the chip's header from the packet's [values](crate::program::tna::IntrinsicValues).
    receiving: Vec<bool>,
    controls: Vec<Option<Entry>>,
    /// With the maximum number of bytes that they emit.
    deparsers: Vec<Option<(Entry, usize)>>,
    /// The memory of the functions.
    _code: Code,
}

impl fmt::Debug for Native {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Native")
    }
}

impl Native {
    /// Compiles a program, which must not move afterwards, for pipelines or for their lanes, and for frequent paths through
    /// its controls; `None` if Cranelift does not support the host.
    pub(crate) fn compile(c: &Compiled, is_for_lanes: bool, paths: &[Paths]) -> Option<Self> {
        let none = Paths::default();
        let mut module = module()?;
        let target = (c, is_for_lanes);
        let parsers: Vec<_> = (0..c.parser.starts.len())
            .map(|n| define(&mut module, target, &format!("parser {n}"), |g| g.parser(n)))
            .collect();
        let controls: Vec<_> = (0..)
            .zip(&c.controls)
            .map(|(n, &first)| {
                define(&mut module, target, &format!("control {n}"), |g| {
                    let paths = paths.get(n).unwrap_or(&none);
                    if !paths.branches().is_empty() {
                        g.assume_zero(c.zero_before(n));
                    }
                    g.inputs(c.architecture.inputs(n))?;
                    g.control(first, paths)
                })
            })
            .collect();
        let deparsers: Vec<_> = (0..)
            .zip(&c.deparsers)
            .map(|(n, d)| {
                define(&mut module, target, &format!("deparser {n}"), |g| {
                    g.deparser(d)
                })
            })
            .collect();
        module.finalize_definitions().ok()?;
        let code = Code::new(module);
        let entry = |id: Option<FuncId>| id.map(|id| code.entry(id));
        let most = c.deparsers.iter().map(|d| deparser::most_emitted(c, d));
        Some(Self {
            receiving: (0..)
                .zip(&parsers)
                .map(|(n, id)| id.is_some() && c.received_header(n).is_some())
                .collect(),
            parsers: parsers.into_iter().map(entry).collect(),
            controls: controls.into_iter().map(entry).collect(),
            deparsers: deparsers
                .into_iter()
                .zip(most)
                .map(|(id, most)| entry(id).map(|entry| (entry, most)))
                .collect(),
            _code: code,
        })
    }
}

fn module() -> Option<JITModule> {
    let mut flags = settings::builder();
    for (name, value) in [
        ("opt_level", "speed"),
        ("is_pic", "false"),
        ("use_colocated_libcalls", "false"),
        ("probestack_strategy", "inline"),
        (
            "enable_verifier",
            if cfg!(debug_assertions) {
                "true"
            } else {
                "false"
            },
        ),
    ] {
        flags.set(name, value).expect("a setting that exists");
    }
    let isa = cranelift_native::builder()
        .ok()?
        .finish(settings::Flags::new(flags))
        .ok()?;
    Some(JITModule::new(JITBuilder::with_isa(
        isa,
        default_libcall_names(),
    )))
}

/// Generates a function; `None` if the interpreter must run it.
fn define(
    module: &mut JITModule,
    (c, is_for_lanes): (&Compiled, bool),
    name: &str,
    fill: impl FnOnce(&mut Gen) -> generator::Result<()>,
) -> Option<FuncId> {
    let mut signature = module.make_signature();
    signature.params.push(AbiParam::new(I64));
    signature.returns.push(AbiParam::new(I64));
    let convention = signature.call_conv;
    let id = module
        .declare_function(name, Linkage::Local, &signature)
        .ok()?;
    let mut context = module.make_context();
    context.func = Function::with_name_signature(UserFuncName::user(0, id.as_u32()), signature);
    let mut builder = FunctionBuilderContext::new();
    let mut generator = Gen::new(
        c,
        is_for_lanes,
        FunctionBuilder::new(&mut context.func, &mut builder),
        convention,
    );
    fill(&mut generator).ok()?;
    generator.b.seal_all_blocks();
    generator.b.finalize();
    module.define_function(id, &mut context).ok()?;
    Some(id)
}

impl Native {
    /// Returns the number of blocks that run in native code, and of all.
    pub(crate) fn blocks(&self) -> (usize, usize) {
        let parsers = self.parsers.iter().map(Option::is_some);
        let controls = self.controls.iter().map(Option::is_some);
        let deparsers = self.deparsers.iter().map(Option::is_some);
        let all: Vec<bool> = parsers.chain(controls).chain(deparsers).collect();
        (all.iter().filter(|b| **b).count(), all.len())
    }

    /// Returns true if a parser does not find the chip's header in the frame.
    pub(crate) fn receives_header(&self, parser: usize) -> bool {
        self.receiving[parser]
    }

    /// Runs a parser and verifies checksums; `None` if the interpreter must do it.
    pub(crate) fn parse(
        &self,
        c: &Compiled,
        parser: usize,
        state: &mut State,
        pkt: &mut Packet,
        now: Nanos,
    ) -> Option<Parsed> {
        let (entry, none) = (self.parsers[parser]?, Buffers::default());
        let result = enter(entry, c, state, pkt, now, none);
        Some(parser::parsed(result))
    }

    /// Sets a control's inputs and runs it; returns false, and does nothing, if the interpreter must do it.
    pub(crate) fn apply(
        &self,
        c: &Compiled,
        control: usize,
        state: &mut State,
        pkt: &mut Packet,
        now: Nanos,
        input: &[u64],
    ) -> bool {
        let Some(entry) = self.controls[control] else {
            return false;
        };
        let fields = c.architecture.inputs(control);
        assert_eq!(input.len(), fields.len(), "one value for each field");
        let out = &mut [];
        enter(entry, c, state, pkt, now, Buffers { input, out });
        true
    }

    /// Updates checksums and emits a deparser's headers to the beginning of `out`; returns their length in bytes, or `None`
    /// if the interpreter must do it.
    pub(crate) fn emit(
        &self,
        c: &Compiled,
        deparser: usize,
        state: &mut State,
        pkt: &mut Packet,
        now: Nanos,
        out: &mut Vec<u8>,
    ) -> Option<usize> {
        let (entry, most) = self.deparsers[deparser]?;
        if out.len() < most {
            out.resize(most, 0);
        }
        let buffers = Buffers { input: &[], out };
        Some(enter(entry, c, state, pkt, now, buffers) as usize)
    }
}
