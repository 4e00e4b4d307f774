// SPDX-License-Identifier: Apache-2.0
//! Strings that span several lines.
//!
//! For the C preprocessor, only the rest of the line after each `"` is a string. The lines between are program text,
//! with conditionals, macros and runs of spaces that become one. Annotations rely on this.

use super::{Branch, Preprocessor};
use crate::diag::Span;
use crate::token::{Tok, Token, lex};

impl Preprocessor<'_> {
    /// Replaces the text of all multi-line strings by the preprocessor's result.
    pub(super) fn multi_line_strings(&mut self, tokens: &[Token]) -> Vec<Token> {
        let mut out = tokens.to_vec();
        for t in &mut out {
            if let Tok::Str(text) = &t.tok
                && text.contains('\n')
            {
                t.tok = Tok::Str(self.multi_line(text, t.span).into());
            }
        }
        out
    }

    fn multi_line(&mut self, text: &str, span: Span) -> String {
        let mut branches: Vec<Branch> = Vec::new();
        let mut out = String::new();
        let mut at = span.lo + 1;
        for (i, line) in text.split('\n').enumerate() {
            if i == 0 {
                out.push_str(line);
            } else {
                out.push('\n');
                if line.trim_start().starts_with('#') {
                    self.directive_in_string(line, span.file, at, &mut branches);
                } else if branches.last().is_none_or(|b| b.active) {
                    self.line_in_string(line, &mut out);
                }
            }
            at += line.len() as u32 + 1;
        }
        if let Some(open) = branches.last() {
            self.diags.error(open.span, "conditional without #endif");
        }
        out
    }

    fn directive_in_string(&mut self, line: &str, file: u32, at: u32, branches: &mut Vec<Branch>) {
        let mut tokens = lex(file, line);
        tokens.pop();
        for t in &mut tokens {
            t.span.lo += at;
            t.span.hi += at;
        }
        self.directive(&tokens, branches);
    }

    fn line_in_string(&self, line: &str, out: &mut String) {
        let indent = line.len() - line.trim_start().len();
        out.extend(std::iter::repeat_n(' ', indent));
        let mut rest = line.trim();
        while let Some(c) = rest.chars().next() {
            if rest.starts_with("//") {
                out.push_str(rest);
                return;
            }
            let word = rest
                .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                .unwrap_or(rest.len());
            let space = rest.len() - rest.trim_start().len();
            if word > 0 {
                match self.macros.get(&rest[..word]).and_then(|m| m.text()) {
                    Some(text) => out.push_str(&text),
                    None => out.push_str(&rest[..word]),
                }
                rest = &rest[word..];
            } else if space > 0 {
                out.push(' ');
                rest = &rest[space..];
            } else {
                out.push(c);
                rest = &rest[c.len_utf8()..];
            }
        }
    }
}
