// SPDX-License-Identifier: Apache-2.0
//! The tokens of a restriction.

use num_bigint::BigInt;

use super::{Comparison, Fault};

/// A token at a place of the text.
#[derive(Debug, Clone, PartialEq)]
pub struct Token<'a> {
    pub kind: TokenKind<'a>,
    /// The first byte.
    pub begin: usize,
    /// The byte behind the last one.
    pub end: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub enum TokenKind<'a> {
    True,
    False,
    Number(BigInt),
    /// A name, perhaps with dots.
    Name(&'a str),
    /// A string in single quotes.
    Quoted(&'a str),
    Not,
    Minus,
    Open,
    Close,
    /// `::`.
    Scope,
    And,
    Or,
    Implies,
    Semicolon,
    Compare(Comparison),
    End,
}

/// Operators; those that begin with others come first.
const OPERATORS: [(&str, TokenKind<'static>); 16] = [
    ("==", TokenKind::Compare(Comparison::Equal)),
    ("!=", TokenKind::Compare(Comparison::NotEqual)),
    ("<=", TokenKind::Compare(Comparison::AtMost)),
    (">=", TokenKind::Compare(Comparison::AtLeast)),
    ("->", TokenKind::Implies),
    ("&&", TokenKind::And),
    ("||", TokenKind::Or),
    ("::", TokenKind::Scope),
    // p4c separates the colons if the annotation is not a string.
    (": :", TokenKind::Scope),
    ("<", TokenKind::Compare(Comparison::Less)),
    (">", TokenKind::Compare(Comparison::Greater)),
    ("!", TokenKind::Not),
    ("-", TokenKind::Minus),
    ("(", TokenKind::Open),
    (")", TokenKind::Close),
    (";", TokenKind::Semicolon),
];

/// Splits a restriction into tokens; the last one is [`TokenKind::End`].
///
/// # Errors
/// The first character that does not begin a token, or an unfinished token.
pub fn tokens(text: &str) -> Result<Vec<Token<'_>>, Fault> {
    let mut tokens = Vec::new();
    let mut at = 0;
    loop {
        at = skip_space(text, at)?;
        let (kind, length) = token(text, at)?;
        let is_last = kind == TokenKind::End;
        tokens.push(Token {
            kind,
            begin: at,
            end: at + length,
        });
        if is_last {
            return Ok(tokens);
        }
        at += length;
    }
}

/// Returns the text without comments.
pub fn without_comments(text: &str) -> String {
    let mut rest = text;
    let mut kept = String::new();
    while !rest.is_empty() {
        if let Some(length) = comment(rest) {
            kept.push(' ');
            rest = &rest[length.min(rest.len())..];
        } else {
            let next = rest.chars().next().map_or(rest.len(), char::len_utf8);
            kept.push_str(&rest[..next]);
            rest = &rest[next..];
        }
    }
    kept
}

/// Returns the length of the comment at the beginning, if any; an open one has no end.
fn comment(text: &str) -> Option<usize> {
    if text.starts_with("//") {
        return Some(text.find('\n').unwrap_or(text.len()));
    }
    let body = text.strip_prefix("/*")?;
    Some(body.find("*/").map_or(usize::MAX, |end| end + 4))
}

fn skip_space(text: &str, mut at: usize) -> Result<usize, Fault> {
    loop {
        let rest = &text[at..];
        let trimmed = rest.trim_start();
        at += rest.len() - trimmed.len();
        match comment(trimmed) {
            None => return Ok(at),
            Some(length) if length > trimmed.len() => {
                return Err(Fault::new(at, "the comment has no end: add `*/`"));
            }
            Some(length) => at += length,
        }
    }
}

fn token(text: &str, at: usize) -> Result<(TokenKind<'_>, usize), Fault> {
    let rest = &text[at..];
    let Some(first) = rest.chars().next() else {
        return Ok((TokenKind::End, 0));
    };
    if let Some((symbol, kind)) = OPERATORS.iter().find(|(s, _)| rest.starts_with(s)) {
        return Ok((kind.clone(), symbol.len()));
    }
    if first == '\'' {
        let body = &rest[1..];
        let end = body.find('\'');
        let end = end.ok_or_else(|| Fault::new(at, "the string has no end: add `'`"))?;
        return Ok((TokenKind::Quoted(&body[..end]), end + 2));
    }
    if first.is_ascii_digit() {
        return number(rest).map_err(|reason| Fault::new(at, reason));
    }
    if first.is_ascii_alphabetic() || first == '_' {
        let length = name_length(rest);
        let kind = match &rest[..length] {
            "true" => TokenKind::True,
            "false" => TokenKind::False,
            name => TokenKind::Name(name),
        };
        return Ok((kind, length));
    }
    Err(Fault::new(at, format!("unexpected character `{first}`")))
}

/// Returns the length of a name with dots, each before another identifier.
fn name_length(text: &str) -> usize {
    let is_word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    let bytes = text.as_bytes();
    let mut end = 0;
    loop {
        end += bytes[end..].iter().take_while(|b| is_word(**b)).count();
        let after = bytes.get(end + 1);
        let continues = bytes.get(end) == Some(&b'.')
            && after.is_some_and(|b| is_word(*b) && !b.is_ascii_digit());
        if !continues {
            return end;
        }
        end += 1;
    }
}

fn number(text: &str) -> Result<(TokenKind<'_>, usize), String> {
    let length = text.bytes().take_while(u8::is_ascii_alphanumeric).count();
    let word = &text[..length];
    let (digits, radix) = match word.get(..2) {
        Some("0x" | "0X") => (&word[2..], 16),
        Some("0b" | "0B") => (&word[2..], 2),
        Some("0o" | "0O") => (&word[2..], 8),
        Some("0d" | "0D") => (&word[2..], 10),
        _ => (word, 10),
    };
    let value = BigInt::parse_bytes(digits.as_bytes(), radix);
    let value = value.ok_or_else(|| format!("invalid number `{word}`"))?;
    Ok((TokenKind::Number(value), length))
}
