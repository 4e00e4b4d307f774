// SPDX-License-Identifier: Apache-2.0
//! The parts of the schema, and access to the JSON of P4Info.

use serde_json::{Value, json};

/// Returns a list's items; none if it is absent.
pub fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// Returns a string; empty if it is absent.
pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Returns a number, which is a string if it has 64 bits; 0 if it is absent.
pub fn number(value: &Value) -> u64 {
    let written = value.as_str().and_then(|text| text.parse().ok());
    value.as_u64().or(written).unwrap_or(0)
}

/// Returns the id of an object with a preamble.
pub fn id(object: &Value) -> u64 {
    number(&object["preamble"]["id"])
}

/// Returns the annotations of an object.
pub fn annotations(object: &Value) -> Vec<Value> {
    let annotations = list(&object["annotations"]);
    annotations.map(|a| json!({"name": text(a)})).collect()
}

/// The type of byte strings.
pub fn bytes(width: u64) -> Value {
    json!({"type": "bytes", "width": width})
}

/// A type of numbers.
pub fn uint(name: &str) -> Value {
    json!({"type": name})
}

/// A type of numbers with a default.
pub fn uint_or(name: &str, default: u64) -> Value {
    json!({"type": name, "default_value": default})
}

/// The type of strings that are one of these.
pub fn choice(choices: &[&str]) -> Value {
    json!({"type": "string", "choices": choices})
}

/// A key field.
pub fn key(id: u64, name: &str, is_mandatory: bool, match_type: &str, of: Value) -> Value {
    json!({
        "id": id,
        "name": name,
        "repeated": false,
        "annotations": [],
        "mandatory": is_mandatory,
        "match_type": match_type,
        "type": of,
    })
}

/// A data field.
pub fn field(id: u64, name: &str, of: Value) -> Value {
    json!({"id": id, "name": name, "repeated": false, "annotations": [], "type": of})
}

/// Lets a field have several values.
pub fn repeated(mut field: Value) -> Value {
    field["repeated"] = true.into();
    field
}

/// A field that stands alone.
pub fn single(field: Value, is_mandatory: bool) -> Value {
    json!({"mandatory": is_mandatory, "read_only": false, "singleton": field})
}

/// Fields of which an entry has one.
pub fn one_of(fields: Vec<Value>) -> Value {
    json!({"mandatory": true, "read_only": false, "oneof": fields})
}

/// A table without fields.
pub fn table(name: &str, id: u64, kind: &str, size: u64, annotations: Vec<Value>) -> Value {
    json!({
        "name": name,
        "id": id,
        "table_type": kind,
        "size": size,
        "annotations": annotations,
        "depends_on": [],
        "key": [],
        "data": [],
        "supported_operations": [],
        "attributes": [],
    })
}
