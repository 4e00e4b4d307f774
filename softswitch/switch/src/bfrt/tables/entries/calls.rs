// SPDX-License-Identifier: Apache-2.0
//! Actions of entries with their arguments.

use softswitch_pipeline::{ActionCall, EntryAction, Pipeline, Value};

use crate::bfrt::data::{Data, FieldValue};
use crate::bfrt::link::{Actions, MatchTable};
use crate::bfrt::schema::{Scope, Table};
use crate::bfrt::tables::Update;
use crate::p4rt::error::{P4Error, P4Result};

/// Decodes a call. Arguments that are absent stay as they are in an earlier call of the same action; otherwise they are 0,
/// as in Tofino's drivers.
pub fn decode_call(
    table: &Table,
    actions: &Actions,
    data: &Data,
    earlier: Option<&ActionCall>,
) -> P4Result<ActionCall> {
    let invalid = |reason: &str| P4Error::invalid(format!("table {}: {reason}", table.name));
    let found = actions.get(&data.action);
    let (action, fields) = found.ok_or_else(|| invalid("missing or unknown action"))?;
    let earlier = earlier.filter(|call| call.action == *action);
    let args = fields.iter().enumerate().map(|(at, id)| {
        match (
            data.values.get(id),
            earlier.and_then(|call| call.args.get(at)),
        ) {
            (Some(FieldValue::Number(value)), _) => Ok(value.clone()),
            (Some(FieldValue::Bool(value)), _) => Ok(Value::from(u32::from(*value))),
            (None, Some(value)) => Ok(value.clone()),
            (None, None) => Ok(Value::from(0u32)),
            _ => Err(invalid(&format!(
                "invalid value of the parameter with id {id}"
            ))),
        }
    });
    Ok(ActionCall {
        action: *action,
        args: args.collect::<P4Result<_>>()?,
    })
}

/// Adds a call to the data of an entry.
pub fn encode_call(actions: &Actions, call: &ActionCall, data: &mut Data) {
    let mut all = actions.iter();
    if let Some((id, (_, fields))) = all.find(|(_, (action, _))| *action == call.action) {
        data.action = *id;
        let values = call.args.iter().cloned().map(FieldValue::Number);
        data.values.extend(fields.iter().copied().zip(values));
    }
}

/// Decodes the action of an entry; `earlier` is the present one.
pub fn decode_action(
    update: &Update<'_>,
    target: &MatchTable,
    earlier: Option<&EntryAction>,
) -> P4Result<EntryAction> {
    let (table, data) = (update.table, &update.data);
    let refused = match update.is_default {
        true => Scope::TableOnly,
        false => Scope::DefaultOnly,
    };
    if table
        .action(data.action)
        .is_some_and(|action| action.scope == refused)
    {
        return Err(update.invalid("the action is not for this kind of entry"));
    }
    if target.profile.is_some() {
        let member = data.u32(table, "$ACTION_MEMBER_ID");
        let group = data.u32(table, "$SELECTOR_GROUP_ID");
        return match (member, group, earlier) {
            (Some(id), None, _) => Ok(EntryAction::Member(id)),
            (None, Some(id), _) => Ok(EntryAction::Group(id)),
            (None, None, Some(earlier)) => Ok(earlier.clone()),
            _ => {
                Err(update.invalid("an entry needs either $ACTION_MEMBER_ID or $SELECTOR_GROUP_ID"))
            }
        };
    }
    match earlier {
        Some(earlier) if data.action == 0 => Ok(earlier.clone()),
        Some(EntryAction::Direct(call)) => {
            decode_call(table, &target.actions, data, Some(call)).map(EntryAction::Direct)
        }
        _ => decode_call(table, &target.actions, data, None).map(EntryAction::Direct),
    }
}

/// Checks that a group has active members.
pub fn check_group(
    pipeline: &Pipeline,
    update: &Update<'_>,
    target: &MatchTable,
    action: &EntryAction,
) -> P4Result<()> {
    let (Some(profile), EntryAction::Group(id)) = (target.profile, action) else {
        return Ok(());
    };
    match pipeline.group(profile, *id)?.members.is_empty() {
        true => Err(update.invalid("the group is empty")),
        false => Ok(()),
    }
}
