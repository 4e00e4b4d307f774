// SPDX-License-Identifier: Apache-2.0
//! The values that objects of the pipeline have and refer to.

use softswitch_pipeline::{ActionCall, EntryAction, EntryKey, MatchField, Pipeline, Value};

use crate::p4rt::error::P4Result;
use crate::p4rt::notes::Notes;
use crate::p4rt::references::{Counts, Facts, References, Slot, Values};
use crate::p4rt::schema::{Schema, Table};

/// Number of entries that are read at a time.
const ENTRIES_PER_PAGE: usize = 1024;

/// An object that an update changes.
pub enum Subject<'a> {
    /// A table entry.
    Entry(&'a Table, u32, EntryKey),
    /// A table's default entry.
    Default(&'a Table),
    /// A member of an action profile.
    Member(u32, u32),
    /// A multicast group.
    MulticastGroup(u32),
}

impl Subject<'_> {
    /// Returns the present facts about the object; none if it does not exist.
    pub fn facts(&self, schema: &Schema, pipeline: &Pipeline, notes: &Notes) -> Facts {
        let mut facts = Facts::default();
        match self {
            Self::Entry(table, id, key) => {
                if let Ok(state) = pipeline.entry(table.target, key) {
                    add_entry(schema, table, *id, key, &state.entry.action, &mut facts);
                }
            }
            Self::Default(table) => {
                if let Ok(Some(action)) = pipeline.default_action(table.target) {
                    add_action(schema, table, &action, &mut facts);
                }
            }
            Self::Member(profile, id) => {
                let profile = schema.profiles.get(*profile);
                let table = profile.and_then(|p| schema.tables.get(p.table?));
                if let Some((profile, table)) = profile.zip(table)
                    && let Ok(call) = pipeline.member(profile.target, *id)
                {
                    add_call(schema, table, &call, &mut facts);
                }
            }
            Self::MulticastGroup(id) => {
                if notes.multicast.contains_key(id) {
                    add_group(&schema.references, *id, &mut facts);
                }
            }
        }
        facts
    }
}

/// Counts the values of all objects.
pub fn count(schema: &Schema, pipeline: &Pipeline, notes: &Notes) -> P4Result<Counts> {
    let mut counts = Counts::default();
    let mut facts = Facts::default();
    for (id, table) in schema.tables.iter() {
        let mut next = Some(0);
        while let Some(from) = next {
            let entries;
            (entries, next) = pipeline.entries_page(table.target, from, ENTRIES_PER_PAGE)?;
            for state in entries {
                let entry = state.entry;
                add_entry(schema, table, id, &entry.key, &entry.action, &mut facts);
            }
        }
        let default = Subject::Default(table).facts(schema, pipeline, notes);
        facts.references.extend(default.references);
        counts.add(&std::mem::take(&mut facts));
    }
    for (_, profile) in schema.profiles.iter() {
        let Some(table) = profile.table.and_then(|id| schema.tables.get(id)) else {
            continue;
        };
        for (_, call) in pipeline.members(profile.target)? {
            add_call(schema, table, &call, &mut facts);
        }
    }
    for id in notes.multicast.keys() {
        add_group(&schema.references, *id, &mut facts);
    }
    counts.add(&facts);
    Ok(counts)
}

fn add_entry(
    schema: &Schema,
    table: &Table,
    id: u32,
    key: &EntryKey,
    action: &EntryAction,
    facts: &mut Facts,
) {
    let references = &schema.references;
    let field = |index: &usize| exact_value(&key.fields[*index]);
    for (number, slot) in references.slots.iter().enumerate() {
        if let Slot::Fields { table, fields } = slot
            && *table == id
            && let Some(values) = fields.iter().map(field).collect::<Option<Values>>()
        {
            facts.entries.push((number, values));
        }
    }
    for reference in references
        .of_tables
        .get(&table.target)
        .into_iter()
        .flatten()
    {
        let values = reference.from.iter().map(field).collect::<Option<Values>>();
        facts
            .references
            .extend(values.map(|values| (reference.slot, values)));
    }
    add_action(schema, table, action, facts);
}

/// Returns the only value that a field matches; `None` if it matches several.
fn exact_value(field: &MatchField) -> Option<Value> {
    match field {
        MatchField::Exact(value) | MatchField::Optional(Some(value)) => Some(value.clone()),
        MatchField::Ternary { value, mask } if mask.bits() > 0 => Some(value.clone()),
        _ => None,
    }
}

fn add_action(schema: &Schema, table: &Table, action: &EntryAction, facts: &mut Facts) {
    match action {
        EntryAction::Direct(call) => add_call(schema, table, call, facts),
        EntryAction::OneShot(actions) | EntryAction::RandomOneShot(actions) => {
            for action in actions {
                add_call(schema, table, &action.call, facts);
            }
        }
        // Members are objects of their own.
        EntryAction::Member(_) | EntryAction::Group(_) => {}
    }
}

fn add_call(schema: &Schema, table: &Table, call: &ActionCall, facts: &mut Facts) {
    let id = table.action_ids.get(&call.action);
    let references = id.and_then(|id| schema.references.of_actions.get(id));
    for reference in references.into_iter().flatten() {
        let values = reference.from.iter().map(|i| call.args[*i].clone());
        facts.references.push((reference.slot, values.collect()));
    }
}

fn add_group(references: &References, id: u32, facts: &mut Facts) {
    let slot = references.slots.iter();
    if let Some(slot) = slot.clone().position(|s| *s == Slot::MulticastGroups) {
        facts.entries.push((slot, vec![Value::from(id)]));
    }
}
