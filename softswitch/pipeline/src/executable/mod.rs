// SPDX-License-Identifier: Apache-2.0
//! A loaded program with its native code, which all its pipelines and lanes share.

mod adaptive;

use std::sync::{Arc, OnceLock};

use crate::error::LoadError;
use crate::load;
use crate::native::Native;
use crate::paths::Paths;
use crate::program::Compiled;
use crate::program::parallelism::Parallelism;
pub(crate) use adaptive::Adaptive;
use adaptive::Versions;

/// A loaded program with its native code.
#[derive(Debug)]
pub(crate) struct Executable {
    pub(crate) compiled: Compiled,
    /// The native code, compiled on first use.
    native: OnceLock<Versions>,
    /// The native code of lanes.
    native_for_lanes: OnceLock<Versions>,
    /// Determined on first use.
    parallelism: OnceLock<Parallelism>,
}

impl Executable {
    /// Loads BMv2 JSON.
    pub(crate) fn load(json: &str) -> Result<Self, LoadError> {
        Ok(Self {
            compiled: load::program(json)?,
            native: OnceLock::new(),
            native_for_lanes: OnceLock::new(),
            parallelism: OnceLock::new(),
        })
    }

    /// Returns how several threads run the packets of the program.
    pub(crate) fn parallelism(&self) -> &Parallelism {
        let analyse = || self.compiled.parallelism();
        self.parallelism.get_or_init(analyse)
    }

    /// Returns the number of parsers, controls and deparsers that run in native code, and the number of all.
    pub(crate) fn native_blocks(&self) -> (usize, usize) {
        let native = self.versions(false).newest();
        native.map_or((0, 0), |native| native.blocks())
    }

    /// Returns the versions of the native code. The first call compiles it.
    fn versions(&self, is_for_lanes: bool) -> &Versions {
        let versions = match is_for_lanes {
            true => &self.native_for_lanes,
            false => &self.native,
        };
        versions.get_or_init(|| Versions::new(self.compile(is_for_lanes, &[])))
    }

    /// Compiles the native code for frequent paths through the control flows; `None` if the host is not supported.
    fn compile(&self, is_for_lanes: bool, paths: &[Paths]) -> Option<Arc<Native>> {
        let compile = || Native::compile(&self.compiled, is_for_lanes, paths).map(Arc::new);
        load::document::on_deep_stack(compile).ok().flatten()
    }

    /// Compiles the native code again for the paths of a sample.
    fn adapt(&self, is_for_lanes: bool, sample: &[Paths]) {
        let frequent: Vec<Paths> = sample.iter().map(Paths::frequent).collect();
        if let Some(native) = self.compile(is_for_lanes, &frequent) {
            self.versions(is_for_lanes).publish(native);
        }
    }
}
