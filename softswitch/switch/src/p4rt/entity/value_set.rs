// SPDX-License-Identifier: Apache-2.0
//! Parser value sets.

use std::collections::HashSet;

use super::{Op, View, field_match, only_modify, selected, unknown, wrap};
use crate::p4rt::error::{P4Error, P4Result};
use crate::p4rt::schema::Schema;
use crate::proto::p4::v1::{
    Entity, ValueSetEntry, ValueSetMember, entity::Entity as Kind, update::Type,
};

pub fn write(schema: &Schema, action: Type, entry: &ValueSetEntry) -> P4Result<Op> {
    only_modify("value sets", action)?;
    let set = schema.value_sets.get(entry.value_set_id);
    let set = set.ok_or_else(|| unknown("value set", entry.value_set_id))?;
    let owner = format!("value set {}", set.name);
    if entry.members.len() > set.size {
        return Err(P4Error::resource_exhausted(format!(
            "{owner}: {} members are given, but its size is {}",
            entry.members.len(),
            set.size
        )));
    }
    let members = entry.members.iter();
    let members = members.map(|m| field_match::decode(&owner, &set.fields, &m.r#match));
    let members = members.collect::<P4Result<Vec<_>>>()?;
    let mut seen = HashSet::new();
    if !members.iter().all(|m| seen.insert(m)) {
        return Err(P4Error::already_exists(format!(
            "{owner}: a member is given twice"
        )));
    }
    let target = set.target;
    Ok(Box::new(move |cx| {
        let before = cx.before(|p, _| p.value_set(target));
        cx.pipeline.set_value_set(target, members)?;
        if let Some(Ok(before)) = before {
            cx.undo(move |cx| Ok(cx.pipeline.set_value_set(target, before)?));
        }
        Ok(())
    }))
}

pub fn read(view: View<'_>, request: &ValueSetEntry, out: &mut Vec<Entity>) -> P4Result<()> {
    let sets = &view.schema.value_sets;
    for (value_set_id, set) in selected(sets, "value set", request.value_set_id)? {
        let members = view.look(|p| p.value_set(set.target))?;
        let members = members.iter().map(|m| ValueSetMember {
            r#match: field_match::encode(&set.fields, m),
        });
        out.push(wrap(Kind::ValueSetEntry(ValueSetEntry {
            value_set_id,
            members: members.collect(),
        })));
    }
    Ok(())
}
