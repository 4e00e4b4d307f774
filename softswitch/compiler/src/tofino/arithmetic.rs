// SPDX-License-Identifier: Apache-2.0
//! Arithmetic: an ALU works on one container of up to 32 bits, and shifts by constants only. The ALUs of
//! registers have rules of their own: see [`super::stateful`].

use crate::ast::BinOp;
use crate::diag::{Diagnostics, Span};
use crate::ir::{Arg, Ex, Lowered, St, StKind};

/// Width in bits of the largest container.
const WIDEST: u32 = 32;

/// Reports operations that no ALU has.
pub(super) fn check(program: &Lowered, diags: &Diagnostics) {
    let controls = program.pipelines.iter().map(|block| &block.body);
    let actions = program.actions.iter().map(|action| &action.body);
    for block in controls.chain(actions) {
        statements(block, diags);
    }
}

fn statements(block: &[St], diags: &Diagnostics) {
    for st in block {
        match &st.kind {
            StKind::Assign(to, from) => {
                expression(to, st.span, diags);
                expression(from, st.span, diags);
            }
            StKind::If(cond, ..) => expression(cond, st.span, diags),
            StKind::Primitive { args, .. } => {
                for arg in args {
                    match arg {
                        Arg::Ex(e) => expression(e, st.span, diags),
                        Arg::FieldList(list) | Arg::Vector(list) => {
                            list.iter().for_each(|e| expression(e, st.span, diags));
                        }
                        _ => {}
                    }
                }
            }
            StKind::Access { .. } => continue,
            _ => {}
        }
        for block in st.kind.blocks() {
            statements(block, diags);
        }
    }
}

fn expression(e: &Ex, span: Span, diags: &Diagnostics) {
    e.visit(&mut |e| {
        let Ex::Binary(op, left, right, ty) = e else {
            return;
        };
        match op {
            BinOp::Mul | BinOp::Div | BinOp::Mod => diags.error_hint(
                span,
                "no ALU multiplies or divides",
                "shift by a constant, look the result up in a table, or use a MathUnit in a RegisterAction",
            ),
            BinOp::Shl | BinOp::Shr if !right.is_const() => diags.error_hint(
                span,
                "an ALU shifts only by a constant",
                "choose the shift with a table that has an action for each distance",
            ),
            BinOp::Add | BinOp::Sub | BinOp::SatAdd | BinOp::SatSub if ty.width() > WIDEST => {
                diags.error_hint(
                    span,
                    format!("an ALU adds at most {WIDEST} bits, not {}", ty.width()),
                    "split the value into fields of 32 bits and add the carry, or compute only the part that changes",
                );
            }
            BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge if left.ty().width() > WIDEST => {
                diags.error_hint(
                    span,
                    format!("values of more than {WIDEST} bits cannot be ordered, and these have {}", left.ty().width()),
                    "compare slices, or use a table with range keys",
                );
            }
            _ => {}
        }
    });
}
