// SPDX-License-Identifier: Apache-2.0
//! Checks declarations.

use super::Checker;
use crate::ast::{CompositeKind, Decl, DeclKind, Direction, Method, Param};
use crate::types::{Const, Type};

/// The versions of v1model.
const V1MODEL_VERSIONS: std::ops::RangeInclusive<u32> = 20_180_101..=20_200_408;

impl<'a> Checker<'a> {
    pub(super) fn top(&mut self, d: &'a Decl) {
        match &d.kind {
            DeclKind::Errors(names) => {
                for n in names {
                    if self.errors.contains(&n.name) {
                        self.error(n.span, format!("duplicate error '{}'", n.name));
                        continue;
                    }
                    self.errors.push(n.name.clone());
                }
            }
            DeclKind::MatchKinds(names) => {
                for n in names {
                    if self.match_kinds.contains(&n.name) {
                        self.error(n.span, format!("duplicate match kind '{}'", n.name));
                        continue;
                    }
                    self.match_kinds.push(n.name.clone());
                }
            }
            DeclKind::Function { sig, body } => {
                // Overloads differ in their number of parameters.
                let clash = self.scopes[0].get(&d.name.name).into_iter().flatten().any(|id| {
                    !matches!(self.decl(*id).map(|o| &o.kind),
                        Some(DeclKind::Function { sig: o, body: b }) if o.params.len() != sig.params.len()
                            || (body.is_none() && b.is_none() && o.params.iter().zip(&sig.params).any(|(x, y)| x.name.name != y.name.name)))
                });
                self.annotations(&d.annos);
                self.function(d, sig, body.as_ref());
                self.declare_overload(&d.name, d.id, !clash);
            }
            _ => self.local(d),
        }
    }

    /// Checks a declaration in any scope.
    pub(super) fn local(&mut self, d: &'a Decl) {
        self.annotations(&d.annos);
        match &d.kind {
            DeclKind::Const { ty, init } => {
                let t = self.type_ref(ty);
                if self.is_object(&t) {
                    self.error(
                        d.span,
                        format!("a constant cannot have type {}", self.show(&t)),
                    );
                }
                self.complete(&t, ty.span);
                self.expr_as(init, &t);
                self.check_constant(d, init, &t);
                if &*d.name.name == "__v1model_version" {
                    self.v1model_version(init);
                }
                self.set_type(d.id, t);
                self.declare(&d.name, d.id);
            }
            DeclKind::Var { ty, init } => {
                let t = self.type_ref(ty);
                self.check_variable_type(d, &t);
                self.complete(&t, ty.span);
                if let Some(i) = init {
                    self.expr_as(i, &t);
                }
                self.set_type(d.id, t);
                self.declare(&d.name, d.id);
            }
            DeclKind::Instance { ty, args, body } => {
                let t = self.type_ref(ty);
                self.set_type(d.id, t.clone());
                if self.context.in_action || self.context.returns.is_some() || self.context.in_body
                {
                    self.diags.error_hint(
                        d.span,
                        "instantiation is not allowed here",
                        "move it to the declarations of the block",
                    );
                }
                if self.context_is_global() && self.is_control_or_parser(&t) {
                    self.diags.error_hint(
                        d.span,
                        "controls and parsers cannot be instantiated at the top level",
                        "write the constructor call where the instance is used",
                    );
                }
                self.instance(d, ty, args);
                let methods = body.as_deref().unwrap_or_default();
                self.scoped(|c| {
                    c.declare_this(d);
                    methods.iter().for_each(|m| c.top(m));
                });
                self.virtual_methods(d, &t, body.as_deref());
                self.declare(&d.name, d.id);
            }
            DeclKind::Extern { tparams, methods } => {
                self.declare(&d.name, d.id);
                self.context.in_method = true;
                self.scoped(|c| {
                    c.type_params(tparams);
                    for (i, m) in methods.iter().enumerate() {
                        c.scoped(|c| c.signature(&m.sig));
                        c.extern_method(d, m, &methods[..i]);
                    }
                });
                self.context.in_method = false;
            }
            DeclKind::Function { sig, body } => {
                self.function(d, sig, body.as_ref());
                self.declare_overload(&d.name, d.id, true);
            }
            DeclKind::Action { params, body } => self.action(d, params, body),
            DeclKind::Parser(p) => self.parser(d, p),
            DeclKind::Control(c) => self.control(d, c),
            DeclKind::Package { tparams, params } => {
                self.scoped(|c| {
                    c.type_params(tparams);
                    c.context.in_package = true;
                    c.params(params);
                    c.context.in_package = false;
                    for p in params.iter().filter(|p| p.dir != Direction::None) {
                        c.error(p.span, "parameters of a package have no direction");
                    }
                });
                self.declare(&d.name, d.id);
            }
            DeclKind::Composite {
                kind,
                tparams,
                fields,
            } => self.composite(d, *kind, tparams, fields),
            DeclKind::Enum {
                underlying,
                members,
            } => self.enumeration(d, underlying.as_ref(), members),
            DeclKind::Typedef(t) => {
                let named = self.type_ref(t);
                self.complete(&named, t.span);
                self.declare(&d.name, d.id);
            }
            DeclKind::NewType(t) => {
                let base = self.type_ref(t);
                let ok = matches!(
                    base,
                    Type::Bit(_) | Type::SInt(_) | Type::Bool | Type::Unknown
                ) || self.newtype_base(&base).is_some();
                if !ok {
                    self.diags.error_hint(
                        t.span,
                        format!("'type' cannot rename {}", self.show(&base)),
                        "use bit<>, int<>, bool or a similar type, or a typedef, which accepts any type",
                    );
                }
                self.declare(&d.name, d.id);
            }
            DeclKind::Table(t) => {
                self.declare(&d.name, d.id);
                self.table(d, t);
            }
            DeclKind::ValueSet { ty, size } => {
                let elem = self.type_ref(ty);
                let header = matches!(
                    self.composite_kind(&elem),
                    Some(CompositeKind::Header | CompositeKind::Union)
                );
                if header || matches!(elem, Type::Int | Type::Void | Type::Str | Type::Varbit(_)) {
                    self.error(
                        ty.span,
                        format!(
                            "a value set cannot have elements of type {}",
                            self.show(&elem)
                        ),
                    );
                }
                let t = self.expr(size, None);
                let known = self.known_at_compile_time(size);
                if !known && !t.is_unknown() {
                    self.error(
                        size.span,
                        "the size of a value set must be known at compile time",
                    );
                }
                if !matches!(self.resolve(&t), Type::Int | Type::Bit(_) | Type::Unknown) {
                    self.error(size.span, "the size of a value set must be a number");
                }
                self.declare(&d.name, d.id);
            }
            DeclKind::Errors(_) | DeclKind::MatchKinds(_) => self.top(d),
        }
    }

    fn extern_method(&self, d: &Decl, m: &'a Method, before: &[Method]) {
        if m.is_constructor {
            self.without_direction(&m.sig.params);
        } else if m.name.name == d.name.name {
            self.error(m.name.span, "a constructor has no return type");
        }
        // Overloads differ in the names of their parameters.
        let same = |o: &Method| {
            o.name.name == m.name.name
                && o.sig.params.len() == m.sig.params.len()
                && o.sig
                    .params
                    .iter()
                    .zip(&m.sig.params)
                    .all(|(x, y)| x.name.name == y.name.name)
        };
        if before.iter().any(same) {
            self.diags.error_hint(
                m.name.span,
                format!(
                    "duplicate declaration of '{}' with the same parameters",
                    m.name.name
                ),
                "overloads differ in the number or the names of their parameters",
            );
        }
        let types = m.sig.params.iter().map(|p| &p.ty);
        for t in types.chain((!m.is_constructor).then_some(&m.sig.ret)) {
            if self.mentions(&self.type_of(t.id), d.id) {
                self.error(
                    t.span,
                    format!("'{}' cannot be used in its own declaration", d.name.name),
                );
            }
        }
    }

    pub(super) fn without_direction(&self, params: &[Param]) {
        for p in params.iter().filter(|p| p.dir != Direction::None) {
            self.error(p.span, "parameters of a constructor have no direction");
        }
    }

    /// Checks that `@optional` is used only for externs, packages and types of blocks.
    pub(super) fn none_optional(&self, params: &[Param]) {
        for p in params.iter().filter(|p| super::call::is_optional(p)) {
            self.error(
                p.span,
                format!("parameter '{}' cannot be optional here", p.name.name),
            );
        }
    }

    /// Checks `__v1model_version`, which is the date of a change of v1model.
    fn v1model_version(&mut self, e: &crate::ast::Expr) {
        let known = match self.const_raw(e) {
            Some(Const::Int(v, _)) => {
                num_traits::ToPrimitive::to_u32(&v).is_some_and(|v| V1MODEL_VERSIONS.contains(&v))
            }
            _ => false,
        };
        if !known {
            self.diags.error_hint(
                e.span,
                "unknown V1MODEL_VERSION",
                "use a version from 20180101 to 20200408",
            );
        }
    }

    fn check_constant(&mut self, d: &Decl, init: &crate::ast::Expr, t: &Type) {
        let scalar = matches!(
            self.resolve(t),
            Type::Bit(_) | Type::SInt(_) | Type::Int | Type::Bool
        );
        if scalar
            && self.const_value(init).is_none()
            && !self.type_of(init.id).is_unknown()
            && (self.context_is_global() || !self.known_at_compile_time(init))
        {
            self.error(
                init.span,
                format!(
                    "the value of const '{}' is not known at compile time",
                    d.name.name
                ),
            );
        }
    }

    pub(super) fn is_control_or_parser(&self, t: &Type) -> bool {
        let Type::Named(id, _) = self.resolve(t) else {
            return false;
        };
        matches!(
            self.decl(id).map(|d| &d.kind),
            Some(DeclKind::Control(_) | DeclKind::Parser(_))
        )
    }

    pub(super) fn is_parser(&self, t: &Type) -> bool {
        let Type::Named(id, _) = self.resolve(t) else {
            return false;
        };
        matches!(self.decl(id).map(|d| &d.kind), Some(DeclKind::Parser(_)))
    }

    fn context_is_global(&self) -> bool {
        self.scopes.len() == 1
    }

    fn check_variable_type(&mut self, d: &Decl, t: &Type) {
        let t = self.resolve(t);
        let bad = match &t {
            Type::Void | Type::Str | Type::MatchKind | Type::Int | Type::Set(_) | Type::List(_) => {
                true
            }
            Type::Named(id, _) => !matches!(
                self.decl(*id).map(|d| &d.kind),
                Some(DeclKind::Composite { .. } | DeclKind::Enum { .. } | DeclKind::NewType(_))
            ),
            _ => false,
        };
        if self.context_is_global() {
            self.diags.error_hint(
                d.span,
                "variables cannot be declared at the top level",
                "make it a const, or put it into a control",
            );
        } else if bad {
            self.error(
                d.span,
                format!("a variable cannot have type {}", self.show(&t)),
            );
        }
    }
}
