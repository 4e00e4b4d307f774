// SPDX-License-Identifier: Apache-2.0
//! Members of action profiles (specification, section "Member Programming").

use super::call::{self, Use};
use super::{Op, View, missing, selected, table, wrap};
use crate::p4rt::error::{P4Error, P4Result};
use crate::p4rt::notes::Style;
use crate::p4rt::schema::Schema;
use crate::proto::p4::v1::{ActionProfileMember, Entity, entity::Entity as Kind, update::Type};

pub fn write(schema: &Schema, operation: Type, member: &ActionProfileMember) -> P4Result<Op> {
    let profile = schema.profiles.get(member.action_profile_id);
    let profile =
        profile.ok_or_else(|| missing(schema, "action profile", member.action_profile_id))?;
    let (target, id) = (profile.target, member.member_id);
    if id == 0 {
        return Err(P4Error::invalid(format!(
            "action profile {}: a member's id must not be 0",
            profile.name
        )));
    }
    if operation == Type::Delete {
        return Ok(Box::new(move |cx| {
            let before = cx.before(|p, _| p.member(target, id));
            cx.pipeline.delete_member(target, id)?;
            cx.notes.selector_mut(target).remove_member();
            if let Some(Ok(call)) = before {
                cx.undo(move |cx| {
                    cx.notes.selector_mut(target).add_member();
                    Ok(cx.pipeline.insert_member(target, id, call)?)
                });
            }
            Ok(())
        }));
    }
    let call = member.action.as_ref().ok_or_else(|| {
        P4Error::invalid(format!(
            "action profile {}: member {id} needs an action",
            profile.name
        ))
    })?;
    let table = profile.table.ok_or_else(|| {
        P4Error::invalid(format!(
            "action profile {}: no table in P4Info uses it: remove @hidden from its table",
            profile.name
        ))
    })?;
    let call = call::decode_call(schema, table::find(schema, table)?, call, Use::Entry)?;
    if operation == Type::Modify {
        return Ok(Box::new(move |cx| {
            let before = cx.before(|p, _| p.member(target, id));
            cx.pipeline.modify_member(target, id, call)?;
            if let Some(Ok(call)) = before {
                cx.undo(move |cx| Ok(cx.pipeline.modify_member(target, id, call)?));
            }
            Ok(())
        }));
    }
    let profile = profile.clone();
    Ok(Box::new(move |cx| {
        cx.notes
            .selector_mut(target)
            .check_style(Style::Members, &profile)?;
        cx.pipeline.insert_member(target, id, call)?;
        cx.notes.selector_mut(target).add_member();
        cx.undo(move |cx| {
            cx.notes.selector_mut(target).remove_member();
            Ok(cx.pipeline.delete_member(target, id)?)
        });
        Ok(())
    }))
}

pub fn read(view: View<'_>, request: &ActionProfileMember, out: &mut Vec<Entity>) -> P4Result<()> {
    let profiles = &view.schema.profiles;
    for (profile_id, profile) in selected(profiles, "action profile", request.action_profile_id)? {
        // Without a table, it cannot have members.
        let Some(table) = profile.table else { continue };
        let table = table::find(view.schema, table)?;
        let members = match request.member_id {
            0 => view.look(|p| p.members(profile.target))?,
            id => match view.look(|p| p.member(profile.target, id)) {
                Ok(call) => vec![(id, call)],
                Err(_) => vec![],
            },
        };
        out.extend(members.into_iter().map(|(member_id, call)| {
            wrap(Kind::ActionProfileMember(ActionProfileMember {
                action_profile_id: profile_id,
                member_id,
                action: Some(call::encode_call(view.schema, table, &call)),
            }))
        }));
    }
    Ok(())
}
