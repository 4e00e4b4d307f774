// SPDX-License-Identifier: Apache-2.0
//! Checks lists, records and casts.

use super::Checker;
use crate::ast::{CompositeKind, Expr, Ident};
use crate::types::Type;

impl<'a> Checker<'a> {
    pub(super) fn list(
        &mut self,
        e: &Expr,
        items: &'a [Expr],
        dots: bool,
        want: Option<&Type>,
    ) -> Type {
        let want = want.map(|t| match t {
            Type::Set(inner) => (**inner).clone(),
            t => t.clone(),
        });
        let wanted: Option<Vec<Type>> = match &want {
            Some(Type::Tuple(ts)) => Some(ts.clone()),
            Some(Type::List(t)) => Some(vec![(**t).clone(); items.len()]),
            Some(Type::Stack(t, n)) => Some(vec![(**t).clone(); *n as usize]),
            Some(t) => self
                .fields(t)
                .map(|f| f.into_iter().map(|(_, t)| t).collect()),
            None => None,
        };
        let Some(wanted) = wanted else {
            let types = items.iter().map(|i| self.expr(i, None)).collect();
            return Type::Tuple(types);
        };
        if self.composite_kind(want.as_ref().unwrap_or(&Type::Unknown))
            == Some(CompositeKind::Union)
        {
            self.error(e.span, "a header union cannot be written as a list");
        }
        let enough = if dots {
            items.len() <= wanted.len()
        } else {
            items.len() == wanted.len()
        };
        if !enough {
            self.error(
                e.span,
                format!("{} values expected, {} given", wanted.len(), items.len()),
            );
            items.iter().for_each(|i| {
                self.expr(i, None);
            });
            return Type::Unknown;
        }
        for (item, t) in items.iter().zip(&wanted) {
            let got = self.expr(item, Some(t));
            self.expect(item, &got, t);
        }
        want.unwrap_or(Type::Unknown)
    }

    pub(super) fn record(
        &mut self,
        e: &Expr,
        fields: &'a [(Ident, Expr)],
        dots: bool,
        want: Option<&Type>,
    ) -> Type {
        for (i, (name, _)) in fields.iter().enumerate() {
            if fields[..i].iter().any(|(n, _)| n.name == name.name) {
                self.error(name.span, format!("duplicate field '{}'", name.name));
            }
        }
        let wanted = want.and_then(|t| self.fields(t));
        let (Some(want), Some(wanted)) = (want, wanted) else {
            let list = fields
                .iter()
                .map(|(n, x)| (n.name.clone(), self.expr(x, None)))
                .collect();
            return Type::Record(list);
        };
        for (name, x) in fields {
            match wanted.iter().find(|(n, _)| *n == name.name) {
                Some((_, t)) => {
                    let t = t.clone();
                    let got = self.expr(x, Some(&t));
                    self.expect(x, &got, &t);
                }
                None => {
                    self.expr(x, None);
                    self.error(
                        name.span,
                        format!("{} has no field '{}'", self.show(want), name.name),
                    );
                }
            }
        }
        if !dots {
            let missing: Vec<&str> = wanted
                .iter()
                .filter(|(n, _)| !fields.iter().any(|(f, _)| f.name == *n))
                .map(|(n, _)| &**n)
                .collect();
            if !missing.is_empty() {
                self.diags.error_hint(
                    e.span,
                    format!("no value for {}", missing.join(", ")),
                    "add it, or end the list with ... for default values",
                );
            }
        }
        want.clone()
    }

    /// Checks explicit casts.
    pub(super) fn cast(&mut self, e: &Expr, x: &Expr, from: &Type, to: &Type) {
        let (from, to) = (self.resolve(from), self.resolve(to));
        if self.convert(x, &from, &to) {
            return;
        }
        if let (Type::Int, Type::Bool, Some(super::Const::Int(v, _))) =
            (&from, &to, self.const_value(x))
            && v.bits() > 1
        {
            self.error(e.span, format!("only 0 and 1 can be cast to bool, not {v}"));
        } else if !self.castable(&from, &to) {
            self.error(
                e.span,
                format!("{} cannot be cast to {}", self.show(&from), self.show(&to)),
            );
        }
    }

    pub(super) fn castable(&mut self, from: &Type, to: &Type) -> bool {
        // A cast may go one step between a new type and the type that it renames; a number may take any number of steps.
        if let Some(base) = self.newtype_base(to) {
            return *from == base || *from == Type::Int && self.castable(from, &base);
        }
        if let Some(base) = self.newtype_base(from) {
            return *to == base;
        }
        if self.is_enum(to) {
            return self.enum_underlying(to).is_some_and(|u| {
                *from == u || matches!(from, Type::Int | Type::Unknown | Type::Var(_))
            });
        }
        if let Some(u) = self.enum_underlying(from) {
            return *to == u || self.castable_plain(&u, to);
        }
        self.castable_plain(from, to)
    }

    pub(super) fn castable_plain(&self, from: &Type, to: &Type) -> bool {
        match (from, to) {
            (Type::Bit(_), Type::Bit(_)) | (Type::SInt(_), Type::SInt(_)) => true,
            (Type::Bit(a), Type::SInt(b)) | (Type::SInt(a), Type::Bit(b)) => a == b,
            (Type::Bit(1), Type::Bool) | (Type::Bool, Type::Bit(1)) => true,
            (Type::Int, Type::Bit(_) | Type::SInt(_) | Type::Bool | Type::Int) => true,
            // Unbounded until it is cast back.
            (Type::Bit(_) | Type::SInt(_), Type::Int) => true,
            (Type::Unknown | Type::Open(_), _) | (_, Type::Unknown | Type::Open(_)) => true,
            // A type parameter is checked when its type is known.
            (Type::Var(_), _) | (_, Type::Var(_)) => true,
            (a, b) => a == b,
        }
    }
}
