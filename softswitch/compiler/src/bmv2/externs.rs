// SPDX-License-Identifier: Apache-2.0
//! Emits instances of externs that the target has as objects with attributes.

use num_bigint::BigInt;
use num_traits::Signed;
use serde_json::{Value, json};

use super::{Emitter, algorithm, int, member};
use crate::ir::{Architecture, Object, ObjectArg, ObjectKind};

impl Emitter<'_> {
    /// Emits the instances that the target has as extern objects.
    pub(super) fn extern_instances(&self) -> Vec<Value> {
        let is_tofino = self.ir.architecture.is_tofino();
        let attributes = |i: usize, o: &Object| match (self.ir.architecture, o.kind) {
            (_, ObjectKind::Foreign) => Some(constructor_arguments(o)),
            (Architecture::Psa, kind) => psa_attributes(o, kind),
            (Architecture::Tna | Architecture::T2na, kind) => self.tofino_attributes(i, o, kind),
            (Architecture::V1Model, _) => None,
        };
        let mut out = Vec::new();
        let objects = self.ir.objects.iter().enumerate();
        let named = objects.filter(|(_, o)| !is_tofino || !o.name.is_empty());
        for (i, o) in named {
            let Some(attributes) = attributes(i, o) else {
                continue;
            };
            out.push(json!({
                "name": o.name,
                "id": out.len(),
                "type": o.extern_name,
                "source_info": self.source(o.span),
                "attribute_values": attributes,
            }));
        }
        out
    }
}

/// Returns the attributes that `psa_switch` expects; `None` for objects that are not its externs.
fn psa_attributes(o: &Object, kind: ObjectKind) -> Option<Vec<Value>> {
    Some(match kind {
        ObjectKind::Counter => counter_attributes(o),
        ObjectKind::Meter => meter_attributes(o),
        ObjectKind::Hash => vec![text("algo", algorithm(&o.args, 0))],
        ObjectKind::InternetChecksum => Vec::new(),
        _ => return None,
    })
}

/// Returns the arguments of a constructor, by the names of its parameters.
fn constructor_arguments(o: &Object) -> Vec<Value> {
    let arguments = o.params.iter().zip(&o.args);
    let values = arguments.filter_map(|(name, a)| match a {
        ObjectArg::Int(n) => Some(
            json!({"name": name, "type": "hexstr", "value": format!("0x{}", n.to_str_radix(16))}),
        ),
        ObjectArg::Enum(n) => Some(json!({"name": name, "type": "string", "value": n})),
        ObjectArg::List(_) | ObjectArg::Object(_) | ObjectArg::Other => None,
    });
    values.collect()
}

/// Returns the attributes of an array of counters.
pub(super) fn counter_attributes(o: &Object) -> Vec<Value> {
    let unit = match member(&o.args, 1).as_str() {
        Some("packets") => 0u32,
        Some("bytes") => 1,
        _ => 2,
    };
    vec![size("n_counters", o), number("type", &unit.into())]
}

/// Returns the attributes of an array of meters.
pub(super) fn meter_attributes(o: &Object) -> Vec<Value> {
    vec![
        number("is_direct", &0.into()),
        size("n_meters", o),
        number("rate_count", &2.into()),
        text("type", member(&o.args, 1)),
    ]
}

/// Returns an attribute for the number of elements, the constructor's first argument.
pub(super) fn size(name: &str, o: &Object) -> Value {
    let n = int(&o.args, 0).as_u64().unwrap_or(0);
    number(name, &n.into())
}

pub(super) fn number(name: &str, value: &BigInt) -> Value {
    json!({"name": name, "type": "hexstr", "value": hex(value)})
}

pub(super) fn text(name: &str, value: Value) -> Value {
    json!({"name": name, "type": "string", "value": value})
}

/// Returns a number with its sign.
pub(super) fn hex(n: &BigInt) -> String {
    let sign = if n.is_negative() { "-" } else { "" };
    format!("{sign}0x{}", n.magnitude().to_str_radix(16))
}
