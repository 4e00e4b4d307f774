// SPDX-License-Identifier: Apache-2.0
//! Checks method calls of externs, blocks, tables, headers and stacks.

use super::Checker;
use super::call::{Target, fits};
use crate::ast::{Arg, CompositeKind, DeclKind, Expr};
use crate::diag::Span;
use crate::types::{CallInfo, Callee, Type};

impl<'a> Checker<'a> {
    #[allow(clippy::too_many_arguments)]
    pub(super) fn method_call(
        &mut self,
        e: &'a Expr,
        base: &'a Expr,
        base_ty: &Type,
        name: &str,
        name_span: Span,
        targs: Vec<Type>,
        args: &'a [Arg],
    ) -> Type {
        let inner = match base_ty {
            Type::Meta(t) => {
                self.needs_no_arguments(t, name_span);
                (**t).clone()
            }
            t => t.clone(),
        };
        match &inner {
            Type::Table(id) => {
                self.no_args(args, e.span);
                if self.context.in_action || !self.context.in_control {
                    self.error(
                        e.span,
                        "a table can be applied only in the body of a control",
                    );
                }
                self.calls.insert(
                    e.id,
                    CallInfo {
                        callee: Callee::TableApply(*id),
                        targs: Vec::new(),
                        args: Vec::new(),
                    },
                );
                return Type::ApplyResult(*id);
            }
            Type::Stack(..) if matches!(name, "push_front" | "pop_front") => {
                if self.context.in_parser {
                    self.error(
                        e.span,
                        format!("'{name}' of a stack cannot be used in a parser"),
                    );
                }
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
                        let named: Vec<_> = methods
                            .iter()
                            .filter(|m| &*m.name.name == name && !m.is_constructor)
                            .collect();
                        let mut fitting = named.iter().filter(|m| fits(&m.sig.params, args));
                        let first = fitting.next();
                        if fitting.next().is_some() {
                            self.ambiguous(name_span);
                        }
                        let Some(m) = first.or(named.first()) else {
                            self.check_args_anyway(args);
                            let known: Vec<&str> = methods
                                .iter()
                                .filter(|m| !m.is_constructor)
                                .map(|m| &*m.name.name)
                                .collect();
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
                            known: tparams
                                .iter()
                                .map(|p| p.id)
                                .zip(owner_args.iter().cloned())
                                .collect(),
                        };
                        let ret = self.finish_call(e, target, targs, args);
                        self.packet_call(
                            e,
                            &d.map_or(String::new(), |d| d.name.name.to_string()),
                            name,
                            args,
                        );
                        return ret;
                    }
                    Some(DeclKind::Control(c)) if name == "apply" => {
                        if self.context.in_action || self.context.in_parser {
                            self.error(e.span, "a control cannot be applied here");
                        }
                        self.not_open(*id, e.span);
                        let known = c
                            .tparams
                            .iter()
                            .map(|p| p.id)
                            .zip(owner_args.iter().cloned())
                            .collect();
                        let target = Target {
                            callee: Callee::Apply(*id),
                            tparams: Vec::new(),
                            params: &c.params,
                            ret: Type::Void,
                            known,
                        };
                        return self.finish_call(e, target, Vec::new(), args);
                    }
                    Some(DeclKind::Parser(p)) if name == "apply" => {
                        if !self.context.in_parser {
                            self.error(e.span, "a parser can be applied only in a parser");
                        }
                        let known = p
                            .tparams
                            .iter()
                            .map(|t| t.id)
                            .zip(owner_args.iter().cloned())
                            .collect();
                        let target = Target {
                            callee: Callee::Apply(*id),
                            tparams: Vec::new(),
                            params: &p.params,
                            ret: Type::Void,
                            known,
                        };
                        return self.finish_call(e, target, Vec::new(), args);
                    }
                    Some(DeclKind::Composite { kind, .. }) => {
                        let is_header =
                            matches!(kind, CompositeKind::Header | CompositeKind::Union);
                        if is_header && name == "isValid" {
                            self.no_args(args, e.span);
                            return self.builtin(e, Type::Bool);
                        }
                        if *kind == CompositeKind::Header
                            && matches!(name, "setValid" | "setInvalid")
                        {
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
        if super::member::is_size_method(name) {
            self.no_args(args, e.span);
            if self.size_in_bits(&inner, true).is_none() && !matches!(inner, Type::Var(_)) {
                self.error(e.span, format!("{} has no fixed size", self.show(&inner)));
            }
            return self.builtin(e, Type::Int);
        }
        self.check_args_anyway(args);
        self.error(
            name_span,
            format!("'{name}' cannot be called on {}", self.show(&inner)),
        );
        Type::Unknown
    }

    /// Checks the type arguments of the packet's methods.
    pub(super) fn packet_call(&mut self, e: &Expr, owner: &str, method: &str, args: &'a [Arg]) {
        if owner != "packet_in" {
            return;
        }
        if method == "lookahead" {
            let types = self.calls.get(&e.id).map(|c| c.targs.clone());
            for (_, t) in types.unwrap_or_default() {
                let t = self.resolve(&t);
                let fixed = self.size_in_bits(&t, false) == self.size_in_bits(&t, true);
                if t == Type::Void || !fixed {
                    self.error(
                        e.span,
                        format!(
                            "lookahead needs a type of fixed size, not {}",
                            self.show(&t)
                        ),
                    );
                }
            }
            return;
        }
        if method != "extract" {
            return;
        }
        let Some(first) = args.first() else { return };
        let ty = self.type_of(first.expr.id);
        if matches!(ty, Type::Unknown | Type::Var(_) | Type::Open(_)) {
            return;
        }
        if self.composite_kind(&ty) != Some(CompositeKind::Header) {
            self.error(
                first.expr.span,
                format!("expected a header, found {}", self.show(&ty)),
            );
            return;
        }
        let varbits: Vec<_> = self
            .fields(&ty)
            .unwrap_or_default()
            .into_iter()
            .filter(|(_, t)| matches!(self.resolve(t), Type::Varbit(_)))
            .collect();
        if let [_, (second, _), ..] = &varbits[..] {
            let d = match &ty {
                Type::Named(id, _) => self.decl(*id),
                _ => None,
            };
            let fields = match d.map(|d| &d.kind) {
                Some(DeclKind::Composite { fields, .. }) => &fields[..],
                _ => &[],
            };
            let field = fields.iter().find(|f| f.name.name == *second);
            self.error(
                field.map_or(first.expr.span, |f| f.name.span),
                format!("'{second}' is the second varbit field: the header cannot be extracted"),
            );
            return;
        }
        let varbit = !varbits.is_empty();
        if varbit && args.len() == 1 {
            self.diags.error_hint(
                first.expr.span,
                "missing length of the header's varbit field",
                "add it, in bits, as the second argument",
            );
        } else if !varbit && args.len() == 2 {
            self.error(first.expr.span, "the header has no varbit field");
        }
    }

    pub(super) fn builtin(&mut self, e: &Expr, ty: Type) -> Type {
        self.calls.insert(
            e.id,
            CallInfo {
                callee: Callee::Builtin,
                targs: Vec::new(),
                args: Vec::new(),
            },
        );
        ty
    }

    pub(super) fn no_args(&mut self, args: &'a [Arg], span: Span) {
        if !args.is_empty() {
            self.check_args_anyway(args);
            self.error(span, "no arguments are allowed here");
        }
    }
}
