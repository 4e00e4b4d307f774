//! Table entries.

use softswitch_pipeline::{
    CounterValue, Entry, EntryAction, EntryKey, EntryState, IdleEntry, MeterConfig, Nanos,
};

use super::action::{self, Use};
use super::{OBJECTS_PER_LOCK, Op, View, counter, field_match, meter, unknown, wrap};
use crate::p4rt::error::{P4Error, P4Result};
use crate::p4rt::notes::EntryNote;
use crate::p4rt::schema::{Schema, Table};
use crate::proto::p4::v1::{
    Entity, TableEntry, entity::Entity as Kind, table_action, table_entry, update::Type,
};

/// The table that an entity names.
pub fn find(schema: &Schema, id: u32) -> P4Result<&Table> {
    schema.tables.get(id).ok_or_else(|| unknown("table", id))
}

/// Decodes the fields that identify an entry.
pub fn decode_key(table: &Table, entry: &TableEntry) -> P4Result<EntryKey> {
    let owner = format!("table {}", table.name);
    let fields = field_match::decode(&owner, &table.fields, &entry.r#match)?;
    match (table.needs_priority, entry.priority) {
        (true, 1..) | (false, 0) => {}
        (true, p) => {
            return Err(P4Error::invalid(format!(
                "{owner}: its entries need a priority of at least 1, not {p}"
            )));
        }
        (false, p) => {
            return Err(P4Error::invalid(format!(
                "{owner}: its entries have no priority (it must be 0, not {p}), \
                 since no field is matched by ternary, range or optional"
            )));
        }
    }
    Ok(EntryKey {
        fields,
        priority: entry.priority,
    })
}

pub fn write(schema: &Schema, operation: Type, entry: &TableEntry) -> P4Result<Op> {
    let table = find(schema, entry.table_id)?;
    if entry.is_const {
        return Err(P4Error::invalid("is_const must not be set in a write"));
    }
    if entry.is_default_action {
        return write_default(schema, table, operation, entry);
    }
    let name = &table.name;
    if operation == Type::Insert && table.fields.is_empty() {
        return Err(P4Error::invalid(format!(
            "table {name} has no key, so it has no entries but the default entry"
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
            cx.pipeline.delete_entry(target, &key)?;
            cx.notes.set_entry(target, key, EntryNote::default());
            Ok(())
        }));
    }
    let given = entry.action.as_ref();
    let entry_action = given
        .map(|a| action::decode_action(schema, table, a))
        .transpose()?;
    if operation == Type::Insert && entry_action.is_none() {
        return Err(P4Error::invalid(format!(
            "table {name}: an entry to insert needs an action"
        )));
    }
    let idle_timeout = decode_idle_timeout(table, entry)?;
    let direct = Direct::decode(table, entry)?;
    let is_const = table.is_const;
    let note = note(entry);
    Ok(Box::new(move |cx| {
        let inserted = operation == Type::Insert;
        let entry_action = match entry_action {
            Some(given) => given,
            None => cx.pipeline.entry(target, &key)?.entry.action,
        };
        let entry = Entry {
            key: key.clone(),
            action: entry_action,
            idle_timeout,
        };
        if inserted {
            cx.pipeline.insert_entry(target, entry, cx.now)?;
        } else if !is_const {
            cx.pipeline.modify_entry(target, entry, cx.now)?;
        }
        if let Some(counter) = direct.counter {
            cx.pipeline.set_direct_counter(target, &key, counter)?;
        }
        if direct.has_meter && (direct.meter.is_some() || !inserted) {
            cx.pipeline.set_direct_meter(target, &key, direct.meter)?;
        }
        cx.notes.set_entry(target, key, note);
        Ok(())
    }))
}

/// Direct resources given with an entry.
struct Direct {
    counter: Option<CounterValue>,
    has_meter: bool,
    meter: Option<MeterConfig>,
}

impl Direct {
    fn decode(table: &Table, entry: &TableEntry) -> P4Result<Self> {
        let lacks =
            |what: &str| P4Error::invalid(format!("table {} has no direct {what}", table.name));
        if entry.counter_data.is_some() && !table.direct_counter {
            return Err(lacks("counter"));
        }
        if entry.meter_config.is_some() && !table.direct_meter {
            return Err(lacks("meter"));
        }
        if entry.meter_counter_data.is_some() {
            return Err(meter::no_color_counters());
        }
        let counter = entry
            .counter_data
            .as_ref()
            .map(counter::decode)
            .transpose()?;
        let meter = entry.meter_config.as_ref().map(meter::decode).transpose()?;
        Ok(Self {
            counter,
            has_meter: table.direct_meter,
            meter,
        })
    }
}

fn write_default(
    schema: &Schema,
    table: &Table,
    operation: Type,
    entry: &TableEntry,
) -> P4Result<Op> {
    let name = &table.name;
    let invalid = |reason: &str| {
        Err(P4Error::invalid(format!(
            "table {name}: the default entry {reason}"
        )))
    };
    if operation != Type::Modify {
        return invalid("can only be modified");
    }
    if !entry.r#match.is_empty() || entry.priority != 0 {
        return invalid("has no match fields and no priority");
    }
    if entry.idle_timeout_ns != 0 || entry.time_since_last_hit.is_some() {
        return invalid("has no idle time-out");
    }
    if table.const_default {
        return Err(P4Error::permission_denied(format!(
            "table {name}: the default action is constant"
        )));
    }
    if entry.counter_data.is_some()
        || entry.meter_config.is_some()
        || entry.meter_counter_data.is_some()
    {
        return Err(P4Error::unimplemented(format!(
            "table {name}: direct counters and meters of default entries are not supported"
        )));
    }
    let call = match entry.action.as_ref().map(|a| &a.r#type) {
        None => None,
        Some(Some(table_action::Type::Action(a))) if table.profile.is_none() => Some(
            EntryAction::Direct(action::decode_call(schema, table, a, Use::Default)?),
        ),
        Some(_) if table.profile.is_some() => {
            return invalid("of a table with an action profile cannot be set");
        }
        Some(_) => return invalid("needs an action, not a member or group"),
    };
    let target = table.target;
    let note = if call.is_some() {
        note(entry)
    } else {
        EntryNote::default()
    };
    Ok(Box::new(move |cx| {
        cx.pipeline.set_default_action(target, call)?;
        cx.notes.set_default(target, note);
        Ok(())
    }))
}

fn note(entry: &TableEntry) -> EntryNote {
    let controller_metadata = entry.controller_metadata;
    EntryNote {
        // A copy, since the slice would keep the whole request in memory.
        metadata: entry.metadata.to_vec().into(),
        controller_metadata,
    }
}

fn decode_idle_timeout(table: &Table, entry: &TableEntry) -> P4Result<Nanos> {
    let invalid = |reason: &str| P4Error::invalid(format!("table {}: {reason}", table.name));
    if entry.time_since_last_hit.is_some() {
        return Err(invalid("time_since_last_hit can only be read"));
    }
    let timeout = Nanos::try_from(entry.idle_timeout_ns)
        .map_err(|_| invalid("the idle time-out is negative"))?;
    if timeout != 0 && !table.idle_timeout {
        return Err(invalid(
            "it does not support idle time-outs (support_timeout in the program)",
        ));
    }
    Ok(timeout)
}

/// The entries that `filter` names, of the tables that have a direct resource: `has` says which do, `missing` what is wrong
/// with naming one that does not.
pub fn read_with(
    view: View<'_>,
    filter: &TableEntry,
    has: impl Fn(&Table) -> bool,
    missing: impl Fn(&str) -> P4Error,
) -> P4Result<Vec<TableEntry>> {
    let mut entities = Vec::new();
    if filter.table_id == 0 {
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
                "table {} has no such entry",
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

pub fn read(view: View<'_>, request: &TableEntry, out: &mut Vec<Entity>) -> P4Result<()> {
    if request.table_id == 0 {
        for (id, table) in view.schema.tables.iter() {
            read_table(view, id, table, request, out)?;
        }
        return Ok(());
    }
    let table = find(view.schema, request.table_id)?;
    if !request.r#match.is_empty() && !request.is_default_action {
        let key = decode_key(table, request)?;
        let wanted = Wanted::new(table, request)?;
        if let Ok(state) = view.look(|p| p.entry(table.target, &key)) {
            wanted.push(view, request.table_id, table, state, out);
        }
        return Ok(());
    }
    read_table(view, request.table_id, table, request, out)
}

fn read_table(
    view: View<'_>,
    id: u32,
    table: &Table,
    request: &TableEntry,
    out: &mut Vec<Entity>,
) -> P4Result<()> {
    let wanted = Wanted::new(table, request)?;
    if request.is_default_action {
        let default = view.look(|p| p.default_action(table.target))?;
        let note = view.notes.default(table.target);
        out.push(wrap(Kind::TableEntry(TableEntry {
            table_id: id,
            is_default_action: true,
            action: default.map(|a| action::encode_action(view.schema, table, &a)),
            is_const: table.const_default,
            metadata: note.metadata,
            controller_metadata: note.controller_metadata,
            ..Default::default()
        })));
        return Ok(());
    }
    let mut next = Some(0);
    while let Some(from) = next {
        let entries;
        (entries, next) = view.look(|p| p.entries_page(table.target, from, OBJECTS_PER_LOCK))?;
        for state in entries {
            wanted.push(view, id, table, state, out);
        }
    }
    Ok(())
}

/// What a read request filters by, and which optional fields it asks for.
struct Wanted<'a> {
    request: &'a TableEntry,
    action_id: Option<u32>,
}

impl<'a> Wanted<'a> {
    fn new(table: &Table, request: &'a TableEntry) -> P4Result<Self> {
        let action_id = match request.action.as_ref().map(|a| &a.r#type) {
            None => None,
            Some(Some(table_action::Type::Action(a))) => Some(a.action_id),
            Some(_) => {
                return Err(P4Error::unimplemented(
                    "entries can be filtered by action id only, not by member or group",
                ));
            }
        };
        if request.meter_counter_data.is_some() {
            return Err(meter::no_color_counters());
        }
        // A wildcard over all tables just leaves out what a table does not have.
        if request.table_id != 0 && request.time_since_last_hit.is_some() && !table.idle_timeout {
            return Err(P4Error::invalid(format!(
                "table {} does not support idle time-outs",
                table.name
            )));
        }
        Ok(Self { request, action_id })
    }

    fn push(
        &self,
        view: View<'_>,
        id: u32,
        table: &Table,
        state: EntryState,
        out: &mut Vec<Entity>,
    ) {
        let EntryState {
            entry,
            counter,
            meter,
            last_hit,
        } = state;
        let request = self.request;
        let note = view.notes.entry(table.target, &entry.key);
        let encoded = action::encode_action(view.schema, table, &entry.action);
        let has_action = |wanted| match &encoded.r#type {
            Some(table_action::Type::Action(a)) => a.action_id == wanted,
            _ => false,
        };
        let controller_metadata = request.controller_metadata;
        let filtered = self.action_id.is_some_and(|id| !has_action(id))
            || request.priority != 0 && request.priority != entry.key.priority
            || controller_metadata != 0 && controller_metadata != note.controller_metadata
            || !request.metadata.is_empty() && request.metadata != note.metadata;
        if filtered {
            return;
        }
        let counter = counter.filter(|_| table.direct_counter && request.counter_data.is_some());
        let meter = meter.filter(|_| table.direct_meter && request.meter_config.is_some());
        let since = view.now.saturating_sub(last_hit);
        let asked = request.time_since_last_hit.is_some() && table.idle_timeout;
        out.push(wrap(Kind::TableEntry(TableEntry {
            table_id: id,
            r#match: field_match::encode(&table.fields, &entry.key.fields),
            action: Some(encoded),
            priority: entry.key.priority,
            controller_metadata: note.controller_metadata,
            metadata: note.metadata,
            meter_config: meter.map(meter::encode),
            counter_data: counter.map(counter::encode),
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

/// An entry as an idle time-out notification names it.
pub fn encode_idle_entry(view: View<'_>, idle: &IdleEntry) -> Option<TableEntry> {
    let (id, table) = view.schema.table_of(idle.table)?;
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
