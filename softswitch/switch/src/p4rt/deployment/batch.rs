// SPDX-License-Identifier: Apache-2.0
//! Batches of updates (specification, section "Batch Atomicity").

use softswitch_pipeline::Nanos;

use super::Deployment;
use crate::p4rt::entity::{self, Context, Op};
use crate::p4rt::error::{P4Error, P4Result};
use crate::p4rt::integrity;
use crate::p4rt::role::{Access, Role};
use crate::proto::p4::v1::{Update, write_request::Atomicity};

/// Number of updates applied under one lock, while packets wait. An update takes about a microsecond.
const UPDATES_PER_LOCK: usize = 32;

/// Updates, decoded for a deployment.
pub struct Batch<'a> {
    updates: &'a [Update],
    ops: Vec<P4Result<Op>>,
}

impl Deployment {
    /// Decodes a batch, which does not depend on the deployment's state.
    pub fn decode<'a>(&self, updates: &'a [Update]) -> Batch<'a> {
        let ops = updates.iter().map(|u| entity::decode(&self.schema, u));
        Batch {
            updates,
            ops: ops.collect(),
        }
    }

    /// Applies a role's batch, which was decoded for this deployment; the results are in the order of the updates.
    pub fn write(
        &self,
        mut batch: Batch<'_>,
        role: &Role,
        atomicity: Atomicity,
        now: Nanos,
    ) -> Vec<P4Result<()>> {
        batch.check(self.access(role));
        match atomicity {
            Atomicity::ContinueOnError => self.write_each(batch, now, |update, op, context| {
                self.apply(update, op, context)
            }),
            // Updates that the data plane does not see need no rollback under its lock.
            Atomicity::RollbackOnError | Atomicity::DataplaneAtomic => self.write_all(batch, now),
        }
    }

    /// Applies a decoded update.
    fn apply(&self, update: &Update, op: Op, context: &mut Context<'_>) -> P4Result<()> {
        if self.schema.references.is_empty() {
            return op(context);
        }
        integrity::apply(&self.schema, update, op, context)
    }

    /// Applies updates in any order: references are not checked.
    pub(super) fn write_unordered(&self, updates: &[Update], now: Nanos) -> Vec<P4Result<()>> {
        self.write_each(self.decode(updates), now, |_, op, context| op(context))
    }

    fn write_each(
        &self,
        batch: Batch<'_>,
        now: Nanos,
        apply: impl Fn(&Update, Op, &mut Context<'_>) -> P4Result<()>,
    ) -> Vec<P4Result<()>> {
        let mut notes = self.notes.lock();
        let mut results = Vec::with_capacity(batch.ops.len());
        let mut ops = batch.ops.into_iter();
        for chunk in batch.updates.chunks(UPDATES_PER_LOCK) {
            let mut pipeline = self.pipeline.lock();
            let mut context = Context {
                pipeline: &mut pipeline,
                notes: &mut notes,
                now,
                undo: None,
            };
            let ops = chunk.iter().zip(&mut ops);
            results.extend(ops.map(|(update, op)| apply(update, op?, &mut context)));
        }
        results
    }

    /// Applies all updates or, if one fails, none. Packets wait until the end, so they see the state
    /// before or after the batch.
    fn write_all(&self, batch: Batch<'_>, now: Nanos) -> Vec<P4Result<()>> {
        let Batch { updates, ops } = batch;
        if ops.iter().any(Result::is_err) {
            let results = ops.into_iter();
            return results
                .map(|op| Err(op.err().unwrap_or_else(aborted)))
                .collect();
        }
        let mut notes = self.notes.lock();
        let mut pipeline = self.pipeline.lock();
        let mut context = Context {
            pipeline: &mut pipeline,
            notes: &mut notes,
            now,
            undo: Some(Vec::new()),
        };
        let mut ops = updates.iter().zip(ops.into_iter().flatten());
        let failed = ops
            .by_ref()
            .map(|(update, op)| self.apply(update, op, &mut context))
            .enumerate()
            .find_map(|(i, result)| Some((i, result.err()?)));
        let Some((at, error)) = failed else {
            return updates.iter().map(|_| Ok(())).collect();
        };
        let steps = context.undo.take();
        entity::undo(steps.unwrap_or_default(), &mut context);
        context.notes.references = None;
        let mut results: Vec<_> = updates.iter().map(|_| Err(aborted())).collect();
        results[at] = Err(error);
        results
    }
}

impl Batch<'_> {
    /// Rejects the updates that a role may not make.
    fn check(&mut self, access: Access<'_>) {
        for (update, op) in self.updates.iter().zip(&mut self.ops) {
            let entity = update.entity.as_ref();
            if let Some(Err(error)) = entity.map(|entity| access.check(entity)) {
                *op = Err(error);
            }
        }
    }
}

/// Returns the error of a valid update in a failed batch.
fn aborted() -> P4Error {
    P4Error::aborted("not applied, because another update of the batch failed")
}
