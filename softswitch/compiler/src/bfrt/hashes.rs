// SPDX-License-Identifier: Apache-2.0
//! The tables of hashes of TNA: their input, their algorithm, and their results.

use serde_json::{Value, json};

use super::json::{bytes, choice, field, key, repeated, single, table, uint, uint_or};
use super::{Schema, ids};
use crate::ir::{HashCall, HashField, ObjectKind};

/// The algorithms with a name.
const ALGORITHMS: &[&str] = &[
    "IDENTITY",
    "RANDOM",
    "XOR",
    "CRC_8",
    "CRC_8_DARC",
    "CRC_8_I_CODE",
    "CRC_8_ITU",
    "CRC_8_MAXIM",
    "CRC_8_ROHC",
    "CRC_8_WCDMA",
    "CRC_16",
    "CRC_16_BYPASS",
    "CRC_16_DDS_110",
    "CRC_16_DECT",
    "CRC_16_DECT_R",
    "CRC_16_DECT_X",
    "CRC_16_DNP",
    "CRC_16_EN_13757",
    "CRC_16_GENIBUS",
    "CRC_16_MAXIM",
    "CRC_16_MCRF4XX",
    "CRC_16_RIELLO",
    "CRC_16_T10_DIF",
    "CRC_16_TELEDISK",
    "CRC_16_USB",
    "X_25",
    "XMODEM",
    "MODBUS",
    "KERMIT",
    "CRC_CCITT_FALSE",
    "CRC_AUG_CCITT",
    "CRC_32",
    "CRC_32_BZIP2",
    "CRC_32C",
    "CRC_32D",
    "CRC_32_MPEG",
    "POSIX",
    "CRC_32Q",
    "JAMCRC",
    "XFER",
    "CRC_64",
    "CRC_64_GO_ISO",
    "CRC_64_WE",
    "CRC_64_JONES",
];

impl Schema<'_> {
    /// Appends the tables of the hashes that are called in one place.
    pub fn hashes(&self, tables: &mut Vec<Value>) {
        let objects = self.ir.objects.iter().enumerate();
        let named = objects.filter(|(_, object)| !object.name.is_empty());
        for (index, object) in named {
            if object.kind != ObjectKind::Hash {
                continue;
            }
            let mut calls = self
                .ir
                .hash_calls
                .iter()
                .filter(|call| call.object == index);
            let (Some(call), None) = (calls.next(), calls.next()) else {
                continue;
            };
            let number = self.number(&object.name);
            tables.extend(self.hash_tables(&object.name, number, call));
        }
    }

    fn hash_tables(&self, name: &str, number: u64, call: &HashCall) -> [Value; 3] {
        let ids = self.ids;
        let input_id = ids.hash_input(number);
        let of = |suffix: &str, id, kind| table(&format!("{name}.{suffix}"), id, kind, 1, vec![]);
        let mut algorithm = of("algorithm", ids.hash_algorithm(number), "DynHashAlgorithm");
        algorithm["data"] = parameters().into();
        algorithm["action_specs"] = json!([predefined(), user_defined()]);
        algorithm["depends_on"] = json!([input_id]);
        let mut input = of("configure", input_id, "DynHashConfigure");
        input["data"] = slices(&call.fields).into();
        let mut result = of("compute", ids.hash_result(number), "DynHashCompute");
        let fields = call.fields.iter().filter(|f| !f.is_constant).zip(1..);
        let fields = fields.map(|(f, id)| key(id, &f.name, false, "Exact", bytes(f.width.into())));
        result["key"] = fields.collect();
        let hash = field(ids::HASH_VALUE, "hash_value", bytes(call.width.into()));
        let mut hash = single(hash, false);
        hash["read_only"] = true.into();
        result["data"] = json!([hash]);
        result["read_only"] = true.into();
        result["depends_on"] = json!([input_id]);
        [algorithm, input, result]
    }
}

/// The type of truth values that are false by default.
fn flag() -> Value {
    json!({"type": "bool", "default_value": false})
}

/// The parameters of all algorithms.
fn parameters() -> Vec<Value> {
    let fields = [
        ("rotate", uint_or("uint32", 0)),
        ("seed", uint_or("uint32", 0)),
        ("msb", flag()),
        ("extend", flag()),
    ];
    let fields = fields.into_iter().zip(ids::HASH_ALGORITHM..);
    fields
        .map(|((name, ty), id)| single(field(id, name, ty), false))
        .collect()
}

fn action(id: u64, name: &str, fields: &[(&str, Value, bool)]) -> Value {
    let fields = fields
        .iter()
        .zip(1..)
        .map(|((name, ty, is_mandatory), id)| {
            let mut field = field(id, name, ty.clone());
            field["mandatory"] = (*is_mandatory).into();
            field["read_only"] = false.into();
            field
        });
    json!({
        "id": id,
        "name": name,
        "action_scope": "TableAndDefault",
        "annotations": [],
        "data": fields.collect::<Vec<_>>(),
    })
}

fn predefined() -> Value {
    let mut names = choice(ALGORITHMS);
    names["default_value"] = "RANDOM".into();
    action(
        ids::HASH_PREDEFINED,
        "pre_defined",
        &[("algorithm_name", names, false)],
    )
}

fn user_defined() -> Value {
    let fields = [
        ("reverse", flag(), false),
        ("polynomial", uint("uint64"), true),
        ("init", uint_or("uint64", 0), false),
        ("final_xor", uint_or("uint64", 0), false),
        ("hash_bit_width", uint("uint64"), false),
    ];
    action(ids::HASH_USER_DEFINED, "user_defined", &fields)
}

/// The lists of slices of fields. Constants have unique names.
fn slices(fields: &[HashField]) -> Vec<Value> {
    let mut constants = 0;
    let list = |(f, id): (&HashField, u64)| {
        let (mut name, mut annotations) = (f.name.clone(), vec![]);
        if f.is_constant {
            name = format!("constant{constants}_{}_{name}", f.width);
            annotations.push(json!({"name": "bfrt_p4_constant"}));
            constants += 1;
        }
        let parameters = [
            ("start_bit", uint_or("uint64", 0), false),
            ("length", uint_or("uint64", f.width.into()), false),
            ("order", uint("uint64"), true),
        ];
        let parameters = parameters.into_iter().zip(ids::HASH_SLICE..);
        let parameters = parameters
            .map(|((name, ty, is_mandatory), id)| single(field(id, name, ty), is_mandatory));
        let mut list = repeated(json!({"id": id, "name": name, "annotations": annotations}));
        list["container"] = parameters.collect();
        single(list, false)
    };
    fields.iter().zip(1..).map(list).collect()
}
