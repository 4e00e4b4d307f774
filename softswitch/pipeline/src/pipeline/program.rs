// SPDX-License-Identifier: Apache-2.0
//! A loaded program, with its native code.

use std::sync::{Arc, OnceLock};

use crate::error::LoadError;
use crate::info::Info;
use crate::load;
use crate::native::Native;
use crate::program::Compiled;
use crate::program::architecture::Architecture;
use crate::program::op::Op;
use crate::program::parallelism::Parallelism;

/// A loaded program without state; cheap to clone.
#[derive(Debug, Clone)]
pub struct Program(Arc<Loaded>);

#[derive(Debug)]
struct Loaded {
    compiled: Compiled,
    /// The native code, compiled on first use; `None` if the host is not supported.
    native: OnceLock<Option<Arc<Native>>>,
    /// The native code of lanes.
    native_for_lanes: OnceLock<Option<Arc<Native>>>,
    /// Determined on first use.
    parallelism: OnceLock<Parallelism>,
}

impl Program {
    /// Compiles BMv2 JSON (format 2.x) of v1model, PSA or TNA.
    pub fn load(json: &str) -> Result<Program, LoadError> {
        Ok(Program(Arc::new(Loaded {
            compiled: load::program(json)?,
            native: OnceLock::new(),
            native_for_lanes: OnceLock::new(),
            parallelism: OnceLock::new(),
        })))
    }

    /// Returns the program's description for the control plane.
    pub fn info(&self) -> &Info {
        &self.0.compiled.info
    }

    /// Returns the name of the program's architecture: `v1model`, `psa`, `tna` or `t2na`.
    pub fn architecture(&self) -> &'static str {
        self.0.compiled.architecture.name()
    }

    /// Returns the number of pipes that the program needs: 1, unless it names the pipelines of several.
    pub fn pipes(&self) -> u32 {
        match &self.0.compiled.architecture {
            Architecture::Tna(m) => m.pipelines.pipes() as u32,
            Architecture::V1Model(_) | Architecture::Psa(_) => 1,
        }
    }

    /// Returns true if an action of the program calls `log_msg`.
    pub fn logs_messages(&self) -> bool {
        let mut ops = self.0.compiled.actions.iter().flat_map(|a| &a.ops);
        ops.any(|op| matches!(op, Op::Log(_)))
    }

    /// Returns how several threads run the packets of the program.
    pub fn parallelism(&self) -> &Parallelism {
        let analyse = || self.0.compiled.parallelism();
        self.0.parallelism.get_or_init(analyse)
    }

    /// Returns the number of parsers, controls and deparsers that run in native code, and the number of all. The first
    /// call compiles them.
    pub fn native_blocks(&self) -> (usize, usize) {
        self.native().map_or((0, 0), |native| native.blocks())
    }

    pub(super) fn compiled(&self) -> &Compiled {
        &self.0.compiled
    }

    /// Returns the native code, which the first call compiles; `None` if the host is not supported.
    pub(super) fn native(&self) -> Option<Arc<Native>> {
        let compile = || self.compile(false);
        self.0.native.get_or_init(compile).clone()
    }

    /// Returns the native code of lanes, which the first call compiles; `None` if the host is not supported.
    pub(super) fn native_for_lanes(&self) -> Option<Arc<Native>> {
        let compile = || self.compile(true);
        self.0.native_for_lanes.get_or_init(compile).clone()
    }

    fn compile(&self, is_for_lanes: bool) -> Option<Arc<Native>> {
        let compile = || Native::compile(&self.0.compiled, is_for_lanes).map(Arc::new);
        load::document::on_deep_stack(compile).ok().flatten()
    }
}
