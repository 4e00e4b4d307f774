// SPDX-License-Identifier: Apache-2.0
//! Types, and the tables that the checker fills for later stages.

use std::collections::HashMap;

use num_bigint::BigInt;

use crate::ast::{self, CompositeKind, Decl, DeclKind, Name, NodeId};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// The type of an expression with a reported error; compatible with all types.
    Unknown,
    Void,
    Bool,
    Str,
    Error,
    MatchKind,
    /// Integers of any size; compile time only.
    Int,
    Bit(u32),
    SInt(u32),
    Varbit(u32),
    /// A declared type with its type arguments.
    Named(NodeId, Vec<Type>),
    Tuple(Vec<Type>),
    /// `list<T>`
    List(Box<Type>),
    /// Type of `{ x = a, ... }` before its conversion.
    Record(Vec<(Name, Type)>),
    /// Type of `{#}` before its conversion.
    InvalidHeader,
    /// Type of `_`, `default` and `...`.
    Any,
    Stack(Box<Type>, u32),
    /// A type parameter of the current declaration.
    Var(NodeId),
    /// An inference variable.
    Open(u32),
    Set(Box<Type>),
    /// The name of a type, used in an expression.
    Meta(Box<Type>),
    Action(NodeId),
    Table(NodeId),
    /// Result of applying a table, and its `action_run`.
    ApplyResult(NodeId),
    ActionRun(NodeId),
    /// A function or method, which can only be called.
    Callable,
}

/// A compile-time value.
#[derive(Clone, Debug, PartialEq)]
pub enum Const {
    Int(BigInt, Type),
    Bool(bool),
    Str(String),
}

/// The declaration behind a node id.
#[derive(Clone, Copy)]
pub enum Def<'a> {
    Decl(&'a Decl),
    Param(&'a ast::Param),
    TypeParam(&'a ast::TypeParam),
    State,
    Method(&'a Decl, &'a ast::Method),
}

/// All definitions of a program by node id.
pub struct Defs<'a> {
    pub map: HashMap<NodeId, Def<'a>>,
}

impl<'a> Defs<'a> {
    pub fn collect(program: &'a ast::Program) -> Defs<'a> {
        let mut defs = Defs {
            map: HashMap::new(),
        };
        for d in &program.decls {
            defs.decl(d);
        }
        defs
    }

    pub fn get(&self, id: NodeId) -> Option<Def<'a>> {
        self.map.get(&id).copied()
    }

    pub fn get_decl(&self, id: NodeId) -> Option<&'a Decl> {
        match self.get(id) {
            Some(Def::Decl(d)) => Some(d),
            _ => None,
        }
    }

    /// The declared fields of a struct, header or union, with type arguments filled in; `type_of` knows the types that stand in declarations.
    pub fn fields(&self, ty: &Type, type_of: impl Fn(NodeId) -> Type) -> Option<Vec<(Name, Type)>> {
        let Type::Named(id, args) = ty else {
            return None;
        };
        let DeclKind::Composite {
            tparams, fields, ..
        } = &self.get_decl(*id)?.kind
        else {
            return None;
        };
        let map = |v: NodeId| {
            let at = tparams.iter().position(|p| p.id == v);
            at.and_then(|i| args.get(i).cloned())
        };
        let field = |f: &ast::Field| (f.name.name.clone(), type_of(f.ty.id).substitute(&map));
        Some(fields.iter().map(field).collect())
    }

    pub fn composite_kind(&self, ty: &Type) -> Option<CompositeKind> {
        let Type::Named(id, _) = ty else { return None };
        match &self.get_decl(*id)?.kind {
            DeclKind::Composite { kind, .. } => Some(*kind),
            _ => None,
        }
    }

    fn params(&mut self, params: &'a [ast::Param]) {
        for p in params {
            self.map.insert(p.id, Def::Param(p));
        }
    }

    fn tparams(&mut self, params: &'a [ast::TypeParam]) {
        for p in params {
            self.map.insert(p.id, Def::TypeParam(p));
        }
    }

    fn decl(&mut self, d: &'a Decl) {
        self.map.insert(d.id, Def::Decl(d));
        match &d.kind {
            DeclKind::Instance { body, .. } => body.iter().flatten().for_each(|d| self.decl(d)),
            DeclKind::Extern { tparams, methods } => {
                self.tparams(tparams);
                for m in methods {
                    self.map.insert(m.id, Def::Method(d, m));
                    self.tparams(&m.sig.tparams);
                    self.params(&m.sig.params);
                }
            }
            DeclKind::Function { sig, body } => {
                self.tparams(&sig.tparams);
                self.params(&sig.params);
                if let Some(b) = body {
                    self.stmts(&b.stmts);
                }
            }
            DeclKind::Action { params, body } => {
                self.params(params);
                self.stmts(&body.stmts);
            }
            DeclKind::Parser(p) => {
                self.tparams(&p.tparams);
                self.params(&p.params);
                self.params(&p.ctor_params);
                p.locals.iter().for_each(|d| self.decl(d));
                for s in &p.states {
                    self.map.insert(s.id, Def::State);
                    self.stmts(&s.body);
                }
            }
            DeclKind::Control(c) => {
                self.tparams(&c.tparams);
                self.params(&c.params);
                self.params(&c.ctor_params);
                c.locals.iter().for_each(|d| self.decl(d));
                self.stmts(&c.body.stmts);
            }
            DeclKind::Package { tparams, params } => {
                self.tparams(tparams);
                self.params(params);
            }
            DeclKind::Composite { tparams, .. } => self.tparams(tparams),
            _ => {}
        }
    }

    fn stmts(&mut self, stmts: &'a [ast::Stmt]) {
        use ast::StmtKind as S;
        for s in stmts {
            match &s.kind {
                S::Block(b) => self.stmts(&b.stmts),
                S::Decl(d) => self.decl(d),
                S::If {
                    then, otherwise, ..
                } => {
                    self.stmts(std::slice::from_ref(then));
                    if let Some(o) = otherwise {
                        self.stmts(std::slice::from_ref(o));
                    }
                }
                S::Switch { cases, .. } => {
                    cases
                        .iter()
                        .filter_map(|c| c.body.as_ref())
                        .for_each(|b| self.stmts(&b.stmts));
                }
                S::For {
                    init, update, body, ..
                } => {
                    self.stmts(init);
                    self.stmts(update);
                    self.stmts(std::slice::from_ref(body));
                }
                S::ForIn { var, body, .. } => {
                    self.decl(var);
                    self.stmts(std::slice::from_ref(body));
                }
                _ => {}
            }
        }
    }
}

/// The callee of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Callee {
    /// Function or extern function.
    Function(NodeId),
    Action(NodeId),
    /// Method of an extern instance.
    Method(NodeId),
    /// `apply` of a control or parser instance, or of the type itself (`Type.apply()`).
    Apply(NodeId),
    TableApply(NodeId),
    /// Built-in method of headers, stacks and types.
    Builtin,
    /// Constructor of the type that the call expression has.
    Constructor,
}

/// A resolved call.
#[derive(Clone, Debug)]
pub struct CallInfo {
    pub callee: Callee,
    /// Type arguments of the callee and its owner.
    pub targs: Vec<(NodeId, Type)>,
    /// For each parameter, the index of its argument; `None` for the default value.
    pub args: Vec<Option<usize>>,
}

/// The checker's results.
pub struct Typed<'a> {
    pub program: &'a ast::Program,
    pub defs: Defs<'a>,
    /// By node id: type of an expression, type reference, variable, parameter or field.
    pub types: Vec<Option<Type>>,
    /// Declarations of name expressions.
    pub names: HashMap<NodeId, NodeId>,
    pub calls: HashMap<NodeId, CallInfo>,
    /// Implicit conversions of expressions.
    pub coercions: HashMap<NodeId, Type>,
    /// Conditions of statements and indices that are known at compile time.
    pub constants: HashMap<NodeId, Const>,
    /// All `error` constants, in order of declaration.
    pub errors: Vec<Name>,
}

impl Typed<'_> {
    pub fn type_of(&self, id: NodeId) -> Type {
        self.types
            .get(id as usize)
            .cloned()
            .flatten()
            .unwrap_or(Type::Unknown)
    }

    /// The declared fields of a struct, header or union, with type arguments filled in.
    pub fn fields(&self, ty: &Type) -> Option<Vec<(Name, Type)>> {
        self.defs.fields(ty, |id| self.type_of(id))
    }

    pub fn composite_kind(&self, ty: &Type) -> Option<CompositeKind> {
        self.defs.composite_kind(ty)
    }
}

impl Type {
    pub fn is_unknown(&self) -> bool {
        matches!(self, Type::Unknown)
    }

    /// Replaces type parameters by the types in `map`.
    pub fn substitute(&self, map: &dyn Fn(NodeId) -> Option<Type>) -> Type {
        let list = |v: &Vec<Type>| v.iter().map(|t| t.substitute(map)).collect();
        match self {
            Type::Var(v) => map(*v).unwrap_or_else(|| self.clone()),
            Type::Named(id, args) => Type::Named(*id, list(args)),
            Type::Tuple(items) => Type::Tuple(list(items)),
            Type::List(t) => Type::List(Box::new(t.substitute(map))),
            Type::Set(t) => Type::Set(Box::new(t.substitute(map))),
            Type::Meta(t) => Type::Meta(Box::new(t.substitute(map))),
            Type::Stack(t, n) => Type::Stack(Box::new(t.substitute(map)), *n),
            Type::Record(fields) => Type::Record(
                fields
                    .iter()
                    .map(|(n, t)| (n.clone(), t.substitute(map)))
                    .collect(),
            ),
            other => other.clone(),
        }
    }

    /// Returns the suffix of a generic type's name for the target and the control plane: p4c
    /// names `S<bit<8>>` `S_bit8`.
    pub fn arguments_suffix(args: &[Type], defs: &Defs) -> String {
        args.iter()
            .map(|t| {
                let text = t.show(defs).replace(['<', '>', ' '], "");
                format!("_{}", text.replace([',', '.'], "_"))
            })
            .collect()
    }

    /// Formats the type in P4 syntax.
    pub fn show(&self, defs: &Defs) -> String {
        let list = |v: &[Type]| {
            v.iter()
                .map(|t| t.show(defs))
                .collect::<Vec<_>>()
                .join(", ")
        };
        match self {
            Type::Unknown => "unknown".into(),
            Type::Void => "void".into(),
            Type::Bool => "bool".into(),
            Type::Str => "string".into(),
            Type::Error => "error".into(),
            Type::MatchKind => "match_kind".into(),
            Type::Int => "int".into(),
            Type::Bit(w) => format!("bit<{w}>"),
            Type::SInt(w) => format!("int<{w}>"),
            Type::Varbit(w) => format!("varbit<{w}>"),
            Type::Named(id, args) => {
                let name = defs
                    .get_decl(*id)
                    .map_or("?".into(), |d| d.name.name.to_string());
                if args.is_empty() {
                    name
                } else {
                    format!("{name}<{}>", list(args))
                }
            }
            Type::Tuple(items) => format!("tuple<{}>", list(items)),
            Type::List(t) => format!("list<{}>", t.show(defs)),
            Type::Record(fields) => {
                let f: Vec<String> = fields
                    .iter()
                    .map(|(n, t)| format!("{n}: {}", t.show(defs)))
                    .collect();
                format!("{{{}}}", f.join(", "))
            }
            Type::InvalidHeader => "invalid header".into(),
            Type::Any | Type::Open(_) => "_".into(),
            Type::Stack(t, n) => format!("{}[{n}]", t.show(defs)),
            Type::Var(v) => match defs.get(*v) {
                Some(Def::TypeParam(p)) => p.name.name.to_string(),
                _ => "?".into(),
            },
            Type::Set(t) => format!("set<{}>", t.show(defs)),
            Type::Meta(t) => format!("type {}", t.show(defs)),
            Type::Action(_) => "action".into(),
            Type::Table(_) => "table".into(),
            Type::ApplyResult(_) => "apply result".into(),
            Type::ActionRun(_) => "action list".into(),
            Type::Callable => "function".into(),
        }
    }
}
