//! Actions of table entries and members (specification, section "Action Specification").

use softswitch_pipeline::{ActionCall, EntryAction, WeightedAction};

use super::{profile, unknown};
use crate::p4rt::error::{P4Error, P4Result};
use crate::p4rt::schema::{Profile, Schema, Table};
use crate::p4rt::value;
use crate::proto::p4::v1::{
    Action, ActionProfileAction, ActionProfileActionSet, TableAction, action,
    action_profile_action, action_profile_action_set, table_action,
};

/// Where an action is to be used.
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
            (Some(p), None) => value::decode(&p.value, param.width, what),
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

/// Decodes what an entry does.
pub fn decode_action(schema: &Schema, table: &Table, given: &TableAction) -> P4Result<EntryAction> {
    use table_action::Type as A;
    let invalid = |reason: &str| Err(P4Error::invalid(format!("table {}: {reason}", table.name)));
    let profile = table.profile.and_then(|id| schema.profiles.get(id));
    let Some(given) = &given.r#type else {
        return invalid("the entry's action is empty");
    };
    match (given, profile) {
        (A::Action(a), None) => Ok(EntryAction::Direct(decode_call(
            schema,
            table,
            a,
            Use::Entry,
        )?)),
        (A::Action(_), Some(p)) => invalid(&format!(
            "its entries refer to members or groups of action profile {}, not to actions",
            p.name
        )),
        (_, None) => invalid("it has no action profile, its entries need an action"),
        (A::ActionProfileMemberId(id), Some(_)) => Ok(EntryAction::Member(*id)),
        (_, Some(p)) if !p.selector => invalid(&format!(
            "action profile {} has no groups; use a member",
            p.name
        )),
        (A::ActionProfileGroupId(id), Some(_)) => Ok(EntryAction::Group(*id)),
        (A::ActionProfileActionSet(set), Some(p)) => Ok(EntryAction::OneShot(decode_one_shot(
            schema, table, p, set,
        )?)),
    }
}

fn decode_one_shot(
    schema: &Schema,
    table: &Table,
    profile: &Profile,
    set: &ActionProfileActionSet,
) -> P4Result<Vec<WeightedAction>> {
    use action_profile_action_set::{ActionSelectionMode, SizeSemantics};
    if set.action_selection_mode() == ActionSelectionMode::Random {
        return Err(P4Error::unimplemented(
            "action sets select by hash; mode RANDOM is not supported",
        ));
    }
    let in_members = match set.size_semantics() {
        SizeSemantics::DefaultSizeDeterminedByActionSelector => profile.size_in_members,
        SizeSemantics::SumOfMembers => true,
        SizeSemantics::SumOfWeights => false,
    };
    let actions = set.action_profile_actions.iter().map(|a| {
        let call = a.action.as_ref().ok_or_else(|| {
            P4Error::invalid(format!(
                "table {}: an action of the set is empty",
                table.name
            ))
        })?;
        let weight = profile::decode_weight(profile, a.weight)?;
        use action_profile_action::WatchKind;
        let watch_port = match &a.watch_kind {
            None => None,
            Some(WatchKind::Watch(port)) => profile::old_watch_port(*port)?,
            Some(WatchKind::WatchPort(port)) => profile::watch_port(port)?,
        };
        Ok(WeightedAction {
            call: decode_call(schema, table, call, Use::Entry)?,
            weight,
            watch_port,
        })
    });
    let actions = actions.collect::<P4Result<Vec<_>>>()?;
    let weights = actions.iter().map(|a| a.weight);
    profile::check_group_size(profile, in_members, weights, profile.max_group_size)?;
    Ok(actions)
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
            value: value::encode(arg),
        });
    Action {
        action_id,
        params: params.collect(),
    }
}

/// Encodes what an entry does.
pub fn encode_action(schema: &Schema, table: &Table, given: &EntryAction) -> TableAction {
    let encoded = match given {
        EntryAction::Direct(call) => table_action::Type::Action(encode_call(schema, table, call)),
        EntryAction::Member(id) => table_action::Type::ActionProfileMemberId(*id),
        EntryAction::Group(id) => table_action::Type::ActionProfileGroupId(*id),
        EntryAction::OneShot(actions) => {
            let unweighted = (table.profile.and_then(|id| schema.profiles.get(id)))
                .is_some_and(|p| p.weights_disallowed);
            let actions = actions.iter().map(|a| ActionProfileAction {
                action: Some(encode_call(schema, table, &a.call)),
                weight: if unweighted {
                    0
                } else {
                    i32::try_from(a.weight).unwrap_or(i32::MAX)
                },
                watch_kind: a.watch_port.map(|port| {
                    action_profile_action::WatchKind::WatchPort(value::encode_port(port))
                }),
            });
            table_action::Type::ActionProfileActionSet(ActionProfileActionSet {
                action_profile_actions: actions.collect(),
                ..Default::default()
            })
        }
    };
    TableAction {
        r#type: Some(encoded),
    }
}
