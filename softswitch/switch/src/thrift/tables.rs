// SPDX-License-Identifier: Apache-2.0
//! Entries and default entries.

use softswitch_pipeline::{
    Entry, EntryAction, EntryState, Implementation, Info, Nanos, ProfileId, TableId, TableInfo,
};
use softswitch_thrift::interface::{
    ActionEntry, EntryLife, EntryOptions, MatchParam, TableEntry, TableError, Tables,
};
use softswitch_thrift::wire::Binary;

use super::{Services, action, error, handle, key};
use crate::p4rt::entity::Context;
use crate::p4rt::notes::EntryNote;

const NANOS_PER_MILLI: Nanos = 1_000_000;

/// Maximum number of entries of a table, so that each has a handle.
const MAX_ENTRIES: usize = (1 << 24) - 1;

/// Number of entries read under one lock, while packets wait.
const ENTRIES_PER_LOCK: usize = 128;

type Result<T> = std::result::Result<T, TableError>;

/// Returns a table.
pub fn find<'a>(info: &'a Info, name: &str) -> Result<(TableId, &'a TableInfo)> {
    let id = info.table(name).ok_or(TableError::InvalidTableName)?;
    Ok((id, &info.tables[id.index()]))
}

/// Returns a table whose entries hold their actions.
fn find_direct<'a>(info: &'a Info, name: &str) -> Result<(TableId, &'a TableInfo)> {
    let (id, table) = find(info, name)?;
    match table.implementation {
        Implementation::Direct => Ok((id, table)),
        Implementation::Profile(_) => Err(TableError::WrongTableType),
    }
}

/// Returns a table with an action profile.
fn find_indirect<'a>(info: &'a Info, name: &str) -> Result<(TableId, &'a TableInfo, ProfileId)> {
    let (id, table) = find(info, name)?;
    match table.implementation {
        Implementation::Direct => Err(TableError::WrongTableType),
        Implementation::Profile(profile) => Ok((id, table, profile)),
    }
}

/// Returns a table with an action selector.
fn find_selector<'a>(info: &'a Info, name: &str) -> Result<(TableId, &'a TableInfo, ProfileId)> {
    let (id, table, profile) = find_indirect(info, name)?;
    match info.profiles[profile.index()].selector {
        true => Ok((id, table, profile)),
        false => Err(TableError::WrongTableType),
    }
}

/// Decodes an action of a table.
fn call(info: &Info, table: &TableInfo, name: &str, data: &[Binary]) -> Result<EntryAction> {
    let id = table.action(name).ok_or(TableError::InvalidActionName)?;
    action::decode(info, id, data).map(EntryAction::Direct)
}

/// Returns the action with a member, which must exist.
fn member(cx: &Context<'_>, profile: ProfileId, member: i32) -> Result<EntryAction> {
    let id = handle::id(member);
    let exists = cx.pipeline.member(profile, id).is_ok();
    exists
        .then_some(EntryAction::Member(id))
        .ok_or(TableError::InvalidMbrHandle)
}

/// Returns the action with a group, which must exist and have members.
fn group(cx: &Context<'_>, profile: ProfileId, group: i32) -> Result<EntryAction> {
    let id = handle::id(group);
    match cx.pipeline.group(profile, id) {
        Err(_) => Err(TableError::InvalidGrpHandle),
        Ok(group) if group.members.is_empty() => Err(TableError::EmptyGrp),
        Ok(_) => Ok(EntryAction::Group(id)),
    }
}

fn entry_of(cx: &Context<'_>, table: TableId, handle: i32) -> Result<EntryState> {
    let entry = cx.pipeline.entry_of_handle(table, handle.cast_unsigned());
    entry.map_err(error::table)
}

/// Adds an entry and returns its handle.
fn add(
    cx: &mut Context<'_>,
    (id, table): (TableId, &TableInfo),
    params: &[MatchParam],
    options: &EntryOptions,
    action: EntryAction,
) -> Result<i32> {
    if table.const_entries {
        return Err(TableError::ImmutableTableEntries);
    }
    if table.key.is_empty() {
        return Err(TableError::NoTableKey);
    }
    let key = key::decode(table, params, options)?;
    if cx.pipeline.entry_count(id).map_err(error::table)? >= MAX_ENTRIES {
        return Err(TableError::TableFull);
    }
    let entry = Entry {
        key: key.clone(),
        action,
        idle_timeout: 0,
    };
    let inserted = cx.pipeline.insert_entry(id, entry, cx.now);
    inserted.map_err(error::table)?;
    let state = cx.pipeline.entry(id, &key).map_err(error::table)?;
    Ok(state.handle.cast_signed())
}

/// Replaces the action or the idle time-out of an entry.
fn modify(
    cx: &mut Context<'_>,
    table: TableId,
    handle: i32,
    change: impl FnOnce(&mut Entry),
) -> Result<()> {
    let mut entry = entry_of(cx, table, handle)?.entry;
    let key = entry.key.clone();
    change(&mut entry);
    let kept = matches!(
        entry.action,
        EntryAction::OneShot(_) | EntryAction::RandomOneShot(_)
    );
    let modified = cx.pipeline.modify_entry(table, entry, cx.now);
    modified.map_err(error::table)?;
    if !kept {
        let note = EntryNote {
            one_shot: None,
            ..cx.notes.entry(table, &key)
        };
        cx.notes.set_entry(table, &key, note);
    }
    Ok(())
}

fn set_ttl(
    cx: &mut Context<'_>,
    (id, table): (TableId, &TableInfo),
    handle: i32,
    timeout_ms: i32,
) -> Result<()> {
    if !table.idle_timeout {
        return Err(TableError::AgeingDisabled);
    }
    // BMv2 reads a negative number as an unsigned one.
    let timeout = Nanos::from(timeout_ms.cast_unsigned()) * NANOS_PER_MILLI;
    modify(cx, id, handle, |entry| entry.idle_timeout = timeout)
}

fn delete(cx: &mut Context<'_>, (id, table): (TableId, &TableInfo), handle: i32) -> Result<()> {
    if table.const_entries {
        return Err(TableError::ImmutableTableEntries);
    }
    let key = entry_of(cx, id, handle)?.entry.key;
    cx.pipeline.delete_entry(id, &key).map_err(error::table)?;
    cx.notes.set_entry(id, &key, EntryNote::default());
    Ok(())
}

/// Sets the default action, or resets it to the program's.
fn set_default(cx: &mut Context<'_>, table: TableId, action: Option<EntryAction>) -> Result<()> {
    let set = cx.pipeline.set_default_action(table, action);
    set.map_err(error::table)?;
    cx.notes.set_default(table, EntryNote::default());
    Ok(())
}

fn reset_default(cx: &mut Context<'_>, (id, table): (TableId, &TableInfo)) -> Result<()> {
    // A constant default entry is the program's already.
    match table.const_default {
        true => Ok(()),
        false => set_default(cx, id, None),
    }
}

fn clear(cx: &mut Context<'_>, (id, table): (TableId, &TableInfo)) -> Result<()> {
    if table.const_entries {
        return Err(TableError::ImmutableTableEntries);
    }
    for state in cx.pipeline.entries(id).map_err(error::table)? {
        let key = state.entry.key;
        cx.pipeline.delete_entry(id, &key).map_err(error::table)?;
        cx.notes.set_entry(id, &key, EntryNote::default());
    }
    Ok(())
}

fn encode(info: &Info, table: &TableInfo, state: &EntryState, now: Nanos) -> TableEntry {
    let (match_key, options) = key::encode(table, &state.entry.key);
    let millis = |nanos: Nanos| i32::try_from(nanos / NANOS_PER_MILLI).unwrap_or(i32::MAX);
    let life = (state.entry.idle_timeout != 0).then(|| EntryLife {
        timeout_ms: millis(state.entry.idle_timeout),
        time_since_hit_ms: millis(now.saturating_sub(state.last_hit)),
    });
    TableEntry {
        match_key,
        options,
        entry_handle: state.handle.cast_signed(),
        action_entry: action::encode(info, Some(&state.entry.action)),
        life,
    }
}

impl Services {
    /// Runs a function with the state locked.
    pub(super) fn on_tables<R>(
        &self,
        f: impl FnOnce(&mut Context<'_>, &Info) -> Result<R>,
    ) -> Result<R> {
        self.with_state(TableError::InvalidTableName, |cx, program| {
            f(cx, program.info())
        })
    }
}

impl Tables for Services {
    fn bm_mt_get_num_entries(&self, _: i32, table: String) -> Result<i64> {
        self.on_tables(|cx, info| {
            let (id, _) = find(info, &table)?;
            let count = cx.pipeline.entry_count(id).map_err(error::table)?;
            Ok(i64::try_from(count).unwrap_or(i64::MAX))
        })
    }

    fn bm_mt_clear_entries(&self, _: i32, table: String, reset: bool) -> Result<()> {
        self.on_tables(|cx, info| {
            let table = find(info, &table)?;
            clear(cx, table)?;
            if reset {
                reset_default(cx, table)
            } else {
                Ok(())
            }
        })
    }

    fn bm_mt_add_entry(
        &self,
        _: i32,
        table: String,
        key: Vec<MatchParam>,
        action: String,
        data: Vec<Binary>,
        options: EntryOptions,
    ) -> Result<i32> {
        self.on_tables(|cx, info| {
            let (id, table) = find_direct(info, &table)?;
            let action = call(info, table, &action, &data)?;
            add(cx, (id, table), &key, &options, action)
        })
    }

    fn bm_mt_set_default_action(
        &self,
        _: i32,
        table: String,
        action: String,
        data: Vec<Binary>,
    ) -> Result<()> {
        self.on_tables(|cx, info| {
            let (id, table) = find_direct(info, &table)?;
            let id_of = table.action(&action);
            id_of.ok_or(TableError::InvalidActionName)?;
            if table.const_default {
                return Err(TableError::DefaultEntryIsConst);
            }
            let action = call(info, table, &action, &data)?;
            set_default(cx, id, Some(action))
        })
    }

    fn bm_mt_reset_default_entry(&self, _: i32, table: String) -> Result<()> {
        self.on_tables(|cx, info| reset_default(cx, find_direct(info, &table)?))
    }

    fn bm_mt_delete_entry(&self, _: i32, table: String, handle: i32) -> Result<()> {
        self.on_tables(|cx, info| delete(cx, find_direct(info, &table)?, handle))
    }

    fn bm_mt_modify_entry(
        &self,
        _: i32,
        table: String,
        handle: i32,
        action: String,
        data: Vec<Binary>,
    ) -> Result<()> {
        self.on_tables(|cx, info| {
            let (id, table) = find_direct(info, &table)?;
            let action = call(info, table, &action, &data)?;
            modify(cx, id, handle, |entry| entry.action = action)
        })
    }

    fn bm_mt_set_entry_ttl(&self, _: i32, table: String, handle: i32, ms: i32) -> Result<()> {
        self.on_tables(|cx, info| set_ttl(cx, find(info, &table)?, handle, ms))
    }

    fn bm_mt_indirect_add_entry(
        &self,
        _: i32,
        table: String,
        key: Vec<MatchParam>,
        mbr: i32,
        options: EntryOptions,
    ) -> Result<i32> {
        self.on_tables(|cx, info| {
            let (id, table, profile) = find_indirect(info, &table)?;
            let action = member(cx, profile, mbr)?;
            add(cx, (id, table), &key, &options, action)
        })
    }

    fn bm_mt_indirect_modify_entry(
        &self,
        _: i32,
        table: String,
        handle: i32,
        mbr: i32,
    ) -> Result<()> {
        self.on_tables(|cx, info| {
            let (id, _, profile) = find_indirect(info, &table)?;
            entry_of(cx, id, handle)?;
            let action = member(cx, profile, mbr)?;
            modify(cx, id, handle, |entry| entry.action = action)
        })
    }

    fn bm_mt_indirect_delete_entry(&self, _: i32, table: String, handle: i32) -> Result<()> {
        self.on_tables(|cx, info| {
            let (id, table, _) = find_indirect(info, &table)?;
            delete(cx, (id, table), handle)
        })
    }

    fn bm_mt_indirect_set_entry_ttl(
        &self,
        _: i32,
        table: String,
        handle: i32,
        ms: i32,
    ) -> Result<()> {
        self.on_tables(|cx, info| set_ttl(cx, find(info, &table)?, handle, ms))
    }

    fn bm_mt_indirect_set_default_member(&self, _: i32, table: String, mbr: i32) -> Result<()> {
        self.on_tables(|cx, info| {
            let (id, _, profile) = find_indirect(info, &table)?;
            let action = member(cx, profile, mbr)?;
            set_default(cx, id, Some(action))
        })
    }

    fn bm_mt_indirect_reset_default_entry(&self, _: i32, table: String) -> Result<()> {
        self.on_tables(|cx, info| {
            let (id, table, _) = find_indirect(info, &table)?;
            reset_default(cx, (id, table))
        })
    }

    fn bm_mt_indirect_ws_add_entry(
        &self,
        _: i32,
        table: String,
        key: Vec<MatchParam>,
        grp: i32,
        options: EntryOptions,
    ) -> Result<i32> {
        self.on_tables(|cx, info| {
            let (id, table, profile) = find_selector(info, &table)?;
            let action = group(cx, profile, grp)?;
            add(cx, (id, table), &key, &options, action)
        })
    }

    fn bm_mt_indirect_ws_modify_entry(
        &self,
        _: i32,
        table: String,
        handle: i32,
        grp: i32,
    ) -> Result<()> {
        self.on_tables(|cx, info| {
            let (id, _, profile) = find_selector(info, &table)?;
            entry_of(cx, id, handle)?;
            let action = group(cx, profile, grp)?;
            modify(cx, id, handle, |entry| entry.action = action)
        })
    }

    fn bm_mt_indirect_ws_set_default_group(&self, _: i32, table: String, grp: i32) -> Result<()> {
        self.on_tables(|cx, info| {
            let (id, _, profile) = find_selector(info, &table)?;
            let action = group(cx, profile, grp)?;
            set_default(cx, id, Some(action))
        })
    }

    /// As in BMv2, an unknown table does not have entries.
    fn bm_mt_get_entries(&self, _: i32, table: String) -> Result<Vec<TableEntry>> {
        let mut entries = Vec::new();
        let mut next = Some(0);
        while let Some(from) = next {
            next = self.on_tables(|cx, info| {
                let Ok((id, table)) = find(info, &table) else {
                    return Ok(None);
                };
                let page = cx.pipeline.entries_page(id, from, ENTRIES_PER_LOCK);
                let (page, next) = page.map_err(error::table)?;
                entries.extend(page.iter().map(|state| encode(info, table, state, cx.now)));
                Ok(next)
            })?;
        }
        Ok(entries)
    }

    fn bm_mt_get_entry(&self, _: i32, table: String, handle: i32) -> Result<TableEntry> {
        self.on_tables(|cx, info| {
            let (id, table) = find(info, &table)?;
            let state = entry_of(cx, id, handle)?;
            Ok(encode(info, table, &state, cx.now))
        })
    }

    fn bm_mt_get_default_entry(&self, _: i32, table: String) -> Result<ActionEntry> {
        self.on_tables(|cx, info| {
            let (id, _) = find(info, &table)?;
            let default = cx.pipeline.default_action(id).map_err(error::table)?;
            Ok(action::encode(info, default.as_ref()))
        })
    }

    fn bm_mt_get_entry_from_key(
        &self,
        context: i32,
        table: String,
        key: Vec<MatchParam>,
        options: EntryOptions,
    ) -> Result<TableEntry> {
        if key.is_empty() {
            return Ok(TableEntry {
                action_entry: self.bm_mt_get_default_entry(context, table)?,
                ..Default::default()
            });
        }
        self.on_tables(|cx, info| {
            let (id, table) = find(info, &table)?;
            let key = key::decode(table, &key, &options)?;
            let state = cx.pipeline.entry(id, &key);
            let state = state.map_err(|_| TableError::BadMatchKey)?;
            Ok(encode(info, table, &state, cx.now))
        })
    }
}
