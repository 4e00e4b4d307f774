// SPDX-License-Identifier: Apache-2.0
//! The smallest expressions, lists in braces, and sets of keys.

use super::{Failed, PResult, Parser};
use crate::ast::{Expr, ExprKind};
use crate::token::Tok;

impl Parser<'_> {
    pub(crate) fn primary(&mut self) -> PResult<Expr> {
        let span = self.span();
        let tok = self.tok().clone();
        match tok {
            Tok::Int { value, width, .. } => {
                self.bump();
                Ok(self.node(span, ExprKind::Int { value, width }))
            }
            Tok::Str(s) => {
                self.bump();
                // Adjacent string literals are one.
                let mut text = s.to_string();
                while let Tok::Str(more) = self.tok().clone() {
                    text.push_str(&more);
                    self.bump();
                }
                Ok(self.node(span, ExprKind::Str(text.into())))
            }
            Tok::P("(") => {
                self.bump();
                let e = self.expr()?;
                self.expect(")")?;
                Ok(e)
            }
            Tok::P("{") => self.braces(),
            Tok::P("...") => {
                self.bump();
                Ok(self.node(span, ExprKind::Dots))
            }
            Tok::P(".") => {
                self.bump();
                let name = self.ident()?;
                let span = span.to(name.span);
                Ok(self.node(
                    span,
                    ExprKind::Name {
                        name: name.name,
                        global: true,
                    },
                ))
            }
            Tok::Ident(n) => match &*n {
                "true" | "false" => {
                    self.bump();
                    Ok(self.node(span, ExprKind::Bool(&*n == "true")))
                }
                "error" | "this" => {
                    self.bump();
                    Ok(self.node(
                        span,
                        ExprKind::Name {
                            name: n,
                            global: false,
                        },
                    ))
                }
                "_" => {
                    self.bump();
                    Ok(self.node(span, ExprKind::DontCare))
                }
                "default" => {
                    self.bump();
                    Ok(self.node(span, ExprKind::Default))
                }
                _ => {
                    let name = self.ident().map_err(|_| Failed)?;
                    Ok(self.node(
                        span,
                        ExprKind::Name {
                            name: name.name,
                            global: false,
                        },
                    ))
                }
            },
            _ => Err(self.unexpected("an expression")),
        }
    }

    /// `{ ... }`: a list, a record or an invalid header.
    fn braces(&mut self) -> PResult<Expr> {
        let start = self.expect("{")?;
        if self.at("#") && self.peek_at(1, "}") && self.glued(0) && self.glued(1) {
            self.bump();
            self.bump();
            return Ok(self.node(start.to(self.last_span()), ExprKind::InvalidHeader));
        }
        let is_record = matches!(self.tok(), Tok::Ident(_)) && self.peek_at(1, "=");
        let mut dots = false;
        let mut items = Vec::new();
        let mut fields = Vec::new();
        if self.eat("}") {
            let kind = ExprKind::List { items, dots };
            return Ok(self.node(start.to(self.last_span()), kind));
        }
        self.some("}", true, |p| {
            if dots {
                return Err(p.fail(p.span(), "'...' must come last"));
            }
            if p.eat("...") {
                dots = true;
            } else if is_record {
                let name = p.ident()?;
                p.expect("=")?;
                fields.push((name, p.expr()?));
            } else {
                items.push(p.expr()?);
            }
            Ok(())
        })?;
        let kind = if is_record {
            ExprKind::Record { fields, dots }
        } else {
            ExprKind::List { items, dots }
        };
        Ok(self.node(start.to(self.last_span()), kind))
    }

    /// One component of a keyset: an expression, a mask or a range.
    pub(super) fn keyset_item(&mut self) -> PResult<Expr> {
        let e = self.expr()?;
        if self.eat("&&&") {
            let mask = self.expr()?;
            let span = e.span.to(mask.span);
            return Ok(self.node(span, ExprKind::Mask(Box::new(e), Box::new(mask))));
        }
        if self.eat("..") {
            let high = self.expr()?;
            let span = e.span.to(high.span);
            return Ok(self.node(span, ExprKind::Range(Box::new(e), Box::new(high))));
        }
        Ok(e)
    }

    /// A keyset: one item, or a parenthesised tuple of them.
    pub(super) fn keyset(&mut self) -> PResult<Expr> {
        if self.at("(") {
            let tuple = self.speculate(|p| {
                let start = p.expect("(")?;
                let items = p.some(")", false, |p| p.keyset_item())?;
                // More operators after it: it was the start of an expression.
                if p.at(":") {
                    let span = start.to(p.last_span());
                    return Ok(p.node(span, ExprKind::List { items, dots: false }));
                }
                Err(Failed)
            });
            if let Some(mut e) = tuple {
                if let ExprKind::List { items, .. } = &mut e.kind
                    && items.len() == 1
                {
                    return Ok(items.remove(0));
                }
                return Ok(e);
            }
        }
        self.keyset_item()
    }
}
