// SPDX-License-Identifier: Apache-2.0
//! The outputs for traces of packets, and for coverage.

use softswitch_pipeline::{Program, Trace};

use super::captures::Captures;
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
    /// The packet that a client follows.
    pub captures: Captures,
}

impl Observers {
    /// Returns true if there may be traces.
    pub(super) fn exist(&self) -> bool {
        self.trace.is_some() || self.log.is_some() || self.captures.is_active()
    }

    /// Returns true if a program's packets must be traced.
    pub(super) fn need_traces(&self, program: &Program) -> bool {
        let log = self.log.as_ref();
        self.trace.is_some()
            || self.captures.is_active()
            || log.is_some_and(|log| log.needs_traces(program))
    }

    /// Writes traces, and returns the number of those that could not be written to the output of `--trace`.
    pub(super) fn write(&self, traces: &[Trace]) -> u64 {
        if traces.is_empty() {
            return 0;
        }
        self.captures.offer(traces);
        if let Some(log) = &self.log {
            log.write(traces);
        }
        self.trace.as_ref().map_or(0, |trace| trace.write(traces))
    }
}
