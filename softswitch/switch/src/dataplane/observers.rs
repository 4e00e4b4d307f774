// SPDX-License-Identifier: Apache-2.0
//! The outputs for traces of packets, and for coverage.

use softswitch_pipeline::{Program, Trace};

use crate::coverage::CoverageFile;
use crate::log::PacketLog;
use crate::trace::TraceLog;

/// The outputs for traces of packets, and for coverage.
#[derive(Debug, Default)]
pub struct Observers {
    /// The output of `--trace`.
    pub trace: Option<TraceLog>,
    /// The log.
    pub log: Option<PacketLog>,
    /// The file of `--coverage`.
    pub coverage: Option<CoverageFile>,
}

impl Observers {
    /// Returns true if there may be traces.
    pub(super) fn exist(&self) -> bool {
        self.trace.is_some() || self.log.is_some()
    }

    /// Returns true if a program's packets must be traced.
    pub(super) fn need_traces(&self, program: &Program) -> bool {
        let log = self.log.as_ref();
        self.trace.is_some() || log.is_some_and(|log| log.needs_traces(program))
    }

    /// Writes traces, and returns the number of those that could not be written to the output of `--trace`.
    pub(super) fn write(&self, traces: &[Trace]) -> u64 {
        if traces.is_empty() {
            return 0;
        }
        if let Some(log) = &self.log {
            log.write(traces);
        }
        self.trace.as_ref().map_or(0, |trace| trace.write(traces))
    }
}
