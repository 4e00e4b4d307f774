// SPDX-License-Identifier: Apache-2.0
//! Local variables that only one action uses, and sets before it reads them: intermediate results of expressions and inlined functions.
//! Their values at the beginning of a packet do not matter.

use std::collections::{HashMap, HashSet};

use serde_json::Value as Json;

use super::cursor::Cursor;
use super::mentions::{ACTIONS, DECLARATIONS, Mentions};
use crate::error::LoadError;

/// The header of local variables. Architectures do not use its fields.
pub(super) const LOCALS: &str = "scalars";

/// A header and its field, by name.
type Name<'a> = (&'a str, &'a str);

/// Returns the local variables of a document that are temporary, by name.
pub(super) fn find<'a>(root: &Cursor<'a>) -> Result<HashSet<&'a str>, LoadError> {
    let mut elsewhere = Mentions::default();
    let members = root.json.as_object().into_iter().flatten();
    let is_elsewhere = |name: &str| name != ACTIONS && !DECLARATIONS.contains(&name);
    for (_, json) in members.filter(|(name, _)| is_elsewhere(name)) {
        elsewhere.add(json);
    }
    let (mut users, mut set_first) = (HashMap::new(), HashSet::new());
    for action in root.get(ACTIONS).items()? {
        let steps = action.get("primitives").items()?;
        let may_skip_steps = jumps(&steps);
        let mut mentions = Mentions::default();
        for step in &steps {
            let set = result(step.json).filter(|&field| !mentions.has_field(field));
            set_first.extend(set.filter(|_| !may_skip_steps));
            mentions.add(step.json);
        }
        for field in mentions.fields() {
            *users.entry(field).or_insert(0) += 1;
        }
        elsewhere.add_whole_headers(&mentions);
    }
    let is_temporary =
        |field: &Name| field.0 == LOCALS && users[field] == 1 && !elsewhere.has(field.0, field.1);
    let temporaries = set_first.into_iter().filter(is_temporary);
    Ok(temporaries.map(|(_, field)| field).collect())
}

/// Returns the field that a step sets, if the step does not read it.
fn result(step: &Json) -> Option<Name<'_>> {
    if !matches!(step["op"].as_str()?, "assign" | "modify_field") {
        return None;
    }
    let (to, from) = step["parameters"].as_array()?.split_first()?;
    let [header, field] = to["value"].as_array()?.as_slice() else {
        return None;
    };
    let name = (header.as_str()?, field.as_str()?);
    let mut read = Mentions::default();
    from.iter().for_each(|from| read.add(from));
    (to["type"] == "field" && !read.has(name.0, name.1)).then_some(name)
}

/// Returns true if an action may skip steps.
fn jumps(steps: &[Cursor]) -> bool {
    let mut ops = steps.iter().map(|step| step.json["op"].as_str());
    ops.any(|op| op.is_none_or(|op| op.starts_with("_jump")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn field(name: &str) -> Json {
        json!({"type": "field", "value": [LOCALS, name]})
    }

    fn assign(to: &str, from: &str) -> Json {
        json!({"op": "assign", "parameters": [field(to), field(from)]})
    }

    fn temporaries(document: &Json) -> Vec<&str> {
        let found = find(&Cursor::root(document)).expect("valid document");
        let mut names: Vec<&str> = found.into_iter().collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn fields_that_one_action_sets_before_reading_are_temporary() {
        let document = json!({
            "headers": [{"name": LOCALS}],
            "actions": [
                {"primitives": [
                    assign("set", "x"),
                    assign("y", "set"),
                    assign("increased", "increased"),
                    assign("x", "read"),
                    assign("read", "y"),
                    assign("tested", "y"),
                    assign("shared", "y"),
                ]},
                {"primitives": [assign("shared", "z")]},
            ],
            "pipelines": [{"conditionals": [{"expression": field("tested")}]}],
        });
        assert_eq!(temporaries(&document), ["set", "y"]);
    }

    #[test]
    fn actions_with_jumps_and_headers_as_a_whole_have_none() {
        let jump = json!({"op": "_jump", "parameters": [{"type": "hexstr", "value": "0x2"}]});
        let mut document = json!({"actions": [{"primitives": [jump, assign("a", "b")]}]});
        assert!(temporaries(&document).is_empty());
        document["actions"][0]["primitives"] = json!([assign("a", "b")]);
        assert_eq!(temporaries(&document), ["a"]);
        let copy =
            json!({"op": "assign_header", "parameters": [{"type": "header", "value": LOCALS}]});
        document["actions"][0]["primitives"] = json!([assign("a", "b"), copy]);
        assert!(temporaries(&document).is_empty());
    }
}
