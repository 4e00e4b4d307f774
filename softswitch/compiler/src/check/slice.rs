// SPDX-License-Identifier: Apache-2.0
//! Checks bit slices: `x[hi:lo]` and `x[lo +: width]`.

use num_traits::{Signed, ToPrimitive};

use super::Checker;
use crate::ast::Expr;
use crate::types::{Const, Type};

impl<'a> Checker<'a> {
    pub(super) fn slice(&mut self, e: &Expr, base: &'a Expr, hi: &'a Expr, lo: &'a Expr) -> Type {
        let ty = self.expr(base, None);
        let ty = self.resolve(&ty);
        self.expr(hi, None);
        self.expr(lo, None);
        let ty = self.enum_underlying(&ty).unwrap_or(ty);
        let width = match ty {
            Type::Bit(w) | Type::SInt(w) => w,
            Type::Unknown => return Type::Unknown,
            Type::Int => u32::MAX,
            other => {
                self.error(
                    base.span,
                    format!("bits cannot be sliced from {}", self.show(&other)),
                );
                return Type::Unknown;
            }
        };
        let (Some(Const::Int(h, _)), Some(Const::Int(l, _))) =
            (self.const_value(hi), self.const_value(lo))
        else {
            self.diags.error_hint(
                e.span,
                "bit positions must be known at compile time",
                "shift and mask instead",
            );
            return Type::Unknown;
        };
        match (h.to_u32(), l.to_u32()) {
            (Some(h), Some(l)) if h < width && l <= h => Type::Bit(h - l + 1),
            (Some(_), Some(_)) if l > h => {
                self.error(
                    e.span,
                    format!("bits [{h}:{l}]: the left index must not be less than the right one"),
                );
                Type::Unknown
            }
            _ => {
                self.error(
                    e.span,
                    format!(
                        "bits [{h}:{l}] are out of range for {}",
                        self.show(&self.type_of(base.id))
                    ),
                );
                Type::Unknown
            }
        }
    }

    pub(super) fn plus_slice(&mut self, base: &'a Expr, lo: &'a Expr, width: &'a Expr) -> Type {
        let ty = self.expr(base, None);
        self.expr(lo, None);
        self.expr(width, None);
        if !matches!(
            self.resolve(&ty),
            Type::Bit(_) | Type::SInt(_) | Type::Unknown
        ) {
            self.error(
                base.span,
                format!("bits cannot be sliced from {}", self.show(&ty)),
            );
        }
        if let (Some(Const::Int(l, _)), Type::Bit(n) | Type::SInt(n)) =
            (self.const_value(lo), self.resolve(&ty))
        {
            let top = match self.const_value(width) {
                Some(Const::Int(w, _)) => &l + w,
                _ => &l + 1,
            };
            if l.is_negative() || top > n.into() {
                self.error(
                    lo.span,
                    format!(
                        "bits from {l} up to {top} are out of range for {}",
                        self.show(&ty)
                    ),
                );
                return Type::Unknown;
            }
        }
        match self.const_value(width) {
            Some(Const::Int(w, _)) => match w.to_u32() {
                Some(w) if w > 0 && w <= super::typeref::MAX_WIDTH => Type::Bit(w),
                _ => {
                    self.error(width.span, "the width must be positive");
                    Type::Unknown
                }
            },
            _ => {
                self.error(width.span, "the width must be known at compile time");
                Type::Unknown
            }
        }
    }
}
