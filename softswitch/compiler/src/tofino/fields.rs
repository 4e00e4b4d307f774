// SPDX-License-Identifier: Apache-2.0
//! The fields that statements read and write.

use crate::ir::{Arg, Ex, HeaderRef, SCALARS, St, StKind};

/// The names of a header and of a field.
pub(super) type Field = (String, String);

/// Stands for the validity of a header, among the names of its fields.
pub(super) const VALID: &str = "$valid$";

/// Stands for all fields of a header that was copied.
pub(super) const ALL: &str = "*";

/// Returns the field that an expression names.
pub(super) fn field(e: &Ex) -> Option<Field> {
    match e {
        Ex::Field { header, field, .. } => Some((header.clone(), field.clone())),
        Ex::FieldOf { header, field, .. } => Some((header_name(header), field.clone())),
        Ex::Slice { base, .. } => field(base),
        _ => None,
    }
}

/// Returns the name of a header, or of the stack or union around it.
pub(super) fn header_name(header: &HeaderRef) -> String {
    match header {
        HeaderRef::Static(name) | HeaderRef::Next(name) | HeaderRef::Last(name) => name,
        HeaderRef::Elem { stack, .. }
        | HeaderRef::UnionNext { stack, .. }
        | HeaderRef::UnionLast { stack, .. }
        | HeaderRef::UnionElem { stack, .. } => stack,
    }
    .clone()
}

/// Returns true for a field of a variable or of metadata of the program.
pub(super) fn is_variable(e: &Ex) -> bool {
    matches!(e, Ex::Field { header, .. } if header == SCALARS)
}

/// Returns the position of a primitive's result among its arguments.
pub(super) fn output(op: &str) -> Option<usize> {
    match op {
        "register_read" | "modify_field_rng_uniform" | "_DirectRegister_read" => Some(0),
        "_Hash_get_hash" | "_Checksum_get" | "_Checksum_verify" | "_Checksum_update" => Some(1),
        "_Meter_execute" | "_MathUnit_execute" => Some(2),
        "_Lpf_execute" | "_Wred_execute" => Some(3),
        _ => None,
    }
}

/// Calls `f` for each field that statements access, in their order, with true if it is written.
pub(super) fn each_field(block: &[St], f: &mut dyn FnMut(Field, bool)) {
    for st in block {
        match &st.kind {
            StKind::Assign(to, from) => {
                reads(from, f);
                writes(to, f);
            }
            StKind::If(cond, ..) => reads(cond, f),
            StKind::Primitive { op, args } => arguments(args, output(op), f),
            _ => {}
        }
        for block in st.kind.blocks() {
            each_field(block, f);
        }
    }
}

fn arguments(args: &[Arg], output: Option<usize>, f: &mut dyn FnMut(Field, bool)) {
    for (i, arg) in args.iter().enumerate() {
        match arg {
            Arg::Ex(_) if Some(i) == output => {}
            Arg::Ex(e) => reads(e, f),
            Arg::FieldList(list) | Arg::Vector(list) => list.iter().for_each(|e| reads(e, f)),
            _ => {}
        }
    }
    if let Some(Arg::Ex(e)) = output.and_then(|i| args.get(i)) {
        writes(e, f);
    }
}

fn reads(e: &Ex, f: &mut dyn FnMut(Field, bool)) {
    e.visit(&mut |e| {
        if let Some(field) = field(e) {
            f(field, false);
        }
    });
}

fn writes(e: &Ex, f: &mut dyn FnMut(Field, bool)) {
    if let Some(field) = field(e) {
        f(field, true);
    }
}
