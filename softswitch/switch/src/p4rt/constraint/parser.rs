// SPDX-License-Identifier: Apache-2.0
//! The parser of restrictions. Operators from loose to tight: `;`, `->`, `||`, `&&`, comparisons, `!` and `-`, `::`.

use std::net::{Ipv4Addr, Ipv6Addr};

use num_bigint::BigInt;

use super::Fault;
use super::syntax::{Expression, ExpressionKind};
use super::token::{Token, TokenKind, tokens};

/// Maximum nesting of parentheses and signs.
const MAX_DEPTH: usize = 100;

/// Parses a restriction into the clauses that `;` or `&&` joins.
///
/// # Errors
/// The first place where the text contradicts the grammar.
pub fn parse(text: &str) -> Result<Vec<Expression>, Fault> {
    let mut parser = Parser {
        tokens: tokens(text)?,
        at: 0,
        depth: 0,
    };
    let mut clauses = Vec::new();
    loop {
        let clause = parser.implication()?;
        match clause.kind {
            ExpressionKind::And(parts) => clauses.extend(parts),
            _ => clauses.push(clause),
        }
        let separated = parser.take(&TokenKind::Semicolon);
        if parser.peek().kind == TokenKind::End {
            return Ok(clauses);
        }
        if !separated {
            return Err(parser.unexpected("an operator or `;`"));
        }
    }
}

struct Parser<'a> {
    tokens: Vec<Token<'a>>,
    at: usize,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> &Token<'a> {
        // The last token is never taken.
        &self.tokens[self.at.min(self.tokens.len() - 1)]
    }

    fn next(&mut self) -> Token<'a> {
        let token = self.peek().clone();
        self.at += 1;
        token
    }

    fn take(&mut self, kind: &TokenKind<'_>) -> bool {
        let is_there = self.peek().kind == *kind;
        self.at += usize::from(is_there);
        is_there
    }

    fn unexpected(&self, expected: &str) -> Fault {
        let found = match &self.peek().kind {
            TokenKind::End => "the end".to_owned(),
            TokenKind::Name(name) => format!("`{name}`"),
            TokenKind::Number(number) => format!("`{number}`"),
            TokenKind::Quoted(text) => format!("`'{text}'`"),
            other => format!("`{}`", symbol(other)),
        };
        Fault::new(
            self.peek().begin,
            format!("expected {expected}, not {found}"),
        )
    }

    fn implication(&mut self) -> Result<Expression, Fault> {
        let left = self.disjunction()?;
        if !self.take(&TokenKind::Implies) {
            return Ok(left);
        }
        let right = self.disjunction()?;
        if self.peek().kind == TokenKind::Implies {
            return Err(Fault::new(
                self.peek().begin,
                "`->` cannot be chained: add parentheses",
            ));
        }
        Ok(joined(left, right, ExpressionKind::Implies))
    }

    fn disjunction(&mut self) -> Result<Expression, Fault> {
        self.chain(&TokenKind::Or, Self::conjunction, ExpressionKind::Or)
    }

    fn conjunction(&mut self) -> Result<Expression, Fault> {
        self.chain(&TokenKind::And, Self::comparison, ExpressionKind::And)
    }

    fn chain(
        &mut self,
        operator: &TokenKind<'_>,
        operand: fn(&mut Self) -> Result<Expression, Fault>,
        join: fn(Vec<Expression>) -> ExpressionKind,
    ) -> Result<Expression, Fault> {
        let first = operand(self)?;
        if self.peek().kind != *operator {
            return Ok(first);
        }
        let begin = first.begin;
        let mut operands = vec![first];
        let mut end = begin;
        while self.take(operator) {
            let next = operand(self)?;
            end = next.end;
            operands.push(next);
        }
        Ok(Expression {
            kind: join(operands),
            begin,
            end,
        })
    }

    fn comparison(&mut self) -> Result<Expression, Fault> {
        let left = self.unary()?;
        let TokenKind::Compare(operator) = self.peek().kind else {
            return Ok(left);
        };
        self.at += 1;
        let right = self.unary()?;
        if matches!(self.peek().kind, TokenKind::Compare(_)) {
            return Err(Fault::new(
                self.peek().begin,
                "comparisons cannot be chained: add parentheses",
            ));
        }
        Ok(joined(left, right, |left, right| {
            ExpressionKind::Compare(operator, left, right)
        }))
    }

    fn unary(&mut self) -> Result<Expression, Fault> {
        let join = match self.peek().kind {
            TokenKind::Not => ExpressionKind::Not,
            TokenKind::Minus => ExpressionKind::Negate,
            _ => return self.projection(),
        };
        let begin = self.next().begin;
        let operand = self.deeper(begin, Self::unary)?;
        Ok(Expression {
            begin,
            end: operand.end,
            kind: join(Box::new(operand)),
        })
    }

    /// Parses an expression inside another one.
    fn deeper(
        &mut self,
        begin: usize,
        parse: fn(&mut Self) -> Result<Expression, Fault>,
    ) -> Result<Expression, Fault> {
        if self.depth == MAX_DEPTH {
            return Err(Fault::new(
                begin,
                format!("expressions may be nested {MAX_DEPTH} times: split the restriction"),
            ));
        }
        self.depth += 1;
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    fn projection(&mut self) -> Result<Expression, Fault> {
        let operand = self.primary()?;
        if !self.take(&TokenKind::Scope) {
            return Ok(operand);
        }
        let (part, end) = self.word()?;
        Ok(Expression {
            begin: operand.begin,
            end,
            kind: ExpressionKind::Part(Box::new(operand), part),
        })
    }

    /// Takes a name without dots; returns its end, too.
    fn word(&mut self) -> Result<(String, usize), Fault> {
        match self.peek().kind {
            TokenKind::Name(name) if !name.contains('.') => Ok((name.into(), self.next().end)),
            _ => Err(self.unexpected("a name after `::`")),
        }
    }

    fn primary(&mut self) -> Result<Expression, Fault> {
        let token = self.peek().clone();
        let kind = match token.kind {
            TokenKind::True => ExpressionKind::Bool(true),
            TokenKind::False => ExpressionKind::Bool(false),
            TokenKind::Number(number) => ExpressionKind::Number(number),
            TokenKind::Name(name) => {
                self.at += 1;
                return self.name_or_address(name, token.begin, token.end);
            }
            TokenKind::Scope => {
                self.at += 1;
                let (name, end) = self.word()?;
                return Ok(Expression {
                    kind: ExpressionKind::Metadata(name),
                    begin: token.begin,
                    end,
                });
            }
            TokenKind::Open => {
                self.at += 1;
                let inner = self.deeper(token.begin, Self::parenthesized)?;
                let end = self.peek().end;
                if !self.take(&TokenKind::Close) {
                    return Err(self.unexpected("`)`"));
                }
                return Ok(Expression {
                    begin: token.begin,
                    end,
                    ..inner
                });
            }
            _ => return Err(self.unexpected("an expression")),
        };
        self.at += 1;
        Ok(Expression {
            kind,
            begin: token.begin,
            end: token.end,
        })
    }

    /// Parses the inside of parentheses, which may have clauses, too.
    fn parenthesized(&mut self) -> Result<Expression, Fault> {
        let first = self.implication()?;
        if self.peek().kind != TokenKind::Semicolon {
            return Ok(first);
        }
        let begin = first.begin;
        let mut end = first.end;
        let mut clauses = vec![first];
        while self.take(&TokenKind::Semicolon) && self.peek().kind != TokenKind::Close {
            let next = self.implication()?;
            end = next.end;
            clauses.push(next);
        }
        Ok(Expression {
            kind: ExpressionKind::And(clauses),
            begin,
            end,
        })
    }

    /// Parses the rest of a name, or of an address such as `ipv4('10.0.0.1')`.
    fn name_or_address(
        &mut self,
        name: &str,
        begin: usize,
        end: usize,
    ) -> Result<Expression, Fault> {
        if self.peek().kind != TokenKind::Open {
            return Ok(Expression {
                kind: ExpressionKind::Name(name.into()),
                begin,
                end,
            });
        }
        self.at += 1;
        let TokenKind::Quoted(text) = self.peek().kind else {
            return Err(self.unexpected("an address in single quotes"));
        };
        let invalid = || {
            Fault::new(
                self.peek().begin,
                format!("invalid {name} address '{text}'"),
            )
        };
        let value = match name {
            "ipv4" => text
                .parse()
                .ok()
                .map(|a: Ipv4Addr| BigInt::from(a.to_bits())),
            "ipv6" => text
                .parse()
                .ok()
                .map(|a: Ipv6Addr| BigInt::from(a.to_bits())),
            "mac" => mac(text),
            _ => {
                return Err(Fault::new(
                    begin,
                    format!("unknown function `{name}`: use ipv4, ipv6 or mac"),
                ));
            }
        };
        let value = value.ok_or_else(invalid)?;
        self.at += 1;
        let end = self.peek().end;
        if !self.take(&TokenKind::Close) {
            return Err(self.unexpected("`)`"));
        }
        Ok(Expression {
            kind: ExpressionKind::Number(value),
            begin,
            end,
        })
    }
}

fn joined(
    left: Expression,
    right: Expression,
    join: impl FnOnce(Box<Expression>, Box<Expression>) -> ExpressionKind,
) -> Expression {
    let (begin, end) = (left.begin, right.end);
    Expression {
        kind: join(Box::new(left), Box::new(right)),
        begin,
        end,
    }
}

/// Parses six pairs of hexadecimal digits with colons.
fn mac(text: &str) -> Option<BigInt> {
    let bytes: Vec<&str> = text.split(':').collect();
    let is_byte = |b: &&str| b.len() == 2 && b.bytes().all(|c| c.is_ascii_hexdigit());
    let is_valid = bytes.len() == 6 && bytes.iter().all(is_byte);
    is_valid.then(|| BigInt::parse_bytes(bytes.concat().as_bytes(), 16))?
}

fn symbol(kind: &TokenKind<'_>) -> &'static str {
    use super::Comparison as C;
    match kind {
        TokenKind::True => "true",
        TokenKind::False => "false",
        TokenKind::Not => "!",
        TokenKind::Minus => "-",
        TokenKind::Open => "(",
        TokenKind::Close => ")",
        TokenKind::Scope => "::",
        TokenKind::And => "&&",
        TokenKind::Or => "||",
        TokenKind::Implies => "->",
        TokenKind::Semicolon => ";",
        TokenKind::Compare(C::Equal) => "==",
        TokenKind::Compare(C::NotEqual) => "!=",
        TokenKind::Compare(C::Less) => "<",
        TokenKind::Compare(C::AtMost) => "<=",
        TokenKind::Compare(C::Greater) => ">",
        TokenKind::Compare(C::AtLeast) => ">=",
        TokenKind::Number(_) | TokenKind::Name(_) | TokenKind::Quoted(_) | TokenKind::End => "",
    }
}
