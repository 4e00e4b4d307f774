// SPDX-License-Identifier: Apache-2.0
//! The headers and fields to which parts of a document refer. The others need not have a value.

use std::collections::HashSet;

use serde_json::{Map, Value as Json};

/// Members of the document that declare headers and names of fields, or describe the source.
pub(super) const DECLARATIONS: [&str; 9] = [
    "header_types",
    "headers",
    "header_stacks",
    "header_union_types",
    "header_unions",
    "header_union_stacks",
    "field_aliases",
    "__meta__",
    "source_info",
];

/// The member of the document that holds the actions, to which tables and conditions refer by their ids.
pub(super) const ACTIONS: &str = "actions";

/// All references in parts of a document.
#[derive(Debug, Clone, Default)]
pub(super) struct Mentions<'a> {
    /// Headers with fields. There may be other pairs of names among them.
    fields: HashSet<(&'a str, &'a str)>,
    /// The headers of these fields.
    with_fields: HashSet<&'a str>,
    /// Headers that a parser extracts.
    extracted: HashSet<&'a str>,
    /// All other strings: the headers to which the document refers as a whole are among them.
    strings: HashSet<&'a str>,
}

impl<'a> Mentions<'a> {
    /// Returns true if a field may be read or written, except by the extraction of its header.
    pub(super) fn has(&self, header: &str, field: &str) -> bool {
        self.fields.contains(&(header, field)) || self.strings.contains(header)
    }

    /// Returns true if a field is mentioned by name.
    pub(super) fn has_field(&self, field: (&str, &str)) -> bool {
        self.fields.contains(&field)
    }

    /// Returns the fields that are mentioned by name.
    pub(super) fn fields(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.fields.iter().copied()
    }

    /// Returns true if any part of a header may be read or written.
    pub(super) fn has_header(&self, header: &str) -> bool {
        let sets = [&self.with_fields, &self.extracted, &self.strings];
        sets.iter().any(|set| set.contains(header))
    }

    /// Adds the references in a part of a document.
    pub(super) fn add(&mut self, json: &'a Json) {
        match json {
            Json::String(s) => {
                self.strings.insert(s);
            }
            Json::Array(items) => self.add_list(items),
            Json::Object(members) if is_drop(members) => {}
            Json::Object(members) => match extracted(members) {
                Some(header) => {
                    self.extracted.insert(header);
                }
                None => self.add_members(members),
            },
            _ => {}
        }
    }

    /// Adds the headers to which others refer as a whole.
    pub(super) fn add_whole_headers(&mut self, others: &Self) {
        self.strings.extend(&others.strings);
    }

    fn add_list(&mut self, items: &'a [Json]) {
        match items {
            [Json::String(header), Json::String(field)] => {
                self.fields.insert((header, field));
                self.with_fields.insert(header);
            }
            items => items.iter().for_each(|item| self.add(item)),
        }
    }

    fn add_members(&mut self, members: &'a Map<String, Json>) {
        let is_reference = |(name, _): &(&String, _)| !DECLARATIONS.contains(&name.as_str());
        for (name, json) in members.iter().filter(is_reference) {
            match json {
                // The headers that a deparser emits, of which there may be two
                Json::Array(headers) if name == "order" => headers.iter().for_each(|h| self.add(h)),
                json => self.add(json),
            }
        }
    }
}

/// Returns the header of fixed length that a step of a parser extracts.
fn extracted(step: &Map<String, Json>) -> Option<&str> {
    let header = step.get("parameters")?.get(0)?;
    let is_extraction = step.get("op")? == "extract" && header.get("type")? == "regular";
    header.get("value")?.as_str().filter(|_| is_extraction)
}

/// Returns true for v1model's step that drops a packet. Its parameter is the standard metadata as a whole, but it writes only two fields,
/// which the architecture reads in any case.
fn is_drop(step: &Map<String, Json>) -> bool {
    step.get("op").is_some_and(|op| op == "mark_to_drop")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_and_whole_headers_are_mentioned() {
        let document = json!({
            "headers": [{"name": "declared"}],
            "parsers": [{"parser_ops": [
                {"op": "extract", "parameters": [{"type": "regular", "value": "extracted"}]},
                {"op": "set", "parameters": [{"type": "field", "value": ["h", "f"]}]},
                {"op": "mark_to_drop", "parameters": [{"type": "header", "value": "standard"}]},
            ]}],
            "deparsers": [{"order": ["first", "second"]}],
        });
        let mut mentions = Mentions::default();
        mentions.add(&document);
        assert!(mentions.has("h", "f") && !mentions.has("h", "g"));
        assert!(mentions.has("first", "f") && mentions.has("second", "f"));
        assert!(!mentions.has("declared", "f") && !mentions.has("extracted", "f"));
        let headers = ["h", "first", "second", "extracted"];
        assert!(headers.iter().all(|header| mentions.has_header(header)));
        assert!(!mentions.has_header("declared") && !mentions.has_header("standard"));
    }
}
