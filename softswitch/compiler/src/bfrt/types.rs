// SPDX-License-Identifier: Apache-2.0
//! The fields of P4Info's types.

use serde_json::Value;

use super::json::{self, list, number, text};

/// A field of a type.
pub struct Field {
    name: String,
    of: Value,
}

impl Field {
    /// Returns the data field with an id, whose name begins with `prefix`.
    pub fn json(&self, prefix: &str, id: u64) -> Value {
        json::field(id, &format!("{prefix}{}", self.name), self.of.clone())
    }
}

/// The declared types of a program.
pub struct Types<'a> {
    info: &'a Value,
}

/// Returns the type of a value without parts.
fn bits(spec: &Value) -> Option<Value> {
    let bitstring = &spec["bitstring"];
    let width = [
        &bitstring["bit"]["bitwidth"],
        &bitstring["int"]["bitwidth"],
        &bitstring["varbit"]["maxBitwidth"],
    ];
    let width = width.into_iter().find(|width| !width.is_null())?;
    Some(json::bytes(number(width)))
}

impl<'a> Types<'a> {
    /// Types by P4Info's `type_info`.
    pub fn new(info: &'a Value) -> Self {
        Self { info }
    }

    /// Returns the declaration of a type.
    fn declared(&self, kind: &str, name: &Value) -> &'a Value {
        let found = list(&self.info[kind]).find(|entry| entry["key"] == *name);
        found.map_or(&Value::Null, |entry| &entry["value"])
    }

    /// Returns the type of a field; `None` if it has parts.
    fn simple(&self, spec: &Value) -> Option<Value> {
        if spec.get("bool").is_some() {
            return Some(json::uint("bool"));
        }
        if let Some(named) = spec.get("serializableEnum") {
            let declared = self.declared("serializableEnums", &named["name"]);
            return Some(json::bytes(number(&declared["underlyingType"]["bitwidth"])));
        }
        if let Some(named) = spec.get("newType") {
            let declared = self.declared("newTypes", &named["name"]);
            return match declared.get("originalType") {
                Some(original) => self.simple(original),
                None => Some(json::bytes(number(
                    &declared["translatedType"]["sdnBitwidth"],
                ))),
            };
        }
        bits(spec)
    }

    /// Returns the fields of a type, or one field `f1` for a type without fields. Omits nested structures.
    pub fn fields(&self, spec: &Value) -> Vec<Field> {
        let field = |name: String, spec: &Value| self.simple(spec).map(|of| Field { name, of });
        let members = |declared: &Value| -> Vec<Field> {
            let members = list(&declared["members"]);
            members
                .filter_map(|m| {
                    let spec = match m["typeSpec"].get("bit") {
                        // The fields of headers are bit strings.
                        Some(_) => &serde_json::json!({"bitstring": m["typeSpec"]}),
                        None => &m["typeSpec"],
                    };
                    field(text(&m["name"]).to_owned(), spec)
                })
                .collect()
        };
        if let Some(named) = spec.get("struct") {
            return members(self.declared("structs", &named["name"]));
        }
        if let Some(named) = spec.get("header") {
            return members(self.declared("headers", &named["name"]));
        }
        if let Some(tuple) = spec.get("tuple") {
            let items = list(&tuple["members"]).zip(1..);
            return items
                .filter_map(|(spec, i)| field(format!("f{i}"), spec))
                .collect();
        }
        field("f1".to_owned(), spec).into_iter().collect()
    }
}
