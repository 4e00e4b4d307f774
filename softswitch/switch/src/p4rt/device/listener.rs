// SPDX-License-Identifier: Apache-2.0
//! Another control plane that receives the data plane's events.

use std::fmt::Debug;

use softswitch_pipeline::{Digest, IdleEntry};

use crate::dataplane::SharedPipeline;

/// A control plane over the same device, whose clients receive digests and idle entries in messages of its own.
pub trait EventListener: Debug + Send + Sync {
    /// Handles the digests of a pipeline.
    fn learn(&self, pipeline: &SharedPipeline, digests: &[Digest]);

    /// Handles the idle entries of a pipeline. The pipeline reports an entry again after each further time-out.
    fn age(&self, pipeline: &SharedPipeline, idle: &[IdleEntry]);

    /// Looks whether entries that were reported as idle have been hit since.
    fn revive(&self, pipeline: &SharedPipeline);
}
