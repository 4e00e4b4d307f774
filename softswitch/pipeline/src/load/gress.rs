// SPDX-License-Identifier: Apache-2.0
//! The parts of a packet's state that a gress of a program for TNA uses.

use std::collections::HashSet;
use std::ops::Range;

use serde_json::Value as Json;

use super::cursor::Cursor;
use super::mentions::{ACTIONS, DECLARATIONS, Mentions};
use crate::error::LoadError;
use crate::program::layout::{HeaderId, Layout};

/// Members of the document that hold the blocks of the gresses.
const BLOCKS: [&str; 3] = ["parsers", "pipelines", "deparsers"];

/// Parts that are closer together, in bytes, become one.
const MIN_GAP: usize = 32;

/// Returns what a document mentions except in the blocks of the `other` gress, whose names begin with the gress's name, and
/// in their actions.
pub(super) fn mentions<'a>(root: &Cursor<'a>, other: &str) -> Result<Mentions<'a>, LoadError> {
    let mut mentions = Mentions::default();
    let mut actions = HashSet::new();
    for list in BLOCKS {
        for block in root.get(list).items()? {
            let name = block.get("name").str()?;
            let local = name.rsplit('.').next().unwrap_or(name);
            if !local.starts_with(other) {
                mentions.add(block.json);
                add_actions(block.json, &mut actions);
            }
        }
    }
    for action in root.get(ACTIONS).items()? {
        if actions.contains(&action.get("id").u64()?) {
            mentions.add(action.json);
        }
    }
    let apart = [&BLOCKS[..], &[ACTIONS], &DECLARATIONS].concat();
    let members = root.json.as_object().into_iter().flatten();
    for (_, json) in members.filter(|(name, _)| !apart.contains(&name.as_str())) {
        mentions.add(json);
    }
    Ok(mentions)
}

/// Adds the ids of the actions of a block.
fn add_actions(json: &Json, ids: &mut HashSet<u64>) {
    match json {
        Json::Array(items) => items.iter().for_each(|item| add_actions(item, ids)),
        Json::Object(members) => {
            for (name, json) in members {
                match name.as_str() {
                    "action_id" => ids.extend(json.as_u64()),
                    "action_ids" => {
                        let list = json.as_array().into_iter().flatten();
                        ids.extend(list.filter_map(Json::as_u64));
                    }
                    _ => add_actions(json, ids),
                }
            }
        }
        _ => {}
    }
}

/// Returns the parts of a packet's state that hold what is mentioned, and the chip's own headers, by their names.
pub(super) fn used_parts(layout: &Layout, mentions: &Mentions, own: &[&str]) -> Vec<Range<usize>> {
    let computed = computed_headers(layout);
    let mut parts = vec![layout.flags.clone()];
    for (id, header) in (0..).zip(&layout.headers) {
        let name = header.name.as_str();
        let is_own = own.contains(&name) || computed.contains(&id);
        if header.metadata {
            let fields = header.fields.iter().zip(&header.names);
            let used = fields.filter(|(_, field)| is_own || mentions.has(name, field));
            let places = used.map(|(field, _)| field.bytes());
            parts.extend(places.filter(|place| !layout.is_temporary(place)));
        } else if is_own || mentions.has_header(name) {
            parts.push(header.base as usize..(header.base + header.stored_bytes) as usize);
            parts.extend(header.fields.iter().map(|field| field.bytes()));
        }
    }
    joined(parts)
}

/// Returns the headers to which a program may refer without their names: elements of stacks and members of unions.
fn computed_headers(layout: &Layout) -> HashSet<HeaderId> {
    let elements = layout.stacks.iter().flat_map(|stack| &stack.elements);
    let members = layout.unions.iter().flat_map(|union| &union.members);
    elements.chain(members).copied().collect()
}

/// Sorts parts, and joins those that overlap or are close together.
fn joined(mut parts: Vec<Range<usize>>) -> Vec<Range<usize>> {
    parts.sort_by_key(|part| part.start);
    let mut joined: Vec<Range<usize>> = Vec::new();
    for part in parts {
        match joined.last_mut() {
            Some(last) if part.start < last.end + MIN_GAP => last.end = last.end.max(part.end),
            _ => joined.push(part),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn gress_mentions_its_own_blocks_and_actions_and_what_is_shared() {
        let field = |name: &str| json!({"type": "field", "value": ["m", name]});
        let document = json!({
            "headers": [{"name": "m"}],
            "parsers": [{"name": "ingress_parser", "x": field("parsed")}],
            "pipelines": [
                {"name": "pipe.ingress", "tables": [{"action_ids": [1]}]},
                {"name": "pipe.egress", "x": field("other"), "action_calls": [{"action_id": 2}]},
            ],
            "actions": [{"id": 1, "x": field("done")}, {"id": 2, "x": field("not done")}],
            "learn_lists": [field("shared")],
        });
        let mentions = mentions(&Cursor::root(&document), "egress").expect("valid document");
        for name in ["parsed", "done", "shared"] {
            assert!(mentions.has("m", name), "{name}");
        }
        assert!(!mentions.has("m", "other") && !mentions.has("m", "not done"));
    }

    #[test]
    fn near_parts_are_joined() {
        let parts = vec![100..101, 0..4, 200..204, 2..10, 100..108];
        assert_eq!(joined(parts), [0..10, 100..108, 200..204]);
    }
}
