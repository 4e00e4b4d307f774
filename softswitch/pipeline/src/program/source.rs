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
