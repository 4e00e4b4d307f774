// SPDX-License-Identifier: Apache-2.0
//! Expressions.

use super::{Failed, PResult, Parser};
use crate::ast::{Arg, BinOp, Expr, ExprKind, TypeRef, TypeRefKind, UnOp};
use crate::diag::Span;
use crate::token::Tok;

/// Binary operators by binding strength, loosest first.
const LEVELS: &[&[(&str, BinOp)]] = &[
    &[("||", BinOp::Or)],
    &[("&&", BinOp::And)],
    &[("==", BinOp::Eq), ("!=", BinOp::Ne)],
    &[
        ("<=", BinOp::Le),
        (">=", BinOp::Ge),
        ("<", BinOp::Lt),
        (">", BinOp::Gt),
    ],
    &[("|", BinOp::BitOr)],
    &[("^", BinOp::BitXor)],
    &[("&", BinOp::BitAnd)],
    &[("<<", BinOp::Shl), (">>", BinOp::Shr)],
    &[
        ("++", BinOp::Concat),
        ("+", BinOp::Add),
        ("-", BinOp::Sub),
        ("|+|", BinOp::SatAdd),
        ("|-|", BinOp::SatSub),
    ],
    &[("*", BinOp::Mul), ("/", BinOp::Div), ("%", BinOp::Mod)],
];

impl Parser<'_> {
    pub(super) fn node(&mut self, span: Span, kind: ExprKind) -> Expr {
        let id = self.id();
        Expr { id, span, kind }
    }

    pub(crate) fn expr(&mut self) -> PResult<Expr> {
        self.expr_where(false)
    }

    /// An expression that ends before the first `>`.
    pub(super) fn expr_in_angles(&mut self) -> PResult<Expr> {
        self.expr_where(true)
    }

    fn expr_where(&mut self, in_angles: bool) -> PResult<Expr> {
        let outer = std::mem::replace(&mut self.in_angles, in_angles);
        let e = self.nested(|p| p.ternary(in_angles));
        self.in_angles = outer;
        e
    }

    fn ternary(&mut self, in_angles: bool) -> PResult<Expr> {
        let cond = self.binary(0)?;
        if !self.eat("?") {
            return Ok(cond);
        }
        let yes = self.expr()?;
        self.expect(":")?;
        let no = self.expr_where(in_angles)?;
        let span = cond.span.to(no.span);
        Ok(self.node(
            span,
            ExprKind::Ternary(Box::new(cond), Box::new(yes), Box::new(no)),
        ))
    }

    fn eat_binop(&mut self, level: &[(&str, BinOp)]) -> Option<BinOp> {
        for (text, op) in level {
            if self.in_angles && matches!(*text, ">" | ">>") {
                continue;
            }
            if *text == ">>" {
                if self.at_shift_right(">") {
                    self.bump();
                    self.bump();
                    return Some(*op);
                }
                continue;
            }
            // `base[low +: width]`
            if *text == "+" && self.at("+") && self.peek_at(1, ":") {
                continue;
            }
            if *text == ">" && (self.at_shift_right(">") || self.at_shift_right(">=")) {
                continue;
            }
            if self.eat(text) {
                return Some(*op);
            }
        }
        None
    }

    fn binary(&mut self, level: usize) -> PResult<Expr> {
        let Some(ops) = LEVELS.get(level) else {
            return self.unary();
        };
        let mut left = self.binary(level + 1)?;
        let mut links = 0;
        while let Some(op) = self.eat_binop(ops) {
            self.link(&mut links)?;
            let right = self.binary(level + 1)?;
            let span = left.span.to(right.span);
            left = self.node(span, ExprKind::Binary(op, Box::new(left), Box::new(right)));
        }
        Ok(left)
    }

    fn unary(&mut self) -> PResult<Expr> {
        let start = self.span();
        let op = match self.tok() {
            Tok::P("-") => Some(UnOp::Neg),
            Tok::P("+") => Some(UnOp::Plus),
            Tok::P("~") => Some(UnOp::BitNot),
            Tok::P("!") => Some(UnOp::Not),
            _ => None,
        };
        if let Some(op) = op {
            self.bump();
            let e = self.nested(|p| p.unary())?;
            let span = start.to(e.span);
            return Ok(self.node(span, ExprKind::Unary(op, Box::new(e))));
        }
        if self.at("(")
            && let Some(ty) = self.cast_type()
        {
            let e = self.nested(|p| p.unary())?;
            let span = start.to(e.span);
            return Ok(self.node(span, ExprKind::Cast(ty, Box::new(e))));
        }
        self.postfix_expr()
    }

    /// `(type)` of a cast, if that is what stands here.
    fn cast_type(&mut self) -> Option<TypeRef> {
        let is_type = match self.peek(1) {
            Tok::Ident(n) if &**n == "error" => self.peek_at(2, ")"),
            Tok::Ident(n) => {
                matches!(
                    &**n,
                    "bool" | "bit" | "int" | "varbit" | "string" | "tuple" | "void"
                ) || (&**n == "list" && self.peek_at(2, "<"))
                    || (self.is_type_name(n)
                        && (self.peek_at(2, ")") || self.peek_at(2, "<") || self.peek_at(2, "[")))
            }
            Tok::P(".") => {
                matches!(self.peek(2), Tok::Ident(n) if self.scopes[0].get(n) == Some(&true))
                    && self.peek_at(3, ")")
            }
            _ => false,
        };
        if !is_type {
            return None;
        }
        self.speculate(|p| {
            p.expect("(")?;
            let ty = p.type_ref()?;
            p.expect(")")?;
            Ok(ty)
        })
    }

    pub(super) fn postfix_expr(&mut self) -> PResult<Expr> {
        let mut e = self.primary()?;
        let mut links = 0;
        loop {
            self.link(&mut links)?;
            let start = e.span;
            if self.eat(".") {
                let name = self.ident()?;
                let span = start.to(name.span);
                e = self.node(span, ExprKind::Member(Box::new(e), name));
            } else if self.at("[") {
                e = self.subscript(e)?;
            } else if self.at("(") {
                e = self.call_of(e, Vec::new())?;
            } else if self.at("<") && matches!(e.kind, ExprKind::Name { .. } | ExprKind::Member(..))
            {
                let Some(targs) = self.speculate(|p| {
                    let targs = p.type_args_opt()?;
                    if p.at("(") || p.at(".") {
                        Ok(targs)
                    } else {
                        Err(Failed)
                    }
                }) else {
                    return Ok(e);
                };
                if self.at(".") {
                    // `Type<args>.apply(...)`
                    let ExprKind::Name { name, global } = e.kind else {
                        return Err(self.unexpected("'('"));
                    };
                    let id = self.id();
                    let ty = TypeRef {
                        id,
                        span: start,
                        kind: TypeRefKind::Named {
                            name,
                            global,
                            args: targs,
                        },
                    };
                    e = self.node(start, ExprKind::Type(ty));
                    continue;
                }
                e = self.call_of(e, targs)?;
            } else {
                return Ok(e);
            }
        }
    }

    /// The arguments of a call of `callee`.
    pub(super) fn call_of(&mut self, callee: Expr, targs: Vec<TypeRef>) -> PResult<Expr> {
        let args = self.args()?;
        let span = callee.span.to(self.last_span());
        let callee = Box::new(callee);
        Ok(self.node(
            span,
            ExprKind::Call {
                callee,
                targs,
                args,
            },
        ))
    }

    fn subscript(&mut self, base: Expr) -> PResult<Expr> {
        let start = base.span;
        self.expect("[")?;
        let first = self.expr()?;
        let kind = if self.eat(":") {
            let low = self.expr()?;
            ExprKind::Slice(Box::new(base), Box::new(first), Box::new(low))
        } else if self.at("+") && self.peek_at(1, ":") {
            self.bump();
            self.bump();
            let width = self.expr()?;
            ExprKind::PlusSlice(Box::new(base), Box::new(first), Box::new(width))
        } else {
            ExprKind::Index(Box::new(base), Box::new(first))
        };
        self.expect("]")?;
        let span = start.to(self.last_span());
        Ok(self.node(span, kind))
    }

    pub(super) fn args(&mut self) -> PResult<Vec<Arg>> {
        self.expect("(")?;
        self.list(")", |p| {
            let name = if matches!(p.tok(), Tok::Ident(_)) && p.peek_at(1, "=") {
                let name = p.ident()?;
                p.bump();
                Some(name)
            } else {
                None
            };
            let expr = p.keyset_item()?;
            Ok(Arg { name, expr })
        })
    }
}
