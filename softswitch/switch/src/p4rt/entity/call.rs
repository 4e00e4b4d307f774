// SPDX-License-Identifier: Apache-2.0
//! Calls of actions with their parameters (specification, section "Action Specification").

use softswitch_pipeline::ActionCall;

use super::{restriction, unknown};
use crate::p4rt::error::{P4Error, P4Result};
use crate::p4rt::schema::{Schema, Table};
use crate::proto::p4::v1::{Action, action};

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
    restriction::check_call(action, &args)?;
    Ok(ActionCall {
        action: listed.target,
        args,
    })
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
