// SPDX-License-Identifier: Apache-2.0
//! Names, members of values and types, and elements of stacks and tuples.

use num_traits::ToPrimitive;

use super::Lower;
use super::value::{Stack, Val};
use crate::ast::{DeclKind, Expr, ExprKind, Ident};
use crate::ir::{Ex, HeaderRef};
use crate::types::{Callee, Type};

impl<'a> Lower<'a> {
    pub(super) fn eval_name(&mut self, e: &'a Expr) -> Val {
        let Some(&id) = self.t.names.get(&e.id) else {
            return Val::Unit;
        };
        if let Some(v) = self.frame.find(id) {
            return v;
        }
        let Some(d) = self.t.defs.get_decl(id) else {
            return Val::Unit;
        };
        match &d.kind {
            DeclKind::Const { init, ty } => {
                let v = self.eval(init);
                let ty = self.type_of(ty.id);
                let v = self.convert(v, &ty);
                self.frame.set(id, v.clone());
                v
            }
            DeclKind::Table(_) => Val::Table(id),
            _ => Val::Unit,
        }
    }

    pub(super) fn eval_member(&mut self, e: &'a Expr, base: &'a Expr, name: &'a Ident) -> Val {
        if let Type::Meta(t) = self.t.type_of(base.id) {
            let t = self.subst(&t);
            return self.type_member(&t, name);
        }
        if let ExprKind::Call { .. } = &base.kind
            && let Some(Callee::TableApply(_)) = self.t.calls.get(&base.id).map(|c| &c.callee)
        {
            return self.apply_member(base, &name.name);
        }
        let v = self.eval(base);
        if let Some(m) = v.member(&name.name) {
            return m;
        }
        match (&v, &*name.name) {
            (Val::Stack(s), "next") => self.header_at(&s.elem, HeaderRef::Next(s.name.clone())),
            (Val::Stack(s), "last") => self.header_at(&s.elem, HeaderRef::Last(s.name.clone())),
            (Val::UnionStack(s), "next") => {
                self.union_element(s, None, &|_, m| HeaderRef::UnionNext {
                    stack: s.name.clone(),
                    member: m.to_string(),
                })
            }
            (Val::UnionStack(s), "last") => {
                self.union_element(s, None, &|_, m| HeaderRef::UnionLast {
                    stack: s.name.clone(),
                    member: m.to_string(),
                })
            }
            (Val::Stack(Stack { name, .. }), "lastIndex") => {
                Val::Scalar(Ex::LastIndex(name.clone()))
            }
            (Val::UnionStack(s), "lastIndex") => Val::Scalar(Ex::LastIndex(s.name.clone())),
            (Val::Stack(s), "size") => Val::Scalar(Ex::bit(s.size, 32)),
            (Val::UnionStack(s), "size") => Val::Scalar(Ex::bit(s.size, 32)),
            (Val::Tuple(items), "size") => Val::Scalar(Ex::bit(items.len(), 32)),
            _ => {
                let _ = e;
                Val::Unit
            }
        }
    }

    fn type_member(&mut self, t: &Type, name: &Ident) -> Val {
        if *t == Type::Error {
            let index = self
                .t
                .errors
                .iter()
                .position(|n| *n == name.name)
                .unwrap_or(0);
            return Val::Scalar(Ex::bit(index, 32));
        }
        let Type::Named(id, _) = t else {
            return Val::Unit;
        };
        let Some(DeclKind::Enum {
            underlying,
            members,
        }) = self.t.defs.get_decl(*id).map(|d| &d.kind)
        else {
            return Val::Unit;
        };
        let Some(index) = members.iter().position(|m| m.name.name == name.name) else {
            return Val::Unit;
        };
        match (underlying, &members[index].value) {
            (Some(u), Some(value)) => {
                let ty = self.type_of(u.id);
                let v = self.eval(value);
                self.convert(v, &ty)
            }
            _ => Val::Scalar(Ex::bit(index, 32)),
        }
    }

    pub(super) fn eval_index(&mut self, base: &'a Expr, index: &'a Expr) -> Val {
        let b = self.eval(base);
        let i = match self.eval(index) {
            Val::Int(v) => Ex::bit(v, 32),
            v => self.scalar_from(v),
        };
        match &b {
            Val::Tuple(items) => match &i {
                Ex::Const(v, _) => v
                    .to_usize()
                    .and_then(|i| items.get(i).cloned())
                    .unwrap_or(Val::Unit),
                _ => {
                    self.error(
                        index.span,
                        "an index computed at run time needs a header stack",
                    );
                    Val::Unit
                }
            },
            Val::Stack(s) => {
                if let Ex::Const(v, _) = &i
                    && v.to_u32().is_none_or(|v| v >= s.size)
                {
                    self.error(
                        index.span,
                        format!(
                            "index {v} is out of range for a stack of {} elements",
                            s.size
                        ),
                    );
                    return self.stack_element(s, &Ex::bit(0, 32));
                }
                self.stack_element(s, &i)
            }
            Val::UnionStack(s) => match &i {
                Ex::Const(v, _) => {
                    let union = format!("{}[{v}]", s.name);
                    self.union_element(s, Some(union.clone()), &|_, m| {
                        HeaderRef::Static(format!("{union}.{m}"))
                    })
                }
                _ => self.union_element(s, None, &|k, _| HeaderRef::UnionElem {
                    stack: s.name.clone(),
                    index: Box::new(i.clone()),
                    member: k,
                }),
            },
            _ => Val::Unit,
        }
    }
}
