// SPDX-License-Identifier: Apache-2.0
//! Positions in the P4 source of a program.

use std::sync::Arc;

use serde::Serialize;

/// A position in the program's source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SourceLocation {
    /// The file, as named on the compiler's command line.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The text there.
    pub text: String,
}

impl SourceLocation {
    /// Returns the text of a condition: some compilers store the whole line.
    pub fn condition(&self) -> &str {
        let Some(rest) = self.text.strip_prefix("if ") else {
            return &self.text;
        };
        let rest = rest.trim_end_matches('{').trim();
        let inner = rest.strip_prefix('(').and_then(|r| r.strip_suffix(')'));
        inner.unwrap_or(rest)
    }

    /// Returns the text of a statement without its semicolon.
    pub fn statement(&self) -> &str {
        self.text.trim_end_matches(';')
    }
}

/// Names and source positions, by the loader's indices.
#[derive(Debug, Default)]
pub(crate) struct SourceMap {
    /// Name and position of each control node.
    pub(crate) nodes: Vec<(String, Option<SourceLocation>)>,
    pub(crate) actions: Vec<Option<SourceLocation>>,
    /// Position of each primitive of each action.
    pub(crate) primitives: Vec<Arc<[Option<SourceLocation>]>>,
    pub(crate) states: Vec<StateSource>,
    /// Position of each entry that the program defines, by table.
    pub(crate) entries: Vec<Vec<Option<SourceLocation>>>,
}

/// Positions in a parser state.
#[derive(Debug, Default)]
pub(crate) struct StateSource {
    pub(crate) declaration: Option<SourceLocation>,
    /// Positions of the statements of each step.
    pub(crate) steps: Vec<Vec<Option<SourceLocation>>>,
    /// Position of each case of the `select`; that of the default transition is last.
    pub(crate) transitions: Vec<Option<SourceLocation>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_whole_lines_are_reduced() {
        let at = |text: &str| SourceLocation {
            file: "a.p4".into(),
            line: 1,
            text: text.into(),
        };
        for text in ["if (hdr.ipv4.isValid()) {", "hdr.ipv4.isValid()"] {
            assert_eq!(at(text).condition(), "hdr.ipv4.isValid()");
        }
        for text in ["drop();", "drop()"] {
            assert_eq!(at(text).statement(), "drop()");
        }
    }
}
