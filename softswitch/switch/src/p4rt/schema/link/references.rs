// SPDX-License-Identifier: Apache-2.0
//! Links `@refers_to` annotations to the tables and fields that they name.

use std::collections::BTreeMap;

use softswitch_pipeline::MatchKind;

use crate::p4rt::annotation;
use crate::p4rt::references::{Reference, References, Slot};
use crate::p4rt::schema::{Objects, Table};
use crate::proto::p4::config::v1::{MatchField, P4Info};

const ANNOTATION: &str = "refers_to";
const MULTICAST_GROUPS: &str = "builtin::multicast_group_table";
const MULTICAST_GROUP_ID: &str = "multicast_group_id";

/// Own index and the index of the field that it refers to.
type Link = (usize, usize);

/// The table that an annotation names; `None` stands for multicast groups.
type Place = Option<u32>;

/// Links the annotations of P4Info.
///
/// # Errors
/// Place, fault and fix of an annotation that names an unknown table or field, or a field that is not exact or optional.
pub fn link(p4info: &P4Info, tables: &Objects<Table>) -> Result<References, String> {
    let mut references = References::default();
    for table in &p4info.tables {
        let preamble = table.preamble.as_ref();
        let Some(linked) = tables.get(preamble.map_or(0, |p| p.id)) else {
            continue;
        };
        let mut groups = Groups::default();
        for (index, field) in table.match_fields.iter().enumerate() {
            let place = format!("table {}, match field {}", linked.name, field.name);
            let found = groups.add(index, &field.annotations, &place, p4info, tables)?;
            if found {
                check_kind(linked, index, &place)?;
            }
        }
        let own = groups.finish(&mut references.slots);
        references.of_tables.insert(linked.target, own);
    }
    for action in &p4info.actions {
        let Some(preamble) = &action.preamble else {
            continue;
        };
        let mut groups = Groups::default();
        for (index, param) in action.params.iter().enumerate() {
            let place = format!("action {}, parameter {}", preamble.name, param.name);
            groups.add(index, &param.annotations, &place, p4info, tables)?;
        }
        let own = groups.finish(&mut references.slots);
        references.of_actions.insert(preamble.id, own);
    }
    Ok(references)
}

/// The annotations of one table's key or one action, by what they name.
#[derive(Default)]
struct Groups(BTreeMap<Place, Vec<Vec<Link>>>);

impl Groups {
    /// Adds the annotations of a field or parameter; returns true if there are any.
    fn add(
        &mut self,
        index: usize,
        annotations: &[String],
        place: &str,
        p4info: &P4Info,
        tables: &Objects<Table>,
    ) -> Result<bool, String> {
        let mut found = false;
        for body in annotation::bodies(annotations, ANNOTATION) {
            let place = format!("{place}, @{ANNOTATION}({body})");
            let resolved = resolve(body, p4info, tables).map_err(|e| format!("{place}: {e}"))?;
            // A table that the compiler removed has no entries, so nothing can refer to it.
            if let Some((to, field)) = resolved {
                self.insert(to, (index, field));
            }
            found = true;
        }
        Ok(found)
    }

    /// Adds a link to the first reference that does not yet have its field.
    fn insert(&mut self, to: Place, link: Link) {
        let references = self.0.entry(to).or_default();
        if references.iter().any(|links| links.contains(&link)) {
            return;
        }
        let vacant = |links: &&mut Vec<Link>| links.iter().all(|(_, field)| *field != link.1);
        match references.iter_mut().find(vacant) {
            Some(links) => links.push(link),
            None => references.push(vec![link]),
        }
    }

    fn finish(self, slots: &mut Vec<Slot>) -> Vec<Reference> {
        let mut references = Vec::new();
        for (place, groups) in self.0 {
            for mut links in groups {
                links.sort_by_key(|(_, field)| *field);
                let (from, fields) = links.into_iter().unzip();
                let slot = match place {
                    None => Slot::MulticastGroups,
                    Some(table) => Slot::Fields { table, fields },
                };
                let known = slots.iter().position(|s| *s == slot);
                let slot = known.unwrap_or_else(|| {
                    slots.push(slot);
                    slots.len() - 1
                });
                references.push(Reference { slot, from });
            }
        }
        references
    }
}

/// Returns what an annotation's body names; `None` if that is a table which the program lacks.
fn resolve(
    body: &str,
    p4info: &P4Info,
    tables: &Objects<Table>,
) -> Result<Option<(Place, usize)>, String> {
    let parts: Vec<String> = body.split(',').map(unspaced).collect();
    let [table, field] = &parts[..] else {
        return Err("expected a table and a field: write @refers_to(TABLE, FIELD)".into());
    };
    if table.starts_with("builtin") {
        return match (table.as_str(), field.as_str()) {
            (MULTICAST_GROUPS, MULTICAST_GROUP_ID) => Ok(Some((None, 0))),
            _ => Err(format!(
                "unknown built-in table or field: use {MULTICAST_GROUPS}, {MULTICAST_GROUP_ID}"
            )),
        };
    }
    let named = p4info.tables.iter().find(|t| {
        let preamble = t.preamble.as_ref();
        preamble.is_some_and(|p| p.alias == *table || p.name == *table)
    });
    let named = named.ok_or_else(|| format!("unknown table {table}: use a table of P4Info"))?;
    let id = named.preamble.as_ref().map_or(0, |p| p.id);
    let Some(linked) = tables.get(id) else {
        return Ok(None);
    };
    let index = named.match_fields.iter().position(|f| f.name == *field);
    let index = index.ok_or_else(|| {
        let names = named
            .match_fields
            .iter()
            .map(|f: &MatchField| f.name.as_str());
        format!(
            "table {table} has no match field {field}: use {}",
            names.collect::<Vec<_>>().join(", ")
        )
    })?;
    check_kind(
        linked,
        index,
        &format!("table {table}, match field {field}"),
    )?;
    Ok(Some((Some(id), index)))
}

/// Removes the spaces that p4c writes between tokens.
fn unspaced(text: &str) -> String {
    text.split_whitespace().collect()
}

fn check_kind(table: &Table, index: usize, place: &str) -> Result<(), String> {
    let kind = table.fields[index].kind;
    if matches!(kind, MatchKind::Exact | MatchKind::Optional) {
        return Ok(());
    }
    Err(format!(
        "{place}: references need exact or optional match, not {kind:?}"
    ))
}
