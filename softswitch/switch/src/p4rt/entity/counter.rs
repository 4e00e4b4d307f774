// SPDX-License-Identifier: Apache-2.0
//! Indirect and direct counters.

use softswitch_pipeline::CounterValue;

use super::{Op, View, cells, only_modify, selected, table, unknown, wrap};
use crate::p4rt::error::{P4Error, P4Result};
use crate::p4rt::schema::Schema;
use crate::proto::p4::v1::{
    CounterData, CounterEntry, DirectCounterEntry, Entity, TableEntry, entity::Entity as Kind,
    update::Type,
};

pub fn decode(data: &CounterData) -> P4Result<CounterValue> {
    let count = |n: i64| {
        u64::try_from(n).map_err(|_| P4Error::invalid(format!("counter value {n} is negative")))
    };
    Ok(CounterValue {
        packets: count(data.packet_count)?,
        bytes: count(data.byte_count)?,
    })
}

pub fn encode(value: CounterValue) -> CounterData {
    CounterData {
        byte_count: i64::try_from(value.bytes).unwrap_or(i64::MAX),
        packet_count: i64::try_from(value.packets).unwrap_or(i64::MAX),
    }
}

pub fn write(schema: &Schema, action: Type, entry: &CounterEntry) -> P4Result<Op> {
    only_modify("counters", action)?;
    let counter = schema.counters.get(entry.counter_id);
    let counter = counter.ok_or_else(|| unknown("counter", entry.counter_id))?;
    let cells = cells(entry.index.as_ref(), counter.size, &counter.name)?;
    let value = entry.data.as_ref().map(decode).transpose()?;
    let target = counter.target;
    Ok(Box::new(move |cx| {
        let Some(value) = value else {
            return Ok(());
        };
        for index in cells {
            let before = cx.pipeline.counter(target, index)?;
            cx.pipeline.set_counter(target, index, value)?;
            cx.undo(move |cx| Ok(cx.pipeline.set_counter(target, index, before)?));
        }
        Ok(())
    }))
}

pub fn read(view: View<'_>, request: &CounterEntry, out: &mut Vec<Entity>) -> P4Result<()> {
    let counters = &view.schema.counters;
    for (counter_id, counter) in selected(counters, "counter", request.counter_id)? {
        let index = request.index.filter(|_| request.counter_id != 0);
        let cells = cells(index.as_ref(), counter.size, &counter.name)?;
        let values = view.look_at_cells(cells, |p, i| p.counter(counter.target, i))?;
        out.extend(values.into_iter().map(|(index, value)| {
            wrap(Kind::CounterEntry(CounterEntry {
                counter_id,
                index: Some(index),
                data: Some(encode(value)),
            }))
        }));
    }
    Ok(())
}

fn no_direct_counter(name: &str) -> P4Error {
    P4Error::invalid(format!("table {name} does not have a direct counter"))
}

pub fn write_direct(schema: &Schema, action: Type, entry: &DirectCounterEntry) -> P4Result<Op> {
    only_modify("direct counters", action)?;
    let of = entry.table_entry.as_ref();
    let of =
        of.ok_or_else(|| P4Error::invalid("the direct counter entry does not name a table entry"))?;
    let table = table::find(schema, of.table_id)?;
    if !table.direct_counter {
        return Err(no_direct_counter(&table.name));
    }
    let key = table::decode_name(table, of)?;
    let value = entry.data.as_ref().map(decode).transpose()?;
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

pub fn read_direct(
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
