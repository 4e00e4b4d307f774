// SPDX-License-Identifier: Apache-2.0
//! Checks names, members of values and types, and elements of stacks and tuples.

use num_traits::{Signed, ToPrimitive};

use super::Checker;
use crate::ast::{CompositeKind, DeclKind, Expr, ExprKind, Ident, Name};
use crate::types::{Const, Def, Type};

impl<'a> Checker<'a> {
    pub(super) fn name(&mut self, e: &Expr, name: &Name, global: bool) -> Type {
        if &**name == "error" {
            return Type::Meta(Box::new(Type::Error));
        }
        let Some(ids) = self.lookup(name, global) else {
            self.undeclared(name, e.span);
            return Type::Unknown;
        };
        let Some(&id) = ids.first() else {
            return Type::Unknown;
        };
        self.names.insert(e.id, id);
        self.used.insert(id);
        match self.defs.get(id) {
            Some(Def::Param(p)) => self.type_of(p.ty.id),
            Some(Def::TypeParam(_)) => Type::Meta(Box::new(Type::Var(id))),
            Some(Def::State) => {
                self.error(e.span, format!("state '{name}' cannot be used as a value"));
                Type::Unknown
            }
            Some(Def::Decl(d)) => match &d.kind {
                DeclKind::Const { ty, .. } | DeclKind::Var { ty, .. } => self.type_of(ty.id),
                DeclKind::Instance { .. } => self.type_of(d.id),
                DeclKind::ValueSet { ty, .. } => Type::Set(Box::new(self.type_of(ty.id))),
                DeclKind::Function { .. } => Type::Callable,
                DeclKind::Action { .. } => Type::Action(id),
                DeclKind::Table(_) => Type::Table(id),
                DeclKind::Typedef(t) => Type::Meta(Box::new(self.type_of(t.id))),
                DeclKind::Errors(_) | DeclKind::MatchKinds(_) => Type::Unknown,
                _ => {
                    let ty = self.named_type(name, global, Vec::new(), e.span);
                    Type::Meta(Box::new(ty))
                }
            },
            _ => Type::Unknown,
        }
    }

    pub(super) fn member(&mut self, base: &'a Expr, name: &Ident) -> Type {
        let ty = self.expr(base, None);
        let ty = self.resolve(&ty);
        if self.is_next_header(base) && !matches!(&*name.name, "setValid" | "setInvalid") {
            self.diags.unsupported_hint(
                base.span,
                "the next header of a stack has no value before it is extracted",
                "read 'last', the previously extracted header",
            );
        }
        match &ty {
            Type::Unknown => return Type::Unknown,
            Type::Meta(t) => return self.type_member(t, name),
            Type::Table(_) if &*name.name == "apply" => return Type::Callable,
            Type::ApplyResult(t) => match &*name.name {
                "hit" | "miss" => return Type::Bool,
                "action_run" => {
                    if !self.context.in_subject {
                        self.error(
                            name.span,
                            "'action_run' is allowed only as the subject of a switch statement",
                        );
                    }
                    return Type::ActionRun(*t);
                }
                _ => {}
            },
            Type::Stack(elem, _) => match &*name.name {
                "next" | "last" => {
                    if !self.context.in_parser {
                        self.error(
                            name.span,
                            format!("'{}' of a stack is allowed only in a parser", name.name),
                        );
                    }
                    return (**elem).clone();
                }
                "lastIndex" => {
                    if !self.context.in_parser {
                        self.error(
                            name.span,
                            "'lastIndex' of a stack is allowed only in a parser",
                        );
                    }
                    return Type::Bit(32);
                }
                "size" => return Type::Bit(32),
                "push_front" | "pop_front" => return Type::Callable,
                _ => {}
            },
            Type::Record(fields) => {
                if let Some((_, t)) = fields.iter().find(|(n, _)| *n == name.name) {
                    return t.clone();
                }
            }
            Type::Named(id, _) => match self.decl(*id).map(|d| &d.kind) {
                Some(DeclKind::Composite { kind, .. }) => {
                    let fields = self.fields(&ty).unwrap_or_default();
                    if let Some((_, t)) = fields.iter().find(|(n, _)| *n == name.name) {
                        return t.clone();
                    }
                    let is_method = match kind {
                        CompositeKind::Header => {
                            matches!(&*name.name, "isValid" | "setValid" | "setInvalid")
                        }
                        CompositeKind::Union => &*name.name == "isValid",
                        CompositeKind::Struct => false,
                    };
                    if is_method || is_size_method(&name.name) {
                        return Type::Callable;
                    }
                    let known: Vec<&str> = fields.iter().map(|(n, _)| &**n).collect();
                    self.diags.error_hint(
                        name.span,
                        format!("{} has no field '{}'", self.show(&ty), name.name),
                        format!("it has: {}", known.join(", ")),
                    );
                    return Type::Unknown;
                }
                Some(DeclKind::Extern { .. } | DeclKind::Parser(_) | DeclKind::Control(_)) => {
                    return Type::Callable;
                }
                _ => {}
            },
            _ => {}
        }
        if is_size_method(&name.name) {
            return Type::Callable;
        }
        self.error(
            name.span,
            format!("{} has no member '{}'", self.show(&ty), name.name),
        );
        Type::Unknown
    }

    /// Returns true if the expression is `stack.next` of a stack of headers.
    fn is_next_header(&self, e: &Expr) -> bool {
        let ExprKind::Member(stack, name) = &e.kind else {
            return false;
        };
        let Type::Stack(elem, _) = self.type_of(stack.id) else {
            return false;
        };
        &*name.name == "next" && self.composite_kind(&elem) == Some(CompositeKind::Header)
    }

    fn type_member(&mut self, ty: &Type, name: &Ident) -> Type {
        if *ty == Type::Error {
            if !self.errors.contains(&name.name) {
                self.error(
                    name.span,
                    format!("'{}' is not a declared error", name.name),
                );
            }
            return Type::Error;
        }
        if let Type::Named(id, _) = ty {
            match self.decl(*id).map(|d| &d.kind) {
                Some(DeclKind::Enum { members, .. }) => {
                    if !members.iter().any(|m| m.name.name == name.name) {
                        let known: Vec<&str> = members.iter().map(|m| &*m.name.name).collect();
                        self.diags.error_hint(
                            name.span,
                            format!("{} has no member '{}'", self.show(ty), name.name),
                            format!("it has: {}", known.join(", ")),
                        );
                    }
                    return ty.clone();
                }
                Some(DeclKind::Parser(_) | DeclKind::Control(_)) if &*name.name == "apply" => {
                    return Type::Callable;
                }
                _ => {}
            }
        }
        if is_size_method(&name.name) {
            return Type::Callable;
        }
        self.error(
            name.span,
            format!("type {} has no member '{}'", self.show(ty), name.name),
        );
        Type::Unknown
    }

    pub(super) fn index(&mut self, base: &'a Expr, index: &'a Expr) -> Type {
        let ty = self.expr(base, None);
        let it = self.expr(index, None);
        let it = self.resolve(&it);
        if !matches!(it, Type::Int | Type::Bit(_) | Type::SInt(_) | Type::Unknown)
            && self.enum_underlying(&it).is_none()
        {
            self.error(
                index.span,
                format!("an index must be a number, not {}", self.show(&it)),
            );
        }
        let value = match self.const_value(index) {
            Some(Const::Int(v, ty)) => {
                let constant = Const::Int(v.clone(), ty);
                self.constants.insert(index.id, constant);
                Some(v)
            }
            _ => None,
        };
        match self.resolve(&ty) {
            Type::Stack(elem, n) => {
                if let Some(v) = value
                    && (v.is_negative() || v.to_u32().is_none_or(|v| v >= n))
                {
                    self.error(
                        index.span,
                        format!("index {v} is out of range for a stack of {n} elements"),
                    );
                }
                *elem
            }
            Type::Tuple(items) => match value.as_ref().and_then(num_bigint::BigInt::to_usize) {
                Some(i) if i < items.len() => items[i].clone(),
                Some(i) => {
                    self.error(
                        index.span,
                        format!(
                            "index {i} is out of range for a tuple of {} items",
                            items.len()
                        ),
                    );
                    Type::Unknown
                }
                None => {
                    self.error(index.span, "a tuple's index must be known at compile time");
                    Type::Unknown
                }
            },
            Type::Unknown => Type::Unknown,
            other => {
                self.error(
                    base.span,
                    format!("{} cannot be indexed", self.show(&other)),
                );
                Type::Unknown
            }
        }
    }
}

/// The methods of all types with a fixed layout.
pub(super) fn is_size_method(name: &str) -> bool {
    matches!(
        name,
        "minSizeInBits" | "maxSizeInBits" | "minSizeInBytes" | "maxSizeInBytes"
    )
}
