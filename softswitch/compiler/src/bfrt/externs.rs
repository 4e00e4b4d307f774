// SPDX-License-Identifier: Apache-2.0
//! Extern instances of TNA that P4Info does not describe: filters, parameters of registers, and direct registers.

use num_traits::ToPrimitive;
use serde_json::{Value, json};

use super::json::{bytes, choice, field, single, table, uint};
use super::{Schema, arrays, ids};
use crate::ir::{Object, ObjectArg, ObjectKind, Scalar};

/// Returns the number of cells of an array.
fn size(object: &Object) -> u64 {
    match object.args.first() {
        Some(ObjectArg::Int(n)) => n.to_u64().unwrap_or(0),
        _ => 0,
    }
}

/// The fields of a list, with successive ids.
fn parameters(first: u64, fields: Vec<(&str, Value)>) -> Vec<Value> {
    let fields = fields.into_iter().zip(first..);
    fields
        .map(|((name, of), id)| single(field(id, name, of), true))
        .collect()
}

/// The parameters of a low-pass filter.
fn lpf_fields() -> Vec<Value> {
    let fields = vec![
        ("$LPF_SPEC_TYPE", choice(&["RATE", "SAMPLE"])),
        ("$LPF_SPEC_GAIN_TIME_CONSTANT_NS", uint("float")),
        ("$LPF_SPEC_DECAY_TIME_CONSTANT_NS", uint("float")),
        ("$LPF_SPEC_OUT_SCALE_DOWN_FACTOR", uint("uint32")),
    ];
    parameters(ids::LPF_SPEC, fields)
}

/// The parameters of a random early detection.
fn wred_fields() -> Vec<Value> {
    let fields = vec![
        ("$WRED_SPEC_TIME_CONSTANT_NS", uint("float")),
        ("$WRED_SPEC_MIN_THRESH_CELLS", uint("uint32")),
        ("$WRED_SPEC_MAX_THRESH_CELLS", uint("uint32")),
        ("$WRED_SPEC_MAX_PROBABILITY", uint("float")),
    ];
    parameters(ids::WRED_SPEC, fields)
}

/// Returns the type of a scalar.
pub fn scalar_type(ty: &Scalar) -> Value {
    match ty {
        Scalar::Bool => uint("bool"),
        ty => bytes(ty.width().into()),
    }
}

/// Returns the fields of a direct register; `first` is the first id.
fn register_fields(object: &Object, first: u64) -> Vec<Value> {
    let cells = object.cells.iter().zip(first..);
    cells
        .map(|(cell, id)| {
            let name = match cell.name == object.name {
                true => format!("{}.f1", cell.name),
                false => cell.name.clone(),
            };
            let mut f = field(id, &name, scalar_type(&cell.ty));
            f["annotations"] = json!([{"name": "$bfrt_field_class", "value": "register_data"}]);
            single(f, true)
        })
        .collect()
}

impl Schema<'_> {
    /// Adds the fields and operations of a table's direct register and filters. `next` is the first free id.
    pub fn attached(
        &self,
        table: &str,
        next: u64,
        data: &mut Vec<Value>,
        operations: &mut Vec<&str>,
    ) {
        let found = self.ir.tables.iter().find(|t| t.name == table);
        for object in found.into_iter().flat_map(|t| &t.attached) {
            let object = &self.ir.objects[*object];
            match object.kind {
                ObjectKind::DirectRegister => {
                    data.extend(register_fields(object, next));
                    operations.push("SyncRegisters");
                }
                ObjectKind::DirectLpf => data.extend(lpf_fields()),
                ObjectKind::DirectWred => data.extend(wred_fields()),
                _ => {}
            }
        }
    }

    /// Appends the instances of TNA's externs.
    pub fn externs(&self, tables: &mut Vec<Value>) {
        let objects = self.ir.objects.iter().filter(|o| !o.name.is_empty());
        for object in objects {
            let name = &object.name;
            let number = self.number(name);
            let array = |id, kind| table(name, id, kind, size(object), vec![]);
            let t = match object.kind {
                ObjectKind::Lpf => {
                    let mut t = array(self.ids.lpf(number), "Lpf");
                    t["key"] = arrays::index(ids::LPF_INDEX, "$LPF_INDEX");
                    t["data"] = lpf_fields().into();
                    t
                }
                ObjectKind::Wred => {
                    let mut t = array(self.ids.wred(number), "Wred");
                    t["key"] = arrays::index(ids::WRED_INDEX, "$WRED_INDEX");
                    t["data"] = wred_fields().into();
                    t
                }
                ObjectKind::RegisterParam => {
                    let Some(cell) = object.cells.first() else {
                        continue;
                    };
                    let id = self.ids.register_parameter(number);
                    let mut t = table(name, id, "RegisterParam", 1, vec![]);
                    let mut of = scalar_type(&cell.ty);
                    of["default_value"] = cell.initial.to_i64().into();
                    t["data"] = json!([single(field(1, "value", of), true)]);
                    t
                }
                _ => continue,
            };
            tables.push(t);
        }
    }
}
