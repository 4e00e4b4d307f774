// SPDX-License-Identifier: Apache-2.0
//! Emits the attributes of TNA's externs.

use num_bigint::BigInt;
use num_traits::{One, ToPrimitive, Zero};
use serde_json::{Value, json};

use super::externs::{counter_attributes, hex, meter_attributes, number, size, text};
use super::{Emitter, int};
use crate::diag::Warning;
use crate::ir::{Object, ObjectArg, ObjectKind};
use crate::types::Type;

/// Entries of a math unit's table.
const MATH_TABLE: usize = 16;

/// The bounds of a math unit's scale, a signed number of 6 bits.
const MIN_SCALE: i32 = -32;
const MAX_SCALE: i32 = 31;

impl Emitter<'_> {
    /// Returns the attributes of an object of TNA; `None` for objects that the target does not have as externs.
    pub(super) fn tofino_attributes(
        &self,
        index: usize,
        o: &Object,
        kind: ObjectKind,
    ) -> Option<Vec<Value>> {
        let named = |name: &str| number(name, o.number(name).unwrap_or(&BigInt::zero()));
        self.egress_accounting(o);
        let binding = || text("binding", json!(self.bound_table(index)));
        Some(match kind {
            ObjectKind::Counter => counter_attributes(o),
            ObjectKind::Meter => meter_attributes(o),
            ObjectKind::Hash => self.hash_attributes(index, o),
            ObjectKind::Checksum => Vec::new(),
            ObjectKind::Lpf => vec![size("n_cells", o)],
            ObjectKind::Wred => vec![
                size("n_cells", o),
                named("drop_value"),
                named("no_drop_value"),
            ],
            ObjectKind::DirectLpf => vec![binding()],
            ObjectKind::DirectWred => {
                vec![binding(), named("drop_value"), named("no_drop_value")]
            }
            ObjectKind::MathUnit => self.math_attributes(o),
            _ => return None,
        })
    }

    /// Warns of meters that want the length of the packet after the egress deparser.
    fn egress_accounting(&self, o: &Object) {
        let is_meter = matches!(o.kind, ObjectKind::Meter | ObjectKind::DirectMeter);
        if is_meter && o.number("true_egress_accounting").is_some_and(One::is_one) {
            self.diags.warn_hint(
                Warning::Unsupported,
                o.span,
                format!(
                    "the target counts for '{}' the packet as it enters egress",
                    o.name
                ),
                "pass false for true_egress_accounting",
            );
        }
    }

    fn hash_attributes(&self, index: usize, o: &Object) -> Vec<Value> {
        let algorithm = match o.args.first() {
            Some(ObjectArg::Enum(name)) => name.to_ascii_lowercase(),
            _ => String::new(),
        };
        let mut attributes = vec![text("algo", json!(algorithm))];
        let mut calls = self
            .ir
            .hash_calls
            .iter()
            .filter(|call| call.object == index);
        if let (Some(call), None) = (calls.next(), calls.next())
            && call.used < call.width
        {
            attributes.push(number("used_bits", &call.used.into()));
        }
        match o.args.get(1) {
            Some(ObjectArg::Object(polynomial)) => {
                let polynomial = &self.ir.objects[*polynomial];
                self.check_polynomial(o, polynomial);
                for name in ["coeff", "reversed", "init", "xor"] {
                    let value = polynomial.number(name).cloned().unwrap_or_default();
                    attributes.push(number(name, &value));
                }
                attributes.push(number("width", &width(polynomial).into()));
            }
            _ if algorithm == "custom" => self.diags.unsupported_hint(
                o.span,
                format!("the algorithm of '{}' needs a polynomial", o.name),
                "pass a CRCPolynomial as the second argument",
            ),
            _ => {}
        }
        attributes
    }

    /// The target takes the low bits of a hash that is too wide, and does not extend one that is too narrow.
    fn check_polynomial(&self, hash: &Object, polynomial: &Object) {
        let is_set = |name: &str| polynomial.number(name).is_some_and(One::is_one);
        let (result, own) = (width(hash), width(polynomial));
        let problem = match () {
            () if is_set("msb") && result < own => "msb",
            () if is_set("extended") && result > own => "extended",
            () => return,
        };
        self.diags.unsupported_hint(
            polynomial.span,
            format!("the target does not support the argument '{problem}' of a polynomial"),
            "pass false, and give the hash and the polynomial the same width",
        );
    }

    fn math_attributes(&self, o: &Object) -> Vec<Value> {
        let (invert, shift, scale, table) = match o.args.first() {
            Some(ObjectArg::Enum(operation)) => {
                let factor = match o.number("factor") {
                    Some(factor) => factor.to_f64().unwrap_or(0.0),
                    None => quotient(o),
                };
                let (invert, shift) = exponents(operation);
                let (scale, table) = math_table(invert, shift, factor);
                (invert, shift, scale, table)
            }
            _ => {
                let of = |name: &str| o.number(name).and_then(ToPrimitive::to_i32).unwrap_or(0);
                let mut table = match o.argument("data") {
                    Some(ObjectArg::List(data)) => data.clone(),
                    _ => Vec::new(),
                };
                // The program lists the entries from the last to the first.
                table.reverse();
                (of("invert") == 1, of("shift"), of("scale"), table)
            }
        };
        let table: Vec<String> = table.iter().map(hex).collect();
        vec![
            number("invert", &u32::from(invert).into()),
            number("shift", &shift.into()),
            number("scale", &scale.into()),
            json!({"name": "table", "type": "list", "value": table}),
        ]
    }

    /// Returns the hash algorithm for the members of an action selector's groups, and the number of its members.
    pub(super) fn tofino_selector(&self, o: &Object) -> (&'static str, Value) {
        let hash = match o.argument("hash") {
            Some(ObjectArg::Object(hash)) => self.ir.objects[*hash].args.first(),
            _ => None,
        };
        // The target chooses the member, so it may replace algorithms that it lacks.
        let algorithm = match hash {
            Some(ObjectArg::Enum(name)) if name == "CRC16" => "crc16",
            Some(ObjectArg::Enum(name)) if name == "IDENTITY" => "identity",
            _ => "crc32",
        };
        let members = match o.argument("action_profile") {
            Some(ObjectArg::Object(profile)) => int(&self.ir.objects[*profile].args, 0),
            _ => int(&o.args, 0),
        };
        (algorithm, members)
    }
}

/// Returns the width of the number that a type argument describes.
fn width(o: &Object) -> u32 {
    match o.targs.first() {
        Some(Type::Bit(w) | Type::SInt(w)) => *w,
        _ => 32,
    }
}

/// Returns the factor of a math unit that is given as a fraction.
fn quotient(o: &Object) -> f64 {
    let part = |name: &str| o.number(name).and_then(ToPrimitive::to_f64);
    part("A").unwrap_or(0.0) / part("B").filter(|b| *b != 0.0).unwrap_or(1.0)
}

/// Returns whether an operation inverts its operand, and the exponent of 2 in its power.
fn exponents(operation: &str) -> (bool, i32) {
    let shift = match operation {
        "SQR" | "RSQR" => 1,
        "SQRT" | "RSQRT" => -1,
        _ => 0,
    };
    let invert = matches!(operation, "DIV" | "RSQR" | "RSQRT");
    (invert, shift)
}

/// Returns the scale and the table of a math unit for `factor` times a power. Entry `i` stands for the operand `i / 8`; the
/// scale is the largest one with which all entries in use fit into 8 bits. Operands are normalised to [1, 2), or for square
/// roots to [1/2, 2).
fn math_table(invert: bool, shift: i32, factor: f64) -> (i32, Vec<BigInt>) {
    let power = 2f64.powi(shift) * if invert { -1.0 } else { 1.0 };
    let first = if shift < 0 {
        MATH_TABLE / 4
    } else {
        MATH_TABLE / 2
    };
    let value = |i: usize| (i as f64 / 8.0).powf(power) * factor;
    let largest = value(if invert { first } else { MATH_TABLE - 1 });
    let scale = if largest > 0.0 {
        (largest.log2().floor() as i32 - 7).clamp(MIN_SCALE, MAX_SCALE)
    } else {
        0
    };
    let entry = |i: usize| match i < first {
        true => 0,
        false => (value(i) * 2f64.powi(-scale))
            .round_ties_even()
            .clamp(0.0, 255.0) as u32,
    };
    (scale, (0..MATH_TABLE).map(|i| entry(i).into()).collect())
}
