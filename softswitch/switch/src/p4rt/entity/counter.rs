// SPDX-License-Identifier: Apache-2.0
//! Indirect counters, and counter values.

use softswitch_pipeline::CounterValue;

use super::{Op, View, cells, only_modify, selected, unknown, wrap};
use crate::p4rt::error::{P4Error, P4Result};
use crate::p4rt::schema::Schema;
use crate::proto::p4::v1::{
    CounterData, CounterEntry, Entity, entity::Entity as Kind, update::Type,
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
