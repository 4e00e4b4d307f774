// SPDX-License-Identifier: Apache-2.0
//! Direct counters and meters, whose cells belong to the entries of a table.

use super::{Op, View, counter, meter, only_modify, table, wrap};
use crate::p4rt::error::{P4Error, P4Result};
use crate::p4rt::schema::Schema;
use crate::proto::p4::v1::{
    CounterData, DirectCounterEntry, DirectMeterEntry, Entity, MeterConfig, TableEntry,
    entity::Entity as Kind, update::Type,
};

fn no_direct_counter(name: &str) -> P4Error {
    P4Error::invalid(format!("table {name} does not have a direct counter"))
}

pub fn write_counter(schema: &Schema, action: Type, entry: &DirectCounterEntry) -> P4Result<Op> {
    only_modify("direct counters", action)?;
    let of = entry.table_entry.as_ref();
    let of =
        of.ok_or_else(|| P4Error::invalid("the direct counter entry does not name a table entry"))?;
    let table = table::find(schema, of.table_id)?;
    if !table.direct_counter {
        return Err(no_direct_counter(&table.name));
    }
    let key = table::decode_name(table, of)?;
    let value = entry.data.as_ref().map(counter::decode).transpose()?;
    let target = table.target;
    Ok(Box::new(move |cx| {
        let before = cx.pipeline.direct_counter(target, key.as_ref())?;
        if let Some(value) = value {
            cx.pipeline
                .set_direct_counter(target, key.as_ref(), value)?;
        }
        if let Some(before) = before {
            cx.undo(move |cx| {
                Ok(cx
                    .pipeline
                    .set_direct_counter(target, key.as_ref(), before)?)
            });
        }
        Ok(())
    }))
}

pub fn read_counter(
    view: View<'_>,
    request: &DirectCounterEntry,
    out: &mut Vec<Entity>,
) -> P4Result<()> {
    let filter = TableEntry {
        counter_data: Some(CounterData::default()),
        ..request.table_entry.clone().unwrap_or_default()
    };
    let entries = table::read_with(view, &filter, |t| t.direct_counter, no_direct_counter)?;
    out.extend(entries.into_iter().map(|mut entry| {
        let data = entry.counter_data.take();
        wrap(Kind::DirectCounterEntry(DirectCounterEntry {
            table_entry: Some(entry),
            data,
        }))
    }));
    Ok(())
}

fn no_direct_meter(name: &str) -> P4Error {
    P4Error::invalid(format!("table {name} does not have a direct meter"))
}

pub fn write_meter(schema: &Schema, action: Type, entry: &DirectMeterEntry) -> P4Result<Op> {
    only_modify("direct meters", action)?;
    let of = entry.table_entry.as_ref();
    let of =
        of.ok_or_else(|| P4Error::invalid("the direct meter entry does not name a table entry"))?;
    let table = table::find(schema, of.table_id)?;
    let kind = table.direct_meter;
    let kind = kind.ok_or_else(|| no_direct_meter(&table.name))?;
    let resets = meter::decode_reset(entry.counter_data.as_ref())?;
    let key = table::decode_name(table, of)?;
    let config = entry.config.as_ref();
    let config = config.map(|c| meter::decode(c, kind)).transpose()?;
    let target = table.target;
    Ok(Box::new(move |cx| {
        let before = cx.before(|p, _| p.direct_meter_state(target, key.as_ref()));
        cx.pipeline.set_direct_meter(target, key.as_ref(), config)?;
        if resets {
            cx.pipeline
                .reset_direct_meter_counters(target, key.as_ref())?;
        }
        if let Some(Ok(Some(before))) = before {
            cx.undo(move |cx| {
                Ok(cx
                    .pipeline
                    .restore_direct_meter(target, key.as_ref(), before)?)
            });
        }
        Ok(())
    }))
}

pub fn read_meter(
    view: View<'_>,
    request: &DirectMeterEntry,
    out: &mut Vec<Entity>,
) -> P4Result<()> {
    let filter = TableEntry {
        meter_config: Some(MeterConfig::default()),
        meter_counter_data: request.counter_data,
        ..request.table_entry.clone().unwrap_or_default()
    };
    let entries = table::read_with(view, &filter, |t| t.direct_meter.is_some(), no_direct_meter)?;
    out.extend(entries.into_iter().map(|mut entry| {
        let config = entry.meter_config.take();
        let counter_data = entry.meter_counter_data.take();
        wrap(Kind::DirectMeterEntry(DirectMeterEntry {
            table_entry: Some(entry),
            config,
            counter_data,
        }))
    }));
    Ok(())
}
