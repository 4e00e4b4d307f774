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
mod memory;
mod parser;
mod runtime;
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
use crate::program::Compiled;
use crate::state::State;
use generator::Gen;
use runtime::{Code, Entry, enter};

/// The native code of a program; it may run only with this program.
pub(crate) struct Native {
    parser: Option<Entry>,
    ingress: Option<Entry>,
    egress: Option<Entry>,
    deparser: Option<Entry>,
    /// Maximum number of bytes that the deparser emits.
    most_emitted: usize,
    /// The memory of the functions.
    _code: Code,
}

impl fmt::Debug for Native {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Native")
    }
}

impl Native {
    /// Compiles a program, which must not move afterwards; `None` if Cranelift does not support the host.
    pub(crate) fn compile(c: &Compiled) -> Option<Self> {
        let mut module = module()?;
        let parser = define(&mut module, c, "parser", |g| g.parser());
        let ingress = define(&mut module, c, "ingress", |g| g.control(c.ingress));
        let egress = define(&mut module, c, "egress", |g| g.control(c.egress));
        let deparser = define(&mut module, c, "deparser", |g| g.deparser());
        module.finalize_definitions().ok()?;
        let code = Code::new(module);
        let entry = |id: Option<FuncId>| id.map(|id| code.entry(id));
        Some(Self {
            parser: entry(parser),
            ingress: entry(ingress),
            egress: entry(egress),
            deparser: entry(deparser),
            most_emitted: deparser::most_emitted(c),
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
    c: &Compiled,
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
    /// Parses and verifies checksums; returns false if the interpreter must do it.
    pub(crate) fn parse(
        &self,
        c: &Compiled,
        state: &mut State,
        pkt: &mut Packet,
        now: Nanos,
    ) -> bool {
        if let Some(entry) = self.parser {
            enter(entry, c, state, pkt, now, &mut []);
        }
        self.parser.is_some()
    }

    /// Runs a control flow; returns false if the interpreter must do it.
    pub(crate) fn apply(
        &self,
        c: &Compiled,
        first: u32,
        state: &mut State,
        pkt: &mut Packet,
        now: Nanos,
    ) -> bool {
        let entry = if first == c.ingress {
            self.ingress
        } else {
            self.egress
        };
        if let Some(entry) = entry {
            enter(entry, c, state, pkt, now, &mut []);
        }
        entry.is_some()
    }

    /// Updates checksums and emits headers to the beginning of `out`; returns their length in bytes, or `None` if the
    /// interpreter must do it.
    pub(crate) fn emit(
        &self,
        c: &Compiled,
        state: &mut State,
        pkt: &mut Packet,
        now: Nanos,
        out: &mut Vec<u8>,
    ) -> Option<usize> {
        let entry = self.deparser?;
        if out.len() < self.most_emitted {
            out.resize(self.most_emitted, 0);
        }
        Some(enter(entry, c, state, pkt, now, out) as usize)
    }
}
