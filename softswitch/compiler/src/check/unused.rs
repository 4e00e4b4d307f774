// SPDX-License-Identifier: Apache-2.0
//! Warns of unused declarations.

use super::Checker;
use crate::ast::{Annotation, AnnotationBody, Decl, DeclKind, Program, Stmt, StmtKind};
use crate::diag::Warning;

impl<'a> Checker<'a> {
    /// Warns of unused declarations in the program's own file, but not in included ones, which other programs share.
    pub(super) fn warn_unused(&self, program: &'a Program) {
        let Some(last) = program.decls.last() else {
            return;
        };
        let own = |d: &&Decl| d.span.file == last.span.file && &*d.name.name != "main";
        program
            .decls
            .iter()
            .filter(own)
            .for_each(|d| self.unused(d));
    }

    fn unused(&self, d: &'a Decl) {
        let what = match &d.kind {
            DeclKind::Control(c) if !c.is_type => "control ",
            DeclKind::Parser(p) if !p.is_type => "parser ",
            DeclKind::Table(_) => "table ",
            DeclKind::Const { init, .. } if is_assertion(init) => return,
            DeclKind::Const { .. }
            | DeclKind::Var { .. }
            | DeclKind::Instance { .. }
            | DeclKind::Function { body: Some(_), .. }
            | DeclKind::Action { .. }
            | DeclKind::ValueSet { .. }
            | DeclKind::Typedef(_)
            | DeclKind::NewType(_) => "",
            _ => return,
        };
        if !self.used.contains(&d.id) && !silenced(&d.annos) {
            self.diags.warn(
                Warning::Unused,
                d.name.span,
                format!("{what}'{}' is unused", d.name.name),
            );
        }
        // Only for actions, as in p4c: the parameters of a control or function may follow an interface.
        let params = match &d.kind {
            DeclKind::Action { params, .. } => &params[..],
            _ => &[],
        };
        for p in params {
            if !self.used.contains(&p.id) && !silenced(&p.annos) {
                let message = format!("'{}' is unused", p.name.name);
                self.diags.warn(Warning::Unused, p.name.span, message);
            }
        }
        match &d.kind {
            DeclKind::Control(c) => {
                c.locals.iter().for_each(|l| self.unused(l));
                self.unused_in(&c.body.stmts);
            }
            DeclKind::Parser(p) => {
                p.locals.iter().for_each(|l| self.unused(l));
                p.states.iter().for_each(|s| self.unused_in(&s.body));
            }
            DeclKind::Function { body: Some(b), .. } | DeclKind::Action { body: b, .. } => {
                self.unused_in(&b.stmts);
            }
            _ => {}
        }
    }

    fn unused_in(&self, stmts: &'a [Stmt]) {
        for s in stmts {
            match &s.kind {
                StmtKind::Decl(d) => self.unused(d),
                StmtKind::Block(b) => self.unused_in(&b.stmts),
                StmtKind::If {
                    then, otherwise, ..
                } => {
                    self.unused_in(std::slice::from_ref(then));
                    self.unused_in(otherwise.as_deref().map_or(&[], std::slice::from_ref));
                }
                StmtKind::Switch { cases, .. } => {
                    let bodies = cases.iter().filter_map(|c| c.body.as_ref());
                    bodies.for_each(|b| self.unused_in(&b.stmts));
                }
                StmtKind::For { body, .. } | StmtKind::ForIn { body, .. } => {
                    self.unused_in(std::slice::from_ref(body));
                }
                _ => {}
            }
        }
    }
}

/// Excludes `const bool _ = static_assert(...)`, which is declared for its check.
fn is_assertion(e: &crate::ast::Expr) -> bool {
    let mut found = false;
    e.visit(&mut |x| {
        if let crate::ast::ExprKind::Name { name, .. } = &x.kind {
            found |= &**name == "static_assert";
        }
    });
    found
}

/// `@noWarn("unused")`
fn silenced(annos: &[Annotation]) -> bool {
    annos.iter().any(|a| {
        &*a.name.name == "noWarn"
            && matches!(&a.body, AnnotationBody::Tokens { raw, .. }
                if raw.first().is_some_and(|t| t.text == "unused"))
    })
}
