// SPDX-License-Identifier: Apache-2.0
//! Emits expressions.
//!
//! The target computes with unbounded numbers, so results are truncated to their width here. Booleans
//! and data are different kinds there: a Boolean in storage is a bit that `d2b` and `b2d` convert.

use num_bigint::BigInt;
use num_traits::{One, Signed};
use serde_json::{Value, json};

use super::Emitter;
use crate::ast::{BinOp, UnOp};
use crate::ir::{Ex, HeaderRef, Scalar};

/// Formats a constant, padded to whole bytes of its width.
pub(super) fn hexstr(v: &BigInt, width: u32) -> Value {
    json!({"type": "hexstr", "value": hex(v, width)})
}

pub(super) fn hex(v: &BigInt, width: u32) -> String {
    let digits = width.div_ceil(8) as usize * 2;
    let sign = if v.is_negative() { "-" } else { "" };
    format!("{sign}0x{:0>digits$}", v.magnitude().to_str_radix(16))
}

/// Returns an object with these members. Unlike `json!`, it does not copy them, which would take quadratic time for
/// nested expressions.
fn object<const N: usize>(members: [(&str, Value); N]) -> Value {
    let members = members.map(|(name, value)| (name.to_owned(), value));
    Value::Object(members.into_iter().collect())
}

fn expression(value: Value) -> Value {
    object([("type", json!("expression")), ("value", value)])
}

fn op(op: &str, left: Value, right: Value) -> Value {
    expression(object([
        ("op", json!(op)),
        ("left", left),
        ("right", right),
    ]))
}

/// Emits `cond ? yes : no`, of numbers or of Booleans.
fn choice(cond: Value, yes: Value, no: Value) -> Value {
    expression(object([
        ("op", json!("?")),
        ("left", yes),
        ("right", no),
        ("cond", cond),
    ]))
}

fn masked(v: Value, width: u32) -> Value {
    op("&", v, hexstr(&((BigInt::one() << width) - 1), width))
}

/// Truncates a computed number to its type.
fn cut(v: Value, ty: Scalar) -> Value {
    match ty {
        Scalar::Int(w) => op("two_comp_mod", v, width_constant(w)),
        ty => masked(v, ty.width()),
    }
}

fn width_constant(w: u32) -> Value {
    json!({"type": "hexstr", "value": format!("{w:#x}")})
}

impl Emitter<'_> {
    /// Emits an argument of an operation: simple values directly, others as an expression.
    pub(super) fn parameter(&self, e: &Ex) -> Value {
        if let Ex::Param(i, _) = e {
            return json!({"type": "runtime_data", "value": i});
        }
        let v = self.data(e);
        // Fields of `stack.last` and converted parameters are allowed only in expressions.
        let wrapped = v["type"] == "expression"
            || v["type"] == "local"
            || v["type"] == "stack_field"
            || v["type"] == "union_stack_field";
        if wrapped { expression(v) } else { v }
    }

    pub(super) fn header(&self, h: &HeaderRef) -> Value {
        match h {
            HeaderRef::Static(name) => json!({"type": "header", "value": name}),
            HeaderRef::Elem { stack, index } => op(
                "dereference_header_stack",
                json!({"type": "header_stack", "value": stack}),
                self.data(index),
            ),
            HeaderRef::UnionElem {
                stack,
                index,
                member,
            } => op(
                "access_union_header",
                op(
                    "dereference_union_stack",
                    json!({"type": "header_union_stack", "value": stack}),
                    self.data(index),
                ),
                json!(member),
            ),
            HeaderRef::Next(s)
            | HeaderRef::Last(s)
            | HeaderRef::UnionNext { stack: s, .. }
            | HeaderRef::UnionLast { stack: s, .. } => {
                json!({"type": "header_stack", "value": s})
            }
        }
    }

    /// Emits the expression as a number.
    pub(super) fn data(&self, e: &Ex) -> Value {
        match e {
            Ex::Field { header, field, .. } => json!({"type": "field", "value": [header, field]}),
            Ex::FieldOf {
                header,
                field,
                index,
                ..
            } => match header {
                HeaderRef::Static(h) => json!({"type": "field", "value": [h, field]}),
                HeaderRef::Last(s) | HeaderRef::Next(s) => {
                    json!({"type": "stack_field", "value": [s, field]})
                }
                HeaderRef::UnionLast { stack, member } | HeaderRef::UnionNext { stack, member } => {
                    json!({"type": "union_stack_field", "value": [stack, member, field]})
                }
                _ => op("access_field", self.header(header), json!(index)),
            },
            Ex::Const(v, Scalar::Int(w)) => hexstr(v, *w),
            Ex::Const(v, ty) => hexstr(v, ty.width()),
            Ex::Param(i, _) => json!({"type": "local", "value": i}),
            Ex::Valid(HeaderRef::Static(h)) => json!({"type": "field", "value": [h, "$valid$"]}),
            Ex::LastIndex(s) => op(
                "last_stack_index",
                Value::Null,
                json!({"type": "header_stack", "value": s}),
            ),
            Ex::Lookahead { offset, width, .. } => {
                json!({"type": "lookahead", "value": [offset, width]})
            }
            Ex::Slice { base, hi, lo } => {
                let b = self.data(base);
                let moved = if *lo == 0 {
                    b
                } else {
                    op(">>", b, width_constant(*lo))
                };
                masked(moved, hi - lo + 1)
            }
            Ex::Unary(UnOp::BitNot, x, ty) => cut(op("~", Value::Null, self.data(x)), *ty),
            Ex::Unary(UnOp::Neg, x, ty) => cut(
                op("-", hexstr(&BigInt::from(0), ty.width()), self.data(x)),
                *ty,
            ),
            Ex::Unary(UnOp::Plus, x, _) => self.data(x),
            Ex::Cond(c, a, b, ty) if *ty != Scalar::Bool => {
                choice(self.boolean(c), self.data(a), self.data(b))
            }
            Ex::Binary(o, a, b, ty) if *ty != Scalar::Bool => self.arithmetic(*o, a, b, *ty),
            Ex::Cast(x, to) if *to != Scalar::Bool => self.cast(x, *to),
            e => op("b2d", Value::Null, self.boolean(e)),
        }
    }

    fn arithmetic(&self, o: BinOp, a: &Ex, b: &Ex, ty: Scalar) -> Value {
        let (l, r) = (self.data(a), self.data(b));
        match o {
            BinOp::Add => cut(op("+", l, r), ty),
            BinOp::Sub => cut(op("-", l, r), ty),
            BinOp::Mul => cut(op("*", l, r), ty),
            BinOp::Shl => cut(op("<<", l, r), ty),
            BinOp::SatAdd | BinOp::SatSub => {
                let sum = op(if o == BinOp::SatAdd { "+" } else { "-" }, l, r);
                let name = if matches!(ty, Scalar::Int(_)) {
                    "sat_cast"
                } else {
                    "usat_cast"
                };
                op(name, sum, width_constant(ty.width()))
            }
            BinOp::Div => op("/", l, r),
            BinOp::Mod => op("%", l, r),
            BinOp::Shr => op(">>", l, r),
            BinOp::BitAnd => op("&", l, r),
            BinOp::BitOr => op("|", l, r),
            BinOp::BitXor => op("^", l, r),
            BinOp::Concat => {
                let w = b.ty().width();
                let low = match b.ty() {
                    Scalar::Int(w) => masked(r, w),
                    _ => r,
                };
                cut(op("|", op("<<", l, width_constant(w)), low), ty)
            }
            // Comparisons and logic are Boolean.
            _ => op(
                "b2d",
                Value::Null,
                self.boolean(&Ex::Binary(
                    o,
                    Box::new(a.clone()),
                    Box::new(b.clone()),
                    Scalar::Bool,
                )),
            ),
        }
    }

    fn cast(&self, x: &Ex, to: Scalar) -> Value {
        let v = self.data(x);
        match (x.ty(), to) {
            (Scalar::Bool, _) => v,
            (Scalar::Int(_), Scalar::Bit(w)) => masked(v, w),
            (Scalar::Bit(a), Scalar::Bit(b)) if a <= b => v,
            (Scalar::Int(a), Scalar::Int(b)) if a <= b => v,
            (_, Scalar::Int(w)) => op("two_comp_mod", v, width_constant(w)),
            (_, Scalar::Varbit(_)) => v,
            (_, to) => masked(v, to.width()),
        }
    }

    /// Emits the expression as a Boolean.
    pub(super) fn boolean(&self, e: &Ex) -> Value {
        match e {
            Ex::Const(..) => json!({"type": "bool", "value": e.as_bool().unwrap_or(false)}),
            Ex::Valid(HeaderRef::Static(_))
            | Ex::Field { .. }
            | Ex::FieldOf { .. }
            | Ex::Param(..) => op("d2b", Value::Null, self.data(e)),
            Ex::Valid(h) => op("valid", Value::Null, self.header(h)),
            Ex::UnionValid(u) => op(
                "valid_union",
                Value::Null,
                json!({"type": "header_union", "value": u}),
            ),
            Ex::Unary(UnOp::Not, x, _) => op("not", Value::Null, self.boolean(x)),
            Ex::Cast(x, _) => op("d2b", Value::Null, self.data(x)),
            Ex::Cond(c, a, b, _) => choice(self.boolean(c), self.boolean(a), self.boolean(b)),
            Ex::Binary(o, a, b, _) => match o {
                BinOp::And => op("and", self.boolean(a), self.boolean(b)),
                BinOp::Or => op("or", self.boolean(a), self.boolean(b)),
                _ => op(comparison(*o), self.data(a), self.data(b)),
            },
            e => op("d2b", Value::Null, self.data(e)),
        }
    }
}

fn comparison(o: BinOp) -> &'static str {
    match o {
        BinOp::Ne => "!=",
        BinOp::Lt => "<",
        BinOp::Le => "<=",
        BinOp::Gt => ">",
        BinOp::Ge => ">=",
        _ => "==",
    }
}
