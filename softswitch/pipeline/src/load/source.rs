// SPDX-License-Identifier: Apache-2.0
//! Loads the names and the source positions of control nodes, actions and entries.

use serde_json::Value as Json;

use crate::program::source::{SourceLocation, SourceMap, StateSource};

/// Reads the positions from a document that the loader has accepted. `states` are those of the parser.
pub(super) fn load(document: &Json, states: Vec<StateSource>) -> SourceMap {
    let mut map = SourceMap {
        states,
        ..SourceMap::default()
    };
    for action in items(document, "actions") {
        map.actions.push(location(action));
        map.primitives
            .push(items(action, "primitives").iter().map(location).collect());
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

/// Returns the elements of an array, which may be absent.
fn items<'a>(json: &'a Json, key: &str) -> &'a [Json] {
    json.get(key)
        .and_then(Json::as_array)
        .map_or(&[], Vec::as_slice)
}

/// Returns the position of an object, if it has one.
pub(super) fn location(json: &Json) -> Option<SourceLocation> {
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
