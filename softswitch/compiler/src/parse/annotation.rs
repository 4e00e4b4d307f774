// SPDX-License-Identifier: Apache-2.0
//! Annotations.

use super::{PResult, Parser};
use crate::ast::{Annotation, AnnotationBody, Ident, RawToken};
use crate::token::Tok;

impl Parser<'_> {
    pub(super) fn annotations(&mut self) -> PResult<Vec<Annotation>> {
        let mut list = Vec::new();
        while self.at("@") {
            list.push(self.annotation()?);
        }
        Ok(list)
    }

    fn annotation(&mut self) -> PResult<Annotation> {
        let start = self.expect("@")?;
        let Tok::Ident(n) = self.tok() else {
            return Err(self.unexpected("an annotation name"));
        };
        let mut name = Ident {
            name: n.clone(),
            span: self.span(),
        };
        self.bump();
        let body = if &*name.name == "pragma" {
            // `@pragma name text` up to the end of the line.
            if let (Tok::Ident(n), false) = (self.tok().clone(), self.tokens[self.pos].line_start) {
                name = Ident {
                    name: n,
                    span: self.span(),
                };
                self.bump();
            }
            let from = self.pos;
            while !self.at_eof() && !self.tokens[self.pos].line_start {
                self.bump();
            }
            self.tokens_body(from, self.pos)
        } else if self.at("(") {
            self.bump();
            let from = self.pos;
            let mut depth = 0usize;
            while depth > 0 || !self.at(")") {
                if self.at_eof() {
                    return Err(self.unexpected("')'"));
                }
                if self.at("(") {
                    depth += 1;
                } else if self.at(")") {
                    depth -= 1;
                }
                self.bump();
            }
            let to = self.pos;
            let body = self.tokens_body(from, to);
            self.pos = to;
            self.expect(")")?;
            body
        } else if self.at("[") {
            self.bump();
            self.structured_body()?
        } else {
            AnnotationBody::None
        };
        Ok(Annotation {
            name,
            span: start.to(self.last_span()),
            body,
        })
    }

    fn tokens_body(&mut self, from: usize, to: usize) -> AnnotationBody {
        let raw = self.tokens[from..to]
            .iter()
            .map(|t| RawToken {
                text: match &t.tok {
                    Tok::Ident(s) | Tok::Str(s) => s.to_string(),
                    Tok::Int { text, .. } => text.to_string(),
                    Tok::P(p) => (*p).to_string(),
                    Tok::Bad(_) | Tok::Eof => String::new(),
                },
                is_string: matches!(t.tok, Tok::Str(_)),
            })
            .collect();
        let end = self.pos;
        self.pos = from;
        let exprs = self
            .speculate(|p| {
                let mut list = Vec::new();
                while p.pos < to {
                    list.push(p.expr()?);
                    if p.pos < to {
                        p.expect(",")?;
                    }
                }
                if p.pos == to {
                    Ok(list)
                } else {
                    Err(super::Failed)
                }
            })
            .unwrap_or_default();
        self.pos = end;
        AnnotationBody::Tokens { raw, exprs }
    }

    fn structured_body(&mut self) -> PResult<AnnotationBody> {
        if matches!(self.tok(), Tok::Ident(_)) && self.peek_at(1, "=") {
            let pairs = self.some("]", true, |p| {
                let key = p.ident()?;
                p.expect("=")?;
                Ok((key, p.expr()?))
            })?;
            return Ok(AnnotationBody::KeyValue(pairs));
        }
        if self.eat("]") {
            return Ok(AnnotationBody::List(Vec::new()));
        }
        Ok(AnnotationBody::List(self.some("]", true, |p| p.expr())?))
    }
}
