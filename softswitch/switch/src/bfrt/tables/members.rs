// SPDX-License-Identifier: Apache-2.0
//! Members of action profiles.

use softswitch_pipeline::ProfileId;

use super::entries::{decode_call, encode_call};
use super::{Access, Query, Row, Update, delete_all};
use crate::bfrt::data::Data;
use crate::bfrt::key::Key;
use crate::bfrt::link::Actions;
use crate::p4rt::error::P4Result;
use crate::proto::bfrt::update::Type;

pub fn write(
    access: &mut Access<'_, '_>,
    update: &Update<'_>,
    profile: ProfileId,
    actions: &Actions,
) -> P4Result<()> {
    if update.operation == Type::Delete && update.key.is_none() {
        // Members that are in use stay, so the first of them is reported before anything changes.
        return clear(access, profile);
    }
    let id = update.key()?.u32(update.table, 0)?;
    match update.operation {
        Type::Insert => {
            let call = decode_call(update.table, actions, &update.data, None)?;
            access.cx.pipeline.insert_member(profile, id, call)?;
            access
                .cx
                .undo(move |cx| Ok(cx.pipeline.delete_member(profile, id)?));
            Ok(())
        }
        Type::Modify => {
            let before = access.cx.pipeline.member(profile, id)?;
            let call = decode_call(update.table, actions, &update.data, Some(&before))?;
            access.cx.pipeline.modify_member(profile, id, call)?;
            access
                .cx
                .undo(move |cx| Ok(cx.pipeline.modify_member(profile, id, before)?));
            Ok(())
        }
        Type::Delete => delete(access, profile, id),
        _ => Err(update.unsupported()),
    }
}

fn delete(access: &mut Access<'_, '_>, profile: ProfileId, id: u32) -> P4Result<()> {
    let before = access.cx.pipeline.member(profile, id)?;
    access.cx.pipeline.delete_member(profile, id)?;
    access
        .cx
        .undo(move |cx| Ok(cx.pipeline.insert_member(profile, id, before)?));
    Ok(())
}

fn clear(access: &mut Access<'_, '_>, profile: ProfileId) -> P4Result<()> {
    let members = access.cx.pipeline.members(profile)?;
    delete_all(
        access.cx,
        members,
        move |pipeline, id| pipeline.delete_member(profile, id),
        move |pipeline, id, call| pipeline.insert_member(profile, id, call),
    )
}

pub fn read(
    access: &mut Access<'_, '_>,
    query: &Query<'_>,
    profile: ProfileId,
    actions: &Actions,
) -> P4Result<Vec<Row>> {
    let pipeline = &access.cx.pipeline;
    let members = match &query.key {
        Some(key) => {
            let id = key.u32(query.table, 0)?;
            vec![(id, pipeline.member(profile, id)?)]
        }
        None => pipeline.members(profile)?,
    };
    let rows = members.into_iter().map(|(id, call)| {
        let mut data = Data::default();
        encode_call(actions, &call, &mut data);
        Row {
            key: Some(Key::exact([id.into()])),
            data,
        }
    });
    Ok(rows.collect())
}
