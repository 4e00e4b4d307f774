// SPDX-License-Identifier: Apache-2.0
//! Declarations.

use super::{Failed, PResult, Parser};
use crate::ast::{
    Annotation, Block, CompositeKind, Decl, DeclKind, EnumMember, Field, Ident, Method, Signature,
    TypeRef, TypeRefKind,
};
use crate::diag::Span;
use crate::token::Tok;

impl Parser<'_> {
    pub(super) fn top_declaration(&mut self) -> PResult<Decl> {
        let annos = self.annotations()?;
        let Tok::Ident(word) = self.tok().clone() else {
            return self.function_or_instance(annos);
        };
        match &*word {
            "const" => self.constant(annos),
            "extern" => self.extern_decl(annos),
            "action" => self.action(annos),
            "parser" => self.parser(annos),
            "control" => self.control(annos),
            "package" => self.package(annos),
            "struct" => self.composite(annos, CompositeKind::Struct),
            "header" => self.composite(annos, CompositeKind::Header),
            "header_union" => self.composite(annos, CompositeKind::Union),
            "enum" => self.enumeration(annos),
            "typedef" => self.type_alias(annos, true),
            "type" if !self.is_type_name("type") => self.type_alias(annos, false),
            "match_kind" => {
                let start = self.span();
                self.bump();
                self.expect("{")?;
                let names = self.some("}", true, |p| p.ident())?;
                self.wordless(annos, start, DeclKind::MatchKinds(names))
            }
            "error" if self.peek_at(1, "{") => {
                let start = self.span();
                self.bump();
                self.expect("{")?;
                let names = self.some("}", false, |p| p.ident())?;
                self.wordless(annos, start, DeclKind::Errors(names))
            }
            _ => self.function_or_instance(annos),
        }
    }

    /// `error {..}` and `match_kind {..}` have no name of their own.
    fn wordless(&mut self, annos: Vec<Annotation>, start: Span, kind: DeclKind) -> PResult<Decl> {
        let id = self.id();
        let name = Ident {
            name: self.rc(""),
            span: start,
        };
        Ok(Decl {
            id,
            name,
            span: start.to(self.last_span()),
            annos,
            kind,
        })
    }

    pub(super) fn finish(
        &mut self,
        start: Span,
        name: Ident,
        annos: Vec<Annotation>,
        kind: DeclKind,
    ) -> Decl {
        let id = self.id();
        Decl {
            id,
            name,
            span: start.to(self.last_span()),
            annos,
            kind,
        }
    }

    pub(super) fn constant(&mut self, annos: Vec<Annotation>) -> PResult<Decl> {
        let start = self.span();
        self.bump();
        let ty = self.declared_type()?;
        let (name, ty) = self.declarator(ty)?;
        self.expect("=")?;
        let init = self.expr()?;
        self.expect(";")?;
        self.declare(&name.name, false);
        Ok(self.finish(start, name, annos, DeclKind::Const { ty, init }))
    }

    /// `type name(params) { }`, or `type(args) name;`.
    pub(super) fn function_or_instance(&mut self, annos: Vec<Annotation>) -> PResult<Decl> {
        let start = self.span();
        if !self.at_type() && !matches!(self.tok(), Tok::Ident(_)) {
            return Err(self.unexpected("a declaration"));
        }
        // Words of the language that are names elsewhere start no declaration.
        if [
            "actions", "apply", "entries", "key", "priority", "state", "type",
        ]
        .iter()
        .any(|w| self.at_word(w) && !self.is_type_name(w))
        {
            return Err(self.unexpected("a declaration"));
        }
        self.scoped_type_params(|p| {
            p.eat_word("abstract");
            let ty = p.type_ref()?;
            if p.at("(") {
                return p.instantiation_rest(annos, start, ty);
            }
            let name = p.ident()?;
            let sig = p.signature_rest(ty)?;
            let body: Block = p.block()?;
            Ok(p.finish(
                start,
                name,
                annos,
                DeclKind::Function {
                    sig,
                    body: Some(body),
                },
            ))
        })
    }

    /// Runs `f` in a scope of its own and then re-declares what it produced outside.
    fn scoped_type_params(&mut self, f: impl FnOnce(&mut Self) -> PResult<Decl>) -> PResult<Decl> {
        let d = self.scoped(f)?;
        self.declare(&d.name.name.clone(), false);
        Ok(d)
    }

    pub(super) fn action(&mut self, annos: Vec<Annotation>) -> PResult<Decl> {
        let start = self.span();
        self.bump();
        let name = self.ident()?;
        self.declare(&name.name, false);
        self.scoped(|p| {
            let params = p.params()?;
            let body = p.block()?;
            Ok(p.finish(start, name, annos, DeclKind::Action { params, body }))
        })
    }

    fn extern_decl(&mut self, annos: Vec<Annotation>) -> PResult<Decl> {
        let start = self.span();
        self.bump();
        // `extern Name { ... }` or `extern Name<T> { ... }` or a function.
        let is_type = matches!(self.tok(), Tok::Ident(_))
            && (self.peek_at(1, "{")
                || self.peek_at(1, ";")
                || (self.peek_at(1, "<") && self.speculate_extern_type()));
        if !is_type {
            return self.scoped_type_params(|p| {
                let ty = p.type_ref()?;
                let name = p.ident()?;
                let sig = p.signature_rest(ty)?;
                p.expect(";")?;
                Ok(p.finish(start, name, annos, DeclKind::Function { sig, body: None }))
            });
        }
        let name = self.ident()?;
        self.declare(&name.name, true);
        self.scoped(|p| {
            let tparams = p.type_params_opt()?;
            let mut methods = Vec::new();
            if !p.eat(";") {
                p.expect("{")?;
                while !p.at("}") && !p.at_eof() {
                    methods.push(p.method(&name)?);
                }
                p.expect("}")?;
            }
            Ok(p.finish(start, name, annos, DeclKind::Extern { tparams, methods }))
        })
    }

    fn speculate_extern_type(&mut self) -> bool {
        let pos = self.pos;
        let found = self
            .speculate(|p| {
                p.bump();
                p.expect("<")?;
                p.some(">", false, |p| p.ident())?;
                if p.at("{") || p.at(";") {
                    Ok(())
                } else {
                    Err(Failed)
                }
            })
            .is_some();
        self.pos = pos;
        found
    }

    fn method(&mut self, owner: &Ident) -> PResult<Method> {
        let annos = self.annotations()?;
        let is_optional = crate::annotation::find(&annos, "optional").is_some();
        let is_abstract = self.eat_word("abstract");
        self.scoped(|p| {
            if matches!(p.tok(), Tok::Ident(n) if *n == owner.name) && p.peek_at(1, "(") {
                let name = p.ident()?;
                let ret = TypeRef {
                    id: p.id(),
                    span: name.span,
                    kind: TypeRefKind::Void,
                };
                let sig = Signature {
                    tparams: Vec::new(),
                    ret,
                    params: p.params()?,
                };
                p.expect(";")?;
                let id = p.id();
                return Ok(Method {
                    id,
                    name,
                    sig,
                    is_abstract,
                    is_optional,
                    is_constructor: true,
                });
            }
            let ret = p.type_ref()?;
            let name = p.ident()?;
            let sig = p.signature_rest(ret)?;
            p.expect(";")?;
            let id = p.id();
            Ok(Method {
                id,
                name,
                sig,
                is_abstract,
                is_optional,
                is_constructor: false,
            })
        })
    }

    fn package(&mut self, annos: Vec<Annotation>) -> PResult<Decl> {
        let start = self.span();
        self.bump();
        let name = self.ident()?;
        self.declare(&name.name, true);
        self.scoped(|p| {
            let tparams = p.type_params_opt()?;
            let params = p.params()?;
            p.expect(";")?;
            Ok(p.finish(start, name, annos, DeclKind::Package { tparams, params }))
        })
    }

    fn composite(&mut self, annos: Vec<Annotation>, kind: CompositeKind) -> PResult<Decl> {
        let start = self.span();
        self.bump();
        let name = self.ident()?;
        self.declare(&name.name, true);
        self.scoped(|p| {
            let tparams = p.type_params_opt()?;
            p.expect("{")?;
            let mut fields = Vec::new();
            while !p.at("}") && !p.at_eof() {
                let at = p.pos;
                match p.field() {
                    Ok(f) => fields.push(f),
                    Err(Failed) if p.silent > 0 => return Err(Failed),
                    Err(Failed) => p.resync(at),
                }
            }
            p.expect("}")?;
            Ok(p.finish(
                start,
                name,
                annos,
                DeclKind::Composite {
                    kind,
                    tparams,
                    fields,
                },
            ))
        })
    }

    fn field(&mut self) -> PResult<Field> {
        let annos = self.annotations()?;
        let ty = self.declared_type()?;
        let (name, ty) = self.declarator(ty)?;
        self.expect(";")?;
        let id = self.id();
        Ok(Field {
            id,
            name,
            ty,
            annos,
        })
    }

    fn enumeration(&mut self, annos: Vec<Annotation>) -> PResult<Decl> {
        let start = self.span();
        self.bump();
        let underlying = match self.tok() {
            Tok::Ident(n) if self.peek_at(1, "{") && !matches!(&**n, "bit" | "int") => None,
            _ => Some(self.type_ref()?),
        };
        let name = self.ident()?;
        self.declare(&name.name, true);
        self.expect("{")?;
        let members = self.some("}", true, |p| {
            let name = p.ident()?;
            let value = match underlying {
                Some(_) => {
                    p.expect("=")?;
                    Some(p.expr()?)
                }
                None => None,
            };
            let id = p.id();
            Ok(EnumMember { id, name, value })
        })?;
        Ok(self.finish(
            start,
            name,
            annos,
            DeclKind::Enum {
                underlying,
                members,
            },
        ))
    }

    fn type_alias(&mut self, annos: Vec<Annotation>, is_typedef: bool) -> PResult<Decl> {
        let start = self.span();
        self.bump();
        // `typedef struct X {...} Y` is not P4_16.
        let more = self.annotations()?;
        let ty = self.declared_type()?;
        let (name, ty) = self.declarator(ty)?;
        self.expect(";")?;
        self.declare(&name.name, true);
        let mut annos = annos;
        annos.extend(more);
        let kind = if is_typedef {
            DeclKind::Typedef(ty)
        } else {
            DeclKind::NewType(ty)
        };
        Ok(self.finish(start, name, annos, kind))
    }
}
