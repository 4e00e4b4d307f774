// SPDX-License-Identifier: Apache-2.0
//! Checks binary operators.

use num_traits::{Signed, Zero};

use super::typeref::MAX_WIDTH;
use super::{Checker, fold_binary};
use crate::ast::{BinOp, Expr, ExprKind};
use crate::diag::Warning;
use crate::types::{Const, Type};

impl<'a> Checker<'a> {
    pub(super) fn binary(
        &mut self,
        e: &Expr,
        op: BinOp,
        l: &'a Expr,
        r: &'a Expr,
        want: Option<&Type>,
    ) -> Type {
        if [l, r].iter().any(|x| matches!(x.kind, ExprKind::Dots)) {
            self.error(e.span, "an operand '...' has no type");
            return Type::Unknown;
        }
        match op {
            BinOp::And | BinOp::Or => {
                self.expr_as(l, &Type::Bool);
                self.expr_as(r, &Type::Bool);
                Type::Bool
            }
            BinOp::Eq | BinOp::Ne => self.equality(e, l, r),
            BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge => {
                let (tl, tr) = (self.operand(l), self.operand(r));
                match self.common(l, &tl, r, &tr, None) {
                    Some(Type::Bit(_) | Type::SInt(_) | Type::Int | Type::Unknown) => Type::Bool,
                    Some(t) if self.newtype_base(&t).is_some() => Type::Bool,
                    _ => self.mismatch(e, op, &tl, &tr),
                }
            }
            BinOp::Shl | BinOp::Shr => self.shift(e, op, l, r, want),
            BinOp::Concat => {
                let (tl, tr) = (self.operand(l), self.operand(r));
                match (self.resolve(&tl), self.resolve(&tr)) {
                    (Type::Bit(a) | Type::SInt(a), Type::Bit(b) | Type::SInt(b))
                        if a + b > MAX_WIDTH =>
                    {
                        let message =
                            format!("{} bits exceed the maximum width of {MAX_WIDTH}", a + b);
                        self.error(e.span, message);
                        Type::Unknown
                    }
                    (Type::Bit(a), Type::Bit(b) | Type::SInt(b)) => Type::Bit(a + b),
                    (Type::SInt(a), Type::Bit(b) | Type::SInt(b)) => Type::SInt(a + b),
                    (Type::Str, Type::Str) => Type::Str,
                    (Type::Unknown, _) | (_, Type::Unknown) => Type::Unknown,
                    (Type::Int, _) | (_, Type::Int) => {
                        self.diags.error_hint(
                            e.span,
                            "the width of an operand of ++ is unknown",
                            "write a width, for example 8w1",
                        );
                        Type::Unknown
                    }
                    (a, b) => self.mismatch(e, op, &a, &b),
                }
            }
            _ => self.arithmetic(e, op, l, r, want),
        }
    }

    /// Returns the operand's type; for a serializable enum, its underlying type.
    fn operand(&mut self, x: &'a Expr) -> Type {
        let t = self.expr(x, None);
        self.plain(x, t)
    }

    pub(super) fn plain(&mut self, x: &Expr, t: Type) -> Type {
        match self.enum_underlying(&t) {
            Some(u) => {
                self.convert(x, &t, &u);
                u
            }
            None => self.resolve(&t),
        }
    }

    fn arithmetic(
        &mut self,
        e: &Expr,
        op: BinOp,
        l: &'a Expr,
        r: &'a Expr,
        want: Option<&Type>,
    ) -> Type {
        let want = want.filter(|t| matches!(t, Type::Bit(_) | Type::SInt(_)));
        let (tl, tr) = (self.expr(l, want), self.expr(r, want));
        let (tl, tr) = (self.plain(l, tl), self.plain(r, tr));
        if matches!(op, BinOp::Div | BinOp::Mod)
            && let Some(Const::Int(v, _)) = self.const_value(r)
        {
            if v.is_zero() {
                self.error(r.span, "division by zero");
                return Type::Unknown;
            }
            if v.is_negative() {
                self.error(r.span, "division by a negative number");
                return Type::Unknown;
            }
            if let (Type::Int, Some(Const::Int(n, _))) = (&tl, self.const_value(l))
                && n.is_negative()
            {
                self.error(l.span, "a negative number cannot be divided");
                return Type::Unknown;
            }
        }
        let ty = self.common(l, &tl, r, &tr, None);
        match (op, ty) {
            (_, Some(Type::Unknown)) => Type::Unknown,
            (BinOp::Div | BinOp::Mod, Some(Type::SInt(_))) => {
                self.error(
                    e.span,
                    format!("operator {} does not work on signed numbers", symbol(op)),
                );
                Type::Unknown
            }
            (BinOp::SatAdd | BinOp::SatSub, Some(Type::Int)) => {
                self.error(e.span, "saturating arithmetic needs a width");
                Type::Unknown
            }
            (BinOp::BitAnd | BinOp::BitOr | BinOp::BitXor, Some(Type::Int)) => Type::Int,
            (BinOp::Mul, Some(Type::Int)) if self.too_big(op, l, r) => self.too_many_bits(e),
            (_, Some(t @ (Type::Bit(_) | Type::SInt(_) | Type::Int))) => t,
            _ => self.mismatch(e, op, &tl, &tr),
        }
    }

    fn shift(
        &mut self,
        e: &Expr,
        op: BinOp,
        l: &'a Expr,
        r: &'a Expr,
        want: Option<&Type>,
    ) -> Type {
        let tl = self.expr(l, want);
        let tl = self.plain(l, tl);
        let tr = self.operand(r);
        if let Some(Const::Int(v, _)) = self.const_value(r)
            && v.is_negative()
        {
            self.error(r.span, "a shift by a negative amount");
            return Type::Unknown;
        }
        if let Some(Const::Int(v, _)) = self.const_value(r)
            && v > MAX_WIDTH.into()
        {
            self.error(r.span, format!("a shift by more than {MAX_WIDTH} bits"));
            return Type::Unknown;
        }
        if let (Type::Bit(w) | Type::SInt(w), Some(Const::Int(v, _))) = (&tl, self.const_value(r))
            && v >= (*w).into()
        {
            let message = format!("a shift of {w} bits by {v} removes all bits");
            self.diags.warn(Warning::Overflow, e.span, message);
        }
        match (&tl, &tr) {
            (Type::Unknown, _) | (_, Type::Unknown) => Type::Unknown,
            (Type::Bit(_) | Type::SInt(_), Type::Bit(_) | Type::Int) => tl,
            // Checked above: not negative.
            (Type::Bit(_) | Type::SInt(_), Type::SInt(_)) if self.const_value(r).is_some() => tl,
            (Type::Int, Type::Bit(_) | Type::SInt(_) | Type::Int)
                if self.const_value(r).is_some() =>
            {
                if self.too_big(op, l, r) {
                    return self.too_many_bits(e);
                }
                Type::Int
            }
            (Type::Int, _) => {
                self.diags.error_hint(
                    e.span,
                    "the width of the shifted number is unknown",
                    "write it, for example 8w1",
                );
                Type::Unknown
            }
            _ => self.mismatch(e, op, &tl, &tr),
        }
    }

    /// Returns true if the result of two known numbers is too large to compute.
    fn too_big(&mut self, op: BinOp, l: &Expr, r: &Expr) -> bool {
        match (self.const_value(l), self.const_value(r)) {
            (Some(Const::Int(a, _)), Some(Const::Int(b, _))) => {
                fold_binary(op, &a, &b, &Type::Int).is_none()
            }
            _ => false,
        }
    }

    fn too_many_bits(&self, e: &Expr) -> Type {
        self.error(e.span, "the number is too large");
        Type::Unknown
    }

    fn equality(&mut self, e: &Expr, l: &'a Expr, r: &'a Expr) -> Type {
        let mut tl = self.expr(l, None);
        let tr = self.expr(r, Some(&tl.clone()));
        if matches!(tl, Type::Tuple(_) | Type::Record(_) | Type::InvalidHeader) {
            // A list on the left takes the type of the right side.
            tl = self.expr(l, Some(&tr));
        }
        let (tl, tr) = (self.resolve(&tl), self.resolve(&tr));
        for (x, t) in [(l, &tl), (r, &tr)] {
            let bad = match t {
                Type::Void
                | Type::Callable
                | Type::Meta(_)
                | Type::Action(_)
                | Type::Table(_)
                | Type::Set(_)
                | Type::ApplyResult(_)
                | Type::ActionRun(_)
                | Type::Var(_) => true,
                Type::Named(id, _) => matches!(
                    self.decl(*id).map(|d| &d.kind),
                    Some(
                        crate::ast::DeclKind::Extern { .. }
                            | crate::ast::DeclKind::Control(_)
                            | crate::ast::DeclKind::Parser(_)
                    )
                ),
                _ => false,
            };
            if bad {
                self.error(x.span, format!("{} cannot be compared", self.show(t)));
                return Type::Bool;
            }
        }
        if let (Type::Record(_), Type::Record(_)) = (&tl, &tr) {
            self.diags.error_hint(
                e.span,
                "the struct type of these lists is unknown",
                "write a cast: (S) { ... }",
            );
        } else if self.common(l, &tl, r, &tr, None).is_none() {
            self.mismatch(e, BinOp::Eq, &tl, &tr);
        }
        Type::Bool
    }

    fn mismatch(&mut self, e: &Expr, op: BinOp, l: &Type, r: &Type) -> Type {
        let hint = match (self.resolve(l), self.resolve(r)) {
            (Type::Bit(a), Type::Bit(b)) if a != b => Some(format!(
                "cast one side, for example (bit<{}>)(...)",
                a.max(b)
            )),
            (Type::Bit(_), Type::SInt(w)) => {
                Some(format!("cast one side, for example (int<{w}>)(...)"))
            }
            (Type::SInt(_), Type::Bit(w)) => {
                Some(format!("cast one side, for example (bit<{w}>)(...)"))
            }
            _ => None,
        };
        let message = format!(
            "operator {} does not work on {} and {}",
            symbol(op),
            self.show(l),
            self.show(r)
        );
        match hint {
            Some(h) => self.diags.error_hint(e.span, message, h),
            None => self.error(e.span, message),
        }
        Type::Unknown
    }
}

pub(super) fn symbol(op: BinOp) -> &'static str {
    match op {
        BinOp::Add => "+",
        BinOp::Sub => "-",
        BinOp::SatAdd => "|+|",
        BinOp::SatSub => "|-|",
        BinOp::Mul => "*",
        BinOp::Div => "/",
        BinOp::Mod => "%",
        BinOp::BitAnd => "&",
        BinOp::BitOr => "|",
        BinOp::BitXor => "^",
        BinOp::Shl => "<<",
        BinOp::Shr => ">>",
        BinOp::And => "&&",
        BinOp::Or => "||",
        BinOp::Eq => "==",
        BinOp::Ne => "!=",
        BinOp::Lt => "<",
        BinOp::Le => "<=",
        BinOp::Gt => ">",
        BinOp::Ge => ">=",
        BinOp::Concat => "++",
    }
}
