// SPDX-License-Identifier: Apache-2.0
//! Checks expressions.

use super::Checker;
use crate::ast::{CompositeKind, Expr, ExprKind, UnOp};
use crate::diag::Warning;
use crate::types::Type;

impl<'a> Checker<'a> {
    /// Checks `e`; `want` is the type that the context prefers, which untyped lists take.
    /// The result may still need [`Self::expect`].
    pub(super) fn expr(&mut self, e: &'a Expr, want: Option<&Type>) -> Type {
        let want = want.map(|t| self.resolve(t));
        let ty = self.expr_inner(e, want.as_ref());
        self.set_type(e.id, ty.clone());
        ty
    }

    /// Checks that `e` has type `want`.
    pub(super) fn expr_as(&mut self, e: &'a Expr, want: &Type) {
        let ty = self.expr(e, Some(want));
        self.expect(e, &ty, want);
    }

    fn expr_inner(&mut self, e: &'a Expr, want: Option<&Type>) -> Type {
        match &e.kind {
            ExprKind::Int { value, width } => match width {
                None => Type::Int,
                Some((w, _)) if *w > super::typeref::MAX_WIDTH => {
                    self.error(e.span, format!("a width of {w} bits is too large"));
                    Type::Unknown
                }
                Some((w, signed)) => {
                    let fits = if *signed {
                        value.bits() < u64::from(*w) + u64::from(*w == 0)
                    } else {
                        value.bits() <= u64::from(*w)
                    };
                    if !fits {
                        self.diags.warn(
                            Warning::Overflow,
                            e.span,
                            format!("{value} does not fit {w} bits and is truncated"),
                        );
                    }
                    if *signed && *w == 0 {
                        self.error(e.span, "a signed number needs at least one bit");
                        return Type::Unknown;
                    }
                    if *signed && *w < 2 {
                        self.diags.warn(
                            Warning::Overflow,
                            e.span,
                            format!("int<{w}> cannot represent positive numbers"),
                        );
                    }
                    if *signed {
                        Type::SInt(*w)
                    } else {
                        Type::Bit(*w)
                    }
                }
            },
            ExprKind::Bool(_) => Type::Bool,
            ExprKind::Str(_) => Type::Str,
            ExprKind::Name { name, global } => self.name(e, name, *global),
            ExprKind::Type(t) => Type::Meta(Box::new(self.type_ref(t))),
            ExprKind::Member(base, name) => self.member(base, name),
            ExprKind::Index(base, index) => self.index(base, index),
            ExprKind::Slice(base, hi, lo) => self.slice(e, base, hi, lo),
            ExprKind::PlusSlice(base, lo, width) => self.plus_slice(base, lo, width),
            ExprKind::Unary(op, x) => self.unary(*op, x, want),
            ExprKind::Binary(op, l, r) => self.binary(e, *op, l, r, want),
            ExprKind::Ternary(c, a, b) => self.ternary(e, c, a, b, want),
            ExprKind::Cast(t, x) => {
                let to = self.type_ref(t);
                let from = self.expr(x, Some(&to));
                self.cast(e, x, &from, &to);
                to
            }
            ExprKind::Call {
                callee,
                targs,
                args,
            } => self.call(e, callee, targs, args),
            ExprKind::List { items, dots } => self.list(e, items, *dots, want),
            ExprKind::Record { fields, dots } => self.record(e, fields, *dots, want),
            ExprKind::InvalidHeader => match want {
                Some(t)
                    if matches!(
                        self.composite_kind(t),
                        Some(CompositeKind::Header | CompositeKind::Union)
                    ) =>
                {
                    t.clone()
                }
                _ => Type::InvalidHeader,
            },
            ExprKind::Dots => match want {
                Some(t @ Type::List(_)) => {
                    self.error(e.span, format!("{} has no default value", self.show(t)));
                    Type::Unknown
                }
                Some(t) => t.clone(),
                None => {
                    self.error(e.span, "the type of the default value '...' is unknown");
                    Type::Unknown
                }
            },
            ExprKind::Default | ExprKind::DontCare => Type::Set(Box::new(self.fresh())),
            ExprKind::Mask(a, b) | ExprKind::Range(a, b) => {
                let inner = match want {
                    Some(Type::Set(t)) => Some((**t).clone()),
                    other => other.cloned(),
                };
                let (ta, tb) = (self.expr(a, inner.as_ref()), self.expr(b, inner.as_ref()));
                // A mask applies to the underlying type of a serializable enum.
                let (ta, tb) = (self.plain(a, ta), self.plain(b, tb));
                let both = self.common(a, &ta, b, &tb, inner.as_ref());
                let Some(ty) = both else {
                    self.error(
                        e.span,
                        format!(
                            "both operands of a set must have the same type, found {} and {}",
                            self.show(&ta),
                            self.show(&tb)
                        ),
                    );
                    return Type::Unknown;
                };
                Type::Set(Box::new(ty))
            }
        }
    }

    /// Returns the common type of two expressions, converting untyped numbers.
    pub(super) fn common(
        &mut self,
        a: &Expr,
        ta: &Type,
        b: &Expr,
        tb: &Type,
        want: Option<&Type>,
    ) -> Option<Type> {
        let (ta, tb) = (self.resolve(ta), self.resolve(tb));
        if ta.is_unknown() || tb.is_unknown() {
            return Some(Type::Unknown);
        }
        if ta == Type::Int && tb == Type::Int {
            if let Some(w @ (Type::Bit(_) | Type::SInt(_))) = want {
                self.convert(a, &ta, w);
                self.convert(b, &tb, w);
                return Some(w.clone());
            }
            return Some(Type::Int);
        }
        // A number can be converted to a new type, but is not one of its values.
        let mixed = |x: &Type, y: &Type| *x == Type::Int && self.newtype_base(y).is_some();
        if mixed(&ta, &tb) || mixed(&tb, &ta) {
            return None;
        }
        // Next to a number, a member of an enum counts as a number.
        let other = if ta == Type::Int { &tb } else { &ta };
        if (ta == Type::Int || tb == Type::Int)
            && let Some(base) = self.enum_underlying(other)
        {
            let fits = self.convert(a, &ta, &base) && self.convert(b, &tb, &base);
            return fits.then_some(base);
        }
        if self.convert(a, &ta, &tb) {
            return Some(tb);
        }
        self.convert(b, &tb, &ta).then_some(ta)
    }

    fn unary(&mut self, op: UnOp, x: &'a Expr, want: Option<&Type>) -> Type {
        let ty = self.expr(x, want);
        let ty = self.resolve(&ty);
        let ty = match self.enum_underlying(&ty) {
            Some(u) => {
                self.convert(x, &ty, &u);
                u
            }
            None => ty,
        };
        let ok = match op {
            UnOp::Not => ty == Type::Bool,
            UnOp::BitNot => matches!(ty, Type::Bit(_) | Type::SInt(_)),
            UnOp::Neg | UnOp::Plus => matches!(ty, Type::Bit(_) | Type::SInt(_) | Type::Int),
        };
        if ok || ty.is_unknown() {
            return ty;
        }
        let sign = match op {
            UnOp::Not => "!",
            UnOp::BitNot => "~",
            UnOp::Neg => "-",
            UnOp::Plus => "+",
        };
        self.error(
            x.span,
            format!("operator {sign} does not work on {}", self.show(&ty)),
        );
        Type::Unknown
    }

    fn ternary(
        &mut self,
        e: &Expr,
        c: &'a Expr,
        a: &'a Expr,
        b: &'a Expr,
        want: Option<&Type>,
    ) -> Type {
        self.expr_as(c, &Type::Bool);
        let (ta, tb) = (self.expr(a, want), self.expr(b, want));
        match self.common(a, &ta, b, &tb, want) {
            _ if ta == Type::Int && tb == Type::Int && self.const_value(c).is_none() => {
                self.diags.error_hint(
                    e.span,
                    "the width of the two results is unknown",
                    "write a width, for example 8w1",
                );
                Type::Unknown
            }
            Some(t) => t,
            None => {
                self.error(
                    e.span,
                    format!(
                        "the two results differ in type: {} and {}",
                        self.show(&ta),
                        self.show(&tb)
                    ),
                );
                Type::Unknown
            }
        }
    }
}
