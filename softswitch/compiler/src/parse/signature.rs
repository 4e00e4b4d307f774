// SPDX-License-Identifier: Apache-2.0
//! Parameters and signatures.

use super::{PResult, Parser};
use crate::ast::{Direction, Param, Signature, TypeRef};
use crate::token::Tok;

impl Parser<'_> {
    pub(super) fn signature_rest(&mut self, ret: TypeRef) -> PResult<Signature> {
        let tparams = self.type_params_opt()?;
        let params = self.params()?;
        Ok(Signature {
            tparams,
            ret,
            params,
        })
    }

    pub(super) fn params(&mut self) -> PResult<Vec<Param>> {
        self.expect("(")?;
        let params = self.list(")", |p| p.param())?;
        // A parameter hides no type from those after it.
        for p in &params {
            self.declare(&p.name.name, false);
        }
        Ok(params)
    }

    fn param(&mut self) -> PResult<Param> {
        let annos = self.annotations()?;
        let start = self.span();
        let dir = match self.tok() {
            Tok::Ident(w) if &**w == "in" => Direction::In,
            Tok::Ident(w) if &**w == "out" => Direction::Out,
            Tok::Ident(w) if &**w == "inout" => Direction::InOut,
            _ => Direction::None,
        };
        if dir != Direction::None {
            self.bump();
        }
        let ty = self.declared_type()?;
        let (name, ty) = self.declarator(ty)?;
        let default = if self.eat("=") {
            Some(self.expr()?)
        } else {
            None
        };
        let id = self.id();
        Ok(Param {
            id,
            name,
            span: start.to(self.last_span()),
            dir,
            ty,
            default,
            annos,
        })
    }

    pub(super) fn params_opt(&mut self) -> PResult<Vec<Param>> {
        if self.at("(") {
            self.params()
        } else {
            Ok(Vec::new())
        }
    }
}
