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

/// Names and source positions, by the loader's indices.
#[derive(Debug, Default)]
pub(crate) struct SourceMap {
    /// Name and position of each control node.
    pub(crate) nodes: Vec<(String, Option<SourceLocation>)>,
    pub(crate) actions: Vec<Option<SourceLocation>>,
    /// Position of each primitive of each action.
    pub(crate) primitives: Vec<Arc<[Option<SourceLocation>]>>,
}
