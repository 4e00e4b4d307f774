// SPDX-License-Identifier: Apache-2.0
//! Loads the names and the source positions of control nodes and actions.

use serde_json::Value as Json;

use crate::program::source::{SourceLocation, SourceMap};

/// Reads the positions from a document that the loader has accepted.
pub(super) fn load(document: &Json) -> SourceMap {
    let items = |json: &Json, key| json.get(key).and_then(Json::as_array).cloned();
    let mut map = SourceMap::default();
    for a in items(document, "actions").unwrap_or_default() {
        map.actions.push(location(&a));
    }
    for p in items(document, "pipelines").unwrap_or_default() {
        // In the loader's numbering order.
        for kind in ["tables", "conditionals", "action_calls"] {
            for node in items(&p, kind).unwrap_or_default() {
                let name = node.get("name").and_then(Json::as_str).unwrap_or_default();
                map.nodes.push((name.to_owned(), location(&node)));
            }
        }
    }
    map
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
