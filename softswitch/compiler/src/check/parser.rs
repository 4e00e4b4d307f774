// SPDX-License-Identifier: Apache-2.0
//! Checks parsers: states, transitions, select expressions.

use super::Checker;
use crate::ast::{Decl, Expr, ExprKind, Ident, ParserDecl, State, Transition};
use crate::diag::Span;
use crate::types::Type;

impl<'a> Checker<'a> {
    pub(super) fn parser_states(&mut self, d: &Decl, p: &'a ParserDecl) {
        let mut start = false;
        for (i, s) in p.states.iter().enumerate() {
            start |= &*s.name.name == "start";
            if matches!(&*s.name.name, "accept" | "reject") {
                self.error(s.name.span, format!("state '{}' is built in", s.name.name));
            }
            if p.states[..i].iter().any(|o| o.name.name == s.name.name) {
                self.error(s.name.span, format!("duplicate state '{}'", s.name.name));
            }
        }
        if !start {
            self.diags.error_hint(
                d.name.span,
                format!("parser '{}' has no state 'start'", d.name.name),
                "parsing starts in the state 'start'",
            );
        }
        for s in &p.states {
            self.scoped(|c| c.state(p, s));
        }
        if start && !ends(p) {
            self.error(
                d.name.span,
                "the parser can reach neither accept nor reject",
            );
        }
    }

    fn state(&mut self, p: &ParserDecl, s: &'a State) {
        self.annotations(&s.annos);
        self.context.in_body = true;
        self.stmts(&s.body);
        self.context.in_body = false;
        match &s.transition {
            Transition::Missing => {}
            Transition::Direct(target) => self.target(p, target),
            Transition::Select { keys, cases, span } => {
                let types: Vec<Type> = keys.iter().map(|k| self.expr(k, None)).collect();
                let types: Vec<Type> = types.iter().map(|t| self.resolve(t)).collect();
                for (k, t) in keys.iter().zip(&types) {
                    let ok = matches!(
                        t,
                        Type::Bit(_) | Type::SInt(_) | Type::Bool | Type::Unknown | Type::Var(_)
                    ) || self.is_enum(t)
                        || self.newtype_base(t).is_some()
                        || matches!(t, Type::Tuple(_));
                    if *t == Type::Int {
                        self.diags.error_hint(
                            k.span,
                            "the width of the key is unknown",
                            "write it, for example 8w1",
                        );
                    } else if !ok {
                        self.error(k.span, format!("{} cannot be a select key", self.show(t)));
                    }
                }
                for case in cases {
                    // A mismatch is reported for the whole select, because the keys may be wrong, too.
                    self.keyset(&case.keyset, &types, Some(*span));
                    self.target(p, &case.target);
                }
            }
        }
    }

    fn target(&mut self, p: &ParserDecl, target: &Ident) {
        let known = matches!(&*target.name, "accept" | "reject")
            || p.states.iter().any(|s| s.name.name == target.name);
        if !known {
            let names: Vec<&str> = p.states.iter().map(|s| &*s.name.name).collect();
            self.diags.error_hint(
                target.span,
                format!("unknown state '{}'", target.name),
                format!("states: accept, reject, {}", names.join(", ")),
            );
        }
    }

    /// Checks a keyset against the types of the keys; also used for table entries. Mismatches are
    /// reported at `whole`, if given.
    pub(super) fn keyset(&mut self, e: &'a Expr, keys: &[Type], whole: Option<Span>) {
        if matches!(e.kind, ExprKind::Default | ExprKind::DontCare) {
            self.set_type(e.id, Type::Any);
            return;
        }
        if let ExprKind::List { items, .. } = &e.kind
            && keys.len() != 1
        {
            if items.len() != keys.len() {
                self.error(
                    whole.unwrap_or(e.span),
                    format!("{} values expected, {} given", keys.len(), items.len()),
                );
                return;
            }
            for (item, key) in items.iter().zip(keys) {
                self.keyset_item(item, key, whole);
            }
            self.set_type(e.id, Type::Tuple(keys.to_vec()));
            return;
        }
        if keys.len() == 1 {
            if let ExprKind::List { items, .. } = &e.kind
                && items.len() == 1
            {
                self.set_type(e.id, Type::Tuple(keys.to_vec()));
                self.keyset_item(&items[0], &keys[0], whole);
                return;
            }
            self.keyset_item(e, &keys[0], whole);
            return;
        }
        // One set for all keys: a value set of a tuple or struct.
        let ty = self.expr(e, None);
        let ok = match self.resolve(&ty) {
            Type::Set(t) => match self.resolve(&t) {
                Type::Tuple(ts) => {
                    ts.len() == keys.len() && ts.iter().zip(keys).all(|(a, b)| self.unify(a, b))
                }
                t @ Type::Named(..) => {
                    let parts = self.flat_types(&t);
                    parts.len() == keys.len()
                        && parts.iter().zip(keys).all(|(a, b)| self.unify(a, b))
                }
                _ => false,
            },
            Type::Unknown => true,
            _ => false,
        };
        if !ok {
            self.error(
                whole.unwrap_or(e.span),
                format!("{} values expected, one given", keys.len()),
            );
        }
    }

    /// Returns the types of the fields, including nested ones.
    fn flat_types(&self, ty: &Type) -> Vec<Type> {
        match self.fields(ty) {
            Some(fields) => fields
                .iter()
                .flat_map(|(_, t)| self.flat_types(t))
                .collect(),
            None => vec![ty.clone()],
        }
    }

    fn keyset_item(&mut self, e: &'a Expr, key: &Type, whole: Option<Span>) {
        if matches!(e.kind, ExprKind::Default | ExprKind::DontCare) {
            self.set_type(e.id, Type::Any);
            return;
        }
        let want = Type::Set(Box::new(key.clone()));
        let got = self.expr(e, Some(&want));
        let got = self.resolve(&got);
        match (&e.kind, &got) {
            (ExprKind::Mask(a, b) | ExprKind::Range(a, b), Type::Set(_)) => {
                let base = self
                    .newtype_base(key)
                    .or_else(|| self.enum_underlying(key))
                    .unwrap_or_else(|| key.clone());
                for x in [a, b] {
                    let t = self.type_of(x.id);
                    if t != *key {
                        self.expect_at(whole.unwrap_or(x.span), x, &t, &base);
                    }
                    self.constant_key(x);
                }
            }
            _ => {
                // A value set of a struct with one field is equivalent to that field.
                if let Type::Set(t) = &got
                    && let Some(f) = self.fields(t)
                    && f.len() == 1
                    && self.unify(&f[0].1, key)
                {
                    return;
                }
                self.expect_at(whole.unwrap_or(e.span), e, &got, &want);
            }
        }
    }

    fn constant_key(&mut self, e: &Expr) {
        if !self.known_at_compile_time(e) {
            self.error(e.span, "a value to match must be known at compile time");
        }
    }
}

/// Returns true if `accept` or `reject` can be reached from `start`.
fn ends(p: &ParserDecl) -> bool {
    let mut todo = vec!["start"];
    let mut seen: Vec<&str> = Vec::new();
    while let Some(name) = todo.pop() {
        if matches!(name, "accept" | "reject") {
            return true;
        }
        if seen.contains(&name) {
            continue;
        }
        seen.push(name);
        let Some(s) = p.states.iter().find(|s| &*s.name.name == name) else {
            return true;
        };
        match &s.transition {
            // A missing transition, and a select without a match, lead to reject.
            Transition::Missing => return true,
            Transition::Direct(t) => todo.push(&t.name),
            Transition::Select { cases, .. } => {
                if !cases
                    .iter()
                    .any(|c| matches!(c.keyset.kind, ExprKind::Default | ExprKind::DontCare))
                {
                    return true;
                }
                todo.extend(cases.iter().map(|c| &*c.target.name));
            }
        }
    }
    false
}
