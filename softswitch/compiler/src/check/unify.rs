// SPDX-License-Identifier: Apache-2.0
//! Type equality with inference variables, and implicit conversions.

use super::Checker;
use crate::ast::{CompositeKind, DeclKind, Expr, ExprKind, Name, NodeId};
use crate::diag::{Span, Warning};
use crate::types::Type;

impl Checker<'_> {
    pub(super) fn fresh(&mut self) -> Type {
        self.infer.push(None);
        Type::Open(self.infer.len() as u32 - 1)
    }

    /// Returns the type with all inferred variables replaced.
    pub(super) fn resolve(&self, ty: &Type) -> Type {
        match ty {
            Type::Open(v) => match &self.infer[*v as usize] {
                Some(t) => self.resolve(t),
                None => ty.clone(),
            },
            Type::Named(id, args) => {
                Type::Named(*id, args.iter().map(|t| self.resolve(t)).collect())
            }
            Type::Tuple(items) => Type::Tuple(items.iter().map(|t| self.resolve(t)).collect()),
            Type::List(t) => Type::List(Box::new(self.resolve(t))),
            Type::Set(t) => Type::Set(Box::new(self.resolve(t))),
            Type::Meta(t) => Type::Meta(Box::new(self.resolve(t))),
            Type::Stack(t, n) => Type::Stack(Box::new(self.resolve(t)), *n),
            Type::Record(f) => Type::Record(
                f.iter()
                    .map(|(n, t)| (n.clone(), self.resolve(t)))
                    .collect(),
            ),
            other => other.clone(),
        }
    }

    fn occurs(&self, var: u32, ty: &Type) -> bool {
        match self.resolve(ty) {
            Type::Open(v) => v == var,
            Type::Named(_, args) | Type::Tuple(args) => args.iter().any(|t| self.occurs(var, t)),
            Type::List(t) | Type::Set(t) | Type::Stack(t, _) => self.occurs(var, &t),
            Type::Record(f) => f.iter().any(|(_, t)| self.occurs(var, t)),
            _ => false,
        }
    }

    /// Makes the two types equal, if possible.
    pub(super) fn unify(&mut self, a: &Type, b: &Type) -> bool {
        let (a, b) = (self.resolve(a), self.resolve(b));
        if a == b {
            return true;
        }
        match (&a, &b) {
            (Type::Unknown | Type::Any, _) | (_, Type::Unknown | Type::Any) => true,
            (Type::Open(v), t) | (t, Type::Open(v)) => {
                if self.occurs(*v, t) {
                    return false;
                }
                self.infer[*v as usize] = Some(t.clone());
                true
            }
            (Type::Named(x, xs), Type::Named(y, ys)) if x == y => {
                xs.len() == ys.len() && xs.iter().zip(ys).all(|(s, t)| self.unify(s, t))
            }
            (Type::Named(..), Type::Named(..)) => self.unify_blocks(&a, &b),
            (Type::Tuple(xs), Type::Tuple(ys)) => {
                xs.len() == ys.len() && xs.iter().zip(ys).all(|(s, t)| self.unify(s, t))
            }
            (Type::Stack(s, n), Type::Stack(t, m)) => n == m && self.unify(s, t),
            (Type::List(s), Type::List(t)) | (Type::Set(s), Type::Set(t)) => self.unify(s, t),
            _ => false,
        }
    }

    /// Unifies a control or parser with a control or parser *type*: the parameters must agree.
    fn unify_blocks(&mut self, a: &Type, b: &Type) -> bool {
        let (Some(pa), Some(pb)) = (self.block_params(a), self.block_params(b)) else {
            return false;
        };
        // A parameter with a default value, or an optional one, may be missing on the other side.
        let common = pa.len().min(pb.len());
        pa[common..].iter().chain(&pb[common..]).all(|p| p.2)
            && pa
                .iter()
                .zip(&pb)
                .all(|((da, ta, _), (db, tb, _))| da == db && self.unify(ta, tb))
    }

    /// Returns direction and type of each parameter, and true if it may be missing.
    fn block_params(&mut self, ty: &Type) -> Option<Vec<(crate::ast::Direction, Type, bool)>> {
        let Type::Named(id, args) = ty else {
            return None;
        };
        let (tparams, params) = match &self.decl(*id)?.kind {
            DeclKind::Control(c) => (&c.tparams, &c.params),
            DeclKind::Parser(p) => (&p.tparams, &p.params),
            _ => return None,
        };
        let fresh: Vec<Type> = if args.is_empty() {
            tparams.iter().map(|_| self.fresh()).collect()
        } else {
            args.clone()
        };
        let map = |v: NodeId| {
            tparams
                .iter()
                .position(|p| p.id == v)
                .and_then(|i| fresh.get(i).cloned())
        };
        Some(
            params
                .iter()
                .map(|p| {
                    let ty = self.type_of(p.ty.id).substitute(&map);
                    let may_be_missing = p.default.is_some() || super::call::is_optional(p);
                    (p.dir, ty, may_be_missing)
                })
                .collect(),
        )
    }

    /// Returns the fields of a struct, header or union type.
    pub(super) fn fields(&self, ty: &Type) -> Option<Vec<(Name, Type)>> {
        self.defs.fields(&self.resolve(ty), |id| self.type_of(id))
    }

    pub(super) fn composite_kind(&self, ty: &Type) -> Option<CompositeKind> {
        self.defs.composite_kind(&self.resolve(ty))
    }

    /// Returns the underlying type of a serializable enum.
    pub(super) fn enum_underlying(&self, ty: &Type) -> Option<Type> {
        let Type::Named(id, _) = self.resolve(ty) else {
            return None;
        };
        match &self.decl(id)?.kind {
            DeclKind::Enum {
                underlying: Some(t),
                ..
            } => Some(self.type_of(t.id)),
            _ => None,
        }
    }

    pub(super) fn is_enum(&self, ty: &Type) -> bool {
        let Type::Named(id, _) = self.resolve(ty) else {
            return false;
        };
        matches!(self.decl(id).map(|d| &d.kind), Some(DeclKind::Enum { .. }))
    }

    /// Returns the type that a `type T new` renames.
    pub(super) fn newtype_base(&self, ty: &Type) -> Option<Type> {
        let Type::Named(id, _) = self.resolve(ty) else {
            return None;
        };
        match &self.decl(id)?.kind {
            DeclKind::NewType(t) => Some(self.type_of(t.id)),
            _ => None,
        }
    }

    /// Returns true if a value of type `from` may be used as `to`; records the conversion.
    pub(super) fn convert(&mut self, e: &Expr, from: &Type, to: &Type) -> bool {
        let (from, to) = (self.resolve(from), self.resolve(to));
        if from == to || from.is_unknown() || to.is_unknown() {
            return true;
        }
        let ok = match (&from, &to) {
            (Type::Meta(_) | Type::Callable, _) => false,
            (_, Type::Set(inner)) => {
                if let Type::Set(f) = &from {
                    return self.unify(f, inner) || self.implicit(f, inner);
                }
                return self.convert(e, &from, inner);
            }
            (Type::Set(_), _) => false,
            // Only a list expression converts to a struct or header; a stored tuple does not.
            (Type::Tuple(_), Type::Named(..)) if !matches!(e.kind, ExprKind::List { .. }) => false,
            _ => self.implicit(&from, &to) || self.unify(&from, &to),
        };
        if ok && self.resolve(&from) != self.resolve(&to) {
            self.coercions.insert(e.id, to.clone());
            if let (Type::Int, ExprKind::Int { .. } | ExprKind::Unary(..)) = (&from, &e.kind) {
                self.check_fits(e, &to);
            }
        }
        ok
    }

    fn check_fits(&mut self, e: &Expr, to: &Type) {
        use num_traits::Signed;
        let Some(super::Const::Int(v, _)) = self.const_raw(e) else {
            return;
        };
        match to {
            Type::Bit(w) if v.bits() > u64::from(*w) && !v.is_negative() => {
                self.diags.warn(
                    Warning::Overflow,
                    e.span,
                    format!("value {v} does not fit bit<{w}> and is truncated"),
                );
            }
            Type::Bit(w) if v.is_negative() => {
                self.diags.warn(
                    Warning::Mismatch,
                    e.span,
                    format!("negative value {v} with unsigned type bit<{w}>"),
                );
            }
            _ => {}
        }
    }

    fn implicit(&mut self, from: &Type, to: &Type) -> bool {
        match (from, to) {
            (Type::Int, Type::Bit(_) | Type::SInt(_)) => true,
            (Type::Any, _) => true,
            (Type::InvalidHeader, _) => {
                matches!(
                    self.composite_kind(to),
                    Some(CompositeKind::Header | CompositeKind::Union)
                )
            }
            (Type::Tuple(items), Type::Named(..)) => {
                let Some(fields) = self.fields(to) else {
                    return false;
                };
                if self.composite_kind(to) == Some(CompositeKind::Union) {
                    return false;
                }
                items.len() == fields.len()
                    && items
                        .iter()
                        .zip(&fields)
                        .all(|(t, (_, f))| self.implicit(t, f) || self.unify(t, f))
            }
            (Type::Tuple(items), Type::Tuple(want)) => {
                items.len() == want.len()
                    && items
                        .iter()
                        .zip(want)
                        .all(|(t, f)| self.implicit(t, f) || self.unify(t, f))
            }
            (Type::Tuple(items), Type::List(want)) => items
                .iter()
                .all(|t| self.implicit(t, want) || self.unify(t, want)),
            (Type::Tuple(items), Type::Stack(want, n)) => {
                items.len() <= *n as usize
                    && items
                        .iter()
                        .all(|t| self.implicit(t, want) || self.unify(t, want))
            }
            (Type::Record(have), Type::Named(..)) => {
                let Some(fields) = self.fields(to) else {
                    return false;
                };
                have.len() == fields.len()
                    && have.iter().all(|(n, t)| {
                        fields
                            .iter()
                            .find(|(f, _)| f == n)
                            .is_some_and(|(_, f)| self.implicit(t, f) || self.unify(t, f))
                    })
            }
            (Type::Named(..), Type::Bit(_) | Type::SInt(_)) => {
                self.enum_underlying(from).is_some_and(|u| u == *to)
            }
            // A number without a width converts to any type made of bits.
            (Type::Int, Type::Named(..)) => match self.newtype_base(to) {
                Some(base) => self.implicit(from, &base),
                None => false,
            },
            _ => false,
        }
    }

    /// Converts like [`Self::convert`], and reports an error if that is not possible.
    pub(super) fn expect(&mut self, e: &Expr, from: &Type, to: &Type) {
        self.expect_at(e.span, e, from, to);
    }

    /// Converts like [`Self::expect`], and reports errors at another place.
    pub(super) fn expect_at(&mut self, at: Span, e: &Expr, from: &Type, to: &Type) {
        if !self.convert(e, from, to) {
            let (f, t) = (self.resolve(from), self.resolve(to));
            if let (Type::Bit(_) | Type::SInt(_), Type::Int) = (&f, &t)
                && self.const_value(e).is_some()
            {
                self.coercions.insert(e.id, t);
                return;
            }
            let hint = match (&f, &t) {
                (Type::Bit(_), Type::Bit(w)) => Some(format!(
                    "write a cast: (bit<{w}>)(...), or a slice [{}:0]",
                    w.saturating_sub(1)
                )),
                (Type::Bit(1), Type::Bool) => Some("compare with 1: (x == 1)".into()),
                (Type::Bool, Type::Bit(1)) => Some("write a cast: (bit<1>)(...)".into()),
                (Type::Bit(_) | Type::SInt(_), Type::SInt(_) | Type::Bit(_)) => {
                    Some(format!("write a cast: ({})(...)", self.show(&t)))
                }
                (_, Type::Named(..)) if self.newtype_base(&t).is_some() => {
                    Some(format!("write a cast: ({})(...)", self.show(&t)))
                }
                _ => None,
            };
            let message = format!("expected type {}, found {}", self.show(&t), self.show(&f));
            match hint {
                Some(h) => self.diags.error_hint(at, message, h),
                None => self.error(at, message),
            }
        }
    }
}
