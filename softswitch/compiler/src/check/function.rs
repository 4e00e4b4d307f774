// SPDX-License-Identifier: Apache-2.0
//! Checks functions and actions, with their parameters.

use super::{Checker, Context};
use crate::ast::{Block, Decl, DeclKind, Direction, Param, Signature, Stmt, StmtKind, TypeParam};
use crate::types::Type;

impl<'a> Checker<'a> {
    pub(super) fn type_params(&mut self, tps: &'a [TypeParam]) {
        for p in tps {
            self.declare(&p.name, p.id);
        }
    }

    pub(super) fn params(&mut self, params: &'a [Param]) {
        for p in params {
            self.annotations(&p.annos);
            let t = self.parameter_type(&p.ty);
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
                    // Checked later, when the package's type arguments are known.
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

    pub(super) fn signature(&mut self, sig: &'a Signature) {
        self.type_params(&sig.tparams);
        let ret = self.type_ref(&sig.ret);
        if ret == Type::Int {
            self.error(sig.ret.span, "int without a width cannot be returned");
        }
        self.complete(&ret, sig.ret.span);
        self.params(&sig.params);
        self.no_blocks(&sig.params, false);
        for p in &sig.params {
            let t = self.type_of(p.ty.id);
            self.complete(&t, p.ty.span);
        }
    }

    pub(super) fn function(&mut self, d: &'a Decl, sig: &'a Signature, body: Option<&'a Block>) {
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
            c.no_blocks(params, false);
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
