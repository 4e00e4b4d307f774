// SPDX-License-Identifier: Apache-2.0
//! Links P4Info to a program, and reports differences.

mod externs;
mod references;
mod restrictions;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use softswitch_pipeline::{ActionInfo, Implementation, Info, MatchKind};

use super::{Action, Field, Param, Schema, Table, TableAction};
use crate::p4rt::packet_io::{self, PacketHeader};
use crate::p4rt::role::ObjectRoles;
use crate::p4rt::translation::Translations;
use crate::proto::p4::config::v1 as cfg;
use cfg::action_ref::Scope;
use cfg::match_field::{Match, MatchType};

/// Returns whether compilers generate tables with this name, which P4Info does not have: for statements, and for `switch`.
fn is_generated(table: &str) -> bool {
    table.starts_with("tbl_") || table.starts_with("switch_") && table.ends_with("_table")
}

impl Schema {
    /// Links P4Info to a program, on a device with these ports.
    ///
    /// # Errors
    /// The object of P4Info that the program lacks or declares differently.
    pub fn link(
        p4info: &cfg::P4Info,
        info: &Info,
        ports: Option<BTreeSet<u32>>,
    ) -> Result<Self, String> {
        let translations = Translations::new(p4info.type_info.as_ref())?;
        let mut schema = Self {
            ports,
            roles: ObjectRoles::new(p4info)?,
            ..Self::default()
        };
        for action in &p4info.actions {
            let (id, action) = link_action(action, &translations, info)?;
            if schema.actions.insert(id, action).is_some() {
                return Err(format!("P4Info has two actions with id {id:#010x}"));
            }
        }
        schema.removed = removed_objects(p4info, info);
        for table in &p4info.tables {
            let (id, _) = preamble(table.preamble.as_ref(), "table")?;
            if !schema.removed.contains_key(&id) {
                let table = link_table(&schema, table, p4info, &translations, info)?;
                schema.tables.insert(id, table)?;
            }
        }
        schema.references = references::link(p4info, &schema.tables)?;
        externs::link(&mut schema, p4info, &translations, info)?;
        for header in &p4info.controller_packet_metadata {
            let (_, name) = preamble(header.preamble.as_ref(), "controller packet metadata")?;
            let slot = match name.as_str() {
                "packet_in" => &mut schema.packet_in,
                "packet_out" => &mut schema.packet_out,
                _ => {
                    return Err(format!(
                        "controller packet metadata '{name}' is neither packet_in nor packet_out"
                    ));
                }
            };
            let widths = packet_io::widths(header, &translations, &info.header_types)?;
            *slot = Some(PacketHeader::new(header, &translations, &widths)?);
        }
        Ok(schema)
    }
}

/// Returns the tables that the compiler removed after it had written P4Info, with the action profiles that only they use: p4c
/// does so with tables that it finds unreachable late. Objects that are missing for another reason are not returned: if the
/// program also has tables that P4Info lacks, the two are not of one compilation.
fn removed_objects(p4info: &cfg::P4Info, info: &Info) -> HashMap<u32, String> {
    let tables = || p4info.tables.iter().filter_map(|t| t.preamble.as_ref());
    let in_p4info: HashSet<&str> = tables().map(|p| p.name.as_str()).collect();
    let is_known = |name: &str| in_p4info.contains(name) || is_generated(name);
    if !info.tables.iter().all(|t| is_known(&t.name)) {
        return HashMap::new();
    }
    let tables = tables().filter(|p| info.table(&p.name).is_none());
    let mut removed: HashMap<u32, String> = tables.map(|p| (p.id, p.name.clone())).collect();
    for profile in &p4info.action_profiles {
        if let Some(p) = &profile.preamble
            && info.profile(&p.name).is_none()
            && profile.table_ids.iter().all(|id| removed.contains_key(id))
        {
            removed.insert(p.id, p.name.clone());
        }
    }
    removed
}

/// Links the actions. Actions that no table uses are not in the program, and cannot be used.
fn link_action(
    action: &cfg::Action,
    translations: &Translations,
    info: &Info,
) -> Result<(u32, Action), String> {
    let (id, name) = preamble(action.preamble.as_ref(), "action")?;
    let linked = info.action(&name).map(|a| &info.actions[a.index()]);
    if linked.is_some_and(|l| l.params.len() != action.params.len()) {
        return Err(differing_params(&name));
    }
    let params = action.params.iter().enumerate().map(|(i, p)| {
        let given = u32::try_from(p.bitwidth).unwrap_or(0);
        let width = linked.map_or(given, |l| l.params[i].1);
        let codec = translations.codec(p.type_name.as_ref(), p.bitwidth, width);
        Ok(Param {
            id: p.id,
            name: p.name.clone(),
            codec: codec.map_err(|e| format!("action {name}, parameter {}: {e}", p.name))?,
        })
    });
    let params = params.collect::<Result<Vec<_>, String>>()?;
    check_ids("parameter", &name, params.iter().map(|p| p.id))?;
    let restrictions = restrictions::of_action(action, &params)?;
    let action = Action {
        name,
        params,
        restrictions,
    };
    Ok((id, action))
}

fn differing_params(action: &str) -> String {
    format!("action {action}: the parameters in P4Info and in the program differ")
}

/// Checks that the ids within an object are unique and not 0.
fn check_ids(kind: &str, owner: &str, ids: impl Iterator<Item = u32>) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    for id in ids {
        if id == 0 || !seen.insert(id) {
            return Err(format!(
                "{owner}: the {kind} id {id} in P4Info is 0 or not unique"
            ));
        }
    }
    Ok(())
}

fn preamble(preamble: Option<&cfg::Preamble>, kind: &str) -> Result<(u32, String), String> {
    let preamble = preamble.ok_or_else(|| format!("a {kind} in P4Info has no preamble"))?;
    Ok((preamble.id, preamble.name.clone()))
}

fn missing(kind: &str, name: &str) -> String {
    format!(
        "P4Info has {kind} '{name}', but the program does not: use the results of one compilation"
    )
}

fn link_table(
    schema: &Schema,
    table: &cfg::Table,
    p4info: &cfg::P4Info,
    translations: &Translations,
    info: &Info,
) -> Result<Table, String> {
    let (_, name) = preamble(table.preamble.as_ref(), "table")?;
    let target = info.table(&name).ok_or_else(|| missing("table", &name))?;
    let linked = &info.tables[target.index()];
    if linked.key.len() != table.match_fields.len() {
        return Err(format!(
            "table {name}: P4Info has {} match fields, but the program has {}",
            table.match_fields.len(),
            linked.key.len()
        ));
    }
    let fields = table.match_fields.iter().zip(&linked.key);
    let fields = fields.map(|(field, key)| {
        let what = format!("table {name}, match field {}", field.name);
        link_field(field, key.kind, key.width, translations, &what)
    });
    let fields = fields.collect::<Result<Vec<_>, _>>()?;
    check_ids("match field", &name, fields.iter().map(|f| f.id))?;

    let mut actions = BTreeMap::new();
    let mut action_ids = HashMap::new();
    for r in &table.action_refs {
        let action = schema
            .actions
            .get(&r.id)
            .ok_or_else(|| format!("table {name} refers to action {}, not in P4Info", r.id))?;
        let target = linked
            .action(&action.name)
            .ok_or_else(|| missing(&format!("table {name} with action"), &action.name))?;
        check_params(action, &info.actions[target.index()])?;
        let scope = r.scope();
        actions.insert(
            r.id,
            TableAction {
                target,
                in_entries: matches!(scope, Scope::TableAndDefault | Scope::TableOnly),
                as_default: matches!(scope, Scope::TableAndDefault | Scope::DefaultOnly),
            },
        );
        action_ids.insert(target, r.id);
    }
    let is_direct = |p: &Option<cfg::Preamble>| {
        let id = p.as_ref().map_or(0, |p| p.id);
        table.direct_resource_ids.contains(&id)
    };
    let counter = p4info
        .direct_counters
        .iter()
        .find(|c| is_direct(&c.preamble));
    let meter = p4info.direct_meters.iter().find(|m| is_direct(&m.preamble));
    let direct_counter = counter.is_some();
    let direct_meter = meter.map(|m| {
        m.spec
            .as_ref()
            .map(cfg::MeterSpec::r#type)
            .unwrap_or_default()
    });
    if direct_counter && !linked.direct_counter
        || direct_meter.is_some() && linked.direct_meter.is_none()
    {
        return Err(missing("a direct counter or meter of table", &name));
    }
    let profile = match (table.implementation_id, linked.implementation) {
        (0, Implementation::Direct) => None,
        (id, Implementation::Profile(_)) if id != 0 => Some(id),
        _ => return Err(missing("an action profile of table", &name)),
    };
    let restrictions = restrictions::of_table(table, &fields)?;
    Ok(Table {
        target,
        fields,
        restrictions,
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
    })
}

fn check_params(action: &Action, linked: &ActionInfo) -> Result<(), String> {
    let same = action.params.iter().zip(&linked.params);
    let same = same
        .into_iter()
        .all(|(p, (_, width))| p.codec.width == *width);
    if action.params.len() != linked.params.len() || !same {
        return Err(differing_params(&action.name));
    }
    Ok(())
}

fn link_field(
    field: &cfg::MatchField,
    linked: MatchKind,
    width: u32,
    translations: &Translations,
    what: &str,
) -> Result<Field, String> {
    let kind = match_kind(field, what)?;
    // A validity test in the program, which is an exact match of one bit in P4Info.
    let kind = match (kind, linked) {
        (MatchKind::Exact, MatchKind::Valid) => MatchKind::Valid,
        (kind, _) => kind,
    };
    let fits = kind == linked || (kind, linked) == (MatchKind::Optional, MatchKind::Ternary);
    if !fits {
        return Err(format!(
            "{what}: the match kind is {kind:?} in P4Info, but {linked:?} in the program"
        ));
    }
    let codec = translations.codec(field.type_name.as_ref(), field.bitwidth, width);
    let codec = codec.map_err(|e| format!("{what}: {e}"))?;
    if codec.is_name() && !matches!(kind, MatchKind::Exact | MatchKind::Optional) {
        return Err(format!(
            "{what}: a type translated to strings supports exact and optional match, not {kind:?}"
        ));
    }
    Ok(Field {
        id: field.id,
        name: field.name.clone(),
        kind,
        target: linked,
        codec,
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

#[cfg(test)]
mod tests {
    use super::is_generated;

    #[test]
    fn tables_for_statements_and_switches_are_generated() {
        for name in ["tbl_act", "tbl_router47", "switch_0_table"] {
            assert!(is_generated(name), "{name}");
        }
        for name in ["I.tbl", "I.switch_0_table", "switch_0", "table"] {
            assert!(!is_generated(name), "{name}");
        }
    }
}
