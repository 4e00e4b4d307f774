// SPDX-License-Identifier: Apache-2.0
//! The interpreter: the reference for native code, which calls it for single steps.
//!
//! It runs one block of a program at a time: a parser, a control flow, or a deparser. The architecture connects the blocks.

pub(crate) mod control;
mod deparser;
pub(crate) mod eval;
mod externs;
pub(crate) mod machine;
mod parser;
mod trace;
