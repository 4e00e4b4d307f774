// SPDX-License-Identifier: Apache-2.0
//! Reads of entries (specification, section "Wildcard Reads" of table entries).

use softswitch_pipeline::{
    CounterValue, EntryKey, EntryState, IdleEntry, MatchField, MeterConfig, Nanos,
};

use super::{check_default, decode_idle_timeout, decode_key, find};
use crate::p4rt::entity::{
    OBJECTS_PER_LOCK, View, action, counter, field_match, meter, unknown, wrap,
};
use crate::p4rt::error::{P4Error, P4Result};
use crate::p4rt::notes::EntryNote;
use crate::p4rt::schema::Table;
use crate::proto::p4::v1::{
    self as proto, CounterData, Entity, MeterCounterData, TableAction, TableEntry,
    entity::Entity as Kind, table_action, table_entry,
};

/// Returns the entries that `filter` selects in the tables with a direct resource. `has` selects these tables, and
/// `missing` is the error for a table without the resource.
pub fn read_with(
    view: View<'_>,
    filter: &TableEntry,
    has: impl Fn(&Table) -> bool,
    missing: impl Fn(&str) -> P4Error,
) -> P4Result<Vec<TableEntry>> {
    let mut entities = Vec::new();
    if filter.table_id == 0 {
        check_wildcard(filter)?;
        for (table_id, _) in view.schema.tables.iter().filter(|(_, t)| has(t)) {
            let one = TableEntry {
                table_id,
                ..filter.clone()
            };
            read(view, &one, &mut entities)?;
        }
    } else {
        let table = find(view.schema, filter.table_id)?;
        if !has(table) {
            return Err(missing(&table.name));
        }
        read(view, filter, &mut entities)?;
        if entities.is_empty() && !filter.r#match.is_empty() {
            return Err(P4Error::not_found(format!(
                "table {}: the entry does not exist",
                table.name
            )));
        }
    }
    Ok(entities
        .into_iter()
        .filter_map(|entity| match entity.entity {
            Some(Kind::TableEntry(entry)) => Some(entry),
            _ => None,
        })
        .collect())
}

/// Checks that a request for the entries of all tables does not use properties of one table.
fn check_wildcard(request: &TableEntry) -> P4Result<()> {
    if request.r#match.is_empty() && request.action.is_none() {
        return Ok(());
    }
    Err(P4Error::invalid(
        "entries of all tables (table_id 0) cannot be filtered by match or action",
    ))
}

pub fn read(view: View<'_>, request: &TableEntry, out: &mut Vec<Entity>) -> P4Result<()> {
    if request.table_id == 0 {
        check_wildcard(request)?;
        for (id, table) in view.schema.tables.iter() {
            read_table(view, id, table, request, out)?;
        }
        return Ok(());
    }
    let (id, table) = (request.table_id, find(view.schema, request.table_id)?);
    // A wildcard over all tables ignores properties that a table does not have.
    decode_idle_timeout(table, request)?;
    let all_priorities = table.needs_priority && request.priority == 0;
    if request.is_default_action || request.r#match.is_empty() || all_priorities {
        return read_table(view, id, table, request, out);
    }
    let key = decode_key(table, request)?;
    let wanted = Wanted::new(view, table, request)?;
    if let Ok(state) = view.look(|p| p.entry(table.target, &key)) {
        wanted.push(id, state, out);
    }
    Ok(())
}

fn read_table(
    view: View<'_>,
    id: u32,
    table: &Table,
    request: &TableEntry,
    out: &mut Vec<Entity>,
) -> P4Result<()> {
    if request.is_default_action {
        check_default(table, request)?;
        let wanted = Wanted::new(view, table, request)?;
        return wanted.push_default(id, out);
    }
    let wanted = Wanted::new(view, table, request)?;
    let mut next = Some(0);
    while let Some(from) = next {
        let entries;
        (entries, next) = view.look(|p| p.entries_page(table.target, from, OBJECTS_PER_LOCK))?;
        for state in entries {
            wanted.push(id, state, out);
        }
    }
    Ok(())
}

/// Returns the requested direct resources of an entry.
fn asked_for(
    table: &Table,
    request: &TableEntry,
    counter: Option<CounterValue>,
    meter: Option<MeterConfig>,
) -> (Option<CounterData>, Option<proto::MeterConfig>) {
    let counter = counter.filter(|_| table.direct_counter && request.counter_data.is_some());
    let wants_meter = table.direct_meter.is_some() && request.meter_config.is_some();
    let meter = meter.filter(|_| wants_meter);
    (counter.map(counter::encode), meter.map(meter::encode))
}

/// The filters of a read request, and the optional fields that it requests.
struct Wanted<'a> {
    view: View<'a>,
    table: &'a Table,
    request: &'a TableEntry,
    fields: Option<Vec<MatchField>>,
    action_id: Option<u32>,
}

impl<'a> Wanted<'a> {
    fn new(view: View<'a>, table: &'a Table, request: &'a TableEntry) -> P4Result<Self> {
        let action_id = match request.action.as_ref().map(|a| &a.r#type) {
            None => None,
            Some(Some(table_action::Type::Action(a))) => Some(a.action_id),
            Some(_) => {
                return Err(P4Error::unimplemented(
                    "entries cannot be filtered by member or group: use an action id",
                ));
            }
        };
        if let Some(id) = action_id.filter(|id| !view.schema.actions.contains_key(id)) {
            return Err(unknown("action", id));
        }
        let fields = match request.r#match.is_empty() {
            true => None,
            false => Some(field_match::decode(
                format_args!("table {}", table.name),
                &table.fields,
                &request.r#match,
            )?),
        };
        Ok(Self {
            view,
            table,
            request,
            fields,
            action_id,
        })
    }

    /// Returns true if an entry matches the filter's action and metadata.
    fn takes(&self, action: Option<&TableAction>, note: &EntryNote) -> bool {
        let has_action = |wanted| match action.and_then(|a| a.r#type.as_ref()) {
            Some(table_action::Type::Action(a)) => a.action_id == wanted,
            _ => false,
        };
        let (request, number) = (self.request, self.request.controller_metadata);
        self.action_id.is_none_or(has_action)
            && (number == 0 || number == note.controller_metadata)
            && (request.metadata.is_empty() || request.metadata == note.metadata)
    }

    /// Returns the counters of the colours of an entry's direct meter, if they are requested.
    fn colors(&self, key: Option<&EntryKey>) -> Option<MeterCounterData> {
        let Self { table, request, .. } = self;
        request
            .meter_counter_data
            .as_ref()
            .filter(|_| table.direct_meter.is_some())?;
        let counters = self
            .view
            .look(|p| p.direct_meter_counters(table.target, key));
        counters.ok().flatten().map(meter::encode_counters)
    }

    fn push_default(&self, id: u32, out: &mut Vec<Entity>) -> P4Result<()> {
        let Self { view, table, .. } = self;
        let target = table.target;
        let (action, counter, meter) = view.look(|p| {
            Ok((
                p.default_action(target)?,
                p.direct_counter(target, None)?,
                p.direct_meter(target, None)?,
            ))
        })?;
        let action = action.map(|a| action::encode_action(view.schema, table, &a, None));
        let note = view.notes.default(target);
        if !self.takes(action.as_ref(), &note) {
            return Ok(());
        }
        let (counter_data, meter_config) = asked_for(table, self.request, counter, meter);
        out.push(wrap(Kind::TableEntry(TableEntry {
            table_id: id,
            is_default_action: true,
            action,
            is_const: table.const_default || table.profile.is_some(),
            metadata: note.metadata,
            controller_metadata: note.controller_metadata,
            counter_data,
            meter_config,
            meter_counter_data: self.colors(None),
            ..Default::default()
        })));
        Ok(())
    }

    fn push(&self, id: u32, state: EntryState, out: &mut Vec<Entity>) {
        let EntryState {
            entry,
            counter,
            meter,
            last_hit,
            ..
        } = state;
        let Self {
            view,
            table,
            request,
            ..
        } = self;
        let note = view.notes.entry(table.target, &entry.key);
        let encoded =
            action::encode_action(view.schema, table, &entry.action, note.one_shot.as_deref());
        let filtered = self.fields.as_ref().is_some_and(|f| *f != entry.key.fields)
            || request.priority != 0 && request.priority != entry.key.priority;
        if filtered || !self.takes(Some(&encoded), &note) {
            return;
        }
        let (counter_data, meter_config) = asked_for(table, request, counter, meter);
        let meter_counter_data = self.colors(Some(&entry.key));
        let since = view.now.saturating_sub(last_hit);
        let asked = request.time_since_last_hit.is_some() && table.idle_timeout;
        out.push(wrap(Kind::TableEntry(TableEntry {
            table_id: id,
            r#match: field_match::encode(&table.fields, &entry.key.fields),
            action: Some(encoded),
            priority: entry.key.priority,
            controller_metadata: note.controller_metadata,
            metadata: note.metadata,
            meter_config,
            counter_data,
            meter_counter_data,
            idle_timeout_ns: clamp(entry.idle_timeout),
            time_since_last_hit: asked.then(|| table_entry::IdleTimeout {
                elapsed_ns: clamp(since),
            }),
            is_const: table.is_const,
            ..Default::default()
        })));
    }
}

fn clamp(nanos: Nanos) -> i64 {
    i64::try_from(nanos).unwrap_or(i64::MAX)
}

/// Encodes an entry for an idle time-out notification; `None` if P4Info does not announce time-outs of its table.
pub fn encode_idle_entry(view: View<'_>, idle: &IdleEntry) -> Option<TableEntry> {
    let table = view.schema.table_of(idle.table);
    let (id, table) = table.filter(|(_, table)| table.idle_timeout)?;
    let state = view.look(|p| p.entry(idle.table, &idle.key)).ok()?;
    let note = view.notes.entry(idle.table, &idle.key);
    Some(TableEntry {
        table_id: id,
        r#match: field_match::encode(&table.fields, &idle.key.fields),
        priority: idle.key.priority,
        controller_metadata: note.controller_metadata,
        metadata: note.metadata,
        idle_timeout_ns: clamp(state.entry.idle_timeout),
        ..Default::default()
    })
}
