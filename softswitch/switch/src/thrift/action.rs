// SPDX-License-Identifier: Apache-2.0
//! Actions of entries and members.

use softswitch_pipeline::{ActionCall, ActionId, EntryAction, Info, Value};
use softswitch_thrift::interface::{ActionEntry, TableError, action_kind};
use softswitch_thrift::wire::Binary;

use super::handle;

/// Decodes a call of an action.
///
/// # Errors
/// `BAD_ACTION_DATA` if there is not one value per parameter.
pub fn decode(info: &Info, action: ActionId, data: &[Binary]) -> Result<ActionCall, TableError> {
    if info.actions[action.index()].params.len() != data.len() {
        return Err(TableError::BadActionData);
    }
    let args = data.iter().map(|value| Value::from_be_bytes(&value.0));
    Ok(ActionCall {
        action,
        args: args.collect(),
    })
}

/// Encodes a call: the action's name and its data, without leading zeros as in BMv2.
pub fn encode_call(info: &Info, call: &ActionCall) -> (String, Vec<Binary>) {
    let data = call.args.iter().map(|arg| Binary(arg.as_bytes().to_vec()));
    let name = &info.actions[call.action.index()].name;
    (name.clone(), data.collect())
}

/// Encodes the action of an entry. P4Runtime's action sets do not have handles, so nothing is returned for them.
pub fn encode(info: &Info, action: Option<&EntryAction>) -> ActionEntry {
    let mut entry = ActionEntry {
        kind: action_kind::NONE,
        ..Default::default()
    };
    match action {
        Some(EntryAction::Direct(call)) => {
            let (name, data) = encode_call(info, call);
            entry.kind = action_kind::ACTION_DATA;
            entry.action_name = Some(name);
            entry.action_data = Some(data);
        }
        Some(EntryAction::Member(id)) => {
            entry.kind = action_kind::MEMBER;
            entry.member = Some(handle::of_id(*id));
        }
        Some(EntryAction::Group(id)) => {
            entry.kind = action_kind::GROUP;
            entry.group = Some(handle::of_id(*id));
        }
        Some(EntryAction::OneShot(_) | EntryAction::RandomOneShot(_)) | None => {}
    }
    entry
}
