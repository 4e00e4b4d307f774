// SPDX-License-Identifier: Apache-2.0
//! Extern functions of TNA.

use num_traits::ToPrimitive;

use super::value::Val;
use super::{Lower, Place, fold};
use crate::ast::{Arg as AstArg, BinOp, Expr};
use crate::ir::{Ex, HeaderRef, Scalar, StKind};
use crate::types::CallInfo;

impl<'a> Lower<'a> {
    /// Lowers the call of an extern function of TNA; `None` if the function is unknown.
    pub(super) fn tofino_function(
        &mut self,
        e: &'a Expr,
        name: &str,
        info: &'a CallInfo,
        args: &'a [AstArg],
    ) -> Option<Val> {
        Some(match name {
            "max" | "min" => {
                let ty = self.type_of(e.id);
                let scalar = self.scalar_of(&ty)?;
                let [a, b] = [0, 1].map(|i| {
                    let value = self.input(info, args, i);
                    let value = fold::cast(value, scalar);
                    self.snapshot(value)
                });
                let op = if name == "max" { BinOp::Ge } else { BinOp::Le };
                let first = fold::binary(op, a.clone(), b.clone());
                Val::Scalar(fold::cond(first, a, b))
            }
            "sizeInBits" | "sizeInBytes" => {
                let ty = self.type_of(self.arg(info, args, 0)?.id);
                let bits = self.size_in_bits(&ty, true);
                let size = match name {
                    "sizeInBytes" => bits.div_ceil(8),
                    _ => bits,
                };
                Val::Scalar(Ex::bit(size, 32))
            }
            "funnel_shift_right" => {
                self.funnel_shift(info, args);
                Val::Unit
            }
            "invalidate" => {
                self.invalidate_field(info, args);
                Val::Unit
            }
            "is_validated" => self.is_validated(info, args),
            "port_metadata_unpack" => self.port_metadata(e),
            _ => return None,
        })
    }

    /// Returns advice for the use of an extern that this target lacks.
    pub(super) fn tofino_hint(&self, extern_name: &str) -> String {
        let advice = match extern_name {
            "SelectorAction" => "change the members of groups from the controller",
            name if name.starts_with("LearnAction") => "use a RegisterAction",
            _ => return self.extern_hint(),
        };
        advice.to_owned()
    }

    /// Shifts two concatenated values right, and stores the lower half.
    fn funnel_shift(&mut self, info: &'a CallInfo, args: &'a [AstArg]) {
        let high = self.input(info, args, 1);
        let low = self.input(info, args, 2);
        let amount = self.arg(info, args, 3);
        let Some(n) = amount.and_then(|x| self.number(x)).and_then(|n| n.to_u32()) else {
            let span = amount.map_or(self.span, |x| x.span);
            self.error(span, "the amount must be a number known at compile time");
            return;
        };
        let width = low.ty().width();
        let wide = fold::binary(
            BinOp::Concat,
            fold::cast(high, Scalar::Bit(width)),
            fold::cast(low, Scalar::Bit(width)),
        );
        let shifted = fold::binary(BinOp::Shr, wide, Ex::bit(n, 32));
        let result = fold::cast(shifted, Scalar::Bit(width));
        if let Some(target) = self.arg(info, args, 0) {
            let target = self.eval(target);
            self.assign(&target, Val::Scalar(result));
        }
    }

    /// Withdraws a field of the intrinsic metadata, and sets other fields to zero. Port numbers have all bits set then.
    fn invalidate_field(&mut self, info: &'a CallInfo, args: &'a [AstArg]) {
        let Some(target) = self.arg(info, args, 0) else {
            return;
        };
        match self.eval(target) {
            Val::Header(h) => self.emit(StKind::SetValid(h.at, false)),
            Val::Scalar(field) => {
                let value = match is_port(&field) {
                    true => Self::all_ones(field.ty()),
                    false => Ex::Const(0.into(), field.ty()),
                };
                self.assign(&Val::Scalar(field.clone()), Val::Scalar(value));
                if let Some(variable) = self.selection(&field) {
                    self.emit(StKind::Assign(variable, Ex::bool(false)));
                }
            }
            _ => self.unsupported(target.span, "only fields and headers can be invalidated"),
        }
    }

    fn is_validated(&mut self, info: &'a CallInfo, args: &'a [AstArg]) -> Val {
        let Some(target) = self.arg(info, args, 0) else {
            return Val::Unit;
        };
        match self.eval(target) {
            Val::Header(h) => Val::Scalar(Ex::Valid(h.at)),
            Val::Scalar(field) if is_port(&field) => {
                let none = Self::all_ones(field.ty());
                Val::Scalar(fold::binary(BinOp::Ne, field, none))
            }
            Val::Scalar(Ex::Field { header, .. }) if !self.ir.storage.is_metadata(&header) => {
                Val::Scalar(Ex::Valid(HeaderRef::Static(header)))
            }
            _ => {
                self.diags.unsupported_hint(
                    target.span,
                    "this target does not know which metadata is valid",
                    "use a field of a header, or ucast_egress_port",
                );
                Val::Scalar(Ex::bool(true))
            }
        }
    }

    /// Reads the port metadata at the start of the packet.
    fn port_metadata(&mut self, e: &'a Expr) -> Val {
        self.only_in(&[Place::Parser], e.span, "port_metadata_unpack");
        let ty = self.type_of(e.id);
        let mut bits = 0;
        let value = self.lookahead(&ty, &mut bits, e);
        let available = self.port_metadata_bits();
        if bits > available {
            self.error(
                e.span,
                format!("port metadata has {available} bits, but this type has {bits}"),
            );
        }
        self.emit(StKind::Advance(Ex::bit(available, 32)));
        let mut fields = Vec::new();
        self.flat_fields(&ty, "", &mut fields);
        if let Some(metadata) = self.ir.port_metadata.last_mut() {
            metadata.ty = Some(ty);
            metadata.fields = fields;
        }
        value
    }
}

/// Returns true for the field that tells the port of a unicast packet.
fn is_port(field: &Ex) -> bool {
    matches!(field, Ex::Field { header, field, .. } if header == "ig_intr_md_for_tm" && field == "ucast_egress_port")
}
