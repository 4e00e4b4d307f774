// SPDX-License-Identifier: Apache-2.0
//! Evaluation of `#if` conditions.

use num_bigint::BigInt;
use num_traits::{One, ToPrimitive, Zero};

use super::Preprocessor;
use crate::diag::Span;
use crate::token::{Tok, Token};

/// Maximum length of a condition in tokens.
const MAX_TOKENS: usize = 4096;

impl Preprocessor<'_> {
    pub(super) fn condition(&mut self, line: &[Token], span: Span) -> bool {
        // `defined X` is replaced before macros are expanded.
        let mut replaced: Vec<Token> = Vec::new();
        let mut i = 0;
        while i < line.len() {
            let t = &line[i];
            i += 1;
            if !matches!(&t.tok, Tok::Ident(n) if &**n == "defined") {
                replaced.push(t.clone());
                continue;
            }
            let parens = line.get(i).is_some_and(|t| t.tok == Tok::P("("));
            let name = line.get(if parens { i + 1 } else { i });
            i += if parens { 3 } else { 1 };
            let Some(Token {
                tok: Tok::Ident(n), ..
            }) = name
            else {
                self.diags.error(t.span, "'defined' needs a macro name");
                return false;
            };
            let value = BigInt::from(u8::from(self.macros.contains_key(n)));
            replaced.push(Token {
                tok: Tok::Int {
                    text: value.to_string().into(),
                    value,
                    width: None,
                },
                ..t.clone()
            });
        }
        let tokens = self.expand(&replaced);
        // The evaluation recurses.
        if tokens.len() > MAX_TOKENS {
            self.diags.error(span, "the condition is too long");
            return false;
        }
        let mut eval = Eval {
            tokens: &tokens,
            pos: 0,
        };
        match eval.ternary() {
            Some(v) if eval.pos == tokens.len() => !v.is_zero(),
            _ => {
                self.diags.error_hint(
                    span,
                    "malformed preprocessor condition",
                    "integers, macros, defined(X) and C operators are allowed here",
                );
                false
            }
        }
    }
}

struct Eval<'a> {
    tokens: &'a [Token],
    pos: usize,
}

/// Binary operators by binding strength, loosest first.
const LEVELS: &[&[&str]] = &[
    &["||"],
    &["&&"],
    &["|"],
    &["^"],
    &["&"],
    &["==", "!="],
    &["<", ">", "<=", ">="],
    &["<<", ">>"],
    &["+", "-"],
    &["*", "/", "%"],
];

impl Eval<'_> {
    fn eat(&mut self, p: &'static str) -> bool {
        if p == ">>" {
            let two = self.tokens.get(self.pos..self.pos + 2);
            let found = two
                .is_some_and(|t| t[0].tok == Tok::P(">") && t[1].tok == Tok::P(">") && t[1].glued);
            self.pos += if found { 2 } else { 0 };
            return found;
        }
        let found = self
            .tokens
            .get(self.pos)
            .is_some_and(|t| t.tok == Tok::P(p));
        let half_shift = p == ">"
            && self
                .tokens
                .get(self.pos + 1)
                .is_some_and(|t| t.tok == Tok::P(">") && t.glued);
        if found && !half_shift {
            self.pos += 1;
            return true;
        }
        false
    }

    fn ternary(&mut self) -> Option<BigInt> {
        let cond = self.binary(0)?;
        if !self.eat("?") {
            return Some(cond);
        }
        let yes = self.ternary()?;
        if !self.eat(":") {
            return None;
        }
        let no = self.ternary()?;
        Some(if cond.is_zero() { no } else { yes })
    }

    fn binary(&mut self, level: usize) -> Option<BigInt> {
        let Some(ops) = LEVELS.get(level) else {
            return self.unary();
        };
        let mut left = self.binary(level + 1)?;
        while let Some(op) = ops.iter().find(|op| self.eat(op)) {
            let right = self.binary(level + 1)?;
            left = apply(op, &left, &right)?;
        }
        Some(left)
    }

    fn unary(&mut self) -> Option<BigInt> {
        if self.eat("!") {
            return Some(truth(self.unary()?.is_zero()));
        }
        if self.eat("-") {
            return Some(-self.unary()?);
        }
        if self.eat("+") {
            return self.unary();
        }
        if self.eat("~") {
            return Some(-self.unary()? - BigInt::one());
        }
        if self.eat("(") {
            let v = self.ternary()?;
            return self.eat(")").then_some(v);
        }
        let t = self.tokens.get(self.pos)?;
        self.pos += 1;
        match &t.tok {
            Tok::Int { value, .. } => Some(value.clone()),
            // As in C, a name that is not a macro counts as 0.
            Tok::Ident(n) => Some(truth(&**n == "true")),
            _ => None,
        }
    }
}

fn truth(b: bool) -> BigInt {
    BigInt::from(u8::from(b))
}

fn apply(op: &str, l: &BigInt, r: &BigInt) -> Option<BigInt> {
    Some(match op {
        "||" => truth(!l.is_zero() || !r.is_zero()),
        "&&" => truth(!l.is_zero() && !r.is_zero()),
        "|" => l | r,
        "^" => l ^ r,
        "&" => l & r,
        "==" => truth(l == r),
        "!=" => truth(l != r),
        "<" => truth(l < r),
        ">" => truth(l > r),
        "<=" => truth(l <= r),
        ">=" => truth(l >= r),
        "<<" => l << r.to_u16()?,
        ">>" => l >> r.to_u16()?,
        "+" => l + r,
        "-" => l - r,
        "*" => l * r,
        "/" if !r.is_zero() => l / r,
        "%" if !r.is_zero() => l % r,
        _ => return None,
    })
}
