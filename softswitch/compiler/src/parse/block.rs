// SPDX-License-Identifier: Apache-2.0
//! Parsers and controls.

use super::{Failed, PResult, Parser};
use crate::ast::{
    Annotation, Block, ControlDecl, Decl, DeclKind, Param, ParserDecl, SelectCase, State,
    Transition, TypeParam,
};
use crate::token::Tok;

/// How a parser or control begins; a type of them has no more.
struct Head {
    tparams: Vec<TypeParam>,
    params: Vec<Param>,
    ctor_params: Vec<Param>,
    is_type: bool,
}

impl Parser<'_> {
    pub(super) fn parser(&mut self, annos: Vec<Annotation>) -> PResult<Decl> {
        self.block_decl(annos, |p, head| {
            let mut d = ParserDecl {
                tparams: head.tparams,
                params: head.params,
                ctor_params: head.ctor_params,
                locals: Vec::new(),
                states: Vec::new(),
                is_type: head.is_type,
            };
            if !head.is_type {
                p.expect("{")?;
                p.members("}", |p, annos| {
                    if p.at_word("state") {
                        d.states.push(p.state(annos)?);
                    } else if d.states.is_empty() {
                        d.locals.push(p.parser_local(annos)?);
                    } else {
                        return Err(p.unexpected("'state'"));
                    }
                    Ok(())
                })?;
                if d.states.is_empty() && p.at("}") {
                    p.unexpected("'state'");
                }
                p.expect("}")?;
            }
            Ok(DeclKind::Parser(d))
        })
    }

    pub(super) fn control(&mut self, annos: Vec<Annotation>) -> PResult<Decl> {
        self.block_decl(annos, |p, head| {
            let mut d = ControlDecl {
                tparams: head.tparams,
                params: head.params,
                ctor_params: head.ctor_params,
                locals: Vec::new(),
                body: Block { stmts: Vec::new() },
                is_type: head.is_type,
            };
            if !head.is_type {
                p.expect("{")?;
                p.members("apply", |p, annos| {
                    d.locals.push(p.control_local(annos)?);
                    Ok(())
                })?;
                if !p.eat_word("apply") {
                    return Err(p.unexpected("'apply'"));
                }
                d.body = p.block()?;
                p.expect("}")?;
            }
            Ok(DeclKind::Control(d))
        })
    }

    /// `parser name<T>(parameters)(constructor parameters)` and its like, with what follows.
    fn block_decl(
        &mut self,
        annos: Vec<Annotation>,
        body: impl FnOnce(&mut Self, Head) -> PResult<DeclKind>,
    ) -> PResult<Decl> {
        let start = self.span();
        self.bump();
        let name = self.ident()?;
        self.declare(&name.name, true);
        self.scoped(|p| {
            let (tparams, params) = (p.type_params_opt()?, p.params()?);
            let is_type = p.eat(";");
            let ctor_params = if is_type { Vec::new() } else { p.params_opt()? };
            let head = Head {
                tparams,
                params,
                ctor_params,
                is_type,
            };
            let kind = body(p, head)?;
            Ok(p.finish(start, name, annos, kind))
        })
    }

    /// Declarations up to the word `end` or the closing brace, going on after a broken one.
    fn members(
        &mut self,
        end: &str,
        mut member: impl FnMut(&mut Self, Vec<Annotation>) -> PResult<()>,
    ) -> PResult<()> {
        while !self.at("}") && !self.at_word(end) && !self.at_eof() {
            let at = self.pos;
            match self.annotations().and_then(|annos| member(self, annos)) {
                Err(Failed) if self.silent > 0 => return Err(Failed),
                Err(Failed) => self.resync(at),
                Ok(()) => {}
            }
        }
        Ok(())
    }

    pub(super) fn state(&mut self, annos: Vec<Annotation>) -> PResult<State> {
        self.bump();
        let name = self.ident()?;
        self.scoped(|p| {
            p.expect("{")?;
            let body = p.statements()?;
            let transition = if p.eat_word("transition") {
                p.transition()?
            } else {
                Transition::Missing
            };
            p.expect("}")?;
            let id = p.id();
            Ok(State {
                id,
                name,
                annos,
                body,
                transition,
            })
        })
    }

    pub(super) fn transition(&mut self) -> PResult<Transition> {
        if !self.at_word("select") {
            let target = self.ident()?;
            self.expect(";")?;
            return Ok(Transition::Direct(target));
        }
        let start = self.span();
        self.bump();
        self.expect("(")?;
        let keys = self.list(")", |p| p.expr())?;
        let span = start.to(self.last_span());
        self.expect("{")?;
        let mut cases = Vec::new();
        while !self.at("}") && !self.at_eof() {
            let keyset = self.keyset()?;
            self.expect(":")?;
            let target = self.ident()?;
            self.expect(";")?;
            cases.push(SelectCase { keyset, target });
        }
        self.expect("}")?;
        Ok(Transition::Select { keys, cases, span })
    }

    fn parser_local(&mut self, annos: Vec<Annotation>) -> PResult<Decl> {
        match self.tok() {
            Tok::Ident(w) if &**w == "const" => self.constant(annos),
            Tok::Ident(w) if &**w == "value_set" => self.value_set(annos),
            _ => self.local_variable(annos),
        }
    }

    fn control_local(&mut self, annos: Vec<Annotation>) -> PResult<Decl> {
        match self.tok() {
            Tok::Ident(w) if &**w == "const" => self.constant(annos),
            Tok::Ident(w) if &**w == "action" => self.action(annos),
            Tok::Ident(w) if &**w == "table" => self.table(annos),
            _ => self.local_variable(annos),
        }
    }

    pub(super) fn value_set(&mut self, annos: Vec<Annotation>) -> PResult<Decl> {
        let start = self.span();
        self.bump();
        self.expect("<")?;
        let ty = self.type_ref()?;
        self.expect(">")?;
        self.expect("(")?;
        let size = self.expr()?;
        self.expect(")")?;
        let name = self.ident()?;
        self.expect(";")?;
        self.declare(&name.name, false);
        Ok(self.finish(start, name, annos, DeclKind::ValueSet { ty, size }))
    }
}
