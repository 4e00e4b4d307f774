//! Calls: functions, methods, actions, constructors and built-in methods.

use super::Checker;
use crate::ast::{Arg, CompositeKind, DeclKind, Direction, Expr, ExprKind, NodeId, Param, TypeParam, TypeRef};
use crate::diag::Span;
use crate::types::{CallInfo, Callee, Def, Type};

/// What is needed to check the arguments of one candidate.
struct Target<'a> {
    callee: Callee,
    tparams: Vec<NodeId>,
    params: &'a [Param],
    ret: Type,
    /// Already known type arguments, of the owner.
    known: Vec<(NodeId, Type)>,
}

impl<'a> Checker<'a> {
    pub(super) fn call(
        &mut self,
        e: &'a Expr,
        callee: &'a Expr,
        targs: &'a [TypeRef],
        args: &'a [Arg],
        want: Option<&Type>,
    ) -> Type {
        let targs: Vec<Type> = targs.iter().map(|t| self.type_ref(t)).collect();
        if let ExprKind::Member(base, name) = &callee.kind {
            let callable = self.expr(callee, None);
            let base_ty = self.type_of(base.id);
            if callable.is_unknown() {
                self.check_args_anyway(args);
                return Type::Unknown;
            }
            return self.method_call(e, base, &base_ty, &name.name, name.span, targs, args, want);
        }
        let ExprKind::Name { name, global } = &callee.kind else {
            if let ExprKind::Type(t) = &callee.kind {
                let ty = self.type_ref(t);
                return self.construct(e, ty, args, e.span);
            }
            self.expr(callee, None);
            self.check_args_anyway(args);
            self.error(callee.span, "this cannot be called");
            return Type::Unknown;
        };
        let Some(ids) = self.lookup(name, *global).cloned() else {
            self.undeclared(name, callee.span);
            self.check_args_anyway(args);
            return Type::Unknown;
        };
        for id in &ids {
            self.used.insert(*id);
        }
        let Some(&first) = ids.first() else { return Type::Unknown };
        match self.defs.get(first) {
            Some(Def::Decl(d)) => match &d.kind {
                DeclKind::Function { .. } => self.function_call(e, callee, &ids, targs, args, want),
                DeclKind::Action { params, .. } => {
                    self.names.insert(callee.id, first);
                    self.set_type(callee.id, Type::Action(first));
                    self.action_call(e, first, params, args)
                }
                DeclKind::Extern { .. } | DeclKind::Parser(_) | DeclKind::Control(_) | DeclKind::Package { .. } => {
                    let ty = self.named_type(name, *global, targs, callee.span);
                    self.construct(e, ty, args, callee.span)
                }
                _ => {
                    self.check_args_anyway(args);
                    self.error(callee.span, format!("'{name}' cannot be called"));
                    Type::Unknown
                }
            },
            _ => {
                self.check_args_anyway(args);
                self.error(callee.span, format!("'{name}' cannot be called"));
                Type::Unknown
            }
        }
    }

    fn check_args_anyway(&mut self, args: &'a [Arg]) {
        for a in args {
            self.expr(&a.expr, None);
        }
    }

    fn function_call(
        &mut self,
        e: &'a Expr,
        callee: &'a Expr,
        ids: &[NodeId],
        targs: Vec<Type>,
        args: &'a [Arg],
        want: Option<&Type>,
    ) -> Type {
        let candidates: Vec<NodeId> = ids
            .iter()
            .copied()
            .filter(|id| match self.decl(*id).map(|d| &d.kind) {
                Some(DeclKind::Function { sig, .. }) => fits(&sig.params, args),
                _ => false,
            })
            .collect();
        let id = candidates.first().or(ids.first()).copied().unwrap_or(0);
        let Some(d) = self.decl(id) else { return Type::Unknown };
        let DeclKind::Function { sig, body } = &d.kind else { return Type::Unknown };
        self.names.insert(callee.id, id);
        self.set_type(callee.id, Type::Callable);
        self.warn_deprecated(&d.annos, &d.name.name, callee.span);
        if body.is_none() && self.context.in_table {
            // Property values may call constructors only.
            self.error(e.span, format!("'{}' cannot be called here", d.name.name));
        }
        let target = Target {
            callee: Callee::Function(id),
            tparams: sig.tparams.iter().map(|p| p.id).collect(),
            params: &sig.params,
            ret: self.type_of(sig.ret.id),
            known: Vec::new(),
        };
        self.finish_call(e, target, targs, args, want)
    }

    fn warn_deprecated(&self, annos: &[crate::ast::Annotation], name: &str, span: Span) {
        if let Some(a) = annos.iter().find(|a| &*a.name.name == "deprecated") {
            let why = match &a.body {
                crate::ast::AnnotationBody::Tokens { raw, .. } => raw.iter().map(|t| t.text.clone()).collect::<String>(),
                _ => String::new(),
            };
            self.diags.warn(span, format!("'{name}' is deprecated: {why}"));
        }
    }

    fn action_call(&mut self, e: &'a Expr, id: NodeId, params: &'a [Param], args: &'a [Arg]) -> Type {
        if self.context.in_table {
            // In an action list, directionless parameters are left to the control plane.
            return self.table_action_call(e, id, params, args);
        }
        let target = Target { callee: Callee::Action(id), tparams: Vec::new(), params, ret: Type::Void, known: Vec::new() };
        self.finish_call(e, target, Vec::new(), args, None)
    }

    fn table_action_call(&mut self, e: &'a Expr, id: NodeId, params: &'a [Param], args: &'a [Arg]) -> Type {
        let mut map = Vec::new();
        if args.len() > params.len() {
            self.error(e.span, format!("the action takes {} arguments, {} given", params.len(), args.len()));
        }
        for (i, p) in params.iter().enumerate() {
            let index = match args.first().and_then(|a| a.name.as_ref()) {
                Some(_) => args.iter().position(|a| a.name.as_ref().is_some_and(|n| n.name == p.name.name)),
                None => (i < args.len()).then_some(i),
            };
            if let Some(k) = index {
                let want = self.type_of(p.ty.id);
                self.argument(&args[k].expr, p.dir, &want);
            }
            map.push(index);
        }
        self.calls.insert(e.id, CallInfo { callee: Callee::Action(id), targs: Vec::new(), args: map });
        Type::Action(id)
    }

    fn construct(&mut self, e: &'a Expr, ty: Type, args: &'a [Arg], span: Span) -> Type {
        let Type::Named(id, targs) = self.resolve(&ty) else {
            self.check_args_anyway(args);
            return Type::Unknown;
        };
        let Some(d) = self.decl(id) else { return Type::Unknown };
        let owner = |tps: &[TypeParam]| -> Vec<(NodeId, Type)> { tps.iter().map(|p| p.id).zip(targs.iter().cloned()).collect() };
        let (params, known): (&[Param], _) = match &d.kind {
            DeclKind::Extern { methods, tparams } => {
                let ctors: Vec<_> = methods.iter().filter(|m| m.is_constructor).collect();
                let found = ctors.iter().find(|m| fits(&m.sig.params, args)).or(ctors.first());
                let Some(m) = found else {
                    self.error(span, format!("'{}' has no constructor", d.name.name));
                    self.check_args_anyway(args);
                    return ty;
                };
                (&m.sig.params, owner(tparams))
            }
            DeclKind::Control(c) if !c.is_type => (&c.ctor_params, owner(&c.tparams)),
            DeclKind::Parser(p) if !p.is_type => (&p.ctor_params, owner(&p.tparams)),
            DeclKind::Package { params, tparams } => (params, owner(tparams)),
            _ => {
                self.error(span, format!("'{}' cannot be instantiated", d.name.name));
                self.check_args_anyway(args);
                return Type::Unknown;
            }
        };
        self.warn_deprecated(&d.annos, &d.name.name, span);
        let target = Target { callee: Callee::Constructor, tparams: Vec::new(), params, ret: ty, known };
        self.finish_call(e, target, Vec::new(), args, None)
    }

    /// The constructor call of a declaration `type(args) name;`.
    pub(super) fn instance(&mut self, e_id: NodeId, ty: &Type, args: &'a [Arg], span: Span) {
        let Type::Named(id, targs) = self.resolve(ty) else {
            if !self.resolve(ty).is_unknown() {
                self.error(span, format!("{} cannot be instantiated", self.show(ty)));
            }
            self.check_args_anyway(args);
            return;
        };
        let Some(d) = self.decl(id) else { return };
        let params: &[Param] = match &d.kind {
            DeclKind::Extern { methods, .. } => {
                let ctors: Vec<_> = methods.iter().filter(|m| m.is_constructor).collect();
                match ctors.iter().find(|m| fits(&m.sig.params, args)).or(ctors.first()) {
                    Some(m) => &m.sig.params,
                    None => {
                        self.error(span, format!("'{}' has no constructor", d.name.name));
                        return;
                    }
                }
            }
            DeclKind::Control(c) if !c.is_type => &c.ctor_params,
            DeclKind::Parser(p) if !p.is_type => &p.ctor_params,
            DeclKind::Package { params, .. } => params,
            _ => {
                self.error(span, format!("'{}' cannot be instantiated", d.name.name));
                self.check_args_anyway(args);
                return;
            }
        };
        let tparams: &[TypeParam] = match &d.kind {
            DeclKind::Extern { tparams, .. } | DeclKind::Package { tparams, .. } => tparams,
            DeclKind::Control(c) => &c.tparams,
            DeclKind::Parser(p) => &p.tparams,
            _ => &[],
        };
        self.warn_deprecated(&d.annos, &d.name.name, span);
        let known: Vec<(NodeId, Type)> = tparams.iter().map(|p| p.id).zip(targs).collect();
        let map = self.arguments(params, args, &known, span, &d.name.name.clone());
        self.calls.insert(e_id, CallInfo { callee: Callee::Constructor, targs: known, args: map });
    }

    #[allow(clippy::too_many_arguments)]
    fn method_call(
        &mut self,
        e: &'a Expr,
        base: &'a Expr,
        base_ty: &Type,
        name: &str,
        name_span: Span,
        targs: Vec<Type>,
        args: &'a [Arg],
        want: Option<&Type>,
    ) -> Type {
        let inner = match base_ty {
            Type::TypeName(t) => (**t).clone(),
            t => t.clone(),
        };
        match &inner {
            Type::Table(id) => {
                self.no_args(args, e.span);
                if self.context.in_action || !self.context.in_control {
                    self.error(e.span, "a table can only be applied in the body of a control");
                }
                self.calls.insert(e.id, CallInfo { callee: Callee::TableApply(*id), targs: Vec::new(), args: Vec::new() });
                return Type::ApplyResult(*id);
            }
            Type::Stack(..) if matches!(name, "push_front" | "pop_front") => {
                if let Err(why) = self.lvalue(base) {
                    self.error(base.span, why);
                }
                for a in args {
                    let t = self.expr(&a.expr, None);
                    let ok = matches!(self.const_value(&a.expr), Some(super::Const::Int(..)));
                    if !ok && !t.is_unknown() {
                        self.error(a.expr.span, "the count must be known at compile time");
                    }
                }
                if args.len() != 1 {
                    self.error(e.span, format!("{name} takes one argument"));
                }
                return self.builtin(e, Type::Void);
            }
            Type::Named(id, owner_args) => {
                let d = self.decl(*id);
                match d.map(|d| &d.kind) {
                    Some(DeclKind::Extern { tparams, methods }) => {
                        let named: Vec<_> = methods.iter().filter(|m| &*m.name.name == name && !m.is_constructor).collect();
                        let Some(m) = named.iter().find(|m| fits(&m.sig.params, args)).or(named.first()) else {
                            self.check_args_anyway(args);
                            let known: Vec<&str> = methods.iter().filter(|m| !m.is_constructor).map(|m| &*m.name.name).collect();
                            self.diags.error_hint(
                                name_span,
                                format!("{} has no method '{name}'", self.show(&inner)),
                                format!("it has: {}", known.join(", ")),
                            );
                            return Type::Unknown;
                        };
                        let target = Target {
                            callee: Callee::Method(m.id),
                            tparams: m.sig.tparams.iter().map(|p| p.id).collect(),
                            params: &m.sig.params,
                            ret: self.type_of(m.sig.ret.id),
                            known: tparams.iter().map(|p| p.id).zip(owner_args.iter().cloned()).collect(),
                        };
                        return self.finish_call(e, target, targs, args, want);
                    }
                    Some(DeclKind::Control(c)) if name == "apply" => {
                        if self.context.in_action || self.context.in_parser {
                            self.error(e.span, "a control cannot be applied here");
                        }
                        let known = c.tparams.iter().map(|p| p.id).zip(owner_args.iter().cloned()).collect();
                        let target = Target { callee: Callee::Apply(*id), tparams: Vec::new(), params: &c.params, ret: Type::Void, known };
                        return self.finish_call(e, target, Vec::new(), args, None);
                    }
                    Some(DeclKind::Parser(p)) if name == "apply" => {
                        if !self.context.in_parser {
                            self.error(e.span, "a parser can only be applied in a parser");
                        }
                        let known = p.tparams.iter().map(|t| t.id).zip(owner_args.iter().cloned()).collect();
                        let target = Target { callee: Callee::Apply(*id), tparams: Vec::new(), params: &p.params, ret: Type::Void, known };
                        return self.finish_call(e, target, Vec::new(), args, None);
                    }
                    Some(DeclKind::Composite { kind, .. }) => {
                        let is_header = matches!(kind, CompositeKind::Header | CompositeKind::Union);
                        if is_header && name == "isValid" {
                            self.no_args(args, e.span);
                            return self.builtin(e, Type::Bool);
                        }
                        if *kind == CompositeKind::Header && matches!(name, "setValid" | "setInvalid") {
                            self.no_args(args, e.span);
                            if let Err(why) = self.lvalue(base) {
                                self.error(base.span, why);
                            }
                            return self.builtin(e, Type::Void);
                        }
                    }
                    _ => {}
                }
            }
            _ => {}
        }
        if super::expr::is_size_method(name) {
            self.no_args(args, e.span);
            if self.size_in_bits(&inner, true).is_none() && !matches!(inner, Type::Var(_)) {
                self.error(e.span, format!("{} has no fixed size", self.show(&inner)));
            }
            return self.builtin(e, Type::Int);
        }
        self.check_args_anyway(args);
        self.error(name_span, format!("'{name}' cannot be called on {}", self.show(&inner)));
        Type::Unknown
    }

    fn builtin(&mut self, e: &Expr, ty: Type) -> Type {
        self.calls.insert(e.id, CallInfo { callee: Callee::Builtin, targs: Vec::new(), args: Vec::new() });
        ty
    }

    fn no_args(&mut self, args: &'a [Arg], span: Span) {
        if !args.is_empty() {
            self.check_args_anyway(args);
            self.error(span, "no arguments are allowed here");
        }
    }

    fn finish_call(&mut self, e: &'a Expr, t: Target<'a>, targs: Vec<Type>, args: &'a [Arg], want: Option<&Type>) -> Type {
        if !targs.is_empty() && targs.len() != t.tparams.len() {
            self.error(e.span, format!("{} type arguments wanted, {} given", t.tparams.len(), targs.len()));
        }
        let mut known = t.known;
        for (i, p) in t.tparams.iter().enumerate() {
            let ty = targs.get(i).cloned().unwrap_or_else(|| self.fresh());
            known.push((*p, ty));
        }
        let map = self.arguments(t.params, args, &known, e.span, "");
        let ret = t.ret.substitute(&|v| known.iter().find(|(p, _)| *p == v).map(|(_, t)| t.clone()));
        if let (Some(want), Type::Infer(_)) = (want, self.resolve(&ret)) {
            self.unify(&ret, want);
        }
        self.calls.insert(e.id, CallInfo { callee: t.callee, targs: known, args: map });
        self.resolve(&ret)
    }

    /// Matches arguments with parameters and checks each; returns the index for each parameter.
    fn arguments(
        &mut self,
        params: &'a [Param],
        args: &'a [Arg],
        known: &[(NodeId, Type)],
        span: Span,
        what: &str,
    ) -> Vec<Option<usize>> {
        let named = args.iter().filter(|a| a.name.is_some()).count();
        if named > 0 && named < args.len() {
            self.error(span, "either all arguments are named or none");
        }
        let mut taken = vec![false; args.len()];
        let mut map = Vec::new();
        for (i, p) in params.iter().enumerate() {
            let index = if named > 0 {
                args.iter().position(|a| a.name.as_ref().is_some_and(|n| n.name == p.name.name))
            } else {
                (i < args.len()).then_some(i)
            };
            match index {
                Some(k) => {
                    taken[k] = true;
                    let want = self.type_of(p.ty.id).substitute(&|v| known.iter().find(|(q, _)| *q == v).map(|(_, t)| t.clone()));
                    self.argument(&args[k].expr, p.dir, &want);
                }
                None if p.default.is_none() && !is_optional(p) => {
                    self.error(span, format!("no argument for parameter '{}'", p.name.name));
                }
                None => {}
            }
            map.push(index);
        }
        for (k, a) in args.iter().enumerate().filter(|(k, _)| !taken[*k]) {
            self.expr(&a.expr, None);
            match &a.name {
                Some(n) if args[..k].iter().any(|b| b.name.as_ref().is_some_and(|m| m.name == n.name)) => {
                    self.error(n.span, format!("argument '{}' is given twice", n.name));
                }
                Some(n) => self.error(n.span, format!("there is no parameter '{}'", n.name)),
                None => self.error(
                    a.expr.span,
                    format!(
                        "{} arguments wanted, {} given{}",
                        params.len(),
                        args.len(),
                        if what.is_empty() { String::new() } else { format!(" to {what}") }
                    ),
                ),
            }
        }
        map
    }

    fn argument(&mut self, a: &'a Expr, dir: Direction, want: &Type) {
        if matches!(a.kind, ExprKind::DontCare) {
            // `_`: no interest in what an out parameter gives.
            if dir != Direction::Out && dir != Direction::None {
                self.error(a.span, "'_' can only stand for an 'out' argument");
            }
            self.set_type(a.id, want.clone());
            return;
        }
        let got = self.expr(a, Some(want));
        match dir {
            Direction::Out | Direction::InOut => {
                if let Err(why) = self.lvalue(a) {
                    self.error(a.span, why);
                }
                if !self.unify(&got, want) {
                    self.error(
                        a.span,
                        format!("type {} wanted for an out or inout argument, {} found", self.show(want), self.show(&got)),
                    );
                }
            }
            Direction::In | Direction::None => self.expect(a, &got, want),
        }
    }
}

fn is_optional(p: &Param) -> bool {
    p.annos.iter().any(|a| &*a.name.name == "optional")
}

/// Whether the arguments fit by number and name.
fn fits(params: &[Param], args: &[Arg]) -> bool {
    if args.len() > params.len() {
        return false;
    }
    let named = args.iter().any(|a| a.name.is_some());
    params.iter().enumerate().all(|(i, p)| {
        let given = if named {
            args.iter().any(|a| a.name.as_ref().is_some_and(|n| n.name == p.name.name))
        } else {
            i < args.len()
        };
        given || p.default.is_some() || is_optional(p)
    }) && (!named || args.iter().all(|a| params.iter().any(|p| a.name.as_ref().is_some_and(|n| n.name == p.name.name))))
}
