// SPDX-License-Identifier: Apache-2.0
//! Checks declarations of types: structs, headers, unions, enums.

use super::{Checker, wrap};
use crate::ast::{CompositeKind, Decl, DeclKind, TypeParam};
use crate::types::{Const, Type};

/// Maximum number of fields of a struct, including nested ones, against exponential growth.
const MAX_PARTS: u64 = 1 << 16;

impl<'a> Checker<'a> {
    pub(super) fn composite(
        &mut self,
        d: &'a Decl,
        kind: CompositeKind,
        tparams: &'a [TypeParam],
        fields: &'a [crate::ast::Field],
    ) {
        self.scoped(|c| {
            c.type_params(tparams);
            let mut parts = 0u64;
            for (i, f) in fields.iter().enumerate() {
                let t = c.type_ref(&f.ty);
                c.set_type(f.id, t.clone());
                if fields[..i].iter().any(|g| g.name.name == f.name.name) {
                    c.error(
                        f.name.span,
                        format!("duplicate field '{}'", f.name.name),
                    );
                }
                c.field_type(kind, f, &t);
                c.complete(&t, f.ty.span);
                parts = parts.saturating_add(c.parts_of(&t));
                if parts > MAX_PARTS {
                    c.error(
                        f.name.span,
                        format!("with this field, there are more than {MAX_PARTS} fields, including nested ones"),
                    );
                    c.set_type(f.ty.id, Type::Unknown);
                    c.set_type(f.id, Type::Unknown);
                    break;
                }
                c.annotations(&f.annos);
            }
            c.parts.insert(d.id, parts);
        });
        self.declare(&d.name, d.id);
    }

    fn parts_of(&self, t: &Type) -> u64 {
        match self.resolve(t) {
            Type::Named(id, _) => self.parts.get(&id).copied().unwrap_or(1),
            Type::Stack(t, n) => self.parts_of(&t).saturating_mul(u64::from(n)),
            Type::Tuple(items) => items
                .iter()
                .fold(0, |sum, t| self.parts_of(t).saturating_add(sum)),
            _ => 1,
        }
    }

    fn field_type(&mut self, kind: CompositeKind, f: &crate::ast::Field, t: &Type) {
        if self.field_allowed(kind, t) {
            return;
        }
        let what = match kind {
            CompositeKind::Struct => "struct",
            CompositeKind::Header => "header",
            CompositeKind::Union => "header union",
        };
        self.error(
            f.name.span,
            format!(
                "field '{}' of type {} is not allowed in a {what}",
                f.name.name,
                self.show(t)
            ),
        );
    }

    /// Returns true if a struct, header or union can have a field of the type.
    pub(super) fn field_allowed(&self, kind: CompositeKind, t: &Type) -> bool {
        let t = self.resolve(t);
        let named = match &t {
            Type::Named(id, _) => self.decl(*id).map(|d| &d.kind),
            _ => None,
        };
        let inner = match named {
            Some(DeclKind::Composite { kind, .. }) => Some(*kind),
            _ => None,
        };
        match (kind, &t) {
            (_, Type::Unknown | Type::Var(_) | Type::Open(_)) => true,
            (CompositeKind::Union, _) => inner == Some(CompositeKind::Header),
            (
                CompositeKind::Header,
                Type::Bit(_) | Type::SInt(_) | Type::Varbit(_) | Type::Bool,
            ) => true,
            // A struct in a header may contain only types that a header may contain.
            (CompositeKind::Header, _) if inner == Some(CompositeKind::Struct) => self
                .fields(&t)
                .unwrap_or_default()
                .iter()
                .all(|(_, f)| self.field_allowed(CompositeKind::Header, f)),
            (CompositeKind::Header, _) => {
                self.enum_underlying(&t).is_some() || self.newtype_base(&t).is_some()
            }
            (
                CompositeKind::Struct,
                Type::Void | Type::Str | Type::MatchKind | Type::Int | Type::Set(_),
            ) => false,
            (CompositeKind::Struct, Type::Named(..)) => matches!(
                named,
                Some(DeclKind::Composite { .. } | DeclKind::Enum { .. } | DeclKind::NewType(_))
            ),
            (CompositeKind::Struct, _) => true,
        }
    }

    pub(super) fn enumeration(
        &mut self,
        d: &'a Decl,
        under: Option<&'a crate::ast::TypeRef>,
        members: &'a [crate::ast::EnumMember],
    ) {
        let under = under.map(|u| (self.type_ref(u), u.span));
        if let Some((t, span)) = &under {
            let base = self.newtype_base(t).unwrap_or_else(|| t.clone());
            if !matches!(base, Type::Bit(_) | Type::SInt(_) | Type::Unknown) {
                self.error(
                    *span,
                    format!(
                        "the underlying type of an enum must be bit<> or int<>, not {}",
                        self.show(t)
                    ),
                );
            }
        }
        if members.is_empty() {
            self.error(d.name.span, "an enum needs at least one member");
        }
        for (i, m) in members.iter().enumerate() {
            if members[..i].iter().any(|o| o.name.name == m.name.name) {
                self.error(m.name.span, format!("'{}' is declared twice", m.name.name));
            }
            match (&under, &m.value) {
                (Some((t, _)), Some(v)) => {
                    let t = t.clone();
                    self.expr_as(v, &t);
                    if let Some(Const::Int(value, _)) = self.const_raw(v)
                        && wrap(&value, &t) != value
                    {
                        self.error(
                            v.span,
                            format!("{value} does not fit the underlying type {}", self.show(&t)),
                        );
                    }
                    if self.const_value(v).is_none() && !self.type_of(v.id).is_unknown() {
                        self.error(v.span, "the value is not known at compile time");
                    }
                }
                (Some(_), None) => {
                    self.error(m.name.span, format!("'{}' needs a value", m.name.name))
                }
                (None, Some(v)) => {
                    self.expr(v, None);
                    self.diags.error_hint(
                        v.span,
                        "members of an enum without an underlying type cannot have values",
                        "write enum bit<8> ...",
                    );
                }
                (None, None) => {}
            }
        }
        self.declare(&d.name, d.id);
    }
}
