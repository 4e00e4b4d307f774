// SPDX-License-Identifier: Apache-2.0
//! Loads the names and the source positions of parser states, control nodes, actions and entries.

use serde_json::Value as Json;

use crate::program::source::{SourceLocation, SourceMap, StateSource};

/// Reads the positions from a document that the loader has accepted.
pub(super) fn load(document: &Json) -> SourceMap {
    let mut map = SourceMap::default();
    for action in items(document, "actions") {
        map.actions.push(location(action));
        map.primitives
            .push(items(action, "primitives").iter().map(location).collect());
    }
    if let Some(parser) = items(document, "parsers").first() {
        map.states = items(parser, "parse_states").iter().map(state).collect();
    }
    for pipeline in items(document, "pipelines") {
        for table in items(pipeline, "tables") {
            let entries = items(table, "entries").iter().map(location);
            map.entries.push(entries.collect());
        }
        // In the loader's numbering order.
        for kind in ["tables", "conditionals", "action_calls"] {
            for node in items(pipeline, kind) {
                let name = node.get("name").and_then(Json::as_str).unwrap_or_default();
                map.nodes.push((name.to_owned(), location(node)));
            }
        }
    }
    map
}

/// Reads the positions in a parser state.
fn state(json: &Json) -> StateSource {
    let mut source = StateSource {
        declaration: location(json),
        ..StateSource::default()
    };
    let mut was_run = false;
    for op in items(json, "parser_ops") {
        let is_run = runs(op);
        match source.steps.last_mut() {
            // The loader makes one step of them.
            Some(step) if is_run && was_run => step.push(location(op)),
            _ => source.steps.push(vec![location(op)]),
        }
        was_run = is_run;
    }
    let mut default = None;
    for transition in items(json, "transitions") {
        let is_default = ["type", "value"]
            .iter()
            .any(|key| transition.get(key).and_then(Json::as_str) == Some("default"));
        match is_default {
            true => default = location(transition),
            false => source.transitions.push(location(transition)),
        }
    }
    source.transitions.push(default);
    source
}

/// Returns whether a step of a parser state is loaded as steps of an action.
fn runs(op: &Json) -> bool {
    let kind = op.get("op").and_then(Json::as_str);
    let value = items(op, "parameters").get(1);
    let from = value.and_then(|value| value.get("type")?.as_str());
    kind == Some("primitive") || (kind == Some("set") && from != Some("lookahead"))
}

/// Returns the elements of an array, which may be absent.
fn items<'a>(json: &'a Json, key: &str) -> &'a [Json] {
    json.get(key)
        .and_then(Json::as_array)
        .map_or(&[], Vec::as_slice)
}

fn location(json: &Json) -> Option<SourceLocation> {
    let source = json.get("source_info")?;
    Some(SourceLocation {
        file: source.get("filename")?.as_str()?.to_owned(),
        line: u32::try_from(source.get("line")?.as_u64()?).ok()?,
        text: source
            .get("source_fragment")
            .and_then(Json::as_str)
            .unwrap_or_default()
            .to_owned(),
    })
}
