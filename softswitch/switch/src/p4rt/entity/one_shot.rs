// SPDX-License-Identifier: Apache-2.0
//! Action sets in the entries of tables with a selector (specification, section "One Shot Action Selector
//! Programming").

use softswitch_pipeline::{EntryAction, WeightedAction};

use super::call::{self, Use};
use super::group;
use crate::p4rt::error::{P4Error, P4Result};
use crate::p4rt::notes::OneShot;
use crate::p4rt::schema::{Profile, Schema, Table};
use crate::proto::p4::v1::{
    ActionProfileAction, ActionProfileActionSet,
    action_profile_action::WatchKind,
    action_profile_action_set::{ActionSelectionMode, SizeSemantics},
};

/// Decodes an action set, and makes the note for reading it back.
pub fn decode(
    schema: &Schema,
    table: &Table,
    profile: &Profile,
    set: &ActionProfileActionSet,
) -> P4Result<(EntryAction, Box<OneShot>)> {
    let unknown = |what: &str, value: i32| {
        P4Error::invalid(format!("table {}: unknown {what} {value}", table.name))
    };
    let mode = ActionSelectionMode::try_from(set.action_selection_mode);
    let mode = mode.map_err(|e| unknown("action selection mode", e.0))?;
    let semantics = SizeSemantics::try_from(set.size_semantics);
    let in_members = match semantics.map_err(|e| unknown("size semantics", e.0))? {
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
        let call = call::decode_call(schema, table, call, Use::Entry)?;
        let weight = group::decode_weight(profile, a.weight)?;
        let (watch_port, watch_kind) = match &a.watch_kind {
            None => (None, None),
            Some(WatchKind::Watch(port)) => (
                group::old_watch_port(schema, *port)?,
                Some(WatchKind::Watch(*port)),
            ),
            Some(WatchKind::WatchPort(port)) => {
                let (port, canonical) = group::watch_port(schema, port)?;
                (port, Some(WatchKind::WatchPort(canonical)))
            }
        };
        let written = ActionProfileAction {
            action: Some(call::encode_call(schema, table, &call)),
            weight: a.weight,
            watch_kind,
        };
        let action = WeightedAction {
            call,
            weight,
            watch_port,
        };
        Ok((action, written))
    });
    let actions = actions.collect::<P4Result<Vec<_>>>()?;
    let (actions, written): (Vec<_>, Vec<_>) = actions.into_iter().unzip();
    let size = |in_members| group::size(actions.iter().map(|a| a.weight), in_members);
    if group::is_above(size(in_members), profile.max_group_size) {
        return Err(P4Error::invalid(format!(
            "action profile {}: the action set's size {} is above P4Info's max_group_size {}",
            profile.name,
            size(in_members),
            profile.max_group_size
        )));
    }
    let note = OneShot {
        selector: profile.target,
        set: ActionProfileActionSet {
            action_profile_actions: written,
            ..*set
        },
        size: size(profile.size_in_members),
    };
    let action = match mode {
        ActionSelectionMode::DefaultModeDeterminedByActionSelector | ActionSelectionMode::Hash => {
            EntryAction::OneShot(actions)
        }
        ActionSelectionMode::Random => EntryAction::RandomOneShot(actions),
    };
    Ok((action, Box::new(note)))
}
