// SPDX-License-Identifier: Apache-2.0
//! Name resolution and type checking.
//!
//! Visits the program once in order, because P4 requires declaration before use, and fills a [`Typed`].

mod annotation;
mod arguments;
mod binary;
mod block;
mod call;
mod consteval;
mod construct;
mod decl;
mod entries;
mod expr;
mod function;
mod list;
mod lvalue;
mod member;
mod method;
mod parser;
mod slice;
mod stmt;
mod table;
mod typedecl;
mod typeref;
mod unify;
mod unused;
mod virtuals;

use std::collections::{HashMap, HashSet};

use crate::ast::{Decl, Ident, Name, NodeId, Program};
use crate::diag::{Diagnostics, Span, Warning};
use crate::near::{did_you_mean, nearest};
use crate::types::{CallInfo, Const, Def, Defs, Type, Typed};

pub use consteval::{fold_binary, wrap};

pub fn check<'a>(program: &'a Program, diags: &'a Diagnostics) -> Typed<'a> {
    let mut c = Checker {
        diags,
        defs: Defs::collect(program),
        types: vec![None; program.node_count as usize],
        names: HashMap::new(),
        calls: HashMap::new(),
        coercions: HashMap::new(),
        constants: HashMap::new(),
        errors: Vec::new(),
        match_kinds: Vec::new(),
        scopes: vec![HashMap::new()],
        infer: Vec::new(),
        wildcards: false,
        context: Context::default(),
        used: HashSet::new(),
        consts: HashMap::new(),
        open: Vec::new(),
        parts: HashMap::new(),
    };
    for d in &program.decls {
        c.top(d);
    }
    c.finish(program)
}

/// The context of the current statement.
#[derive(Clone, Default)]
struct Context {
    /// Return type of the enclosing function; `None` outside functions.
    returns: Option<Type>,
    in_action: bool,
    in_parser: bool,
    in_control: bool,
    in_loop: bool,
    /// In statements, not in declarations.
    in_body: bool,
    /// In the expression of a switch.
    in_subject: bool,
    /// Inside a table declaration.
    in_table: bool,
    /// In the parameters of a package.
    in_package: bool,
    /// In the signature of an extern's method.
    in_method: bool,
}

pub(crate) struct Checker<'a> {
    diags: &'a Diagnostics,
    defs: Defs<'a>,
    types: Vec<Option<Type>>,
    names: HashMap<NodeId, NodeId>,
    calls: HashMap<NodeId, CallInfo>,
    coercions: HashMap<NodeId, Type>,
    constants: HashMap<NodeId, Const>,
    errors: Vec<Name>,
    match_kinds: Vec<Name>,
    /// Innermost last; several ids for overloaded functions.
    scopes: Vec<HashMap<Name, Vec<NodeId>>>,
    /// Values of the inference variables.
    infer: Vec<Option<Type>>,
    /// True while `_` stands for any type instead of an inferred one.
    wildcards: bool,
    context: Context,
    used: HashSet<NodeId>,
    consts: HashMap<NodeId, Option<Const>>,
    /// Controls and parsers whose declaration is not complete.
    open: Vec<NodeId>,
    /// Number of fields of structs, including nested ones.
    parts: HashMap<NodeId, u64>,
}

impl<'a> Checker<'a> {
    pub(super) fn finish(mut self, program: &'a Program) -> Typed<'a> {
        for d in program.decls.iter().filter(|d| &*d.name.name == "main") {
            let package = match self.type_of(d.id) {
                Type::Named(id, _) => matches!(
                    self.decl(id).map(|d| &d.kind),
                    Some(crate::ast::DeclKind::Package { .. })
                ),
                other => {
                    other.is_unknown() && matches!(d.kind, crate::ast::DeclKind::Instance { .. })
                }
            };
            if !package {
                self.diags.error_hint(
                    d.name.span,
                    "'main' must be an instance of a package",
                    "V1Switch(...) main;",
                );
            }
        }
        self.warn_unused(program);
        let types = std::mem::take(&mut self.types);
        let types = types
            .into_iter()
            .map(|t| t.map(|t| self.resolve(&t)))
            .collect();
        let coercions = std::mem::take(&mut self.coercions);
        let coercions = coercions
            .into_iter()
            .map(|(k, t)| (k, self.resolve(&t)))
            .collect();
        let calls = std::mem::take(&mut self.calls);
        let calls = calls
            .into_iter()
            .map(|(k, mut c)| {
                for (_, t) in &mut c.targs {
                    *t = self.resolve(t);
                }
                (k, c)
            })
            .collect();
        Typed {
            program,
            defs: self.defs,
            types,
            names: self.names,
            calls,
            coercions,
            constants: self.constants,
            errors: self.errors,
        }
    }

    fn set_type(&mut self, id: NodeId, ty: Type) {
        self.types[id as usize] = Some(ty);
    }

    fn type_of(&self, id: NodeId) -> Type {
        let ty = self.types[id as usize].clone().unwrap_or(Type::Unknown);
        self.resolve(&ty)
    }

    fn show(&self, ty: &Type) -> String {
        self.resolve(ty).show(&self.defs)
    }

    fn error(&self, span: Span, message: impl Into<String>) {
        self.diags.error(span, message);
    }

    fn scoped<T>(&mut self, f: impl FnOnce(&mut Self) -> T) -> T {
        self.scopes.push(HashMap::new());
        let r = f(self);
        self.scopes.pop();
        r
    }

    /// Declares a name in the current scope; reports a duplicate.
    fn declare(&mut self, name: &Ident, id: NodeId) {
        self.declare_overload(name, id, false);
    }

    fn declare_overload(&mut self, name: &Ident, id: NodeId, overload: bool) {
        let depth = self.scopes.len();
        let Some(scope) = self.scopes.last_mut() else {
            return;
        };
        let ids = scope.entry(name.name.clone()).or_default();
        if !ids.is_empty() && !overload {
            self.diags.error_hint(
                name.span,
                format!("'{}' is already declared in this scope", name.name),
                "rename one of the two",
            );
            return;
        }
        ids.push(id);
        if depth > 1 {
            self.shadowing(name, id);
        }
    }

    /// Checks that a declaration in statements does not hide a parameter; other names may be hidden.
    fn shadowing(&self, name: &Ident, id: NodeId) {
        let outer = self.scopes[..self.scopes.len() - 1]
            .iter()
            .rev()
            .find_map(|s| s.get(&name.name).and_then(|v| v.first()));
        let Some(outer) = outer.filter(|o| **o != id) else {
            return;
        };
        let is_param = |id| matches!(self.defs.get(id), Some(Def::Param(_)));
        let in_code =
            self.context.in_body || self.context.in_action || self.context.returns.is_some();
        if in_code && is_param(*outer) && matches!(self.defs.get(id), Some(Def::Decl(_))) {
            self.diags.error_hint(
                name.span,
                format!("'{}' hides a parameter of the same name", name.name),
                "rename one of the two",
            );
        } else if !(self.context.in_method && is_param(id)) {
            self.diags.warn(
                Warning::Shadow,
                name.span,
                format!("'{}' shadows a declaration of the same name", name.name),
            );
        }
    }

    /// Returns the declarations of a name in the innermost scope that has any.
    fn lookup(&self, name: &str, global: bool) -> Option<&Vec<NodeId>> {
        if global {
            return self.scopes[0].get(name);
        }
        self.scopes.iter().rev().find_map(|s| s.get(name))
    }

    fn undeclared(&self, name: &str, span: Span) {
        let known = self.scopes.iter().flat_map(HashMap::keys);
        let message = format!("'{name}' is not declared");
        match nearest(name, known.map(|known| &**known)) {
            Some(near) => self.diags.error_hint(span, message, did_you_mean(near)),
            None => self.diags.error(span, message),
        }
    }

    fn decl(&self, id: NodeId) -> Option<&'a Decl> {
        self.defs.get_decl(id)
    }
}
