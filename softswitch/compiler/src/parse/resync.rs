// SPDX-License-Identifier: Apache-2.0
//! Going on after a syntax error.

use super::Parser;
use crate::diag::Span;
use crate::token::Tok;

impl Parser<'_> {
    /// Skips to just after the next `;` or balanced `}` at this nesting, or before a closing `}`.
    pub(super) fn resync(&mut self, start: usize) {
        if self.pos == start && !self.at("}") {
            self.bump();
        }
        let mut depth = 0;
        while !self.at_eof() {
            if depth == 0 && self.at(";") {
                self.bump();
                return;
            }
            if self.at("{") {
                depth += 1;
            } else if self.at("}") {
                if depth == 0 {
                    return;
                }
                depth -= 1;
                if depth == 0 {
                    self.bump();
                    return;
                }
            }
            self.bump();
        }
    }

    pub(super) fn resync_top(&mut self, start: usize) {
        const STARTERS: &[&str] = &[
            "control",
            "parser",
            "struct",
            "header",
            "header_union",
            "const",
            "typedef",
            "type",
            "enum",
            "extern",
            "action",
            "package",
            "error",
            "match_kind",
        ];
        if self.pos == start {
            self.bump();
        }
        while !self.at_eof() {
            // A declaration keyword in the first column of a line is a safe place to go on.
            let t = &self.tokens[self.pos];
            if t.line_start && matches!(&t.tok, Tok::Ident(n) if STARTERS.contains(&&**n)) {
                let src_col_one = self.pos == 0 || t.span.lo == 0 || self.column_one(t.span);
                if src_col_one {
                    return;
                }
            }
            self.bump();
        }
    }

    /// Whether nothing but a line break precedes `span`: approximated by the gap to the last token.
    fn column_one(&self, span: Span) -> bool {
        self.pos > 0 && {
            let prev = self.tokens[self.pos - 1].span;
            prev.file != span.file
                || matches!(self.tokens[self.pos - 1].tok, Tok::P("}" | ";" | ")"))
        }
    }
}
