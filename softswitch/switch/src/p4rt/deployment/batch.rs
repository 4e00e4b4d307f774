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

impl Deployment {
    /// Applies a role's batch; the results are in the order of the updates.
    pub fn write(
        &self,
        updates: &[Update],
        role: &Role,
        atomicity: Atomicity,
        now: Nanos,
    ) -> Vec<P4Result<()>> {
        let access = self.access(role);
        match atomicity {
            Atomicity::ContinueOnError => self.write_each(updates, access, now),
            // Updates that the data plane does not see need no rollback under its lock.
            Atomicity::RollbackOnError | Atomicity::DataplaneAtomic => {
                self.write_all(updates, access, now)
            }
        }
    }

    fn decode(&self, update: &Update, access: Access<'_>) -> P4Result<Op> {
        if let Some(entity) = &update.entity {
            access.check(entity)?;
        }
        entity::decode(&self.schema, update)
    }

    /// Applies a decoded update.
    fn apply(&self, update: &Update, op: Op, context: &mut Context<'_>) -> P4Result<()> {
        if self.schema.references.is_empty() {
            return op(context);
        }
        integrity::apply(&self.schema, update, op, context)
    }

    fn write_each(&self, updates: &[Update], access: Access<'_>, now: Nanos) -> Vec<P4Result<()>> {
        self.write_with(updates, access, now, |update, op, context| {
            self.apply(update, op, context)
        })
    }

    /// Applies updates in any order: references are not checked.
    pub(super) fn write_unordered(&self, updates: &[Update], now: Nanos) -> Vec<P4Result<()>> {
        let role = Role::default();
        self.write_with(updates, self.access(&role), now, |_, op, context| {
            op(context)
        })
    }

    fn write_with(
        &self,
        updates: &[Update],
        access: Access<'_>,
        now: Nanos,
        apply: impl Fn(&Update, Op, &mut Context<'_>) -> P4Result<()>,
    ) -> Vec<P4Result<()>> {
        let mut notes = self.notes.lock();
        let mut results = Vec::with_capacity(updates.len());
        for chunk in updates.chunks(UPDATES_PER_LOCK) {
            let ops: Vec<_> = chunk.iter().map(|u| (u, self.decode(u, access))).collect();
            let mut pipeline = self.pipeline.lock();
            let mut context = Context {
                pipeline: &mut pipeline,
                notes: &mut notes,
                now,
                undo: None,
            };
            let ops = ops.into_iter();
            results.extend(ops.map(|(update, op)| apply(update, op?, &mut context)));
        }
        results
    }

    /// Applies all updates or, if one fails, none. Packets wait until the end, so they see the state
    /// before or after the batch.
    fn write_all(&self, updates: &[Update], access: Access<'_>, now: Nanos) -> Vec<P4Result<()>> {
        let mut notes = self.notes.lock();
        let decoded = updates.iter().map(|u| self.decode(u, access));
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
        let mut ops = updates.iter().zip(decoded.into_iter().flatten());
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

/// Returns the error of a valid update in a failed batch.
fn aborted() -> P4Error {
    P4Error::aborted("not applied, because another update of the batch failed")
}
