// SPDX-License-Identifier: Apache-2.0
//! Indirect counters.

use softswitch_pipeline::{CounterId, CounterValue};

use super::entries::{decode_counter, encode_counter};
use super::{Access, Query, Row, Update, cell, cells};
use crate::bfrt::data::Data;
use crate::bfrt::key::Key;
use crate::p4rt::error::P4Result;
use crate::proto::bfrt::update::Type;

pub fn write(access: &mut Access<'_, '_>, update: &Update<'_>, id: CounterId) -> P4Result<()> {
    match (update.operation, &update.key) {
        (Type::Delete, None) => {
            let size = access.cx.pipeline.program().info().counters[id.index()].size;
            (0..size).try_for_each(|index| set(access, id, index, CounterValue::default()))
        }
        (Type::Insert | Type::Modify, Some(key)) => {
            let value = decode_counter(update.table, &update.data);
            set(
                access,
                id,
                cell(update.table, key)?,
                value.unwrap_or_default(),
            )
        }
        (Type::Insert | Type::Modify, None) => Err(update.invalid("missing key")),
        _ => Err(update.unsupported()),
    }
}

fn set(access: &mut Access<'_, '_>, id: CounterId, index: usize, to: CounterValue) -> P4Result<()> {
    let before = access.cx.pipeline.counter(id, index)?;
    access.cx.pipeline.set_counter(id, index, to)?;
    access
        .cx
        .undo(move |cx| Ok(cx.pipeline.set_counter(id, index, before)?));
    Ok(())
}

pub fn read(access: &mut Access<'_, '_>, query: &Query<'_>, id: CounterId) -> P4Result<Vec<Row>> {
    let pipeline = &access.cx.pipeline;
    let size = pipeline.program().info().counters[id.index()].size;
    let rows = cells(query, size)?.map(|index| {
        let mut data = Data::default();
        encode_counter(query.table, &mut data, pipeline.counter(id, index)?);
        Ok(Row {
            key: Some(Key::exact([index as u64])),
            data,
        })
    });
    rows.collect()
}
