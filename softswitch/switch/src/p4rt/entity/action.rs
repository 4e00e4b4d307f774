// SPDX-License-Identifier: Apache-2.0
//! Actions of table entries: a call, a reference to a member or a group, or an action set.

use softswitch_pipeline::EntryAction;

use super::call::{Use, decode_call, encode_call};
use super::one_shot;
use crate::p4rt::error::{P4Error, P4Result};
use crate::p4rt::notes::OneShot;
use crate::p4rt::schema::{Schema, Table};
use crate::proto::p4::v1::{TableAction, table_action};

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
            let (action, note) = one_shot::decode(schema, table, p, set)?;
            Ok((action, Some(note)))
        }
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
        EntryAction::OneShot(_) | EntryAction::RandomOneShot(_) => {
            let set = note.map(|one_shot| one_shot.set.clone());
            table_action::Type::ActionProfileActionSet(set.unwrap_or_default())
        }
    };
    TableAction {
        r#type: Some(encoded),
    }
}
