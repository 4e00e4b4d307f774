// SPDX-License-Identifier: Apache-2.0
//! Messages to clients about digests and idle entries.

use softswitch_pipeline::{Digest, EntryKey, IdleEntry, TableId, Value};

use super::{Hub, Message, ReportedIdle};
use crate::bfrt::data::padded;
use crate::bfrt::program::Program;
use crate::bfrt::programs::Programs;
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
    /// Returns the programs of a pipeline.
    fn programs_with(&self, pipeline: &SharedPipeline) -> Option<Programs> {
        let present = self.present.read();
        let programs = present.as_ref().map(|present| &present.programs);
        programs.filter(|programs| programs.have(pipeline)).cloned()
    }
}

impl EventListener for Hub {
    /// Sends digests: those of one kind that follow each other in one list.
    fn learn(&self, pipeline: &SharedPipeline, digests: &[Digest]) {
        let Some(programs) = self.programs_with(pipeline) else {
            return;
        };
        for list in digests.chunk_by(|a, b| (a.program, a.id) == (b.program, b.id)) {
            let Some(program) = programs.numbered(list[0].program) else {
                continue;
            };
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
            self.send_to(program, wants, &Message::Digest(list));
        }
    }

    /// Sends a message for each idle entry of the tables with notifications. The pipeline reports an entry again after each
    /// further time-out, and clients want it once.
    fn age(&self, pipeline: &SharedPipeline, idle: &[IdleEntry]) {
        let Some(programs) = self.programs_with(pipeline) else {
            return;
        };
        for entry in idle.iter().filter(|entry| !entry.is_repeated) {
            let Some(program) = programs.numbered(entry.program) else {
                continue;
            };
            let wants = |n: &Notifications| n.enable_idletimeout_notifications;
            let kind = NotificationType::EntryIdle;
            let message = message(program, (entry.table, &entry.key), kind);
            let Some(message) = message else { continue };
            self.send_to(program, wants, &message);
            let found = program.deployment.entry(entry.table, entry.handle);
            self.idle.lock().extend(found.map(|found| ReportedIdle {
                program: entry.program,
                table: entry.table,
                handle: entry.handle,
                last_hit: found.last_hit,
            }));
        }
    }

    /// Sends a message for each entry that was idle and has been hit, to the clients that want it.
    fn revive(&self, pipeline: &SharedPipeline) {
        let reported = std::mem::take(&mut *self.idle.lock());
        let Some(programs) = self.programs_with(pipeline) else {
            return;
        };
        for entry in reported {
            let program = programs.numbered(entry.program);
            let found = program.and_then(|program| {
                let found = program.deployment.entry(entry.table, entry.handle)?;
                Some((program, found))
            });
            let Some((program, found)) = found else {
                continue;
            };
            if found.last_hit == entry.last_hit {
                self.idle.lock().push(entry);
                continue;
            }
            let wants = |n: &Notifications| n.enable_entry_active_notifications;
            let kind = NotificationType::EntryActive;
            let message = message(program, (entry.table, &found.entry.key), kind);
            if let Some(message) = message {
                self.send_to(program, wants, &message);
            }
        }
    }
}

/// Returns the message about an entry, if its table has notifications.
fn message(
    program: &Program,
    (id, key): (TableId, &EntryKey),
    kind: NotificationType,
) -> Option<Message> {
    let table = program.match_table(id)?;
    let state = program.state();
    let settings = attributes::idle(&state, table.id)?;
    if settings.idle_table_mode() != IdleTableMode::IdleTableNotifyMode {
        return None;
    }
    let loaded = program.deployment.program();
    let info = &loaded.info().tables[id.index()];
    let target = match attributes::is_symmetric(&state, table.id) {
        true => whole_device(),
        false => pipe(0),
    };
    let key = encode_entry_key(info, key).encode(table);
    Some(idle_notification(table, key, target, kind))
}

fn idle_notification(
    table: &Table,
    key: TableKey,
    target: TargetDevice,
    kind: NotificationType,
) -> Message {
    Message::IdleTimeoutNotification(IdleTimeoutNotification {
        target: Some(target),
        table_entry: Some(TableEntry {
            table_id: table.id,
            value: Some(table_entry::Value::Key(key)),
            ..Default::default()
        }),
        r#type: kind.into(),
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
