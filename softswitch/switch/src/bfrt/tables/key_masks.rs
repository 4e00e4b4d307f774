// SPDX-License-Identifier: Apache-2.0
//! Dynamic masks of exact keys: packets and entries ignore the bits outside the mask.

use softswitch_pipeline::{EntryKey, MatchField, Value};

use crate::bfrt::data::{number, padded};
use crate::bfrt::link::Object;
use crate::bfrt::program::Program;
use crate::bfrt::schema::{KeyField, Table, Type};
use crate::p4rt::entity::Context;
use crate::p4rt::error::{P4Error, P4Result};
use crate::proto::bfrt::{DynKeyMask, KeyFieldMask};

fn width(field: &KeyField) -> u32 {
    match field.ty {
        Type::Bits(width) => width,
        _ => 1,
    }
}

/// Returns the masks with which all bits matter.
pub fn all(table: &Table) -> DynKeyMask {
    let fields = table.key.iter().map(|field| KeyFieldMask {
        field_id: field.id,
        mask: padded(&Value::ones(width(field)), width(field)),
    });
    DynKeyMask {
        fields: fields.collect(),
    }
}

/// Returns the masks as a key.
fn key(table: &Table, masks: &DynKeyMask) -> P4Result<EntryKey> {
    let fields = table.key.iter().map(|field| {
        let given = masks.fields.iter().find(|mask| mask.field_id == field.id);
        let what = || format!("table {}, mask of key field {}", table.name, field.name);
        let value = match given {
            Some(given) => number(&given.mask, width(field), what)?,
            None => Value::ones(width(field)),
        };
        Ok(MatchField::Exact(value))
    });
    Ok(EntryKey {
        fields: fields.collect::<P4Result<_>>()?,
        priority: 0,
    })
}

/// Changes the masks of a table from the first to the second. Fields without a mask match all bits.
///
/// # Errors
/// INVALID_ARGUMENT if a field does not exist, a mask is too large, or the table has entries.
pub fn set(
    program: &Program,
    cx: &mut Context<'_>,
    table: &Table,
    (from, to): (&DynKeyMask, &mut DynKeyMask),
) -> P4Result<()> {
    let is_known = |mask: &KeyFieldMask| table.key.iter().any(|f| f.id == mask.field_id);
    if let Some(unknown) = to.fields.iter().find(|mask| !is_known(mask)) {
        let (name, id) = (&table.name, unknown.field_id);
        let message = format!("table {name}: unknown key field id {id}");
        return Err(P4Error::invalid(message));
    }
    let Object::Match(target) = program.object(table) else {
        return Ok(());
    };
    let (id, before, after) = (target.id, key(table, from)?, key(table, to)?);
    cx.pipeline.set_key_mask(id, Some(&after))?;
    cx.undo(move |cx| Ok(cx.pipeline.set_key_mask(id, Some(&before))?));
    let mut missing = all(table).fields;
    missing.retain(|mask| {
        !to.fields
            .iter()
            .any(|given| given.field_id == mask.field_id)
    });
    to.fields.append(&mut missing);
    Ok(())
}
