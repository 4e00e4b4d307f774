// SPDX-License-Identifier: Apache-2.0
//! A loaded program.

use std::sync::Arc;

use crate::error::LoadError;
use crate::executable::Executable;
use crate::info::Info;
use crate::program::Compiled;
use crate::program::architecture::Architecture;
use crate::program::op::Op;
use crate::program::parallelism::Parallelism;

/// A loaded program without state; cheap to clone.
#[derive(Debug, Clone)]
pub struct Program(Arc<Executable>);

impl Program {
    /// Compiles BMv2 JSON (format 2.x) of v1model, PSA or TNA.
    pub fn load(json: &str) -> Result<Program, LoadError> {
        Ok(Program(Arc::new(Executable::load(json)?)))
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
        self.0.parallelism()
    }

    /// Returns the number of parsers, controls and deparsers that run in native code, and the number of all. The first
    /// call compiles them.
    pub fn native_blocks(&self) -> (usize, usize) {
        self.0.native_blocks()
    }

    pub(super) fn compiled(&self) -> &Compiled {
        &self.0.compiled
    }

    pub(super) fn executable(&self) -> &Arc<Executable> {
        &self.0
    }
}
