// SPDX-License-Identifier: Apache-2.0
//! Counters, meters, registers and parser value sets.

use serde_json::{Value, json};

use super::json::{annotations, field, id, key, list, number, single, table, text, uint, uint_or};
use super::{Schema, ids};

/// Returns the data fields of a counter.
pub fn counter_fields(counter: &Value) -> Vec<Value> {
    let unit = text(&counter["spec"]["unit"]);
    let of = |id, name| single(field(id, name, uint_or("uint64", 0)), false);
    let bytes = (unit != "PACKETS").then(|| of(ids::COUNTER_BYTES, "$COUNTER_SPEC_BYTES"));
    let packets = (unit != "BYTES").then(|| of(ids::COUNTER_PACKETS, "$COUNTER_SPEC_PKTS"));
    bytes.into_iter().chain(packets).collect()
}

/// Returns the data fields of a meter: rates and bursts. By default every packet is green.
pub fn meter_fields(meter: &Value) -> Vec<Value> {
    let (first, units) = match text(&meter["spec"]["unit"]) {
        "PACKETS" => (ids::METER_CIR_PPS, ["PPS", "PPS", "PKTS", "PKTS"]),
        _ => (ids::METER_CIR_KBPS, ["KBPS", "KBPS", "KBITS", "KBITS"]),
    };
    let names = ["CIR", "PIR", "CBS", "PBS"].into_iter().zip(units);
    names
        .zip(first..)
        .map(|((name, unit), id)| {
            let name = format!("$METER_SPEC_{name}_{unit}");
            single(field(id, &name, uint_or("uint64", u64::MAX)), false)
        })
        .collect()
}

impl Schema<'_> {
    /// Appends the arrays and the value sets.
    pub fn arrays(&self, tables: &mut Vec<Value>) {
        let lists = |kind: &str| list(&self.info[kind]);
        tables.extend(lists("counters").map(|counter| {
            let mut t = array(counter, self.ids.counter(id(counter)), "Counter");
            t["key"] = index(ids::COUNTER_INDEX, "$COUNTER_INDEX");
            t["data"] = counter_fields(counter).into();
            t["supported_operations"] = json!(["Sync"]);
            t
        }));
        tables.extend(lists("meters").map(|meter| {
            let mut t = array(meter, self.ids.meter(id(meter)), "Meter");
            t["key"] = index(ids::METER_INDEX, "$METER_INDEX");
            t["data"] = meter_fields(meter).into();
            t["attributes"] = json!(["MeterByteCountAdjust"]);
            t
        }));
        tables.extend(lists("registers").map(|register| {
            let mut t = array(register, self.ids.register(id(register)), "Register");
            t["key"] = index(ids::REGISTER_INDEX, "$REGISTER_INDEX");
            t["data"] = self.register_fields(register, 1).into();
            t["supported_operations"] = json!(["Sync"]);
            t
        }));
        tables.extend(lists("valueSets").map(|set| {
            let mut t = array(set, self.ids.value_set(id(set)), "ParserValueSet");
            t["key"] = value_set_key(set).into();
            t["attributes"] = json!(["EntryScope"]);
            t
        }));
    }

    /// Returns the data fields of a register, whose names begin with the register's. `first` is the first id.
    pub fn register_fields(&self, register: &Value, first: u64) -> Vec<Value> {
        let prefix = format!("{}.", text(&register["preamble"]["name"]));
        let fields = self.types.fields(&register["typeSpec"]);
        let fields = fields.iter().zip(first..);
        fields
            .map(|(f, id)| {
                let mut f = f.json(&prefix, id);
                f["annotations"] = json!([{"name": "$bfrt_field_class", "value": "register_data"}]);
                single(f, true)
            })
            .collect()
    }
}

/// A table for an object without actions.
fn array(object: &Value, id: u64, kind: &str) -> Value {
    let preamble = &object["preamble"];
    let size = number(&object["size"]);
    table(
        text(&preamble["name"]),
        id,
        kind,
        size,
        annotations(preamble),
    )
}

/// The key of an array.
pub fn index(id: u64, name: &str) -> Value {
    json!([key(id, name, true, "Exact", uint("uint32"))])
}

/// The key of a value set, whose fields are all matched with masks.
fn value_set_key(set: &Value) -> Vec<Value> {
    let fields = list(&set["match"]);
    fields
        .map(|f| {
            let name = match text(&f["name"]) {
                "" => "f1",
                name => name,
            };
            let of = super::json::bytes(number(&f["bitwidth"]));
            key(number(&f["id"]), name, false, "Ternary", of)
        })
        .collect()
}
