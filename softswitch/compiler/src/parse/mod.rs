// SPDX-License-Identifier: Apache-2.0
//! The parser: recursive descent over preprocessed tokens.
//!
//! P4's grammar needs to know which names are types, so the parser keeps a scoped set of them.

mod annotation;
mod block;
mod declaration;
mod expression;
mod primary;
mod resync;
mod signature;
mod statement;
mod table;
mod types;

use std::cell::Cell;
use std::collections::HashMap;
use std::rc::Rc;

use crate::ast::{Ident, Name, NodeId, Program};
use crate::diag::{Diagnostics, Span};
use crate::token::{Tok, Token};

/// The error is already reported; the caller resynchronises.
#[derive(Debug)]
pub(crate) struct Failed;
pub(crate) type PResult<T> = Result<T, Failed>;

/// Maximum nesting depth, so that the recursion cannot exhaust the stack.
const MAX_DEPTH: u32 = 1000;

/// Maximum length of a chain of operators, for the same reason.
const MAX_CHAIN: u32 = 4000;

const KEYWORDS: &[&str] = &[
    "abstract",
    "action",
    "bit",
    "bool",
    "const",
    "control",
    "default",
    "else",
    "enum",
    "error",
    "exit",
    "extern",
    "false",
    "header",
    "header_union",
    "if",
    "in",
    "inout",
    "int",
    "match_kind",
    "out",
    "package",
    "parser",
    "return",
    "select",
    "string",
    "struct",
    "switch",
    "table",
    "this",
    "transition",
    "true",
    "tuple",
    "typedef",
    "varbit",
    "value_set",
    "void",
    "for",
    "break",
    "continue",
    "_",
];

pub fn parse(tokens: Vec<Token>, diags: &Diagnostics) -> Program {
    let mut p = Parser {
        tokens,
        pos: 0,
        diags,
        next_id: 0,
        scopes: vec![HashMap::new()],
        silent: 0,
        end_reported: Cell::new(false),
        depth: 0,
        in_angles: false,
    };
    let mut decls = Vec::new();
    while !p.at_eof() {
        if p.eat(";") {
            continue;
        }
        let before = p.pos;
        match p.top_declaration() {
            Ok(d) => decls.push(d),
            Err(Failed) => {
                p.resync_top(before);
            }
        }
    }
    Program {
        decls,
        node_count: p.next_id,
    }
}

pub(crate) struct Parser<'a> {
    tokens: Vec<Token>,
    pos: usize,
    diags: &'a Diagnostics,
    next_id: u32,
    /// Scopes, innermost last: for each name, true if it is a type.
    scopes: Vec<HashMap<Name, bool>>,
    /// While positive, errors are not reported (speculative parsing).
    silent: u32,
    /// True after an error at the end of the file, which further ones would only repeat.
    end_reported: Cell<bool>,
    depth: u32,
    /// True between `<` and `>` outside any brackets, where `>` is not an operator.
    in_angles: bool,
}

impl Parser<'_> {
    fn id(&mut self) -> NodeId {
        self.next_id += 1;
        self.next_id - 1
    }

    fn tok(&self) -> &Tok {
        &self.tokens[self.pos].tok
    }

    fn peek(&self, ahead: usize) -> &Tok {
        &self.tokens[(self.pos + ahead).min(self.tokens.len() - 1)].tok
    }

    fn span(&self) -> Span {
        self.tokens[self.pos].span
    }

    /// Span of the token before the current one.
    fn last_span(&self) -> Span {
        self.tokens[self.pos.saturating_sub(1)].span
    }

    fn at_eof(&self) -> bool {
        *self.tok() == Tok::Eof
    }

    fn bump(&mut self) {
        if self.pos + 1 < self.tokens.len() {
            self.pos += 1;
        }
    }

    fn at(&self, p: &str) -> bool {
        matches!(self.tok(), Tok::P(q) if *q == p)
    }

    fn peek_at(&self, ahead: usize, p: &str) -> bool {
        matches!(self.peek(ahead), Tok::P(q) if *q == p)
    }

    fn eat(&mut self, p: &str) -> bool {
        let found = self.at(p);
        if found {
            self.bump();
        }
        found
    }

    fn expect(&mut self, p: &str) -> PResult<Span> {
        let span = self.span();
        if self.eat(p) {
            return Ok(span);
        }
        Err(self.unexpected(&format!("'{p}'")))
    }

    fn at_word(&self, w: &str) -> bool {
        matches!(self.tok(), Tok::Ident(n) if &**n == w)
    }

    fn eat_word(&mut self, w: &str) -> bool {
        let found = self.at_word(w);
        if found {
            self.bump();
        }
        found
    }

    /// Returns true if the token `n` places ahead directly follows the one before it.
    fn glued(&self, n: usize) -> bool {
        self.tokens.get(self.pos + n).is_some_and(|t| t.glued)
    }

    /// Returns true at two adjacent tokens `>` and `second`: `>>` or `>>=`.
    fn at_shift_right(&self, second: &str) -> bool {
        self.at(">") && self.peek_at(1, second) && self.glued(1)
    }

    fn fail(&self, span: Span, message: impl Into<String>) -> Failed {
        if self.silent == 0 {
            self.diags.error(span, message);
        }
        Failed
    }

    fn unexpected(&self, wanted: &str) -> Failed {
        if self.silent > 0 {
            return Failed;
        }
        let found = match self.tok() {
            Tok::Ident(n) => format!("'{n}'"),
            Tok::Int { value, .. } => format!("number {value}"),
            Tok::Str(_) => "a string".into(),
            Tok::P(p) => format!("'{p}'"),
            Tok::Bad(why) => {
                self.diags.error(self.span(), *why);
                // The text behind it is probably missing.
                self.end_reported.set(true);
                return Failed;
            }
            Tok::Eof if self.end_reported.replace(true) => return Failed,
            Tok::Eof => "the end of the file".into(),
        };
        if wanted == "';'" {
            // The error is usually at the end of the previous token.
            self.diags.error_hint(
                self.span(),
                format!("syntax error: expected {wanted}, found {found}"),
                "is a ';' missing before this?",
            );
        } else {
            self.diags.error(
                self.span(),
                format!("syntax error: expected {wanted}, found {found}"),
            );
        }
        Failed
    }

    /// Counts a link of a chain such as `a + b + ...` or `a.b...`, because the tree is as deep as the chain.
    fn link(&self, links: &mut u32) -> PResult<()> {
        *links += 1;
        if *links > MAX_CHAIN {
            return Err(self.fail(self.span(), "the expression is too long"));
        }
        Ok(())
    }

    /// Guards recursion; every `enter` needs its `leave`.
    fn enter(&mut self) -> PResult<()> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            self.depth -= 1;
            return Err(self.fail(self.span(), "the program is nested too deeply"));
        }
        Ok(())
    }

    fn leave(&mut self) {
        self.depth -= 1;
    }

    fn nested<T>(&mut self, f: impl FnOnce(&mut Self) -> PResult<T>) -> PResult<T> {
        self.enter()?;
        let r = f(self);
        self.leave();
        r
    }

    /// Parses a name, including keywords that P4 also allows as names.
    fn ident(&mut self) -> PResult<Ident> {
        let Tok::Ident(n) = self.tok() else {
            return Err(self.unexpected("a name"));
        };
        if KEYWORDS.contains(&&**n) {
            return Err(self.unexpected("a name"));
        }
        let ident = Ident {
            name: n.clone(),
            span: self.span(),
        };
        self.bump();
        Ok(ident)
    }

    fn declare(&mut self, name: &Name, is_type: bool) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name.clone(), is_type);
        }
    }

    fn is_type_name(&self, name: &str) -> bool {
        self.scopes
            .iter()
            .rev()
            .find_map(|s| s.get(name).copied())
            .unwrap_or(false)
    }

    fn scoped<T>(&mut self, f: impl FnOnce(&mut Self) -> PResult<T>) -> PResult<T> {
        self.scopes.push(HashMap::new());
        let r = self.nested(f);
        self.scopes.pop();
        r
    }

    /// Parses items separated by commas, up to `close`.
    fn list<T>(
        &mut self,
        close: &str,
        item: impl FnMut(&mut Self) -> PResult<T>,
    ) -> PResult<Vec<T>> {
        if self.eat(close) {
            return Ok(Vec::new());
        }
        self.some(close, false, item)
    }

    /// Parses a list like [`Self::list`], with at least one item and optionally a comma after the last.
    fn some<T>(
        &mut self,
        close: &str,
        comma_at_end: bool,
        mut item: impl FnMut(&mut Self) -> PResult<T>,
    ) -> PResult<Vec<T>> {
        let mut items = Vec::new();
        loop {
            items.push(item(self)?);
            if !self.eat(",") || (comma_at_end && self.at(close)) {
                break;
            }
        }
        self.expect(close)?;
        Ok(items)
    }

    /// Runs `f`; on failure restores the position and reports nothing.
    fn speculate<T>(&mut self, f: impl FnOnce(&mut Self) -> PResult<T>) -> Option<T> {
        let (pos, depth) = (self.pos, self.depth);
        self.silent += 1;
        let r = f(self).ok();
        self.silent -= 1;
        if r.is_none() {
            self.pos = pos;
            self.depth = depth;
        }
        r
    }

    fn rc(&self, s: &str) -> Name {
        Rc::from(s)
    }
}
