// SPDX-License-Identifier: Apache-2.0
//! Type references.

use super::{Failed, KEYWORDS, PResult, Parser};
use crate::ast::{Expr, ExprKind, Ident, TypeParam, TypeRef, TypeRefKind};
use crate::diag::Span;
use crate::near::{did_you_mean, nearest};
use crate::token::Tok;

/// Types that a misspelt name may mean although no program declares them.
const BUILT_IN: &[&str] = &["bit", "bool", "error", "int", "string", "tuple", "varbit"];

impl Parser<'_> {
    /// Returns true if a type reference starts at the current token.
    pub(super) fn at_type(&self) -> bool {
        match self.tok() {
            Tok::Ident(n) => match &**n {
                "bool" | "bit" | "int" | "varbit" | "string" | "tuple" | "void" | "match_kind" => {
                    true
                }
                "error" => true,
                "list" if self.peek_at(1, "<") => true,
                other => self.is_type_name(other),
            },
            Tok::P(".") => {
                matches!(self.peek(1), Tok::Ident(n) if self.scopes[0].get(n).copied().unwrap_or(false))
            }
            _ => false,
        }
    }

    pub(super) fn type_ref(&mut self) -> PResult<TypeRef> {
        self.nested(|p| {
            let start = p.span();
            let kind = p.base_type()?;
            let mut ty = TypeRef {
                id: p.id(),
                span: start.to(p.last_span()),
                kind,
            };
            while p.at("[") {
                p.bump();
                let size = p.expr()?;
                p.expect("]")?;
                let span = start.to(p.last_span());
                ty = TypeRef {
                    id: p.id(),
                    span,
                    kind: TypeRefKind::Stack(Box::new(ty), Box::new(size)),
                };
            }
            Ok(ty)
        })
    }

    /// A type where no type parameter can follow that declares it: it is known by now.
    pub(super) fn declared_type(&mut self) -> PResult<TypeRef> {
        match self.tok() {
            Tok::Ident(n) if !self.at_type() && !KEYWORDS.contains(&&**n) => {
                Err(self.no_type(self.span(), n))
            }
            _ => self.type_ref(),
        }
    }

    /// Reports a name that is not a type.
    pub(super) fn no_type(&self, span: Span, name: &str) -> Failed {
        let message = format!("'{name}' is not declared as a type");
        let types = self
            .scopes
            .iter()
            .flatten()
            .filter(|(_, is_type)| **is_type);
        let known = types
            .map(|(known, _)| &**known)
            .chain(BUILT_IN.iter().copied());
        match nearest(name, known) {
            Some(near) if self.silent == 0 => {
                self.diags.error_hint(span, message, did_you_mean(near));
                Failed
            }
            _ => self.fail(span, message),
        }
    }

    /// The name of something of this type, and its type: `T name[n]` is `T[n] name`.
    pub(super) fn declarator(&mut self, ty: TypeRef) -> PResult<(Ident, TypeRef)> {
        let name = self.ident()?;
        if !self.eat("[") {
            return Ok((name, ty));
        }
        let size = self.expr()?;
        self.expect("]")?;
        let span = ty.span.to(self.last_span());
        let kind = TypeRefKind::Stack(Box::new(ty), Box::new(size));
        let id = self.id();
        Ok((name, TypeRef { id, span, kind }))
    }

    fn base_type(&mut self) -> PResult<TypeRefKind> {
        let Tok::Ident(name) = self.tok().clone() else {
            if self.at(".") && matches!(self.peek(1), Tok::Ident(_)) {
                self.bump();
                let name = self.ident()?.name;
                let args = self.type_args_opt()?;
                return Ok(TypeRefKind::Named {
                    name,
                    global: true,
                    args,
                });
            }
            return Err(self.unexpected("a type"));
        };
        match &*name {
            "void" => self.word(TypeRefKind::Void),
            "bool" => self.word(TypeRefKind::Bool),
            "error" => self.word(TypeRefKind::Error),
            "string" => self.word(TypeRefKind::String),
            "match_kind" => self.word(TypeRefKind::MatchKind),
            "_" => self.word(TypeRefKind::DontCare),
            "bit" => {
                self.bump();
                if !self.at("<") {
                    let one = self.literal(1);
                    return Ok(TypeRefKind::Bit(Box::new(one)));
                }
                Ok(TypeRefKind::Bit(Box::new(self.width()?)))
            }
            "int" => {
                self.bump();
                if !self.at("<") {
                    return Ok(TypeRefKind::Int);
                }
                Ok(TypeRefKind::SInt(Box::new(self.width()?)))
            }
            "varbit" => {
                self.bump();
                Ok(TypeRefKind::Varbit(Box::new(self.width()?)))
            }
            "tuple" => {
                self.bump();
                self.expect("<")?;
                let args = self.type_list()?;
                Ok(TypeRefKind::Tuple(args))
            }
            "list" if self.peek_at(1, "<") && !self.is_type_name("list") => {
                self.bump();
                self.bump();
                let mut args = self.type_list()?;
                match args.pop() {
                    Some(item) if args.is_empty() => Ok(TypeRefKind::List(Box::new(item))),
                    _ => Err(self.fail(self.last_span(), "list<> takes one type")),
                }
            }
            _ => {
                let name = self.ident()?.name;
                let args = self.type_args_opt()?;
                Ok(TypeRefKind::Named {
                    name,
                    global: false,
                    args,
                })
            }
        }
    }

    fn word(&mut self, kind: TypeRefKind) -> PResult<TypeRefKind> {
        self.bump();
        Ok(kind)
    }

    fn literal(&mut self, value: u32) -> Expr {
        let id = self.id();
        Expr {
            id,
            span: self.last_span(),
            kind: ExprKind::Int {
                value: value.into(),
                width: None,
            },
        }
    }

    /// `<expression>`; an expression with `>` needs parentheses.
    fn width(&mut self) -> PResult<Expr> {
        self.expect("<")?;
        let e = self.expr_in_angles()?;
        self.expect(">")?;
        Ok(e)
    }

    /// Parses a type argument list after its `<`, with the closing `>`.
    fn type_list(&mut self) -> PResult<Vec<TypeRef>> {
        self.list(">", |p| p.type_ref())
    }

    pub(super) fn type_args_opt(&mut self) -> PResult<Vec<TypeRef>> {
        if !self.eat("<") {
            return Ok(Vec::new());
        }
        self.type_list()
    }

    /// `<T, U>` of a generic declaration; the names become types in the current scope.
    pub(super) fn type_params_opt(&mut self) -> PResult<Vec<TypeParam>> {
        if !self.eat("<") {
            return Ok(Vec::new());
        }
        self.some(">", false, |p| {
            let name = p.ident()?;
            p.declare(&name.name, true);
            let id = p.id();
            Ok(TypeParam { id, name })
        })
    }
}
