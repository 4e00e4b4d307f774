// SPDX-License-Identifier: Apache-2.0
//! Checks implementations of abstract methods of externs.

use super::Checker;
use super::call::is_optional;
use crate::ast::{Decl, DeclKind};
use crate::types::Type;

impl<'a> Checker<'a> {
    /// Declares `this`, by which implementations of abstract methods call methods of their instance.
    pub(super) fn declare_this(&mut self, instance: &Decl) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert("this".into(), vec![instance.id]);
        }
    }

    /// Checks the body of `Type(args) name = { methods };`.
    pub(super) fn virtual_methods(&mut self, d: &'a Decl, ty: &Type, body: Option<&'a [Decl]>) {
        let Type::Named(id, targs) = self.resolve(ty) else {
            return;
        };
        let Some(DeclKind::Extern { methods, tparams }) = self.decl(id).map(|d| &d.kind) else {
            if body.is_some() {
                self.error(d.name.span, "only instances of externs can have a body");
            }
            return;
        };
        if body.is_some() && !methods.iter().any(|m| m.is_abstract) {
            self.error(
                d.name.span,
                format!("{} has no abstract methods to implement", self.show(ty)),
            );
            return;
        }
        let body = body.unwrap_or_default();
        let known = |v| {
            let i = tparams.iter().position(|p| p.id == v)?;
            targs.get(i).cloned()
        };
        for m in body {
            let DeclKind::Function { sig, .. } = &m.kind else {
                continue;
            };
            let Some(declared) = methods
                .iter()
                .find(|x| x.is_abstract && x.name.name == m.name.name)
            else {
                self.error(
                    m.name.span,
                    format!("{} has no abstract method '{}'", self.show(ty), m.name.name),
                );
                continue;
            };
            // An implementation may leave out the last parameters if they are optional.
            let count = sig.params.len();
            let same = count <= declared.sig.params.len()
                && declared.sig.params[count..].iter().all(is_optional)
                && sig.params.iter().zip(&declared.sig.params).all(|(a, b)| {
                    let (x, y) = (
                        self.type_of(a.ty.id),
                        self.type_of(b.ty.id).substitute(&known),
                    );
                    a.dir == b.dir && (x == y || matches!(y, Type::Var(_)))
                });
            let (r, s) = (
                self.type_of(sig.ret.id),
                self.type_of(declared.sig.ret.id).substitute(&known),
            );
            if !same || (r != s && !matches!(s, Type::Var(_))) {
                self.error(
                    m.name.span,
                    format!(
                        "the signature of '{}' differs from its declaration in {}",
                        m.name.name,
                        self.show(ty)
                    ),
                );
            }
        }
        for m in methods.iter().filter(|m| m.is_abstract && !m.is_optional) {
            if !body.iter().any(|b| b.name.name == m.name.name) {
                self.error(
                    d.name.span,
                    format!("abstract method '{}' is not implemented", m.name.name),
                );
            }
        }
    }
}
