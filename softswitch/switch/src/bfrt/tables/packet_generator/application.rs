// SPDX-License-Identifier: Apache-2.0
//! The applications of packet generators: an action is the trigger, its fields and those of the table are the settings.

use softswitch_pipeline::{
    GENERATOR_CONTEXT_BYTES, GeneratorApp, GeneratorCounts, GeneratorPattern, GeneratorTrigger,
    Nanos, Value,
};

use super::not_found;
use crate::bfrt::data::{Data, FieldValue};
use crate::bfrt::schema::{Table, Type as FieldType};
use crate::bfrt::state::Entries;
use crate::bfrt::tables::{Access, Query, Row, Update, stored};
use crate::p4rt::error::P4Result;
use crate::proto::bfrt::update::Type;

/// Changes an application, or resets one or all.
pub(super) fn write(access: &mut Access<'_, '_>, update: &Update<'_>) -> P4Result<()> {
    let table = update.table;
    let key = update.key.as_ref();
    let key = key.map(|key| stored::numbers(table, key)).transpose()?;
    match (update.operation, key) {
        (Type::Insert | Type::Modify, Some(key)) => modify(access, update, key),
        (Type::Delete, Some(key)) => {
            reset(access, number(&key))?;
            access.state.set_entry(table.id, key, None);
            Ok(())
        }
        (Type::Delete, None) => {
            for app in 0..access.cx.pipeline.generator_apps() {
                reset(access, app)?;
            }
            access.state.entries_mut(table.id).clear();
            Ok(())
        }
        (Type::Insert | Type::Modify, None) => Err(update.invalid("missing key")),
        _ => Err(update.unsupported()),
    }
}

/// Returns the number of the application with a key; one that does not exist for other keys.
fn number(key: &[u64]) -> u32 {
    let number = key.first().and_then(|number| u32::try_from(*number).ok());
    number.unwrap_or(u32::MAX)
}

fn reset(access: &mut Access<'_, '_>, app: u32) -> P4Result<()> {
    let pipeline = &mut *access.cx.pipeline;
    pipeline.set_generator_app(app, GeneratorApp::default())?;
    pipeline.set_generator_counts(app, GeneratorCounts::default())?;
    Ok(())
}

fn modify(access: &mut Access<'_, '_>, update: &Update<'_>, key: Vec<u64>) -> P4Result<()> {
    let (table, app) = (update.table, number(&key));
    let entry = access.state.entry(table.id, &key);
    let mut data = entry.cloned().unwrap_or_default();
    if update.data.action != 0 {
        data.action = update.data.action;
    }
    data.values.extend(update.data.values.clone());
    let action = table.action(data.action);
    data.values
        .retain(|id, _| table.field(action, *id).is_some());
    let pipeline = &mut *access.cx.pipeline;
    pipeline.set_generator_app(app, settings(table, &data))?;
    let set = |name| update.data.number(table, name);
    let counts = [
        set("trigger_counter"),
        set("batch_counter"),
        set("pkt_counter"),
    ];
    if counts.iter().any(Option::is_some) {
        let [triggers, batches, packets] = counts;
        let present = pipeline.generator_counts(app)?;
        let counts = GeneratorCounts {
            triggers: triggers.unwrap_or(present.triggers),
            batches: batches.unwrap_or(present.batches),
            packets: packets.unwrap_or(present.packets),
        };
        pipeline.set_generator_counts(app, counts)?;
    }
    access.state.set_entry(table.id, key, Some(data));
    Ok(())
}

/// The fields of an entry, by name.
struct Fields<'a> {
    table: &'a Table,
    data: &'a Data,
}

impl Fields<'_> {
    fn value(&self, name: &str) -> Option<(&Value, u32)> {
        let action = self.table.action(self.data.action);
        let fields = action.into_iter().flat_map(|action| &action.fields);
        let mut fields = fields.chain(&self.table.data);
        let field = fields.find(|field| field.name == name)?;
        match (self.data.values.get(&field.id)?, &field.ty) {
            (FieldValue::Number(value), FieldType::Bits(width)) => Some((value, *width)),
            _ => None,
        }
    }

    fn u32(&self, name: &str) -> Option<u32> {
        let number = self.value(name)?.0.to_u64()?;
        u32::try_from(number).ok()
    }

    fn time(&self, name: &str) -> Nanos {
        self.u32(name).unwrap_or(0).into()
    }

    /// Returns the bits of a field, which is compared with the first bytes of packets.
    fn first_bytes(&self, name: &str) -> [u8; GENERATOR_CONTEXT_BYTES] {
        let mut bytes = [0; GENERATOR_CONTEXT_BYTES];
        if let Some((value, width)) = self.value(name)
            && let Some(padded) = value.to_padded(width as usize / 8)
        {
            bytes[..padded.len()].copy_from_slice(&padded);
        }
        bytes
    }

    fn pattern(&self) -> GeneratorPattern {
        GeneratorPattern {
            value: self.first_bytes("pattern_value"),
            mask: self.first_bytes("pattern_mask"),
        }
    }

    fn trigger(&self) -> GeneratorTrigger {
        let action = self.table.action(self.data.action);
        match action.map_or("", |action| &action.name) {
            "trigger_timer_one_shot" => GeneratorTrigger::Once(self.time("timer_nanosec")),
            "trigger_timer_periodic" => GeneratorTrigger::Periodic(self.time("timer_nanosec")),
            "trigger_port_down" => GeneratorTrigger::PortDown {
                mask: self.u32("port_mask_sel").unwrap_or(0),
            },
            "trigger_recirc_pattern" => GeneratorTrigger::Recirculation(self.pattern()),
            "trigger_dprsr" => GeneratorTrigger::Deparser(self.pattern()),
            _ => GeneratorTrigger::Never,
        }
    }
}

/// Returns the settings of an application. Numbers of batches and packets count from 0.
fn settings(table: &Table, data: &Data) -> GeneratorApp {
    let fields = Fields { table, data };
    let number = |name: &str| fields.u32(name).unwrap_or(0);
    let flag = |name: &str| data.bool(table, name) == Some(true);
    let wrap = fields.u32("source_port_wrap_max");
    GeneratorApp {
        is_enabled: flag("app_enable"),
        trigger: fields.trigger(),
        offset: number("pkt_buffer_offset"),
        length: number("pkt_len"),
        batches: number("batch_count_cfg") + 1,
        packets: number("packets_per_batch_cfg") + 1,
        batch_gap: fields.time("ibg"),
        packet_gap: fields.time("ipg"),
        source_port: number("pipe_local_source_port"),
        increments_source_port: flag("increment_source_port"),
        last_source_port: wrap.filter(|wrap| *wrap != 0).unwrap_or(u32::MAX),
        channel: fields.u32("assigned_chnl_id"),
    }
}

/// Reads one application, or those that clients have set.
pub(super) fn read(access: &mut Access<'_, '_>, query: &Query<'_>) -> P4Result<Vec<Row>> {
    let table = query.table;
    let keys = match &query.key {
        Some(key) => vec![stored::numbers(table, key)?],
        None => {
            let entries = access.state.entries(table.id);
            entries.map_or_else(Vec::new, |entries: &Entries| {
                entries.keys().cloned().collect()
            })
        }
    };
    let rows = keys.into_iter().map(|key| {
        let app = number(&key);
        let counts = access.cx.pipeline.generator_counts(app);
        let counts = counts.map_err(|_| not_found(table))?;
        let mut data = access
            .state
            .entry(table.id, &key)
            .cloned()
            .unwrap_or_default();
        stored::complete(table, &mut data);
        data.set(table, "trigger_counter", counts.triggers);
        data.set(table, "batch_counter", counts.batches);
        data.set(table, "pkt_counter", counts.packets);
        Ok(Row {
            key: Some(crate::bfrt::key::Key::exact(key)),
            data,
        })
    });
    rows.collect()
}
