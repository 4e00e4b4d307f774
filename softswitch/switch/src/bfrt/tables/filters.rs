// SPDX-License-Identifier: Apache-2.0
//! Indirect low-pass filters and random early detection.

use softswitch_pipeline::{FilterCell, FilterConfig, FilterId};

use super::{Access, Query, Row, Update, cell, cells};
use crate::bfrt::data::Data;
use crate::bfrt::filters;
use crate::bfrt::key::Key;
use crate::p4rt::error::P4Result;
use crate::proto::bfrt::update::Type;

pub fn write(access: &mut Access<'_, '_>, update: &Update<'_>, id: FilterId) -> P4Result<()> {
    match (update.operation, &update.key) {
        (Type::Delete, None) => {
            let size = access.cx.pipeline.program().info().filters[id.index()].size;
            (0..size).try_for_each(|index| set(access, id, index, None))
        }
        (Type::Insert | Type::Modify, Some(key)) => {
            let config = filters::decode(update.table, &update.data)?;
            set(access, id, cell(update.table, key)?, config)
        }
        (Type::Insert | Type::Modify, None) => Err(update.invalid("missing key")),
        _ => Err(update.unsupported()),
    }
}

fn set(
    access: &mut Access<'_, '_>,
    id: FilterId,
    index: usize,
    config: Option<FilterConfig>,
) -> P4Result<()> {
    let cell = FilterCell::Index(index);
    let before = access.cx.pipeline.filter(id, cell)?;
    access.cx.pipeline.set_filter(id, cell, config)?;
    access.cx.undo(move |cx| {
        Ok(cx
            .pipeline
            .set_filter(id, FilterCell::Index(index), before)?)
    });
    Ok(())
}

pub fn read(access: &mut Access<'_, '_>, query: &Query<'_>, id: FilterId) -> P4Result<Vec<Row>> {
    let pipeline = &access.cx.pipeline;
    let size = pipeline.program().info().filters[id.index()].size;
    let rows = cells(query, size)?.map(|index| {
        let mut data = Data::default();
        let config = pipeline.filter(id, FilterCell::Index(index))?;
        filters::encode(query.table, &mut data, config);
        Ok(Row {
            key: Some(Key::exact([index as u64])),
            data,
        })
    });
    rows.collect()
}
