// SPDX-License-Identifier: Apache-2.0
//! Prints preprocessed tokens as a program.

use std::fmt::Write;

use super::macros::spelling;
use crate::diag::SourceMap;
use crate::token::{Tok, Token};

/// Maximum number of empty lines in front of a token; a line marker replaces more.
const MAX_EMPTY_LINES: u32 = 8;

/// Returns the text of tokens, in the lines of their source, with line markers (`# 7 "file.p4"`) as the C preprocessor
/// writes them.
pub fn print(tokens: &[Token], sources: &SourceMap) -> String {
    let mut text = String::new();
    let (mut file, mut line) = (None, 0);
    for t in tokens.iter().filter(|t| t.tok != Tok::Eof) {
        let at = sources.line_col(t.span);
        let ahead = at.line.checked_sub(line).filter(|n| *n <= MAX_EMPTY_LINES);
        match ahead.filter(|_| file == Some(t.span.file)) {
            Some(0) if t.glued => {}
            Some(0) => text.push(' '),
            Some(n) => (0..n).for_each(|_| text.push('\n')),
            None => {
                let separator = if text.is_empty() { "" } else { "\n" };
                // Writing to a String cannot fail.
                let _ = writeln!(text, "{separator}# {} {:?}", at.line, at.file);
            }
        }
        let spelled = spelling(&t.tok);
        (file, line) = (
            Some(t.span.file),
            at.line + spelled.matches('\n').count() as u32,
        );
        text.push_str(&spelled);
    }
    text.push('\n');
    text
}
