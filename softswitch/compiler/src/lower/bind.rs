// SPDX-License-Identifier: Apache-2.0
//! Binding of arguments to parameters.
//!
//! P4 copies arguments in and out. If that makes no difference, the parameter is an alias of
//! the caller's storage.

use std::collections::HashSet;

use super::Lower;
use super::assign::places;
use super::value::Val;
use crate::ast::{Arg, Direction, ExprKind, Param};
use crate::ir::{Ex, StKind};
use crate::types::CallInfo;

/// A copy to make after the call: `target = parameter`.
#[derive(Clone)]
pub(super) struct CopyOut {
    target: Val,
    from: Val,
}

impl CopyOut {
    pub(super) fn from(&self) -> &Val {
        &self.from
    }

    pub(super) fn with_source(self, from: Val) -> CopyOut {
        CopyOut { from, ..self }
    }
}

#[derive(Clone, PartialEq, Eq)]
pub(super) enum Binding {
    /// The callee accesses the caller's storage only by its parameters.
    Closed,
    /// An action, whose body may also access this storage of its control.
    Open(HashSet<String>),
    /// An instance applied in several places, whose parameters need separate storage.
    Shared,
}

impl<'a> Lower<'a> {
    /// Evaluates the arguments in the current frame; returns the parameters' values, and the
    /// copies to make afterwards.
    pub(super) fn bind(
        &mut self,
        params: &'a [Param],
        info: &CallInfo,
        args: &'a [Arg],
        mode: &Binding,
        prefix: &str,
    ) -> (Vec<Val>, Vec<CopyOut>) {
        // Left to right, saving what later arguments with side effects could change.
        let exprs: Vec<Option<&'a crate::ast::Expr>> = (0..params.len())
            .map(|i| match info.args.get(i).copied().flatten() {
                Some(k) => args.get(k).map(|a| &a.expr),
                None => params[i].default.as_ref(),
            })
            .collect();
        let last_effect = exprs
            .iter()
            .rposition(|e| e.is_some_and(|e| self.has_effects(e)));
        let mut values = Vec::new();
        for (i, (p, e)) in params.iter().zip(&exprs).enumerate() {
            let v = match e {
                Some(e) if matches!(e.kind, ExprKind::DontCare) => Val::Ignore,
                Some(e) => {
                    let v = self.eval(e);
                    let ty = self.param_type(p, info);
                    self.convert(v, &ty)
                }
                None => Val::Unit,
            };
            let v = match p.dir {
                Direction::In | Direction::None if last_effect.is_some_and(|k| i < k) => {
                    self.materialise(v)
                }
                Direction::Out | Direction::InOut => self.fix_index(v),
                _ => v,
            };
            values.push(v);
        }
        let written: Vec<HashSet<String>> = params
            .iter()
            .zip(&values)
            .map(|(p, v)| match p.dir {
                Direction::Out | Direction::InOut => places(v),
                _ => HashSet::new(),
            })
            .collect();
        let read: Vec<HashSet<String>> = values.iter().map(places).collect();
        let mut bound = Vec::new();
        let mut copies = Vec::new();
        for (i, (p, v)) in params.iter().zip(&values).enumerate() {
            let overlaps = |others: &[HashSet<String>], own: &HashSet<String>| {
                let mut others = others.iter().enumerate();
                others.any(|(k, other)| k != i && !other.is_disjoint(own))
            };
            let clash = match p.dir {
                Direction::Out => overlaps(&read, &written[i]),
                // A read parameter that clashes with a written one is a copy, so the written one can be an alias.
                _ => overlaps(&written, &read[i]),
            };
            let (b, copy) = self.bind_one(p, info, v, mode, clash, prefix);
            bound.push(b);
            copies.extend(copy);
        }
        (bound, copies)
    }

    fn param_type(&mut self, p: &Param, info: &CallInfo) -> crate::types::Type {
        let ty = self.t.type_of(p.ty.id).substitute(&|v| {
            info.targs
                .iter()
                .find(|(q, _)| *q == v)
                .map(|(_, t)| t.clone())
        });
        self.subst(&ty)
    }

    fn bind_one(
        &mut self,
        p: &'a Param,
        info: &CallInfo,
        v: &Val,
        mode: &Binding,
        clash: bool,
        prefix: &str,
    ) -> (Val, Option<CopyOut>) {
        let is_object = matches!(
            v,
            Val::Object(_)
                | Val::Block(_)
                | Val::Str(_)
                | Val::Unit
                | Val::Package { .. }
                | Val::Int(_)
                | Val::ValueSet(_)
        );
        if is_object {
            return (v.clone(), None);
        }
        let name = if prefix.is_empty() {
            p.name.name.to_string()
        } else {
            format!("{prefix}.{}", p.name.name)
        };
        match p.dir {
            Direction::In | Direction::None => {
                let direct = match mode {
                    Binding::Closed => !clash && is_place(v),
                    Binding::Open(seen) => !clash && is_place(v) && seen.is_disjoint(&places(v)),
                    Binding::Shared => false,
                };
                if direct || (v.is_const() && *mode != Binding::Shared) {
                    return (v.clone(), None);
                }
                let ty = self.param_type(p, info);
                let own = self.allocate(&ty, &name);
                self.assign(&own, v.clone());
                (own, None)
            }
            Direction::Out | Direction::InOut => {
                let direct = match mode {
                    Binding::Closed => !clash,
                    Binding::Open(seen) => !clash && seen.is_disjoint(&places(v)),
                    Binding::Shared => false,
                } && *v != Val::Ignore;
                if direct {
                    if p.dir == Direction::Out {
                        self.invalidate(v);
                    }
                    return (v.clone(), None);
                }
                let ty = self.param_type(p, info);
                let own = self.allocate(&ty, &name);
                if p.dir == Direction::InOut {
                    self.assign(&own, v.clone());
                } else {
                    self.invalidate(&own);
                }
                (
                    own.clone(),
                    Some(CopyOut {
                        target: v.clone(),
                        from: own,
                    }),
                )
            }
        }
    }

    /// Lowers a callee's body and the copies after it, which an `exit` in the body makes, too.
    pub(super) fn with_copies(&mut self, copies: Vec<CopyOut>, body: impl FnOnce(&mut Self)) {
        self.pending.push(copies);
        body(self);
        if let Some(copies) = self.pending.pop() {
            self.copy_out(copies);
        }
    }

    fn copy_out(&mut self, copies: Vec<CopyOut>) {
        for c in copies {
            self.assign(&c.target, c.from);
        }
    }

    /// `exit` leaves all calls around it.
    pub(super) fn exit(&mut self) {
        for copies in self.pending.clone().into_iter().rev() {
            self.copy_out(copies);
        }
        match self.exit_goal.clone() {
            Some((flag, end)) => {
                self.emit(StKind::Assign(flag, Ex::bool(true)));
                self.emit(StKind::Leave(end));
            }
            None => self.emit(StKind::Exit),
        }
    }

    /// Whether some call around has copies to make. A table's action cannot make them: the table
    /// may be applied with several arguments. It sets a flag instead of exiting, and the statement
    /// that applied the table does the rest.
    pub(super) fn has_pending(pending: &[Vec<CopyOut>]) -> bool {
        pending.iter().any(|copies| !copies.is_empty())
    }

    pub(super) fn exit_flag(&mut self) -> Ex {
        if let Some(flag) = &self.exit_flag {
            return flag.clone();
        }
        let flag = self.scalar_variable("exited", crate::ir::Scalar::Bool);
        self.exit_flag = Some(flag.clone());
        flag
    }

    /// Fixes computed stack indices of an output, whose place is determined before the call.
    fn fix_index(&mut self, v: Val) -> Val {
        use crate::ir::HeaderRef;
        match v {
            Val::Scalar(Ex::FieldOf {
                header: HeaderRef::Elem { stack, index },
                field,
                index: i,
                ty,
            }) => {
                let index = Box::new(self.snapshot(*index));
                Val::Scalar(Ex::FieldOf {
                    header: HeaderRef::Elem { stack, index },
                    field,
                    index: i,
                    ty,
                })
            }
            Val::Header(h) if matches!(h.at, HeaderRef::Elem { .. }) => {
                let HeaderRef::Elem { stack, index } = h.at else {
                    return Val::Unit;
                };
                let fixed = self.snapshot(*index);
                let fields = h
                    .fields
                    .into_iter()
                    .map(|(n, f)| (n, reindex(f, &fixed)))
                    .collect();
                let at = HeaderRef::Elem {
                    stack,
                    index: Box::new(fixed),
                };
                Val::Header(super::value::Header { at, fields })
            }
            v => v,
        }
    }
}

fn reindex(v: Val, to: &Ex) -> Val {
    use crate::ir::HeaderRef;
    match v {
        Val::Scalar(Ex::FieldOf {
            header: HeaderRef::Elem { stack, .. },
            field,
            index,
            ty,
        }) => Val::Scalar(Ex::FieldOf {
            header: HeaderRef::Elem {
                stack,
                index: Box::new(to.clone()),
            },
            field,
            index,
            ty,
        }),
        Val::Struct(f) => Val::Struct(f.into_iter().map(|(n, v)| (n, reindex(v, to))).collect()),
        v => v,
    }
}

/// Returns true if all leaves are constants or storage at a fixed place, so that repeated reads are cheap.
fn is_place(v: &Val) -> bool {
    match v {
        Val::HeaderLit { .. } => false,
        v => {
            let mut all = true;
            v.leaves(&mut |e| {
                all &= matches!(
                    e,
                    Ex::Field { .. }
                        | Ex::Const(..)
                        | Ex::Param(..)
                        | Ex::Valid(crate::ir::HeaderRef::Static(_))
                )
            });
            all
        }
    }
}
