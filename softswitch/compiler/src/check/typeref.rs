// SPDX-License-Identifier: Apache-2.0
//! Resolves type references to types.

use std::ops::RangeInclusive;

use num_traits::ToPrimitive;

use super::Checker;
use crate::ast::{CompositeKind, DeclKind, Expr, NodeId, TypeRef, TypeRefKind};
use crate::diag::Span;
use crate::types::{Const, Def, Type};

/// Maximum width of an integer, as in p4c.
pub(super) const MAX_WIDTH: u32 = 2048;

/// Maximum number of elements of a stack, and of bits of a varbit.
const MAX_SIZE: u32 = 1 << 16;

impl<'a> Checker<'a> {
    pub(super) fn type_ref(&mut self, t: &'a TypeRef) -> Type {
        if matches!(t.kind, TypeRefKind::DontCare) {
            self.error(t.span, "'_' is allowed only as a type argument");
            self.set_type(t.id, Type::Unknown);
            return Type::Unknown;
        }
        self.type_arg(t)
    }

    /// Resolves the type of a parameter, in which the type argument `_` stands for any type.
    pub(super) fn parameter_type(&mut self, t: &'a TypeRef) -> Type {
        let outer = std::mem::replace(&mut self.wildcards, true);
        let ty = self.type_ref(t);
        self.wildcards = outer;
        ty
    }

    /// Resolves a type argument, which may be `_`.
    pub(super) fn type_arg(&mut self, t: &'a TypeRef) -> Type {
        let ty = self.type_ref_inner(t);
        self.set_type(t.id, ty.clone());
        ty
    }

    fn type_ref_inner(&mut self, t: &'a TypeRef) -> Type {
        match &t.kind {
            TypeRefKind::Void => Type::Void,
            TypeRefKind::Bool => Type::Bool,
            TypeRefKind::Error => {
                if self.errors.is_empty() {
                    self.diags.error_hint(
                        t.span,
                        "no errors are declared",
                        "include core.p4, or declare some: error { ... }",
                    );
                    return Type::Unknown;
                }
                Type::Error
            }
            TypeRefKind::String => Type::Str,
            TypeRefKind::MatchKind => Type::MatchKind,
            TypeRefKind::Int => Type::Int,
            TypeRefKind::Bit(w) => self.size(w, 0..=MAX_WIDTH).map_or(Type::Unknown, Type::Bit),
            TypeRefKind::SInt(w) => self
                .size(w, 1..=MAX_WIDTH)
                .map_or(Type::Unknown, Type::SInt),
            TypeRefKind::Varbit(w) => self
                .size(w, 0..=MAX_SIZE)
                .map_or(Type::Unknown, Type::Varbit),
            TypeRefKind::DontCare if self.wildcards => Type::Any,
            TypeRefKind::DontCare => self.fresh(),
            TypeRefKind::Tuple(items) => {
                let types: Vec<Type> = items.iter().map(|i| self.type_arg(i)).collect();
                for (i, t) in items.iter().zip(&types) {
                    if *t == Type::Void || self.is_object(t) {
                        self.error(i.span, format!("a tuple cannot contain {}", self.show(t)));
                    }
                }
                Type::Tuple(types)
            }
            TypeRefKind::List(item) => Type::List(Box::new(self.type_arg(item))),
            TypeRefKind::Stack(item, size) => {
                let elem = self.type_ref(item);
                let size = self.size(size, 1..=MAX_SIZE);
                let ok = matches!(
                    self.composite_kind(&elem),
                    Some(CompositeKind::Header | CompositeKind::Union)
                ) || matches!(elem, Type::Unknown | Type::Var(_));
                if !ok {
                    self.diags.error_hint(
                        t.span,
                        format!("a stack cannot contain {}", self.show(&elem)),
                        "use headers or header unions",
                    );
                    return Type::Unknown;
                }
                size.map_or(Type::Unknown, |n| Type::Stack(Box::new(elem), n))
            }
            TypeRefKind::Named { name, global, args } => {
                let types: Vec<Type> = args.iter().map(|a| self.type_arg(a)).collect();
                for (a, t) in args.iter().zip(&types) {
                    self.bare_generic(a, t);
                }
                self.named_type(name, *global, types, t.span)
            }
        }
    }

    pub(super) fn named_type(
        &mut self,
        name: &str,
        global: bool,
        args: Vec<Type>,
        span: Span,
    ) -> Type {
        let Some(id) = self.lookup_type(name, global) else {
            self.undeclared(name, span);
            return Type::Unknown;
        };
        self.used.insert(id);
        let wanted = match self.defs.get(id) {
            Some(Def::TypeParam(_)) => return Type::Var(id),
            Some(Def::Decl(d)) => match &d.kind {
                DeclKind::Typedef(t) => {
                    if !args.is_empty() {
                        self.error(span, format!("'{name}' takes no type arguments"));
                    }
                    return self.type_of(t.id);
                }
                DeclKind::NewType(_) | DeclKind::Enum { .. } => 0,
                DeclKind::Composite { tparams, .. }
                | DeclKind::Extern { tparams, .. }
                | DeclKind::Package { tparams, .. } => tparams.len(),
                DeclKind::Parser(p) => p.tparams.len(),
                DeclKind::Control(c) => c.tparams.len(),
                _ => {
                    self.error(span, format!("'{name}' is not a type"));
                    return Type::Unknown;
                }
            },
            _ => {
                self.error(span, format!("'{name}' is not a type"));
                return Type::Unknown;
            }
        };
        if !args.is_empty() && args.len() != wanted {
            self.error(
                span,
                format!(
                    "'{name}' takes {wanted} type arguments, {} given",
                    args.len()
                ),
            );
            return Type::Unknown;
        }
        if args.is_empty() && wanted > 0 {
            // Without type arguments: inferred where that is possible.
            let args = (0..wanted).map(|_| self.fresh()).collect();
            return Type::Named(id, args);
        }
        self.specialised(id, &args, span);
        Type::Named(id, args)
    }

    /// Returns the innermost type of that name or, without one, another declaration of that name.
    fn lookup_type(&self, name: &str, global: bool) -> Option<NodeId> {
        let scopes = if global {
            &self.scopes[..1]
        } else {
            &self.scopes[..]
        };
        let mut found = scopes
            .iter()
            .rev()
            .filter_map(|s| s.get(name)?.first().copied());
        let is_type = |id: &NodeId| match self.defs.get(*id) {
            Some(Def::TypeParam(_)) => true,
            Some(Def::Decl(d)) => d.kind.is_type(),
            _ => false,
        };
        let nearest = found.clone().next();
        found.find(is_type).or(nearest)
    }

    /// Checks the type arguments of a generic type.
    fn specialised(&mut self, id: NodeId, args: &[Type], span: Span) {
        let Some(d) = self.decl(id) else { return };
        let name = &d.name.name;
        if args.iter().any(|a| self.mentions(a, id)) {
            self.error(span, format!("'{name}' is among its own type arguments"));
            return;
        }
        if args.is_empty() {
            return;
        }
        let DeclKind::Composite { kind, .. } = &d.kind else {
            return;
        };
        let ty = Type::Named(id, args.to_vec());
        for (field, t) in self.fields(&ty).unwrap_or_default() {
            if !self.field_allowed(*kind, &t) {
                self.error(
                    span,
                    format!(
                        "{} is invalid: its field '{field}' would have type {}",
                        self.show(&ty),
                        self.show(&t)
                    ),
                );
            }
        }
    }

    /// Returns true if declaration `id` occurs in the type: itself, in its arguments, or in the
    /// parameters of a control or parser.
    pub(super) fn mentions(&self, ty: &Type, id: NodeId) -> bool {
        match self.resolve(ty) {
            Type::Named(other, args) => {
                let params = match self.decl(other).map(|d| &d.kind) {
                    Some(DeclKind::Control(c)) => &c.params[..],
                    Some(DeclKind::Parser(p)) => &p.params[..],
                    _ => &[],
                };
                other == id
                    || args.iter().any(|a| self.mentions(a, id))
                    || params
                        .iter()
                        .any(|p| self.mentions(&self.type_of(p.ty.id), id))
            }
            Type::Tuple(items) => items.iter().any(|t| self.mentions(t, id)),
            Type::List(t) | Type::Stack(t, _) => self.mentions(&t, id),
            _ => false,
        }
    }

    /// Returns true if values of the type are instances: externs, controls, parsers, packages.
    pub(super) fn is_object(&self, ty: &Type) -> bool {
        let Type::Named(id, _) = self.resolve(ty) else {
            return false;
        };
        matches!(
            self.decl(id).map(|d| &d.kind),
            Some(
                DeclKind::Extern { .. }
                    | DeclKind::Control(_)
                    | DeclKind::Parser(_)
                    | DeclKind::Package { .. }
            )
        )
    }

    fn is_block(&self, ty: &Type) -> bool {
        let Type::Named(id, _) = self.resolve(ty) else {
            return false;
        };
        match self.decl(id).map(|d| &d.kind) {
            Some(DeclKind::Control(c)) => !c.is_type,
            Some(DeclKind::Parser(p)) => !p.is_type,
            _ => false,
        }
    }

    /// Checks that only parameters of packages, and of constructors, are controls or parsers.
    pub(super) fn no_blocks(&self, params: &[crate::ast::Param], types: bool) {
        for p in params {
            let t = self.type_of(p.ty.id);
            if self.is_block(&t) || types && self.is_control_or_parser(&t) {
                self.error(p.span, format!("a parameter cannot be a {}", self.show(&t)));
            }
        }
    }

    /// Reports a generic type without type arguments.
    pub(super) fn complete(&self, ty: &Type, span: Span) {
        let Type::Named(_, args) = self.resolve(ty) else {
            return;
        };
        if args
            .iter()
            .any(|a| matches!(self.resolve(a), Type::Open(_)))
        {
            self.error(span, format!("missing type arguments of {}", self.show(ty)));
        }
    }

    /// Reports the bare name of a generic type, even if its arguments could be inferred.
    pub(super) fn bare_generic(&self, t: &TypeRef, ty: &Type) {
        if matches!(&t.kind, TypeRefKind::Named { args, .. } if args.is_empty()) {
            self.complete(ty, t.span);
        }
    }

    fn size(&mut self, e: &'a Expr, allowed: RangeInclusive<u32>) -> Option<u32> {
        let ty = self.expr(e, None);
        if ty.is_unknown() {
            return None;
        }
        match self.const_value(e) {
            Some(Const::Int(v, _)) => match v.to_u32() {
                Some(w) if allowed.contains(&w) => Some(w),
                _ => {
                    let message = format!("{v} is not a valid size");
                    let hint = format!("use a size from {} to {}", allowed.start(), allowed.end());
                    self.diags.error_hint(e.span, message, hint);
                    None
                }
            },
            _ => {
                self.diags.error_hint(
                    e.span,
                    "a size must be known at compile time",
                    "use a literal, a const or a #define",
                );
                None
            }
        }
    }
}
