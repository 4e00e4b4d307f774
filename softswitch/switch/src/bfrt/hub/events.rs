// SPDX-License-Identifier: Apache-2.0
//! Messages to clients about digests and idle entries.

use std::sync::Arc;

use softswitch_pipeline::{Digest, IdleEntry, Value};

use super::{Hub, Message};
use crate::bfrt::data::padded;
use crate::bfrt::program::Program;
use crate::bfrt::schema::{Table, Type};
use crate::bfrt::tables::{attributes, encode_entry_key};
use crate::bfrt::target::{pipe, whole_device};
use crate::dataplane::SharedPipeline;
use crate::p4rt::device::EventListener;
use crate::proto::bfrt::data_field::Value as Wire;
use crate::proto::bfrt::idle_table::IdleTableMode;
use crate::proto::bfrt::idle_timeout_notification::NotificationType;
use crate::proto::bfrt::subscribe::Notifications;
use crate::proto::bfrt::{
    DataField, DigestList, IdleTimeoutNotification, TableData, TableEntry, TableKey, TargetDevice,
    table_entry,
};

impl Hub {
    /// Returns the program of a pipeline.
    fn program_with(&self, pipeline: &SharedPipeline) -> Option<Arc<Program>> {
        let program = self.program.read().clone();
        program.filter(|p| Arc::ptr_eq(p.deployment.pipeline(), pipeline))
    }
}

impl EventListener for Hub {
    /// Sends digests: those of one kind that follow each other in one list.
    fn learn(&self, pipeline: &SharedPipeline, digests: &[Digest]) {
        let Some(program) = self.program_with(pipeline) else {
            return;
        };
        for list in digests.chunk_by(|a, b| a.id == b.id) {
            let Some((digest_id, fields)) = program.digest(list[0].id.0) else {
                continue;
            };
            let widths = program.schema.digests.iter().find(|d| d.id == *digest_id);
            let types: Vec<_> = widths.map(|d| &d.fields).into_iter().flatten().collect();
            let data = list.iter().map(|digest| {
                let values = fields.iter().zip(&digest.fields).zip(&types);
                let fields = values.map(|((id, value), field)| encode(*id, value, &field.ty));
                TableData {
                    action_id: 0,
                    fields: fields.collect(),
                }
            });
            let list = DigestList {
                digest_id: *digest_id,
                list_id: 0,
                data: data.collect(),
                target: Some(pipe(0)),
            };
            let wants = |n: &Notifications| n.enable_learn_notifications;
            self.send_to(&program, wants, &Message::Digest(list));
        }
    }

    /// Sends a message for each idle entry of the tables with notifications. The pipeline reports an entry again after each
    /// further time-out, and clients want it once.
    fn age(&self, pipeline: &SharedPipeline, idle: &[IdleEntry]) {
        let Some(program) = self.program_with(pipeline) else {
            return;
        };
        let info = pipeline.lock().program().clone();
        let state = program.state.lock();
        for entry in idle.iter().filter(|entry| !entry.is_repeated) {
            let Some(table) = program.match_table(entry.table) else {
                continue;
            };
            let settings = attributes::idle(&state, table.id);
            if settings.is_none_or(|s| s.idle_table_mode() != IdleTableMode::IdleTableNotifyMode) {
                continue;
            }
            let info = &info.info().tables[entry.table.index()];
            let target = match attributes::is_symmetric(&state, table.id) {
                true => whole_device(),
                false => pipe(0),
            };
            let key = encode_entry_key(info, &entry.key).encode(table);
            let message = idle_notification(table, key, target);
            let wants = |n: &Notifications| n.enable_idletimeout_notifications;
            self.send_to(&program, wants, &message);
        }
    }
}

fn idle_notification(table: &Table, key: TableKey, target: TargetDevice) -> Message {
    Message::IdleTimeoutNotification(IdleTimeoutNotification {
        target: Some(target),
        table_entry: Some(TableEntry {
            table_id: table.id,
            value: Some(table_entry::Value::Key(key)),
            ..Default::default()
        }),
        r#type: NotificationType::EntryIdle.into(),
    })
}

/// Encodes a field of a digest.
fn encode(field_id: u32, value: &Value, ty: &Type) -> DataField {
    let width = match ty {
        Type::Bits(width) => *width,
        _ => 1,
    };
    DataField {
        field_id,
        value: Some(Wire::Stream(padded(value, width))),
    }
}
