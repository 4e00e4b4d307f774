//! Table entries.

use softswitch_pipeline::{
    ActionCall, CounterValue, Entry, EntryAction, EntryKey, EntryState, IdleEntry, MeterConfig,
    Nanos, WeightedAction,
};

use super::{Op, View, counter, field_match, meter, unknown, wrap};
use crate::p4rt::error::{P4Error, P4Result};
use crate::p4rt::notes::EntryNote;
use crate::p4rt::schema::{Profile, Schema, Table};
use crate::p4rt::value;
use crate::proto::p4::v1::{
    Action, ActionProfileAction, ActionProfileActionSet, Entity, TableAction, TableEntry, action,
    action_profile_action, action_profile_action_set, entity::Entity as Kind, table_action,
    table_entry, update::Type,
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

pub fn write(schema: &Schema, action: Type, entry: &TableEntry) -> P4Result<Op> {
    let table = find(schema, entry.table_id)?;
    if entry.is_const {
        return Err(P4Error::invalid("is_const must not be set in a write"));
    }
    if entry.is_default_action {
        return write_default(schema, table, action, entry);
    }
    let name = &table.name;
    if action == Type::Insert && table.fields.is_empty() {
        return Err(P4Error::invalid(format!(
            "table {name} has no key, so it has no entries but the default entry"
        )));
    }
    if table.is_const && (action != Type::Modify || entry.action.is_some()) {
        return Err(P4Error::permission_denied(format!(
            "table {name}: its entries are constant"
        )));
    }
    let key = decode_key(table, entry)?;
    let target = table.target;
    if action == Type::Delete {
        return Ok(Box::new(move |cx| {
            cx.pipeline.delete_entry(target, &key)?;
            cx.notes.set_entry(target, key, EntryNote::default());
            Ok(())
        }));
    }
    let given = entry.action.as_ref();
    let entry_action = given.map(|a| decode_action(schema, table, a)).transpose()?;
    if action == Type::Insert && entry_action.is_none() {
        return Err(P4Error::invalid(format!(
            "table {name}: an entry to insert needs an action"
        )));
    }
    let idle_timeout = decode_idle_timeout(table, entry)?;
    let direct = Direct::decode(table, entry)?;
    let is_const = table.is_const;
    let note = note(entry);
    Ok(Box::new(move |cx| {
        let inserted = action == Type::Insert;
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

fn write_default(schema: &Schema, table: &Table, action: Type, entry: &TableEntry) -> P4Result<Op> {
    let name = &table.name;
    let invalid = |reason: &str| {
        Err(P4Error::invalid(format!(
            "table {name}: the default entry {reason}"
        )))
    };
    if action != Type::Modify {
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
            EntryAction::Direct(decode_call(schema, table, a, Use::Default)?),
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

#[derive(Clone, Copy, PartialEq)]
enum Use {
    Entry,
    Default,
}

/// Decodes an action of a table, or of members of its action profile.
pub fn decode_member_call(schema: &Schema, table: &Table, given: &Action) -> P4Result<ActionCall> {
    decode_call(schema, table, given, Use::Entry)
}

fn decode_call(schema: &Schema, table: &Table, given: &Action, r#use: Use) -> P4Result<ActionCall> {
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

fn decode_action(schema: &Schema, table: &Table, given: &TableAction) -> P4Result<EntryAction> {
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
        let weight = super::profile::decode_weight(profile, a.weight)?;
        use action_profile_action::WatchKind;
        let watch_port = match &a.watch_kind {
            None => None,
            Some(WatchKind::Watch(port)) => super::profile::old_watch_port(*port)?,
            Some(WatchKind::WatchPort(port)) => super::profile::watch_port(port)?,
        };
        Ok(WeightedAction {
            call: decode_call(schema, table, call, Use::Entry)?,
            weight,
            watch_port,
        })
    });
    let actions = actions.collect::<P4Result<Vec<_>>>()?;
    let weights = actions.iter().map(|a| a.weight);
    super::profile::check_group_size(profile, in_members, weights, profile.max_group_size)?;
    Ok(actions)
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
        if let Ok(state) = view.pipeline.entry(table.target, &key) {
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
        let action = view.pipeline.default_action(table.target)?;
        let note = view.notes.default(table.target);
        out.push(wrap(Kind::TableEntry(TableEntry {
            table_id: id,
            is_default_action: true,
            action: action.map(|a| encode_action(view.schema, table, &a)),
            is_const: table.const_default,
            metadata: note.metadata,
            controller_metadata: note.controller_metadata,
            ..Default::default()
        })));
        return Ok(());
    }
    for state in view.pipeline.entries(table.target)? {
        wanted.push(view, id, table, state, out);
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
        let action = encode_action(view.schema, table, &entry.action);
        let has_action = |wanted| match &action.r#type {
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
            action: Some(action),
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
    let state = view.pipeline.entry(idle.table, &idle.key).ok()?;
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

fn encode_action(schema: &Schema, table: &Table, given: &EntryAction) -> TableAction {
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
