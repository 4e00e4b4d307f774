// SPDX-License-Identifier: Apache-2.0
//! Tokens and the lexer. One lexer serves both the preprocessor and the parser.

use std::rc::Rc;

use num_bigint::BigInt;
use num_traits::Num;

use crate::diag::Span;

#[derive(Clone, Debug, PartialEq)]
pub enum Tok {
    /// Identifier or keyword.
    Ident(Rc<str>),
    /// Integer literal; `width` is `(bits, signed)` for `8w5` and `8s5`.
    Int {
        value: BigInt,
        width: Option<(u32, bool)>,
        /// The literal's text, because P4Info copies annotations verbatim.
        text: Rc<str>,
    },
    /// String literal, verbatim, without its quotes.
    Str(Rc<str>),
    /// Operator or punctuation.
    P(&'static str),
    /// Invalid text; an error only if it reaches the parser.
    Bad(&'static str),
    Eof,
}

#[derive(Clone, Debug)]
pub struct Token {
    pub tok: Tok,
    pub span: Span,
    /// First token of its line.
    pub line_start: bool,
    /// No white space between this token and the one before it.
    pub glued: bool,
}

/// Longest first, so that the first match is the right one. `>>` is missing on purpose: it also
/// closes two type argument lists, so the parser joins two adjacent `>`.
const PUNCTUATION: &[&str] = &[
    "|+|=", "|-|=", "&&&", "...", "++=", "<<=", "|+|", "|-|", "&&", "||", "==", "!=", "<=", ">=",
    "<<", "++", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "..", "##", "{", "}", "(", ")",
    "[", "]", ";", ",", ":", ".", "<", ">", "=", "+", "-", "*", "/", "%", "&", "|", "^", "~", "!",
    "?", "@", "#",
];

/// Splits `text` into tokens; the last one is `Eof`.
pub fn lex(file: u32, text: &str) -> Vec<Token> {
    Lexer {
        text,
        bytes: text.as_bytes(),
        pos: 0,
        file,
        line_start: true,
        glued: false,
        out: Vec::new(),
    }
    .run()
}

struct Lexer<'a> {
    text: &'a str,
    bytes: &'a [u8],
    pos: usize,
    file: u32,
    line_start: bool,
    glued: bool,
    out: Vec<Token>,
}

impl Lexer<'_> {
    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.pos + ahead).copied().unwrap_or(0)
    }

    fn push(&mut self, start: usize, tok: Tok) {
        self.out.push(Token {
            tok,
            span: Span {
                file: self.file,
                lo: start as u32,
                hi: self.pos as u32,
            },
            line_start: self.line_start,
            glued: self.glued,
        });
        self.line_start = false;
        self.glued = true;
    }

    fn run(mut self) -> Vec<Token> {
        while self.pos < self.bytes.len() {
            let start = self.pos;
            let c = self.bytes[self.pos];
            if c == b'\n' {
                self.pos += 1;
                self.line_start = true;
                self.glued = false;
            } else if c.is_ascii_whitespace() {
                self.pos += 1;
                self.glued = false;
            } else if c == b'\\'
                && (self.peek(1) == b'\n' || self.text[self.pos..].starts_with("\\\r\n"))
            {
                // A continued line.
                self.pos += if self.peek(1) == b'\n' { 2 } else { 3 };
                self.glued = false;
            } else if c == b'/' && self.peek(1) == b'/' {
                self.line_comment();
            } else if c == b'/' && self.peek(1) == b'*' {
                self.block_comment(start);
            } else if c.is_ascii_alphabetic() || c == b'_' {
                let name = self.word();
                self.push(start, Tok::Ident(name));
            } else if c.is_ascii_digit() {
                let tok = self.number(start);
                self.push(start, tok);
            } else if c == b'"' {
                let tok = self.string();
                self.push(start, tok);
            } else if let Some(p) = PUNCTUATION
                .iter()
                .find(|p| self.text[self.pos..].starts_with(**p))
            {
                self.pos += p.len();
                self.push(start, Tok::P(p));
            } else {
                let width = self.text[self.pos..]
                    .chars()
                    .next()
                    .map_or(1, char::len_utf8);
                self.pos += width;
                self.push(start, Tok::Bad("unexpected character"));
            }
        }
        let end = self.bytes.len();
        self.pos = end;
        self.line_start = true;
        self.push(end, Tok::Eof);
        self.out
    }

    /// Reads a name, which may continue after a backslash at the end of a line.
    fn word(&mut self) -> Rc<str> {
        let start = self.pos;
        loop {
            match (self.peek(0), self.peek(1), self.peek(2)) {
                (b'_', ..) => self.pos += 1,
                (c, ..) if c.is_ascii_alphanumeric() => self.pos += 1,
                (b'\\', b'\n', c) if c.is_ascii_alphanumeric() || c == b'_' => self.pos += 2,
                _ => break,
            }
        }
        let text = &self.text[start..self.pos];
        if text.contains('\n') {
            return text.replace("\\\n", "").into();
        }
        text.into()
    }

    fn line_comment(&mut self) {
        while self.pos < self.bytes.len() && self.bytes[self.pos] != b'\n' {
            // A backslash at the end of the line continues the comment.
            if self.bytes[self.pos] == b'\\' && self.peek(1) == b'\n' {
                self.pos += 1;
            }
            self.pos += 1;
        }
        self.glued = false;
    }

    fn block_comment(&mut self, start: usize) {
        match self.text[self.pos + 2..].find("*/") {
            Some(end) => {
                self.pos += end + 4;
                self.glued = false;
            }
            None => {
                self.pos = self.bytes.len();
                self.push(start, Tok::Bad("unterminated comment"));
            }
        }
    }

    /// Reads a string. Backslashes are kept, as in P4Info. At the beginning of an argument, a string may span lines;
    /// elsewhere a single quote is more likely prose in a part that the preprocessor skips.
    fn string(&mut self) -> Tok {
        let from = self.pos + 1;
        let lines = matches!(
            self.out.last().map(|t| &t.tok),
            Some(Tok::P("(" | "[" | "," | "="))
        );
        self.pos = from;
        while self.pos < self.bytes.len() && self.bytes[self.pos] != b'"' {
            if self.bytes[self.pos] == b'\n' {
                if !lines {
                    return Tok::Bad("unterminated string");
                }
                self.pos += 1;
                self.directive_in_string();
                continue;
            }
            let escaped = self.bytes[self.pos] == b'\\' && matches!(self.peek(1), b'"' | b'\\');
            self.pos += if escaped { 2 } else { 1 };
        }
        if self.pos >= self.bytes.len() {
            return Tok::Bad("unterminated string");
        }
        self.pos += 1;
        Tok::Str(self.text[from..self.pos - 1].into())
    }

    /// A directive within a string, a line marker for instance, may have quotes of its own.
    fn directive_in_string(&mut self) {
        let line = self.text[self.pos..].lines().next().unwrap_or_default();
        if line.trim_start().starts_with('#') {
            self.pos += line.len();
        }
    }

    fn number(&mut self, start: usize) -> Tok {
        while self.peek(0).is_ascii_alphanumeric() || self.peek(0) == b'_' {
            self.pos += 1;
        }
        parse_number(&self.text[start..self.pos])
    }
}

/// Parses an integer literal: `[width (w|s)] [0x|0o|0d|0b] digits`, with `_` between digits.
fn parse_number(text: &str) -> Tok {
    const BAD: Tok = Tok::Bad("malformed integer literal");
    let digits_end = text
        .find(|c: char| !c.is_ascii_digit() && c != '_')
        .unwrap_or(text.len());
    let (width, body) = match text[digits_end..].chars().next() {
        Some(sign @ ('w' | 's')) => {
            let Ok(bits) = text[..digits_end].replace('_', "").parse::<u32>() else {
                return BAD;
            };
            (Some((bits, sign == 's')), &text[digits_end + 1..])
        }
        _ => (None, text),
    };
    let lower = body.to_ascii_lowercase();
    let (radix, digits) = match lower.get(..2) {
        Some("0x") => (16, &lower[2..]),
        Some("0b") => (2, &lower[2..]),
        Some("0o") => (8, &lower[2..]),
        Some("0d") => (10, &lower[2..]),
        _ => (10, &lower[..]),
    };
    let digits = digits.replace('_', "");
    if digits.is_empty() {
        return BAD;
    }
    match BigInt::from_str_radix(&digits, radix) {
        Ok(value) => Tok::Int {
            value,
            width,
            text: text.into(),
        },
        Err(_) => BAD,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn toks(text: &str) -> Vec<Tok> {
        lex(0, text).into_iter().map(|t| t.tok).collect()
    }

    #[test]
    fn numbers_have_width_and_sign() {
        assert_eq!(
            toks("8w0xF_F 4s7 0b101"),
            vec![
                Tok::Int {
                    text: "8w0xF_F".into(),
                    value: 255.into(),
                    width: Some((8, false))
                },
                Tok::Int {
                    text: "4s7".into(),
                    value: 7.into(),
                    width: Some((4, true))
                },
                Tok::Int {
                    text: "0b101".into(),
                    value: 5.into(),
                    width: None
                },
                Tok::Eof
            ]
        );
    }

    #[test]
    fn closing_angles_are_separate_tokens() {
        assert_eq!(
            toks("a>>b"),
            vec![
                Tok::Ident("a".into()),
                Tok::P(">"),
                Tok::P(">"),
                Tok::Ident("b".into()),
                Tok::Eof
            ]
        );
    }

    #[test]
    fn invalid_text_becomes_a_token() {
        assert!(matches!(toks("\"abc")[0], Tok::Bad(_)));
        assert!(matches!(toks("/* abc")[0], Tok::Bad(_)));
        assert!(matches!(toks("0x")[0], Tok::Bad(_)));
    }
}
