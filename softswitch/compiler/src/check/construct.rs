// SPDX-License-Identifier: Apache-2.0
//! Checks constructor calls.

use super::Checker;
use super::call::{Target, fits};
use crate::ast::{
    Arg, Decl, DeclKind, Direction, Expr, ExprKind, NodeId, Param, TypeParam, TypeRef, TypeRefKind,
};
use crate::diag::Span;
use crate::types::{CallInfo, Callee, Def, Type};

impl<'a> Checker<'a> {
    pub(super) fn construct(&mut self, e: &'a Expr, ty: Type, args: &'a [Arg], span: Span) -> Type {
        let Type::Named(id, targs) = self.resolve(&ty) else {
            self.check_args_anyway(args);
            return Type::Unknown;
        };
        let Some(d) = self.decl(id) else {
            return Type::Unknown;
        };
        let owner = |tps: &[TypeParam]| -> Vec<(NodeId, Type)> {
            tps.iter()
                .map(|p| p.id)
                .zip(targs.iter().cloned())
                .collect()
        };
        let (params, known): (&[Param], _) = match &d.kind {
            DeclKind::Extern { methods, tparams } => {
                let ctors: Vec<_> = methods.iter().filter(|m| m.is_constructor).collect();
                let found = ctors
                    .iter()
                    .find(|m| fits(&m.sig.params, args))
                    .or(ctors.first());
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
        self.not_open(id, span);
        let target = Target {
            callee: Callee::Constructor,
            tparams: Vec::new(),
            params,
            ret: ty,
            known,
        };
        self.finish_call(e, target, Vec::new(), args)
    }

    /// Checks the constructor call of a declaration `type(args) name;`.
    pub(super) fn instance(&mut self, instance: &'a Decl, ty_ref: &'a TypeRef, args: &'a [Arg]) {
        let span = ty_ref.span;
        let ty = self.type_of(instance.id);
        let Type::Named(id, targs) = self.resolve(&ty) else {
            if !ty.is_unknown() {
                self.error(span, format!("{} cannot be instantiated", self.show(&ty)));
            }
            self.check_args_anyway(args);
            return;
        };
        let Some(d) = self.decl(id) else { return };
        let params: &[Param] = match &d.kind {
            DeclKind::Extern { methods, .. } => {
                let ctors: Vec<_> = methods.iter().filter(|m| m.is_constructor).collect();
                match ctors
                    .iter()
                    .find(|m| fits(&m.sig.params, args))
                    .or(ctors.first())
                {
                    Some(m) => &m.sig.params,
                    None => {
                        self.error(span, format!("'{}' has no constructor", d.name.name));
                        return;
                    }
                }
            }
            DeclKind::Control(_) if self.context.in_parser => {
                self.error(span, "a parser cannot have a control");
                return;
            }
            DeclKind::Parser(_) if self.context.in_control => {
                self.error(span, "a control cannot have a parser");
                return;
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
        self.not_open(id, span);
        let known: Vec<(NodeId, Type)> = tparams.iter().map(|p| p.id).zip(targs).collect();
        let open = self.open_arguments(&known);
        let map = self.arguments(params, args, &known, span, &d.name.name.clone());
        self.inferred_usably(params, args, &map, &open);
        let bare = matches!(&ty_ref.kind, TypeRefKind::Named { args, .. } if args.is_empty());
        let complaint = args.iter().any(|a| self.type_of(a.expr.id).is_unknown());
        self.infer_from_defaults(params, &map, &known);
        if bare && !complaint {
            self.all_inferred(tparams, params, &known, instance.name.span);
        }
        for (i, p) in params.iter().enumerate() {
            let Some(k) = map.get(i).copied().flatten() else {
                continue;
            };
            let scalar = matches!(
                self.type_of(p.ty.id),
                Type::Bit(_) | Type::SInt(_) | Type::Int | Type::Bool
            );
            if scalar && !self.known_at_compile_time(&args[k].expr) {
                self.error(
                    args[k].expr.span,
                    "a constructor's argument must be known at compile time",
                );
            }
        }
        self.calls.insert(
            instance.id,
            CallInfo {
                callee: Callee::Constructor,
                targs: known,
                args: map,
            },
        );
    }

    /// Returns true if the value is constant, or consists of parameters of the enclosing constructor.
    pub(super) fn known_at_compile_time(&mut self, e: &Expr) -> bool {
        if self.type_of(e.id).is_unknown() || self.const_value(e).is_some() {
            return true;
        }
        let mut known = true;
        e.visit(&mut |x| {
            if let ExprKind::Call { .. } = x.kind {
                known &= self
                    .calls
                    .get(&x.id)
                    .is_some_and(|c| matches!(c.callee, Callee::Constructor));
            }
            if let ExprKind::Name { .. } = x.kind {
                known &= match self.names.get(&x.id).and_then(|id| self.defs.get(*id)) {
                    Some(Def::Param(p)) => p.dir == Direction::None,
                    Some(Def::Decl(d)) => !matches!(d.kind, DeclKind::Var { .. }),
                    _ => true,
                };
            }
        });
        known
    }

    /// Checks that a block applied by the name of its type has a constructor without parameters.
    pub(super) fn needs_no_arguments(&self, ty: &Type, span: Span) {
        let Type::Named(id, _) = ty else { return };
        let params = match self.decl(*id).map(|d| &d.kind) {
            Some(DeclKind::Control(c)) => &c.ctor_params,
            Some(DeclKind::Parser(p)) => &p.ctor_params,
            _ => return,
        };
        if let Some(p) = params.iter().find(|p| p.default.is_none()) {
            let hint = "declare an instance, with arguments";
            let message = format!("its constructor needs a value for '{}'", p.name.name);
            self.diags.error_hint(span, message, hint);
        }
    }

    /// Checks that a control or parser does not contain itself.
    pub(super) fn not_open(&self, id: NodeId, span: Span) {
        if self.open.contains(&id) {
            self.error(span, "this contains itself");
        }
    }
}
