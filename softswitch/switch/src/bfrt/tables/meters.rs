// SPDX-License-Identifier: Apache-2.0
//! Indirect meters.

use softswitch_pipeline::{MeterConfig, MeterId};

use super::{Access, Query, Row, Update, cell, cells};
use crate::bfrt::data::Data;
use crate::bfrt::key::Key;
use crate::bfrt::rates;
use crate::p4rt::error::P4Result;
use crate::proto::bfrt::update::Type;

pub fn write(access: &mut Access<'_, '_>, update: &Update<'_>, id: MeterId) -> P4Result<()> {
    match (update.operation, &update.key) {
        (Type::Delete, None) => {
            let size = access.cx.pipeline.program().info().meters[id.index()].size;
            (0..size).try_for_each(|index| set(access, id, index, None))
        }
        (Type::Insert | Type::Modify, Some(key)) => {
            let index = cell(update.table, key)?;
            let present = access.cx.pipeline.meter(id, index)?;
            match rates::decode(update.table, &update.data, present, access.program.chip)? {
                Some(config) => set(access, id, index, config),
                None => Ok(()),
            }
        }
        (Type::Insert | Type::Modify, None) => Err(update.invalid("missing key")),
        _ => Err(update.unsupported()),
    }
}

fn set(
    access: &mut Access<'_, '_>,
    id: MeterId,
    index: usize,
    config: Option<MeterConfig>,
) -> P4Result<()> {
    let before = access.cx.pipeline.meter_state(id, index)?;
    access.cx.pipeline.set_meter(id, index, config)?;
    access
        .cx
        .undo(move |cx| Ok(cx.pipeline.restore_meter(id, index, before)?));
    Ok(())
}

pub fn read(access: &mut Access<'_, '_>, query: &Query<'_>, id: MeterId) -> P4Result<Vec<Row>> {
    let pipeline = &access.cx.pipeline;
    let size = pipeline.program().info().meters[id.index()].size;
    let rows = cells(query, size)?.map(|index| {
        let mut data = Data::default();
        rates::encode(
            query.table,
            &mut data,
            pipeline.meter(id, index)?,
            access.program.chip,
        );
        Ok(Row {
            key: Some(Key::exact([index as u64])),
            data,
        })
    });
    rows.collect()
}
