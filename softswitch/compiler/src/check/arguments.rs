// SPDX-License-Identifier: Apache-2.0
//! Checks arguments of calls: matches them with parameters, and infers type arguments.

use super::Checker;
use super::call::{Target, is_optional};
use crate::ast::{Arg, Direction, Expr, ExprKind, NodeId, Param, TypeParam};
use crate::diag::Span;
use crate::types::{CallInfo, Callee, Type};

impl<'a> Checker<'a> {
    pub(super) fn finish_call(
        &mut self,
        e: &'a Expr,
        t: Target<'a>,
        targs: Vec<Type>,
        args: &'a [Arg],
    ) -> Type {
        if !targs.is_empty() && targs.len() != t.tparams.len() {
            self.error(
                e.span,
                format!(
                    "{} type arguments expected, {} given",
                    t.tparams.len(),
                    targs.len()
                ),
            );
        }
        let mut known = t.known;
        for (i, p) in t.tparams.iter().enumerate() {
            let ty = targs.get(i).cloned().unwrap_or_else(|| self.fresh());
            known.push((*p, ty));
        }
        let open = self.open_arguments(&known);
        let map = self.arguments(t.params, args, &known, e.span, "");
        self.inferred_usably(t.params, args, &map, &open);
        if !matches!(t.callee, Callee::Constructor) {
            for a in args {
                let ty = self.type_of(a.expr.id);
                if self.is_control_or_parser(&ty) {
                    self.error(
                        a.expr.span,
                        format!("an argument of type {} is not allowed", self.show(&ty)),
                    );
                }
            }
        }
        if matches!(t.callee, Callee::Function(_) | Callee::Method(_)) {
            self.constant_arguments(t.params, args, &map);
        }
        let ret = t
            .ret
            .substitute(&|v| known.iter().find(|(p, _)| *p == v).map(|(_, t)| t.clone()));
        self.calls.insert(
            e.id,
            CallInfo {
                callee: t.callee,
                targs: known,
                args: map,
            },
        );
        if let Type::Open(_) = self.resolve(&ret) {
            self.diags.error_hint(
                e.span,
                "the return type cannot be inferred",
                "write the type arguments: f<...>(...)",
            );
            return Type::Unknown;
        }
        self.resolve(&ret)
    }

    /// Creates inference variables for the type parameters.
    pub(super) fn open_arguments(&self, known: &[(NodeId, Type)]) -> Vec<(NodeId, Type)> {
        known
            .iter()
            .filter(|(_, t)| matches!(self.resolve(t), Type::Open(_)))
            .cloned()
            .collect()
    }

    /// Checks that inferred type arguments are types that a program can write.
    pub(super) fn inferred_usably(
        &self,
        params: &[Param],
        args: &[Arg],
        map: &[Option<usize>],
        open: &[(NodeId, Type)],
    ) {
        for (p, k) in params.iter().zip(map) {
            let (Type::Var(v), Some(k)) = (self.type_of(p.ty.id), k) else {
                continue;
            };
            let Some((_, t)) = open.iter().find(|(q, _)| *q == v) else {
                continue;
            };
            let span = args[*k].expr.span;
            match self.resolve(t) {
                Type::Int => self.diags.error_hint(
                    span,
                    "the width of this number cannot be inferred",
                    "write it, for example 32w1",
                ),
                Type::Record(_) => self.diags.error_hint(
                    span,
                    "the struct type of this list cannot be inferred",
                    "write a cast: (S) { ... }",
                ),
                Type::Str if p.dir != Direction::None => {
                    self.error(
                        span,
                        "a string is allowed only for a directionless parameter",
                    );
                }
                _ => {}
            }
        }
    }

    /// Uses default values for missing arguments in inference, too.
    pub(super) fn infer_from_defaults(
        &mut self,
        params: &[Param],
        map: &[Option<usize>],
        known: &[(NodeId, Type)],
    ) {
        let value = |v| known.iter().find(|(p, _)| *p == v).map(|(_, t)| t.clone());
        for (p, k) in params.iter().zip(map) {
            if let (Some(default), None) = (&p.default, k) {
                let want = self.type_of(p.ty.id).substitute(&value);
                let have = self.type_of(default.id).substitute(&value);
                self.unify(&have, &want);
            }
        }
    }

    pub(super) fn all_inferred(
        &self,
        tparams: &[TypeParam],
        params: &[Param],
        known: &[(NodeId, Type)],
        span: Span,
    ) {
        for (p, (_, t)) in tparams.iter().zip(known) {
            // The type of an omitted argument does not matter.
            let left_out = params
                .iter()
                .any(|q| is_optional(q) && has_variable(&self.type_of(q.ty.id), p.id));
            if matches!(self.resolve(t), Type::Open(_)) && !left_out {
                self.diags.error_hint(
                    span,
                    format!("type parameter '{}' cannot be inferred", p.name.name),
                    "write the type arguments: <...>",
                );
            }
        }
    }

    /// Checks that arguments of directionless parameters are known at compile time.
    fn constant_arguments(&mut self, params: &[Param], args: &[Arg], map: &[Option<usize>]) {
        for (p, k) in params.iter().zip(map) {
            let (Direction::None, Some(k)) = (p.dir, k) else {
                continue;
            };
            let e = &args[*k].expr;
            let scalar = matches!(
                self.type_of(e.id),
                Type::Bit(_) | Type::SInt(_) | Type::Int | Type::Bool
            );
            if scalar && !self.known_at_compile_time(e) {
                self.error(
                    e.span,
                    format!(
                        "parameter '{}' has no direction: its argument must be known at compile time",
                        p.name.name
                    ),
                );
            }
        }
    }

    /// Matches arguments with parameters and checks each; returns the index for each parameter.
    pub(super) fn arguments(
        &mut self,
        params: &'a [Param],
        args: &'a [Arg],
        known: &[(NodeId, Type)],
        span: Span,
        what: &str,
    ) -> Vec<Option<usize>> {
        let named = args.iter().filter(|a| a.name.is_some()).count();
        if named > 0 && named < args.len() {
            self.error(span, "either all arguments must be named, or none");
        }
        let mut taken = vec![false; args.len()];
        let mut map = Vec::new();
        for (i, p) in params.iter().enumerate() {
            let index = if named > 0 {
                args.iter()
                    .position(|a| a.name.as_ref().is_some_and(|n| n.name == p.name.name))
            } else {
                (i < args.len()).then_some(i)
            };
            match index {
                Some(k) => {
                    taken[k] = true;
                    let want = self.type_of(p.ty.id).substitute(&|v| {
                        known.iter().find(|(q, _)| *q == v).map(|(_, t)| t.clone())
                    });
                    self.argument(&args[k].expr, p.dir, &want);
                }
                None if p.default.is_none() && !is_optional(p) => {
                    self.error(
                        span,
                        format!("missing argument for parameter '{}'", p.name.name),
                    );
                }
                None => {}
            }
            map.push(index);
        }
        for (k, a) in args.iter().enumerate().filter(|(k, _)| !taken[*k]) {
            self.expr(&a.expr, None);
            match &a.name {
                Some(n)
                    if args[..k]
                        .iter()
                        .any(|b| b.name.as_ref().is_some_and(|m| m.name == n.name)) =>
                {
                    self.error(n.span, format!("duplicate argument '{}'", n.name));
                }
                Some(n) => self.error(n.span, format!("unknown parameter '{}'", n.name)),
                None => self.error(
                    a.expr.span,
                    format!(
                        "{} arguments expected, {} given{}",
                        params.len(),
                        args.len(),
                        if what.is_empty() {
                            String::new()
                        } else {
                            format!(" to {what}")
                        }
                    ),
                ),
            }
        }
        map
    }

    pub(super) fn argument(&mut self, a: &'a Expr, dir: Direction, want: &Type) {
        if matches!(a.kind, ExprKind::DontCare) {
            // `_` discards the value of an out parameter.
            if dir != Direction::Out && dir != Direction::None {
                self.error(a.span, "'_' is allowed only as an 'out' argument");
            }
            self.set_type(a.id, want.clone());
            return;
        }
        let got = self.expr(a, Some(want));
        if matches!(
            got,
            Type::Table(_) | Type::Action(_) | Type::ApplyResult(_) | Type::Callable
        ) {
            self.error(
                a.span,
                format!("an argument of type {} is not allowed", self.show(&got)),
            );
            return;
        }
        match dir {
            Direction::Out | Direction::InOut => {
                if let Err(why) = self.lvalue(a) {
                    self.error(a.span, why);
                }
                if !self.unify(&got, want) {
                    self.error(
                        a.span,
                        format!(
                            "expected type {} for an out or inout argument, found {}",
                            self.show(want),
                            self.show(&got)
                        ),
                    );
                }
            }
            Direction::In | Direction::None => self.expect(a, &got, want),
        }
    }
}

fn has_variable(ty: &Type, variable: NodeId) -> bool {
    let found = std::cell::Cell::new(false);
    ty.substitute(&|v| {
        found.set(found.get() || v == variable);
        None
    });
    found.get()
}
