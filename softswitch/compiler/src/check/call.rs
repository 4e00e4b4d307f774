// SPDX-License-Identifier: Apache-2.0
//! Checks calls of functions, methods, actions, constructors and built-in methods.

use super::Checker;
use crate::ast::{Arg, DeclKind, Expr, ExprKind, NodeId, Param, TypeRef};
use crate::diag::{Span, Warning};
use crate::types::{CallInfo, Callee, Def, Type};

/// A candidate of a call, with the data for checking its arguments.
pub(super) struct Target<'a> {
    pub(super) callee: Callee,
    pub(super) tparams: Vec<NodeId>,
    pub(super) params: &'a [Param],
    pub(super) ret: Type,
    /// Known type arguments of the owner.
    pub(super) known: Vec<(NodeId, Type)>,
}

impl<'a> Checker<'a> {
    pub(super) fn call(
        &mut self,
        e: &'a Expr,
        callee: &'a Expr,
        targs: &'a [TypeRef],
        args: &'a [Arg],
    ) -> Type {
        let targs: Vec<Type> = targs.iter().map(|t| self.type_arg(t)).collect();
        if let ExprKind::Member(base, name) = &callee.kind {
            let callable = self.expr(callee, None);
            let base_ty = self.type_of(base.id);
            if callable.is_unknown() {
                self.check_args_anyway(args);
                return Type::Unknown;
            }
            return self.method_call(e, base, &base_ty, &name.name, name.span, targs, args);
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
        let Some(&first) = ids.first() else {
            return Type::Unknown;
        };
        match self.defs.get(first) {
            Some(Def::Decl(d)) => match &d.kind {
                DeclKind::Function { .. } => self.function_call(e, callee, &ids, targs, args),
                DeclKind::Action { params, .. } => {
                    self.names.insert(callee.id, first);
                    self.set_type(callee.id, Type::Action(first));
                    if !targs.is_empty() {
                        self.error(e.span, "an action takes no type arguments");
                    }
                    self.action_call(e, first, params, args)
                }
                DeclKind::Extern { .. }
                | DeclKind::Parser(_)
                | DeclKind::Control(_)
                | DeclKind::Package { .. } => {
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

    pub(super) fn check_args_anyway(&mut self, args: &'a [Arg]) {
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
    ) -> Type {
        let candidates: Vec<NodeId> = ids
            .iter()
            .copied()
            .filter(|id| match self.decl(*id).map(|d| &d.kind) {
                Some(DeclKind::Function { sig, .. }) => fits(&sig.params, args),
                _ => false,
            })
            .collect();
        if candidates.len() > 1 {
            self.ambiguous(callee.span);
        }
        let id = candidates.first().or(ids.first()).copied().unwrap_or(0);
        let Some(d) = self.decl(id) else {
            return Type::Unknown;
        };
        let DeclKind::Function { sig, body } = &d.kind else {
            return Type::Unknown;
        };
        self.names.insert(callee.id, id);
        self.set_type(callee.id, Type::Callable);
        self.warn_deprecated(&d.annos, &d.name.name, callee.span);
        if body.is_none() && self.context.in_table {
            // Property values may call constructors only.
            self.error(e.span, format!("'{}' cannot be called here", d.name.name));
        }
        if &*d.name.name == "static_assert" && body.is_none() {
            let ret = self.type_of(sig.ret.id);
            self.static_assert(args);
            self.calls.insert(
                e.id,
                CallInfo {
                    callee: Callee::Function(id),
                    targs: Vec::new(),
                    args: (0..args.len()).map(Some).collect(),
                },
            );
            return ret;
        }
        if &*d.name.name == "verify" && body.is_none() && !self.context.in_parser {
            self.error(e.span, "verify() can be called only in a parser");
        }
        let target = Target {
            callee: Callee::Function(id),
            tparams: sig.tparams.iter().map(|p| p.id).collect(),
            params: &sig.params,
            ret: self.type_of(sig.ret.id),
            known: Vec::new(),
        };
        self.finish_call(e, target, targs, args)
    }

    pub(super) fn ambiguous(&self, span: Span) {
        self.diags.error_hint(
            span,
            "the call is ambiguous: several declarations match",
            "name the arguments: f(parameter = ...)",
        );
    }

    pub(super) fn warn_deprecated(&self, annos: &[crate::ast::Annotation], name: &str, span: Span) {
        if let Some(a) = annos.iter().find(|a| &*a.name.name == "deprecated") {
            let why = match &a.body {
                crate::ast::AnnotationBody::Tokens { raw, .. } => {
                    raw.iter().map(|t| t.text.clone()).collect::<String>()
                }
                _ => String::new(),
            };
            self.diags.warn(
                Warning::Deprecated,
                span,
                format!("'{name}' is deprecated: {why}"),
            );
        }
    }

    fn action_call(
        &mut self,
        e: &'a Expr,
        id: NodeId,
        params: &'a [Param],
        args: &'a [Arg],
    ) -> Type {
        if self.context.in_table {
            // In an action list, directionless parameters are left to the control plane.
            return self.table_action_call(e, id, params, args);
        }
        if self.context.in_parser {
            self.error(e.span, "an action cannot be called in a parser");
        }
        if self.context.returns.is_some() {
            self.error(e.span, "an action cannot be called in a function");
        }
        let target = Target {
            callee: Callee::Action(id),
            tparams: Vec::new(),
            params,
            ret: Type::Void,
            known: Vec::new(),
        };
        self.finish_call(e, target, Vec::new(), args)
    }

    fn table_action_call(
        &mut self,
        e: &'a Expr,
        id: NodeId,
        params: &'a [Param],
        args: &'a [Arg],
    ) -> Type {
        let mut map = Vec::new();
        if args.len() > params.len() {
            self.error(
                e.span,
                format!(
                    "the action takes {} arguments, {} given",
                    params.len(),
                    args.len()
                ),
            );
        }
        for (i, p) in params.iter().enumerate() {
            let index = match args.first().and_then(|a| a.name.as_ref()) {
                Some(_) => args
                    .iter()
                    .position(|a| a.name.as_ref().is_some_and(|n| n.name == p.name.name)),
                None => (i < args.len()).then_some(i),
            };
            if let Some(k) = index {
                let want = self.type_of(p.ty.id);
                self.argument(&args[k].expr, p.dir, &want);
            }
            map.push(index);
        }
        self.calls.insert(
            e.id,
            CallInfo {
                callee: Callee::Action(id),
                targs: Vec::new(),
                args: map,
            },
        );
        Type::Action(id)
    }

    fn static_assert(&mut self, args: &'a [Arg]) {
        for (i, a) in args.iter().enumerate() {
            self.expr_as(&a.expr, if i == 0 { &Type::Bool } else { &Type::Str });
        }
        let Some(first) = args.first() else { return };
        if !self.type_of(first.expr.id).is_unknown() && self.const_value(&first.expr).is_none() {
            self.error(
                first.expr.span,
                "the condition of static_assert must be known at compile time",
            );
        }
        if let Some(super::Const::Bool(false)) = self.const_value(&first.expr) {
            let why = match args.get(1).and_then(|a| self.const_value(&a.expr)) {
                Some(super::Const::Str(s)) => format!(": {s}"),
                _ => String::new(),
            };
            self.error(first.expr.span, format!("static_assert failed{why}"));
        }
    }
}

pub(super) fn is_optional(p: &Param) -> bool {
    p.annos.iter().any(|a| &*a.name.name == "optional")
}

/// Returns true if the arguments fit by number and name.
pub(super) fn fits(params: &[Param], args: &[Arg]) -> bool {
    if args.len() > params.len() {
        return false;
    }
    let named = args.iter().any(|a| a.name.is_some());
    params.iter().enumerate().all(|(i, p)| {
        let given = if named {
            args.iter()
                .any(|a| a.name.as_ref().is_some_and(|n| n.name == p.name.name))
        } else {
            i < args.len()
        };
        given || p.default.is_some() || is_optional(p)
    }) && (!named
        || args.iter().all(|a| {
            params
                .iter()
                .any(|p| a.name.as_ref().is_some_and(|n| n.name == p.name.name))
        }))
}
