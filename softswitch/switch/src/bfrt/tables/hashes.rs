// SPDX-License-Identifier: Apache-2.0
//! Hashes of TNA: the slices of their input, their algorithm, and their results for given inputs.

mod algorithms;
mod inputs;

use softswitch_pipeline::{HashConfig, HashId, Value};

use super::{Access, Query, Row, Update};
use crate::bfrt::data::{Data, FieldValue};
use crate::bfrt::link::HashTable;
use crate::bfrt::schema::{Schema, Table, Type as FieldType};
use crate::p4rt::error::P4Result;
use crate::proto::bfrt::update::Type;

/// The only entry of a table is stored under this key.
const KEY: Vec<u64> = Vec::new();

/// Returns another table of the same hash.
fn sibling<'a>(schema: &'a Schema, table: &Table, kind: &str) -> Option<&'a Table> {
    let base = |table: &Table| table.name.rsplit_once('.').map(|(base, _)| base.to_owned());
    let mut tables = schema.tables.values();
    tables.find(|other| other.kind == kind && base(other) == base(table))
}

/// Changes the input or the algorithm, or resets it.
pub fn write(
    access: &mut Access<'_, '_>,
    update: &Update<'_>,
    (hash, kind): (HashId, HashTable),
) -> P4Result<()> {
    if kind == HashTable::Result {
        return Err(update.unsupported());
    }
    let table = update.table;
    let present = access.state.entry(table.id, &KEY).cloned();
    let data = match update.operation {
        Type::Insert | Type::Modify if kind == HashTable::Input => Some(update.data.clone()),
        Type::Insert | Type::Modify => {
            let mut data = present.clone().unwrap_or_default();
            if update.data.action != 0 {
                data.action = update.data.action;
            }
            data.values.extend(update.data.values.clone());
            let action = table.action(data.action);
            data.values
                .retain(|id, _| table.field(action, *id).is_some());
            Some(data)
        }
        Type::Delete => None,
        _ => return Err(update.unsupported()),
    };
    let before = access.cx.pipeline.hash_config(hash)?;
    let mut config = HashConfig::clone(&before);
    match kind {
        HashTable::Input => {
            let inputs = data.as_ref().map(|data| inputs::parts(table, data));
            config.inputs = inputs.transpose()?;
        }
        _ => {
            let result = sibling(&access.program.schema, table, "DynHashCompute");
            let bits = result.map_or(0, result_bits);
            let algorithm = data
                .as_ref()
                .map(|data| algorithms::algorithm(table, data, bits));
            config.algorithm = algorithm.transpose()?.flatten();
        }
    }
    access.cx.pipeline.set_hash_config(hash, config)?;
    access
        .cx
        .undo(move |cx| Ok(cx.pipeline.set_hash_config(hash, before)?));
    access.state.set_entry(table.id, KEY, data);
    Ok(())
}

/// Returns the width of a hash.
fn result_bits(table: &Table) -> u32 {
    let mut fields = table.data.iter().map(|field| &field.ty);
    match fields.next() {
        Some(FieldType::Bits(width)) => *width,
        _ => 0,
    }
}

/// Reads the input or the algorithm, or computes the hash of a key.
pub fn read(
    access: &mut Access<'_, '_>,
    query: &Query<'_>,
    (hash, kind): (HashId, HashTable),
) -> P4Result<Vec<Row>> {
    let table = query.table;
    if kind == HashTable::Result {
        let Some(key) = &query.key else {
            return Ok(vec![]);
        };
        let input = sibling(&access.program.schema, table, "DynHashConfigure");
        let bytes = input.map_or_else(Vec::new, |input| inputs::bytes(input, table, key));
        let value = access.cx.pipeline.compute_hash(hash, &bytes)?;
        let bits = result_bits(table);
        let value = value
            & u64::MAX
                .checked_shr(64u32.saturating_sub(bits))
                .unwrap_or(0);
        let mut data = Data::default();
        data.set(table, "hash_value", FieldValue::Number(Value::from(value)));
        return Ok(vec![Row {
            key: Some(key.clone()),
            data,
        }]);
    }
    let data = match access.state.entry(table.id, &KEY) {
        Some(data) => data.clone(),
        None if kind == HashTable::Input => inputs::all(table),
        None => Data::default(),
    };
    Ok(vec![Row { key: None, data }])
}
