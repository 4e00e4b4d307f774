// SPDX-License-Identifier: Apache-2.0
//! Registers, and parameters of registers.

use softswitch_pipeline::{RegisterId, Value};

use super::entries::{decode_register, encode_register};
use super::{Access, Query, Row, Update, cell, cells};
use crate::bfrt::data::{Data, FieldValue};
use crate::bfrt::key::Key;
use crate::p4rt::error::P4Result;
use crate::proto::bfrt::update::Type;

/// The only cell of a register parameter.
const PARAMETER: usize = 0;

pub fn write(
    access: &mut Access<'_, '_>,
    update: &Update<'_>,
    arrays: &[(u32, RegisterId)],
) -> P4Result<()> {
    match (update.operation, &update.key) {
        (Type::Delete, None) => arrays.iter().try_for_each(|(_, id)| reset(access, *id)),
        (Type::Insert | Type::Modify, Some(key)) => {
            let index = cell(update.table, key)?;
            // The cell must exist, even if there is nothing to write.
            for (_, id) in arrays {
                access.cx.pipeline.register(*id, index)?;
            }
            for (field, id) in arrays {
                if let Some(to) = update.data.values.get(field).and_then(decode_register) {
                    set(access, *id, index, &to)?;
                }
            }
            Ok(())
        }
        (Type::Insert | Type::Modify, None) => Err(update.invalid("missing key")),
        _ => Err(update.unsupported()),
    }
}

fn set(access: &mut Access<'_, '_>, id: RegisterId, index: usize, to: &Value) -> P4Result<()> {
    let before = access.cx.pipeline.register(id, index)?;
    access.cx.pipeline.set_register(id, index, to)?;
    access
        .cx
        .undo(move |cx| Ok(cx.pipeline.set_register(id, index, &before)?));
    Ok(())
}

fn reset(access: &mut Access<'_, '_>, id: RegisterId) -> P4Result<()> {
    let size = access.cx.pipeline.program().info().registers[id.index()].size;
    let read = |index| Ok(access.cx.pipeline.register(id, index)?);
    let before: Vec<Value> = match access.cx.undo {
        Some(_) => (0..size).map(read).collect::<P4Result<_>>()?,
        None => vec![],
    };
    access.cx.pipeline.reset_register(id)?;
    access.cx.undo(move |cx| {
        for (index, value) in before.iter().enumerate() {
            cx.pipeline.set_register(id, index, value)?;
        }
        Ok(())
    });
    Ok(())
}

pub fn read(
    access: &mut Access<'_, '_>,
    query: &Query<'_>,
    arrays: &[(u32, RegisterId)],
) -> P4Result<Vec<Row>> {
    let pipeline = &access.cx.pipeline;
    let registers = &pipeline.program().info().registers;
    let sizes = arrays.iter().map(|(_, id)| registers[id.index()].size);
    let rows = cells(query, sizes.min().unwrap_or(0))?.map(|index| {
        let mut data = Data::default();
        for (id, array) in arrays {
            let value = pipeline.register(*array, index)?;
            data.values
                .insert(*id, encode_register(query.table, *id, value));
        }
        Ok(Row {
            key: Some(Key::exact([index as u64])),
            data,
        })
    });
    rows.collect()
}

pub fn write_parameter(
    access: &mut Access<'_, '_>,
    update: &Update<'_>,
    id: RegisterId,
) -> P4Result<()> {
    match update.operation {
        Type::Delete => reset(access, id),
        Type::Insert | Type::Modify => {
            let to = update.data.values.values().find_map(decode_register);
            let to = to.ok_or_else(|| update.invalid("missing value"))?;
            set(access, id, PARAMETER, &to)
        }
        _ => Err(update.unsupported()),
    }
}

pub fn read_parameter(
    access: &mut Access<'_, '_>,
    query: &Query<'_>,
    id: RegisterId,
) -> P4Result<Vec<Row>> {
    let value = access.cx.pipeline.register(id, PARAMETER)?;
    let mut data = Data::default();
    data.set(query.table, "value", FieldValue::Number(value));
    Ok(vec![Row { key: None, data }])
}
