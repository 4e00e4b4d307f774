//! Parsers and controls.

use super::{Failed, PResult, Parser};
use crate::ast::{
    Annotation, Block, ControlDecl, Decl, DeclKind, ParserDecl, SelectCase, State, Transition,
};
use crate::token::Tok;

impl Parser<'_> {
    pub(super) fn parser(&mut self, annos: Vec<Annotation>) -> PResult<Decl> {
        let start = self.span();
        self.bump();
        let name = self.ident()?;
        self.declare(&name.name, true);
        self.scoped(|p| {
            let tparams = p.type_params_opt()?;
            let params = p.params()?;
            let mut d = ParserDecl {
                tparams,
                params,
                ctor_params: Vec::new(),
                locals: Vec::new(),
                states: Vec::new(),
                is_type: true,
            };
            if p.eat(";") {
                return Ok(p.finish(start, name, annos, DeclKind::Parser(d)));
            }
            d.is_type = false;
            d.ctor_params = p.params_opt()?;
            p.expect("{")?;
            while !p.at("}") && !p.at_eof() {
                let at = p.pos;
                let r = p.annotations().and_then(|annos| {
                    if p.at_word("state") {
                        d.states.push(p.state(annos)?);
                    } else {
                        d.locals.push(p.local_decl(annos)?);
                    }
                    Ok(())
                });
                if r.is_err() {
                    if p.silent > 0 {
                        return Err(Failed);
                    }
                    p.resync(at);
                }
            }
            p.expect("}")?;
            Ok(p.finish(start, name, annos, DeclKind::Parser(d)))
        })
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
        self.eat(";");
        Ok(Transition::Select { keys, cases, span })
    }

    pub(super) fn control(&mut self, annos: Vec<Annotation>) -> PResult<Decl> {
        let start = self.span();
        self.bump();
        let name = self.ident()?;
        self.declare(&name.name, true);
        self.scoped(|p| {
            let tparams = p.type_params_opt()?;
            let params = p.params()?;
            let mut d = ControlDecl {
                tparams,
                params,
                ctor_params: Vec::new(),
                locals: Vec::new(),
                body: Block { stmts: Vec::new() },
                is_type: true,
            };
            if p.eat(";") {
                return Ok(p.finish(start, name, annos, DeclKind::Control(d)));
            }
            d.is_type = false;
            d.ctor_params = p.params_opt()?;
            p.expect("{")?;
            while !p.at("}") && !p.at_word("apply") && !p.at_eof() {
                let at = p.pos;
                let local = p.annotations().and_then(|annos| p.local_decl(annos));
                match local {
                    Ok(l) => d.locals.push(l),
                    Err(Failed) if p.silent > 0 => return Err(Failed),
                    Err(Failed) => p.resync(at),
                }
            }
            if !p.eat_word("apply") {
                return Err(p.unexpected("'apply'"));
            }
            d.body = p.block()?;
            p.expect("}")?;
            Ok(p.finish(start, name, annos, DeclKind::Control(d)))
        })
    }

    /// A declaration inside a parser or control.
    pub(super) fn local_decl(&mut self, annos: Vec<Annotation>) -> PResult<Decl> {
        match self.tok().clone() {
            Tok::Ident(w) => match &*w {
                "const" => self.constant(annos),
                "action" => self.action(annos),
                "table" => self.table(annos),
                "valueset" | "value_set" => self.value_set(annos),
                _ => self.local_variable(annos),
            },
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
