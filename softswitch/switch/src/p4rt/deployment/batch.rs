// SPDX-License-Identifier: Apache-2.0
//! Batches of updates (specification, section "Batch Atomicity").

use parking_lot::MutexGuard;
use softswitch_pipeline::Nanos;

use super::Deployment;
use crate::p4rt::entity::{self, Context, Op};
use crate::p4rt::error::{P4Error, P4Result};
use crate::proto::p4::v1::{Update, write_request::Atomicity};

/// Number of updates applied under one lock, while packets wait. An update takes about a microsecond.
const UPDATES_PER_LOCK: usize = 32;

impl Deployment {
    /// Applies a batch; the results are in the order of the updates.
    pub fn write(&self, updates: &[Update], atomicity: Atomicity, now: Nanos) -> Vec<P4Result<()>> {
        match atomicity {
            Atomicity::ContinueOnError => self.write_each(updates, now),
            // Updates that the data plane does not see need no rollback under its lock.
            Atomicity::RollbackOnError | Atomicity::DataplaneAtomic => self.write_all(updates, now),
        }
    }

    fn write_each(&self, updates: &[Update], now: Nanos) -> Vec<P4Result<()>> {
        let mut notes = self.notes.lock();
        let mut results = Vec::with_capacity(updates.len());
        for chunk in updates.chunks(UPDATES_PER_LOCK) {
            let ops: Vec<_> = chunk
                .iter()
                .map(|u| entity::decode(&self.schema, u))
                .collect();
            let mut pipeline = self.pipeline.lock();
            let mut context = Context {
                pipeline: &mut pipeline,
                notes: &mut notes,
                now,
                undo: None,
            };
            results.extend(ops.into_iter().map(|op| op?(&mut context)));
            // Packets that have arrived in the meantime go first.
            MutexGuard::unlock_fair(pipeline);
        }
        results
    }

    /// Applies all updates or, if one fails, none. Packets wait until the end, so they see the state
    /// before or after the batch.
    fn write_all(&self, updates: &[Update], now: Nanos) -> Vec<P4Result<()>> {
        let mut notes = self.notes.lock();
        let decoded = updates.iter().map(|u| entity::decode(&self.schema, u));
        let decoded: Vec<P4Result<Op>> = decoded.collect();
        if decoded.iter().any(Result::is_err) {
            let results = decoded.into_iter();
            return results
                .map(|op| Err(op.err().unwrap_or_else(aborted)))
                .collect();
        }
        let mut pipeline = self.pipeline.lock();
        let mut context = Context {
            pipeline: &mut pipeline,
            notes: &mut notes,
            now,
            undo: Some(Vec::new()),
        };
        let mut ops = decoded.into_iter().flatten();
        let failed = ops
            .by_ref()
            .map(|op| op(&mut context))
            .enumerate()
            .find_map(|(i, result)| Some((i, result.err()?)));
        let Some((at, error)) = failed else {
            return updates.iter().map(|_| Ok(())).collect();
        };
        for undo in context.undo.take().into_iter().flatten().rev() {
            if let Err(error) = undo(&mut context) {
                tracing::error!("a batch could not be rolled back completely: {error}");
                debug_assert!(false, "rolling back: {error}");
            }
        }
        let mut results: Vec<_> = updates.iter().map(|_| Err(aborted())).collect();
        results[at] = Err(error);
        results
    }
}

/// Returns the error of a valid update in a failed batch.
fn aborted() -> P4Error {
    P4Error::aborted("not applied, because another update of the batch failed")
}
