//! Declarations.

use super::{Checker, Const, Context};
use crate::ast::{
    Block, CompositeKind, Decl, DeclKind, Direction, Method, Param, Signature, Stmt, StmtKind,
    TypeParam,
};
use crate::types::Type;

/// From the first version of v1model to the last.
const V1MODEL_VERSIONS: std::ops::RangeInclusive<u32> = 20_180_101..=20_200_408;

impl<'a> Checker<'a> {
    pub(super) fn top(&mut self, d: &'a Decl) {
        match &d.kind {
            DeclKind::Errors(names) => {
                for n in names {
                    if self.errors.contains(&n.name) {
                        self.error(n.span, format!("error '{}' is declared twice", n.name));
                        continue;
                    }
                    self.errors.push(n.name.clone());
                }
            }
            DeclKind::MatchKinds(names) => {
                for n in names {
                    if self.match_kinds.contains(&n.name) {
                        self.error(n.span, format!("match kind '{}' is declared twice", n.name));
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

    /// A declaration in any scope.
    pub(super) fn local(&mut self, d: &'a Decl) {
        self.annotations(&d.annos);
        match &d.kind {
            DeclKind::Const { ty, init } => {
                let t = self.type_ref(ty);
                if self.is_object(&t) {
                    self.error(
                        d.span,
                        format!("a constant of type {} cannot be", self.show(&t)),
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
                        "nothing can be instantiated here",
                        "do it among the declarations of the block",
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
                self.scoped(|c| methods.iter().for_each(|m| c.top(m)));
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
                        "only bit<>, int<>, bool and other such types; a typedef can be of any type",
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
                        format!("a value set of {} cannot be", self.show(&elem)),
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
                    "'{}' is declared twice with the same parameters",
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

    /// `@optional` is for what the program does not define itself: externs, packages, types of blocks.
    pub(super) fn none_optional(&self, params: &[Param]) {
        for p in params.iter().filter(|p| super::call::is_optional(p)) {
            self.error(
                p.span,
                format!("parameter '{}' cannot be optional here", p.name.name),
            );
        }
    }

    /// Versions are dates, of which v1model knows those of its changes.
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
                "V1MODEL_VERSION is not a version of v1model",
                "the first is 20180101, the last 20200408",
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
                format!("a variable of type {} cannot be", self.show(&t)),
            );
        }
    }

    pub(super) fn type_params(&mut self, tps: &'a [TypeParam]) {
        for p in tps {
            self.declare(&p.name, p.id);
        }
    }

    pub(super) fn params(&mut self, params: &'a [Param]) {
        for p in params {
            self.annotations(&p.annos);
            let t = self.type_ref(&p.ty);
            let rt = self.resolve(&t);
            if matches!(rt, Type::Void) {
                self.error(p.ty.span, "a parameter cannot be void");
            }
            let directed =
                matches!(p.dir, Direction::Out | Direction::InOut) || p.dir == Direction::In;
            if directed {
                let runtime = match &rt {
                    Type::Int | Type::Str => false,
                    Type::Named(id, _) => !matches!(
                        self.decl(*id).map(|d| &d.kind),
                        Some(
                            DeclKind::Extern { .. }
                                | DeclKind::Control(_)
                                | DeclKind::Parser(_)
                                | DeclKind::Package { .. }
                        )
                    ),
                    _ => true,
                };
                if !runtime {
                    self.error(
                        p.span,
                        format!(
                            "a parameter of type {} cannot have a direction",
                            self.show(&rt)
                        ),
                    );
                }
            }
            if let Some(def) = &p.default {
                if self.context.in_package {
                    // Fits or not where the package's type arguments are known.
                    self.expr(def, Some(&t));
                } else {
                    self.expr_as(def, &t);
                }
                if !self.known_at_compile_time(def) {
                    self.error(
                        def.span,
                        "the default value of a parameter must be known at compile time",
                    );
                }
                if p.dir == Direction::Out || p.dir == Direction::InOut {
                    self.error(
                        p.span,
                        "only 'in' and directionless parameters can have a default value",
                    );
                }
            }
            self.set_type(p.id, t);
            self.declare(&p.name, p.id);
        }
    }

    fn signature(&mut self, sig: &'a Signature) {
        self.type_params(&sig.tparams);
        let ret = self.type_ref(&sig.ret);
        if ret == Type::Int {
            self.error(sig.ret.span, "int without a width cannot be returned");
        }
        self.complete(&ret, sig.ret.span);
        self.params(&sig.params);
        self.no_blocks(&sig.params);
        for p in &sig.params {
            let t = self.type_of(p.ty.id);
            self.complete(&t, p.ty.span);
        }
    }

    fn function(&mut self, d: &'a Decl, sig: &'a Signature, body: Option<&'a Block>) {
        self.scoped(|c| {
            c.signature(sig);
            let Some(b) = body else { return };
            c.none_optional(&sig.params);
            let ret = c.type_of(sig.ret.id);
            let outer = std::mem::replace(
                &mut c.context,
                Context {
                    returns: Some(ret.clone()),
                    ..Context::default()
                },
            );
            c.block(b);
            c.context = outer;
            if !matches!(ret, Type::Void | Type::Unknown) && !always_returns(&b.stmts) {
                c.diags.error_hint(
                    d.name.span,
                    format!(
                        "function '{}' does not return a value on every path",
                        d.name.name
                    ),
                    "end it with a return statement",
                );
            }
        });
    }

    pub(super) fn action(&mut self, d: &'a Decl, params: &'a [Param], body: &'a Block) {
        self.scoped(|c| {
            c.params(params);
            let mut plane = false;
            c.no_blocks(params);
            for p in params {
                let t = c.type_of(p.ty.id);
                if t == Type::Int || c.is_object(&t) {
                    c.error(
                        p.span,
                        format!("a parameter of an action cannot be of type {}", c.show(&t)),
                    );
                }
                if p.dir == Direction::None {
                    plane = true;
                } else if plane {
                    c.error(
                        p.span,
                        "parameters with a direction must come before those of the control plane",
                    );
                }
            }
            let outer = c.context.clone();
            c.context.in_action = true;
            c.block(body);
            c.context = outer;
        });
        self.declare(&d.name, d.id);
    }
}

fn always_returns(stmts: &[Stmt]) -> bool {
    stmts.iter().any(|s| match &s.kind {
        StmtKind::Return(_) | StmtKind::Exit => true,
        StmtKind::Block(b) => always_returns(&b.stmts),
        StmtKind::If {
            then,
            otherwise: Some(o),
            ..
        } => always_returns(std::slice::from_ref(then)) && always_returns(std::slice::from_ref(o)),
        StmtKind::Switch { cases, .. } => {
            cases.last().is_some_and(|c| c.label.is_none())
                && cases
                    .iter()
                    .all(|c| c.body.as_ref().is_none_or(|b| always_returns(&b.stmts)))
        }
        _ => false,
    })
}
