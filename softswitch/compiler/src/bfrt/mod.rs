// SPDX-License-Identifier: Apache-2.0
//! Emits the BfRuntime schema (`bf-rt.json`), the description of a program's tables for clients of BfRuntime.
//!
//! The schema follows from P4Info, with the same names. Ids are those of P4Info; only their first byte, the kind of the
//! object, differs for TNA, and there the name of the pipe precedes the names of tables. Each object is a table with key
//! fields, data fields and actions.

mod arrays;
mod externs;
mod hashes;
mod ids;
mod json;
mod port_metadata;
mod profile;
mod table;
mod types;

use serde_json::{Value, json};

use crate::ir::Lowered;
use crate::p4info::{Format, jenkins_one_at_a_time};
use ids::Ids;
use json::{id, list, text};
use types::Types;

/// The version of the schema's format.
const VERSION: &str = "1.0.0";

/// Returns the schema of a program. `p4info` is its P4Info in text format.
pub fn emit(p4info: &str, ir: &Lowered) -> Value {
    let info = Format::value(p4info, "p4.config.v1.P4Info");
    let schema = Schema::new(&info, ir);
    let mut tables = schema.match_tables();
    schema.profiles(&mut tables);
    schema.arrays(&mut tables);
    schema.externs(&mut tables);
    schema.hashes(&mut tables);
    schema.port_metadata(&mut tables);
    let mut digests = schema.learn_filters();
    if let Some(pipe) = ir.pipe() {
        for object in tables.iter_mut().chain(&mut digests) {
            object["name"] = format!("{pipe}.{}", text(&object["name"])).into();
        }
    }
    if ir.architecture.is_tofino() {
        tables.iter_mut().for_each(without_annotations);
    }
    for object in tables.iter_mut().chain(&mut digests) {
        shorten(object, &ir.pipes);
    }
    json!({"schema_version": VERSION, "tables": tables, "learn_filters": digests})
}

/// Removes the annotations of meters and registers, as Tofino's compiler does.
fn without_annotations(table: &mut Value) {
    if let Value::Object(members) = table
        && matches!(text(&members["table_type"]), "Meter" | "Register")
    {
        members.remove("annotations");
    }
}

/// Removes the names of pipelines from the names of an object's actions and fields, which only names of tables contain.
fn shorten(object: &mut Value, pipelines: &[String]) {
    let name = object["name"].take();
    shorten_names(object, pipelines);
    object["name"] = name;
}

fn shorten_names(json: &mut Value, pipelines: &[String]) {
    match json {
        Value::Array(items) => items
            .iter_mut()
            .for_each(|item| shorten_names(item, pipelines)),
        Value::Object(members) => {
            if let Some(Value::String(name)) = members.get_mut("name") {
                let strip = |p: &String| name.strip_prefix(p.as_str())?.strip_prefix('.');
                if let Some(short) = pipelines.iter().find_map(strip) {
                    *name = short.to_owned();
                }
            }
            members
                .values_mut()
                .for_each(|member| shorten_names(member, pipelines));
        }
        _ => {}
    }
}

/// P4Info, by which objects find each other.
struct Schema<'a> {
    info: &'a Value,
    ir: &'a Lowered<'a>,
    types: Types<'a>,
    ids: Ids,
}

impl<'a> Schema<'a> {
    fn new(info: &'a Value, ir: &'a Lowered<'a>) -> Self {
        Self {
            info,
            ir,
            types: Types::new(&info["typeInfo"]),
            ids: Ids::of(ir.architecture),
        }
    }

    /// Returns the object of a list with an id.
    fn object(&self, kind: &str, wanted: u64) -> Option<&'a Value> {
        list(&self.info[kind]).find(|object| id(object) == wanted)
    }

    /// Returns the part of an id that depends on the name, for objects that P4Info does not have.
    fn number(&self, name: &str) -> u64 {
        let pipe = self.ir.pipe().map(|pipe| format!("{pipe}."));
        let name = format!("{}{name}", pipe.unwrap_or_default());
        u64::from(jenkins_one_at_a_time(name.as_bytes()) & 0x00ff_ffff)
    }

    /// Returns the digests.
    fn learn_filters(&self) -> Vec<Value> {
        let digests = list(&self.info["digests"]);
        let filter = |digest: &Value| {
            let fields = self.types.fields(&digest["typeSpec"]);
            let fields = fields.iter().zip(1..).map(|(field, id)| field.json("", id));
            json!({
                "name": text(&digest["preamble"]["name"]),
                "id": self.ids.digest(id(digest)),
                "annotations": json::annotations(&digest["preamble"]),
                "fields": fields.collect::<Vec<_>>(),
            })
        };
        digests.map(filter).collect()
    }
}
