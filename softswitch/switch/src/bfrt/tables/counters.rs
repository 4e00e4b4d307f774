// SPDX-License-Identifier: Apache-2.0
//! Indirect counters.

use softswitch_pipeline::{CounterId, CounterValue};

use super::entries::{decode_counter, encode_counter};
use super::{Access, Query, Row, Update, cell, cells};
use crate::bfrt::data::Data;
use crate::bfrt::key::Key;
use crate::bfrt::schema::Table;
use crate::p4rt::error::P4Result;
use crate::proto::bfrt::update::Type;

pub fn write(access: &mut Access<'_, '_>, update: &Update<'_>, id: CounterId) -> P4Result<()> {
    match (update.operation, &update.key) {
        (Type::Delete, None) => {
            let size = access.cx.pipeline.program().info().counters[id.index()].size;
            (0..size).try_for_each(|index| {
                set(access, update.table, (id, index), CounterValue::default())
            })
        }
        (Type::Insert | Type::Modify, Some(key)) => {
            let value = decode_counter(update.table, &update.data);
            let cell = (id, cell(update.table, key)?);
            set(access, update.table, cell, value.unwrap_or_default())
        }
        (Type::Insert | Type::Modify, None) => Err(update.invalid("missing key")),
        _ => Err(update.unsupported()),
    }
}

fn set(
    access: &mut Access<'_, '_>,
    table: &Table,
    (id, index): (CounterId, usize),
    to: CounterValue,
) -> P4Result<()> {
    let before = access.cx.pipeline.counter(id, index)?;
    access.cx.pipeline.set_counter(id, index, to)?;
    access.state.set_counter(table.id, index as u64, to);
    access
        .cx
        .undo(move |cx| Ok(cx.pipeline.set_counter(id, index, before)?));
    Ok(())
}

/// Synchronizes all cells.
pub fn synchronize(access: &mut Access<'_, '_>, table: &Table, id: CounterId) -> P4Result<()> {
    let size = access.cx.pipeline.program().info().counters[id.index()].size;
    for index in 0..size {
        let value = access.cx.pipeline.counter(id, index)?;
        access.state.set_counter(table.id, index as u64, value);
    }
    Ok(())
}

pub fn read(access: &mut Access<'_, '_>, query: &Query<'_>, id: CounterId) -> P4Result<Vec<Row>> {
    let size = access.cx.pipeline.program().info().counters[id.index()].size;
    let rows = cells(query, size)?.map(|index| {
        let mut data = Data::default();
        let current = access.cx.pipeline.counter(id, index)?;
        let value = access.seen(query, index as u64, current);
        encode_counter(query.table, &mut data, value);
        Ok(Row {
            key: Some(Key::exact([index as u64])),
            data,
        })
    });
    rows.collect()
}
