//! Links P4Info to a program, and says where they differ.

use std::collections::HashMap;

use softswitch_pipeline::{Implementation, Info, MatchKind};

use super::{
    Action, Array, Digest, Field, Param, Profile, Register, Schema, Table, TableAction, ValueSet,
};
use crate::p4rt::packet_io::PacketHeader;
use crate::p4rt::types;
use crate::proto::p4::config::v1 as cfg;
use cfg::action_ref::Scope;
use cfg::match_field::{Match, MatchType};

impl Schema {
    /// Links P4Info to a program.
    ///
    /// # Errors
    /// Says which object of P4Info the program lacks or has otherwise.
    pub fn link(p4info: &cfg::P4Info, info: &Info) -> Result<Self, String> {
        let mut schema = Self::default();
        for action in &p4info.actions {
            let (id, name) = preamble(action.preamble.as_ref(), "action")?;
            let params = action.params.iter().map(|p| {
                let width = bit_width(p.bitwidth, &format!("action {name}, parameter {}", p.name))?;
                Ok(Param {
                    id: p.id,
                    name: p.name.clone(),
                    width,
                    translated: p.type_name.is_some(),
                })
            });
            let params = params.collect::<Result<_, String>>()?;
            schema.actions.insert(id, Action { name, params });
        }
        for table in &p4info.tables {
            let (id, table) = link_table(&schema, table, p4info, info)?;
            schema.tables.insert(id, table);
        }
        link_externs(&mut schema, p4info, info)?;
        for header in &p4info.controller_packet_metadata {
            let (_, name) = preamble(header.preamble.as_ref(), "controller packet metadata")?;
            let header = PacketHeader::new(header)?;
            match name.as_str() {
                "packet_in" => schema.packet_in = Some(header),
                "packet_out" => schema.packet_out = Some(header),
                _ => {
                    return Err(format!(
                        "controller packet metadata '{name}' is neither packet_in nor packet_out"
                    ));
                }
            }
        }
        Ok(schema)
    }
}

fn preamble(preamble: Option<&cfg::Preamble>, kind: &str) -> Result<(u32, String), String> {
    let preamble = preamble.ok_or_else(|| format!("a {kind} in P4Info has no preamble"))?;
    Ok((preamble.id, preamble.name.clone()))
}

fn bit_width(width: i32, what: &str) -> Result<u32, String> {
    u32::try_from(width).ok().filter(|w| *w > 0).ok_or_else(|| {
        format!("{what}: bit width {width} is not supported (a type translated to a string?)")
    })
}

fn missing(kind: &str, name: &str) -> String {
    format!(
        "P4Info has {kind} '{name}', the program has not: they are not from the same compilation"
    )
}

fn link_table(
    schema: &Schema,
    table: &cfg::Table,
    p4info: &cfg::P4Info,
    info: &Info,
) -> Result<(u32, Table), String> {
    let (id, name) = preamble(table.preamble.as_ref(), "table")?;
    let target = info.table(&name).ok_or_else(|| missing("table", &name))?;
    let linked = &info.tables[target.index()];
    if linked.key.len() != table.match_fields.len() {
        return Err(format!(
            "table {name}: P4Info has {} match fields, the program {}",
            table.match_fields.len(),
            linked.key.len()
        ));
    }
    let fields = table.match_fields.iter().zip(&linked.key);
    let fields = fields.map(|(field, key)| {
        let what = format!("table {name}, match field {}", field.name);
        link_field(field, key.kind, key.width, &what)
    });
    let fields = fields.collect::<Result<_, _>>()?;

    let mut actions = HashMap::new();
    let mut action_ids = HashMap::new();
    for r in &table.action_refs {
        let action = schema
            .actions
            .get(&r.id)
            .ok_or_else(|| format!("table {name} refers to action {}, not in P4Info", r.id))?;
        let target = linked
            .action(&action.name)
            .ok_or_else(|| missing(&format!("table {name} with action"), &action.name))?;
        check_params(action, &info.actions[target.index()].params)?;
        let scope = r.scope();
        actions.insert(
            r.id,
            TableAction {
                target,
                in_entries: scope != Scope::DefaultOnly,
                as_default: scope != Scope::TableOnly,
            },
        );
        action_ids.insert(target, r.id);
    }
    let is_direct = |id: &u32, list: &mut dyn Iterator<Item = Option<&cfg::Preamble>>| {
        list.flatten().any(|p| p.id == *id)
    };
    let direct_counter = table.direct_resource_ids.iter().any(|id| {
        let mut list = p4info.direct_counters.iter().map(|c| c.preamble.as_ref());
        is_direct(id, &mut list)
    });
    let direct_meter = table.direct_resource_ids.iter().any(|id| {
        let mut list = p4info.direct_meters.iter().map(|m| m.preamble.as_ref());
        is_direct(id, &mut list)
    });
    if direct_counter && !linked.direct_counter || direct_meter && linked.direct_meter.is_none() {
        return Err(missing("a direct counter or meter of table", &name));
    }
    let profile = match (table.implementation_id, linked.implementation) {
        (0, Implementation::Direct) => None,
        (id, Implementation::Profile(_)) if id != 0 => Some(id),
        _ => return Err(missing("an action profile of table", &name)),
    };
    let table = Table {
        target,
        fields,
        actions,
        action_ids,
        profile,
        is_const: table.is_const_table || linked.const_entries,
        const_default: table.const_default_action_id != 0 || linked.const_default,
        idle_timeout: linked.idle_timeout
            && table.idle_timeout_behavior() == cfg::table::IdleTimeoutBehavior::NotifyControl,
        needs_priority: linked.needs_priority,
        direct_counter,
        direct_meter,
        name,
    };
    Ok((id, table))
}

fn check_params(action: &Action, linked: &[(String, u32)]) -> Result<(), String> {
    let mut pairs = action.params.iter().zip(linked);
    let same = pairs.all(|(p, (_, width))| p.translated || p.width == *width);
    if action.params.len() != linked.len() || !same {
        return Err(format!(
            "action {}: P4Info and the program differ in its parameters",
            action.name
        ));
    }
    Ok(())
}

fn link_field(
    field: &cfg::MatchField,
    linked: MatchKind,
    linked_width: u32,
    what: &str,
) -> Result<Field, String> {
    let width = bit_width(field.bitwidth, what)?;
    let kind = match_kind(field, what)?;
    // What the program tests, and P4Info has as an exact match of one bit.
    let kind = match (kind, linked) {
        (MatchKind::Exact, MatchKind::Valid) => MatchKind::Valid,
        (kind, _) => kind,
    };
    let fits = kind == linked || (kind, linked) == (MatchKind::Optional, MatchKind::Ternary);
    // A translated type has the controller's width; numbers are the same on both sides.
    let translated = field.type_name.is_some();
    if !fits || width != linked_width && !translated {
        return Err(format!(
            "{what}: P4Info says {kind:?} of {width} bits, the program {linked:?} of {linked_width}"
        ));
    }
    Ok(Field {
        id: field.id,
        name: field.name.clone(),
        kind,
        target: linked,
        width: linked_width,
    })
}

fn match_kind(field: &cfg::MatchField, what: &str) -> Result<MatchKind, String> {
    match &field.r#match {
        Some(Match::MatchType(t)) => match MatchType::try_from(*t) {
            Ok(MatchType::Exact) => Ok(MatchKind::Exact),
            Ok(MatchType::Lpm) => Ok(MatchKind::Lpm),
            Ok(MatchType::Ternary) => Ok(MatchKind::Ternary),
            Ok(MatchType::Range) => Ok(MatchKind::Range),
            Ok(MatchType::Optional) => Ok(MatchKind::Optional),
            _ => Err(format!("{what}: unknown match type {t}")),
        },
        other => Err(format!("{what}: match type {other:?} is not supported")),
    }
}

fn link_externs(schema: &mut Schema, p4info: &cfg::P4Info, info: &Info) -> Result<(), String> {
    for profile in &p4info.action_profiles {
        let (id, name) = preamble(profile.preamble.as_ref(), "action profile")?;
        let target = info
            .profile(&name)
            .ok_or_else(|| missing("action profile", &name))?;
        let table = profile
            .table_ids
            .iter()
            .find(|t| schema.tables.get(**t).is_some());
        use cfg::action_profile::SelectorSizeSemantics::SumOfMembers;
        let (size_in_members, max_member_weight) = match &profile.selector_size_semantics {
            Some(SumOfMembers(s)) => (true, s.max_member_weight.try_into().unwrap_or(0)),
            _ => (false, 0),
        };
        let linked = Profile {
            target,
            table: *table.ok_or_else(|| format!("action profile {name} belongs to no table"))?,
            selector: profile.with_selector,
            max_group_size: profile.max_group_size.try_into().unwrap_or(0),
            size_in_members,
            max_member_weight,
            weights_disallowed: profile.weights_disallowed,
            name,
        };
        schema.profiles.insert(id, linked);
    }
    for counter in &p4info.counters {
        let (id, name) = preamble(counter.preamble.as_ref(), "counter")?;
        let target = info
            .counter(&name)
            .ok_or_else(|| missing("counter", &name))?;
        let size = info.counters[target.index()].size;
        schema.counters.insert(id, Array { name, target, size });
    }
    for meter in &p4info.meters {
        let (id, name) = preamble(meter.preamble.as_ref(), "meter")?;
        let target = info.meter(&name).ok_or_else(|| missing("meter", &name))?;
        let size = info.meters[target.index()].size;
        schema.meters.insert(id, Array { name, target, size });
    }
    for register in &p4info.registers {
        let (id, name) = preamble(register.preamble.as_ref(), "register")?;
        let target = info
            .register(&name)
            .ok_or_else(|| missing("register", &name))?;
        let linked = &info.registers[target.index()];
        let shape = types::Shape::resolve(register.type_spec.as_ref(), p4info.type_info.as_ref())
            .map_err(|e| format!("register {name}: {e}"))?;
        if shape.widths() != [linked.width] {
            return Err(format!(
                "register {name}: P4Info and the program differ in its type"
            ));
        }
        schema.registers.insert(
            id,
            Register {
                target,
                size: linked.size,
                shape,
                name,
            },
        );
    }
    for set in &p4info.value_sets {
        let (id, name) = preamble(set.preamble.as_ref(), "value set")?;
        let target = info
            .value_set(&name)
            .ok_or_else(|| missing("value set", &name))?;
        let linked = &info.value_sets[target.index()];
        if linked.fields.len() != set.r#match.len() {
            return Err(format!(
                "value set {name}: P4Info and the program differ in its fields"
            ));
        }
        let fields = set
            .r#match
            .iter()
            .zip(&linked.fields)
            .map(|(field, width)| {
                let mut field = field.clone();
                if field.bitwidth == 0 {
                    field.bitwidth = i32::try_from(*width).unwrap_or(0);
                }
                let kind = match_kind(&field, &name)?;
                link_field(&field, kind, *width, &format!("value set {name}"))
            });
        let fields = fields.collect::<Result<_, _>>()?;
        let size = usize::try_from(set.size).unwrap_or(0);
        schema.value_sets.insert(
            id,
            ValueSet {
                target,
                fields,
                size,
                name,
            },
        );
    }
    for digest in &p4info.digests {
        let (id, name) = preamble(digest.preamble.as_ref(), "digest")?;
        let target = info.digest(&name).ok_or_else(|| missing("digest", &name))?;
        let shape = types::Shape::resolve(digest.type_spec.as_ref(), p4info.type_info.as_ref())
            .map_err(|e| format!("digest {name}: {e}"))?;
        if shape.widths() != info.digests[target.index()].fields {
            return Err(format!(
                "digest {name}: P4Info and the program differ in its fields"
            ));
        }
        schema.digests.insert(
            id,
            Digest {
                target,
                shape,
                name,
            },
        );
    }
    Ok(())
}
