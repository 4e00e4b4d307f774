// SPDX-License-Identifier: Apache-2.0
//! Writes of entries with a key.

use softswitch_pipeline::{Entry, EntryAction, EntryKey, EntryState, Nanos, Pipeline, TableId};

use super::changes::{self, Change};
use super::direct::{self, Direct};
use super::{decode_idle_timeout, decode_key, note};
use crate::p4rt::entity::{Context, Op, action, restriction};
use crate::p4rt::error::{P4Error, P4Result};
use crate::p4rt::notes::{EntryNote, Notes, OneShot, Style};
use crate::p4rt::schema::{Profile, Schema, Table};
use crate::proto::p4::v1::{TableEntry, update::Type};

pub fn write(schema: &Schema, table: &Table, operation: Type, entry: &TableEntry) -> P4Result<Op> {
    let name = &table.name;
    if operation == Type::Insert && table.fields.is_empty() {
        return Err(P4Error::invalid(format!(
            "table {name} does not have a key: it has only the default entry"
        )));
    }
    if table.is_const && (operation != Type::Modify || entry.action.is_some()) {
        return Err(P4Error::permission_denied(format!(
            "table {name}: its entries are constant"
        )));
    }
    let key = decode_key(table, entry)?;
    let target = table.target;
    if operation == Type::Delete {
        return Ok(Box::new(move |cx| {
            let before = cx.before(|p, notes| Before::look(p, notes, target, &key));
            let handle = changes::handle(cx.pipeline, target, &key);
            cx.pipeline.delete_entry(target, &key)?;
            changes::log(cx.pipeline, target, handle, Change::Removed);
            cx.notes.set_entry(target, &key, EntryNote::default());
            if let Some(Ok(before)) = before {
                cx.undo(move |cx| before.insert(cx, target));
            }
            Ok(())
        }));
    }
    if !table.is_const {
        restriction::check_entry(table, &key)?;
    }
    if entry.time_since_last_hit.is_some() {
        return Err(P4Error::invalid(format!(
            "table {name}: time_since_last_hit is read-only"
        )));
    }
    let given = entry.action.as_ref();
    let given = given.map(|a| action::decode_action(schema, table, a));
    let given = given.transpose()?;
    if operation == Type::Insert && given.is_none() {
        return Err(P4Error::invalid(format!(
            "table {name}: an entry to insert needs an action"
        )));
    }
    let writing = Writing {
        target,
        key,
        action: given,
        idle_timeout: decode_idle_timeout(table, entry)?,
        direct: Direct::decode(table, entry)?,
        note: note(entry),
        selector: table
            .profile
            .and_then(|id| schema.profiles.get(id))
            .cloned(),
        is_const: table.is_const,
    };
    Ok(match operation {
        Type::Insert => Box::new(move |cx| writing.insert(cx)),
        _ => Box::new(move |cx| writing.modify(cx)),
    })
}

/// A write of an entry.
struct Writing {
    target: TableId,
    key: EntryKey,
    action: Option<(EntryAction, Option<Box<OneShot>>)>,
    idle_timeout: Nanos,
    direct: Direct,
    note: EntryNote,
    selector: Option<Profile>,
    is_const: bool,
}

impl Writing {
    fn insert(self, cx: &mut Context<'_>) -> P4Result<()> {
        let target = self.target;
        // The action is present, as checked before.
        let Some((action, one_shot)) = self.action else {
            return Ok(());
        };
        if let (Some(one_shot), Some(profile)) = (&one_shot, &self.selector) {
            check_one_shot(cx.notes, profile, 0, one_shot)?;
        }
        let entry = Entry {
            key: self.key,
            action,
            idle_timeout: self.idle_timeout,
        };
        cx.pipeline.insert_entry(target, &entry, cx.now)?;
        let key = entry.key;
        let handle = changes::handle(cx.pipeline, target, &key);
        changes::log(cx.pipeline, target, handle, Change::Added);
        self.direct.set(cx.pipeline, target, Some(&key))?;
        let note = EntryNote {
            one_shot,
            ..self.note
        };
        cx.notes.set_entry(target, &key, note);
        cx.undo(move |cx| {
            cx.pipeline.delete_entry(target, &key)?;
            cx.notes.set_entry(target, &key, EntryNote::default());
            Ok(())
        });
        Ok(())
    }

    fn modify(self, cx: &mut Context<'_>) -> P4Result<()> {
        let (target, key) = (self.target, self.key);
        let before = Before::look(cx.pipeline, cx.notes, target, &key)?;
        let (action, one_shot) = match self.action {
            Some(given) => given,
            None => (
                before.state.entry.action.clone(),
                before.note.one_shot.clone(),
            ),
        };
        if let (Some(one_shot), Some(profile)) = (&one_shot, &self.selector) {
            let old = before.note.one_shot.as_ref();
            check_one_shot(cx.notes, profile, old.map_or(0, |o| o.size), one_shot)?;
        }
        if !self.is_const {
            let entry = Entry {
                key: key.clone(),
                action,
                idle_timeout: self.idle_timeout,
            };
            cx.pipeline.modify_entry(target, entry, cx.now)?;
            let handle = changes::handle(cx.pipeline, target, &key);
            changes::log(cx.pipeline, target, handle, Change::Modified);
        }
        self.direct.set(cx.pipeline, target, Some(&key))?;
        let note = EntryNote {
            one_shot,
            ..self.note
        };
        cx.notes.set_entry(target, &key, note);
        let is_const = self.is_const;
        cx.undo(move |cx| before.restore(cx, target, is_const));
        Ok(())
    }
}

fn check_one_shot(notes: &mut Notes, profile: &Profile, old: u64, new: &OneShot) -> P4Result<()> {
    let selector = notes.selector_mut(profile.target);
    selector.check_style(Style::OneShot, profile)?;
    selector.check_room(old, new.size, profile)
}

/// The previous state of an entry.
pub struct Before {
    state: EntryState,
    direct: direct::Before,
    note: EntryNote,
}

impl Before {
    /// Returns the present state.
    ///
    /// # Errors
    /// NOT_FOUND if the entry does not exist.
    pub fn look(p: &Pipeline, notes: &Notes, table: TableId, key: &EntryKey) -> P4Result<Self> {
        Ok(Self {
            state: p.entry(table, key)?,
            direct: direct::Before::look(p, table, Some(key))?,
            note: notes.entry(table, key),
        })
    }

    /// Undoes a deletion.
    ///
    /// # Errors
    /// If the entry exists again.
    pub fn insert(self, cx: &mut Context<'_>, table: TableId) -> P4Result<()> {
        let (entry, hit) = (self.state.entry.clone(), self.state.last_hit);
        cx.pipeline.insert_entry(table, entry, hit)?;
        self.restore_rest(cx, table)
    }

    /// Undoes a modification.
    ///
    /// # Errors
    /// If the entry does not exist any more.
    pub fn restore(self, cx: &mut Context<'_>, table: TableId, is_const: bool) -> P4Result<()> {
        if !is_const {
            let (entry, hit) = (self.state.entry.clone(), self.state.last_hit);
            cx.pipeline.modify_entry(table, entry, hit)?;
        }
        self.restore_rest(cx, table)
    }

    fn restore_rest(self, cx: &mut Context<'_>, table: TableId) -> P4Result<()> {
        let key = self.state.entry.key;
        self.direct.restore(cx.pipeline, table, Some(&key))?;
        cx.notes.set_entry(table, &key, self.note);
        Ok(())
    }
}
