// SPDX-License-Identifier: Apache-2.0
//! Registers.

use std::ops::Range;

use softswitch_pipeline::{RegisterId, Value};

use super::{Context, Op, View, cells, only_modify, selected, unknown, wrap};
use crate::p4rt::error::{P4Error, P4Result};
use crate::p4rt::schema::Schema;
use crate::proto::p4::v1::{Entity, RegisterEntry, entity::Entity as Kind, update::Type};

pub fn write(schema: &Schema, action: Type, entry: &RegisterEntry) -> P4Result<Op> {
    only_modify("registers", action)?;
    let register = schema.registers.get(entry.register_id);
    let register = register.ok_or_else(|| unknown("register", entry.register_id))?;
    let cells = cells(entry.index.as_ref(), register.size, &register.name)?;
    let what = format!("register {}", register.name);
    let data = entry.data.as_ref();
    let data = data.ok_or_else(|| P4Error::invalid(format!("{what}: missing data")))?;
    let values = register.shape.decode_all(data, &what)?;
    let writes: Vec<_> = register.targets.iter().copied().zip(values).collect();
    let whole = cells.len() == register.size;
    Ok(Box::new(move |cx| {
        for (target, value) in &writes {
            write_array(cx, *target, cells.clone(), value, whole)?;
        }
        Ok(())
    }))
}

/// Writes a value to cells of an array; `whole` tells that these are all.
fn write_array(
    cx: &mut Context<'_>,
    target: RegisterId,
    cells: Range<usize>,
    value: &Value,
    whole: bool,
) -> P4Result<()> {
    let before = cx.before(|p, _| {
        let read = |index| Ok((index, p.register(target, index)?));
        cells.clone().map(read).collect::<P4Result<Vec<_>>>()
    });
    if whole && value.bits() == 0 {
        cx.pipeline.reset_register(target)?;
    } else {
        for index in cells {
            cx.pipeline.set_register(target, index, value)?;
        }
    }
    if let Some(Ok(before)) = before {
        cx.undo(move |cx| {
            for (index, value) in before {
                cx.pipeline.set_register(target, index, &value)?;
            }
            Ok(())
        });
    }
    Ok(())
}

pub fn read(view: View<'_>, request: &RegisterEntry, out: &mut Vec<Entity>) -> P4Result<()> {
    let registers = &view.schema.registers;
    for (register_id, register) in selected(registers, "register", request.register_id)? {
        let index = request.index.filter(|_| request.register_id != 0);
        let cells = cells(index.as_ref(), register.size, &register.name)?;
        let values = view.look_at_cells(cells, |p, i| {
            let members = register.targets.iter().map(|t| p.register(*t, i));
            members.collect::<Result<Vec<_>, _>>()
        })?;
        out.extend(values.into_iter().map(|(index, values)| {
            wrap(Kind::RegisterEntry(RegisterEntry {
                register_id,
                index: Some(index),
                data: Some(register.shape.encode(&mut values.iter())),
            }))
        }));
    }
    Ok(())
}
