//! Declarations.

use super::{Checker, Context};
use crate::ast::{
    Block, CompositeKind, ControlDecl, Decl, DeclKind, Direction, Param, ParserDecl, Signature, Stmt, StmtKind, TypeParam,
};
use crate::types::Type;

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
                self.function(d, sig, body.as_ref());
                self.declare_overload(&d.name, d.id, !clash);
            }
            _ => self.local(d),
        }
    }

    /// A declaration in any scope.
    pub(super) fn local(&mut self, d: &'a Decl) {
        match &d.kind {
            DeclKind::Const { ty, init } => {
                let t = self.type_ref(ty);
                self.expr_as(init, &t);
                self.check_constant(d, init, &t);
                self.set_type(d.id, t);
                self.declare(&d.name, d.id);
            }
            DeclKind::Var { ty, init } => {
                let t = self.type_ref(ty);
                self.check_variable_type(d, &t);
                if let Some(i) = init {
                    self.expr_as(i, &t);
                }
                self.set_type(d.id, t);
                self.declare(&d.name, d.id);
            }
            DeclKind::Instance { ty, args, body } => {
                let t = self.type_ref(ty);
                self.set_type(d.id, t.clone());
                if self.context.in_action || self.context.returns.is_some() {
                    self.error(d.span, "nothing can be instantiated here");
                }
                self.instance(d.id, &t, args, ty.span);
                self.scoped(|c| body.iter().for_each(|m| c.top(m)));
                self.declare(&d.name, d.id);
            }
            DeclKind::Extern { tparams, methods } => {
                self.declare(&d.name, d.id);
                self.scoped(|c| {
                    c.type_params(tparams);
                    for m in methods {
                        c.scoped(|c| c.signature(&m.sig));
                        if !m.is_constructor && m.name.name == d.name.name {
                            c.error(m.name.span, "a constructor has no return type");
                        }
                    }
                });
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
                    c.params(params);
                    for p in params.iter().filter(|p| p.dir != Direction::None) {
                        c.error(p.span, "parameters of a package have no direction");
                    }
                });
                self.declare(&d.name, d.id);
            }
            DeclKind::Composite { kind, tparams, fields } => self.composite(d, *kind, tparams, fields),
            DeclKind::Enum { underlying, members } => self.enumeration(d, underlying.as_ref(), members),
            DeclKind::Typedef(t) => {
                self.type_ref(t);
                self.declare(&d.name, d.id);
            }
            DeclKind::NewType(t) => {
                let base = self.type_ref(t);
                let ok = matches!(base, Type::Bit(_) | Type::SInt(_) | Type::Bool | Type::Unknown)
                    || self.newtype_base(&base).is_some()
                    || self.is_enum(&base);
                if !ok {
                    self.error(t.span, format!("'type' cannot rename {}", self.show(&base)));
                }
                self.declare(&d.name, d.id);
            }
            DeclKind::Table(t) => {
                self.declare(&d.name, d.id);
                self.table(d, t);
            }
            DeclKind::ValueSet { ty, size } => {
                self.type_ref(ty);
                let t = self.expr(size, None);
                if !matches!(self.resolve(&t), Type::Int | Type::Bit(_) | Type::Unknown) {
                    self.error(size.span, "the size of a value set must be a number");
                }
                self.declare(&d.name, d.id);
            }
            DeclKind::Errors(_) | DeclKind::MatchKinds(_) => self.top(d),
        }
    }

    fn check_constant(&mut self, d: &Decl, init: &crate::ast::Expr, t: &Type) {
        let scalar = matches!(self.resolve(t), Type::Bit(_) | Type::SInt(_) | Type::Int | Type::Bool);
        if scalar && self.const_value(init).is_none() && !self.type_of(init.id).is_unknown() && self.context_is_global() {
            self.error(init.span, format!("the value of const '{}' is not known at compile time", d.name.name));
        }
    }

    fn context_is_global(&self) -> bool {
        self.scopes.len() == 1
    }

    fn check_variable_type(&mut self, d: &Decl, t: &Type) {
        let t = self.resolve(t);
        let bad = match &t {
            Type::Void | Type::Str | Type::MatchKind | Type::Int | Type::Set(_) | Type::List(_) => true,
            Type::Named(id, _) => !matches!(
                self.decl(*id).map(|d| &d.kind),
                Some(DeclKind::Composite { .. } | DeclKind::Enum { .. } | DeclKind::NewType(_))
            ),
            _ => false,
        };
        if self.context_is_global() {
            self.diags.error_hint(d.span, "variables cannot be declared at the top level", "make it a const, or put it into a control");
        } else if bad {
            self.error(d.span, format!("a variable of type {} cannot be", self.show(&t)));
        }
    }

    pub(super) fn type_params(&mut self, tps: &'a [TypeParam]) {
        for p in tps {
            self.declare(&p.name, p.id);
        }
    }

    pub(super) fn params(&mut self, params: &'a [Param]) {
        for p in params {
            let t = self.type_ref(&p.ty);
            let rt = self.resolve(&t);
            if matches!(rt, Type::Void) {
                self.error(p.ty.span, "a parameter cannot be void");
            }
            let directed = matches!(p.dir, Direction::Out | Direction::InOut) || p.dir == Direction::In;
            if directed {
                let runtime = match &rt {
                    Type::Int | Type::Str => p.dir == Direction::In && rt == Type::Str,
                    Type::Named(id, _) => !matches!(
                        self.decl(*id).map(|d| &d.kind),
                        Some(DeclKind::Extern { .. } | DeclKind::Control(_) | DeclKind::Parser(_) | DeclKind::Package { .. })
                    ),
                    _ => true,
                };
                if !runtime {
                    self.error(p.span, format!("a parameter of type {} cannot have a direction", self.show(&rt)));
                }
            }
            if let Some(def) = &p.default {
                self.expr_as(def, &t);
                if p.dir == Direction::Out || p.dir == Direction::InOut {
                    self.error(p.span, "only 'in' and directionless parameters can have a default value");
                }
            }
            self.set_type(p.id, t);
            self.declare(&p.name, p.id);
        }
    }

    fn signature(&mut self, sig: &'a Signature) {
        self.type_params(&sig.tparams);
        self.type_ref(&sig.ret);
        self.params(&sig.params);
    }

    fn function(&mut self, d: &'a Decl, sig: &'a Signature, body: Option<&'a Block>) {
        self.scoped(|c| {
            c.signature(sig);
            let Some(b) = body else { return };
            let ret = c.type_of(sig.ret.id);
            let outer = std::mem::replace(&mut c.context, Context { returns: Some(ret.clone()), ..Context::default() });
            c.block(b);
            c.context = outer;
            if !matches!(ret, Type::Void | Type::Unknown) && !always_returns(&b.stmts) {
                c.diags.error_hint(
                    d.name.span,
                    format!("function '{}' does not return a value on every path", d.name.name),
                    "end it with a return statement",
                );
            }
        });
    }

    fn action(&mut self, d: &'a Decl, params: &'a [Param], body: &'a Block) {
        self.scoped(|c| {
            c.params(params);
            let mut plane = false;
            for p in params {
                if p.dir == Direction::None {
                    plane = true;
                } else if plane {
                    c.error(p.span, "parameters with a direction must come before those of the control plane");
                }
            }
            let outer = c.context.clone();
            c.context.in_action = true;
            c.block(body);
            c.context = outer;
        });
        self.declare(&d.name, d.id);
    }

    fn parser(&mut self, d: &'a Decl, p: &'a ParserDecl) {
        self.declare(&d.name, d.id);
        self.scoped(|c| {
            c.type_params(&p.tparams);
            c.params(&p.params);
            c.params(&p.ctor_params);
            if p.is_type {
                return;
            }
            c.object_params(&p.params);
            let outer = std::mem::replace(&mut c.context, Context { in_parser: true, ..Context::default() });
            // States can be used before they are declared, so they are no names of the scope.
            c.scoped(|c| {
                p.locals.iter().for_each(|l| c.local(l));
                c.parser_states(p);
            });
            c.context = outer;
        });
    }

    fn control(&mut self, d: &'a Decl, k: &'a ControlDecl) {
        self.declare(&d.name, d.id);
        self.scoped(|c| {
            c.type_params(&k.tparams);
            c.params(&k.params);
            c.params(&k.ctor_params);
            if k.is_type {
                return;
            }
            c.object_params(&k.params);
            let outer = std::mem::replace(&mut c.context, Context { in_control: true, ..Context::default() });
            c.scoped(|c| {
                k.locals.iter().for_each(|l| c.local(l));
                c.block(&k.body);
            });
            c.context = outer;
        });
    }

    /// Directionless parameters of a block must be compile-time objects.
    fn object_params(&mut self, params: &'a [Param]) {
        for p in params.iter().filter(|p| p.dir == Direction::None) {
            let t = self.type_of(p.ty.id);
            let is_object = match &t {
                Type::Named(id, _) => matches!(
                    self.decl(*id).map(|d| &d.kind),
                    Some(DeclKind::Extern { .. } | DeclKind::Package { .. })
                ),
                Type::Var(_) | Type::Unknown => true,
                _ => false,
            };
            if !is_object {
                self.diags.error_hint(p.span, format!("parameter '{}' needs a direction", p.name.name), "in, out or inout");
            }
        }
    }

    fn composite(&mut self, d: &'a Decl, kind: CompositeKind, tparams: &'a [TypeParam], fields: &'a [crate::ast::Field]) {
        self.scoped(|c| {
            c.type_params(tparams);
            let mut varbits = 0;
            for (i, f) in fields.iter().enumerate() {
                let t = c.type_ref(&f.ty);
                c.set_type(f.id, t.clone());
                if fields[..i].iter().any(|g| g.name.name == f.name.name) {
                    c.error(f.name.span, format!("field '{}' is declared twice", f.name.name));
                }
                c.field_type(kind, f, &t);
                varbits += usize::from(matches!(t, Type::Varbit(_)));
            }
            if varbits > 1 && kind == CompositeKind::Header {
                c.error(d.name.span, "a header can have only one varbit field");
            }
        });
        self.declare(&d.name, d.id);
    }

    fn field_type(&mut self, kind: CompositeKind, f: &crate::ast::Field, t: &Type) {
        let t = self.resolve(t);
        let named = match &t {
            Type::Named(id, _) => self.decl(*id).map(|d| &d.kind),
            _ => None,
        };
        let ok = match (kind, &t) {
            (_, Type::Unknown | Type::Var(_) | Type::Infer(_)) => true,
            (CompositeKind::Union, _) => matches!(named, Some(DeclKind::Composite { kind: CompositeKind::Header, .. })),
            (CompositeKind::Header, Type::Bit(_) | Type::SInt(_) | Type::Varbit(_) | Type::Bool) => true,
            (CompositeKind::Header, _) => {
                self.enum_underlying(&t).is_some()
                    || self.newtype_base(&t).is_some()
                    || matches!(named, Some(DeclKind::Composite { kind: CompositeKind::Struct, .. }))
            }
            (CompositeKind::Struct, Type::Void | Type::Str | Type::MatchKind | Type::Int | Type::Set(_)) => false,
            (CompositeKind::Struct, Type::Named(..)) => {
                matches!(named, Some(DeclKind::Composite { .. } | DeclKind::Enum { .. } | DeclKind::NewType(_)))
            }
            (CompositeKind::Struct, _) => true,
        };
        if !ok {
            let what = match kind {
                CompositeKind::Struct => "struct",
                CompositeKind::Header => "header",
                CompositeKind::Union => "header union",
            };
            self.error(f.name.span, format!("field '{}' of type {} cannot be in a {what}", f.name.name, self.show(&t)));
        }
    }

    fn enumeration(&mut self, d: &'a Decl, under: Option<&'a crate::ast::TypeRef>, members: &'a [crate::ast::EnumMember]) {
        let under = under.map(|u| (self.type_ref(u), u.span));
        if let Some((t, span)) = &under {
            let base = self.newtype_base(t).unwrap_or_else(|| t.clone());
            if !matches!(base, Type::Bit(_) | Type::SInt(_) | Type::Unknown) {
                self.error(*span, format!("the underlying type of an enum must be bit<> or int<>, not {}", self.show(t)));
            }
        }
        for (i, m) in members.iter().enumerate() {
            if members[..i].iter().any(|o| o.name.name == m.name.name) {
                self.error(m.name.span, format!("'{}' is declared twice", m.name.name));
            }
            match (&under, &m.value) {
                (Some((t, _)), Some(v)) => {
                    let t = t.clone();
                    self.expr_as(v, &t);
                    if self.const_value(v).is_none() && !self.type_of(v.id).is_unknown() {
                        self.error(v.span, "the value is not known at compile time");
                    }
                }
                (Some(_), None) => self.error(m.name.span, format!("'{}' needs a value", m.name.name)),
                (None, Some(v)) => {
                    self.expr(v, None);
                    self.diags.error_hint(v.span, "an enum without an underlying type has no values", "write enum bit<8> ...");
                }
                (None, None) => {}
            }
        }
        self.declare(&d.name, d.id);
    }
}

fn always_returns(stmts: &[Stmt]) -> bool {
    stmts.iter().any(|s| match &s.kind {
        StmtKind::Return(_) | StmtKind::Exit => true,
        StmtKind::Block(b) => always_returns(&b.stmts),
        StmtKind::If { then, otherwise: Some(o), .. } => {
            always_returns(std::slice::from_ref(then)) && always_returns(std::slice::from_ref(o))
        }
        StmtKind::Switch { cases, .. } => {
            cases.last().is_some_and(|c| c.label.is_none())
                && cases.iter().all(|c| c.body.as_ref().is_none_or(|b| always_returns(&b.stmts)))
        }
        _ => false,
    })
}
