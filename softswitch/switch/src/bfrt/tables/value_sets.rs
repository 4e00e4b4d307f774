// SPDX-License-Identifier: Apache-2.0
//! Parser value sets. All their fields are matched with masks.

use softswitch_pipeline::{MatchField, Value, ValueSetId, ValueSetInfo};

use super::{Access, Query, Row, Update};
use crate::bfrt::data::Data;
use crate::bfrt::key::Key;
use crate::p4rt::error::{P4Error, P4Result};
use crate::proto::bfrt::update::Type;

type Members = Vec<Vec<MatchField>>;

/// Returns a member, in which absent fields match every value.
fn member(info: &ValueSetInfo, key: &Key) -> Vec<MatchField> {
    let anything = || MatchField::Ternary {
        value: Value::from(0u32),
        mask: Value::from(0u32),
    };
    let fields = (0..info.fields.len()).map(|at| key.0.get(at).cloned().flatten());
    fields.map(|field| field.unwrap_or_else(anything)).collect()
}

/// Returns a member with masks; other interfaces also write exact values.
fn masked(info: &ValueSetInfo, member: &[MatchField]) -> Vec<MatchField> {
    let fields = member.iter().zip(&info.fields);
    fields
        .map(|(field, width)| match field {
            MatchField::Exact(value) => MatchField::Ternary {
                value: value.clone(),
                mask: Value::ones(*width),
            },
            other => other.clone(),
        })
        .collect()
}

pub fn write(access: &mut Access<'_, '_>, update: &Update<'_>, id: ValueSetId) -> P4Result<()> {
    let info = access.cx.pipeline.program().info().value_sets[id.index()].clone();
    let before = access.cx.pipeline.value_set(id)?;
    let mut members: Members = before.iter().map(|m| masked(&info, m)).collect();
    let name = &update.table.name;
    match (update.operation, &update.key) {
        (Type::Delete, None) => members.clear(),
        (Type::Delete, Some(key)) => {
            let gone = member(&info, key);
            let at = members.iter().position(|m| *m == gone);
            let at =
                at.ok_or_else(|| P4Error::not_found(format!("table {name}: unknown member")))?;
            members.remove(at);
        }
        (Type::Insert, Some(key)) => {
            let new = member(&info, key);
            if members.contains(&new) {
                let message = format!("table {name}: the member exists already");
                return Err(P4Error::already_exists(message));
            }
            if update.table.size != 0 && members.len() as u64 >= update.table.size {
                let message = format!("table {name} is full: its size is {}", update.table.size);
                return Err(P4Error::resource_exhausted(message));
            }
            members.push(new);
        }
        (Type::Insert, None) => return Err(update.invalid("missing key")),
        _ => return Err(update.unsupported()),
    }
    access.cx.pipeline.set_value_set(id, members)?;
    access
        .cx
        .undo(move |cx| Ok(cx.pipeline.set_value_set(id, before)?));
    Ok(())
}

pub fn read(access: &mut Access<'_, '_>, query: &Query<'_>, id: ValueSetId) -> P4Result<Vec<Row>> {
    let info = &access.cx.pipeline.program().info().value_sets[id.index()];
    let members = access.cx.pipeline.value_set(id)?;
    let mut members: Members = members.iter().map(|m| masked(info, m)).collect();
    if let Some(key) = &query.key {
        let wanted = member(info, key);
        members.retain(|m| *m == wanted);
        if members.is_empty() {
            let message = format!("table {}: unknown member", query.table.name);
            return Err(P4Error::not_found(message));
        }
    }
    let rows = members.into_iter().map(|m| Row {
        key: Some(Key(m.into_iter().map(Some).collect())),
        data: Data::default(),
    });
    Ok(rows.collect())
}
