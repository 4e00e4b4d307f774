//! Actions of table entries and members (specification, section "Action Specification").

use softswitch_pipeline::{ActionCall, EntryAction};

use super::{one_shot, unknown};
use crate::p4rt::error::{P4Error, P4Result};
use crate::p4rt::notes::OneShot;
use crate::p4rt::schema::{Schema, Table};
use crate::proto::p4::v1::{Action, TableAction, action, table_action};

/// The use of an action.
#[derive(Clone, Copy, PartialEq)]
pub enum Use {
    /// In an entry, or a member of an action profile.
    Entry,
    /// As a table's default action.
    Default,
}

/// Decodes an action of a table, or of members of its action profile.
pub fn decode_call(
    schema: &Schema,
    table: &Table,
    given: &Action,
    r#use: Use,
) -> P4Result<ActionCall> {
    let id = given.action_id;
    let action = schema
        .actions
        .get(&id)
        .ok_or_else(|| unknown("action", id))?;
    let listed = table.actions.get(&id).ok_or_else(|| {
        P4Error::invalid(format!(
            "table {} does not have action {}",
            table.name, action.name
        ))
    })?;
    let (allowed, place) = match r#use {
        Use::Entry => (listed.in_entries, "in entries"),
        Use::Default => (listed.as_default, "as default action"),
    };
    if !allowed {
        return Err(P4Error::permission_denied(format!(
            "table {}: action {} may not be used {place}",
            table.name, action.name
        )));
    }
    let args = action.params.iter().map(|param| {
        let mut with_id = given.params.iter().filter(|p| p.param_id == param.id);
        let what = || format!("action {}, parameter {}", action.name, param.name);
        match (with_id.next(), with_id.next()) {
            (Some(p), None) => param.codec.decode(&p.value, what),
            (None, _) => Err(P4Error::invalid(format!("{} is missing", what()))),
            (Some(_), Some(_)) => Err(P4Error::invalid(format!("{} is given twice", what()))),
        }
    });
    let args = args.collect::<P4Result<Vec<_>>>()?;
    if let Some(extra) = given
        .params
        .iter()
        .find(|p| action.params.iter().all(|q| q.id != p.param_id))
    {
        return Err(P4Error::invalid(format!(
            "action {} has no parameter with id {}",
            action.name, extra.param_id
        )));
    }
    Ok(ActionCall {
        action: listed.target,
        args,
    })
}

/// Decodes an entry's action; with a note if it is an action set.
pub fn decode_action(
    schema: &Schema,
    table: &Table,
    given: &TableAction,
) -> P4Result<(EntryAction, Option<Box<OneShot>>)> {
    use table_action::Type as A;
    let invalid = |reason: &str| Err(P4Error::invalid(format!("table {}: {reason}", table.name)));
    let profile = table.profile.and_then(|id| schema.profiles.get(id));
    let Some(given) = &given.r#type else {
        return invalid("the entry's action is empty");
    };
    match (given, profile) {
        (A::Action(a), None) => {
            let call = decode_call(schema, table, a, Use::Entry)?;
            Ok((EntryAction::Direct(call), None))
        }
        (A::Action(_), Some(p)) => invalid(&format!(
            "its entries must refer to members or groups of action profile {}, not to actions",
            p.name
        )),
        (_, None) => invalid("it does not have an action profile: its entries need an action"),
        (A::ActionProfileMemberId(id), Some(_)) => Ok((EntryAction::Member(*id), None)),
        (_, Some(p)) if !p.selector => invalid(&format!(
            "action profile {} does not have groups: use a member",
            p.name
        )),
        (A::ActionProfileGroupId(id), Some(_)) => Ok((EntryAction::Group(*id), None)),
        (A::ActionProfileActionSet(set), Some(p)) => {
            let (actions, note) = one_shot::decode(schema, table, p, set)?;
            Ok((EntryAction::OneShot(actions), Some(note)))
        }
    }
}

/// Encodes an action of a table, or of a member of its action profile.
pub fn encode_call(schema: &Schema, table: &Table, call: &ActionCall) -> Action {
    let action_id = table.action_ids.get(&call.action).copied().unwrap_or(0);
    let params = schema
        .actions
        .get(&action_id)
        .map_or(&[][..], |a| &a.params);
    let params = params
        .iter()
        .zip(&call.args)
        .map(|(param, arg)| action::Param {
            param_id: param.id,
            value: param.codec.encode(arg),
        });
    Action {
        action_id,
        params: params.collect(),
    }
}

/// Encodes an entry's action; the note contains its action set, if any.
pub fn encode_action(
    schema: &Schema,
    table: &Table,
    given: &EntryAction,
    note: Option<&OneShot>,
) -> TableAction {
    let encoded = match given {
        EntryAction::Direct(call) => table_action::Type::Action(encode_call(schema, table, call)),
        EntryAction::Member(id) => table_action::Type::ActionProfileMemberId(*id),
        EntryAction::Group(id) => table_action::Type::ActionProfileGroupId(*id),
        EntryAction::OneShot(_) => table_action::Type::ActionProfileActionSet(
            note.map(|one_shot| one_shot.set.clone())
                .unwrap_or_default(),
        ),
    };
    TableAction {
        r#type: Some(encoded),
    }
}
