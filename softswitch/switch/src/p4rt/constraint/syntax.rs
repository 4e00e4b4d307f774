// SPDX-License-Identifier: Apache-2.0
//! The syntax tree of a restriction.

use num_bigint::BigInt;

use super::Comparison;

/// An expression at a place of the text.
#[derive(Debug, Clone, PartialEq)]
pub struct Expression {
    pub kind: ExpressionKind,
    /// The first byte.
    pub begin: usize,
    /// The byte behind the last one.
    pub end: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub enum ExpressionKind {
    Bool(bool),
    Number(BigInt),
    /// A key or parameter.
    Name(String),
    /// `::name`, data of the entry.
    Metadata(String),
    /// `name::part`.
    Part(Box<Expression>, String),
    Not(Box<Expression>),
    Negate(Box<Expression>),
    And(Vec<Expression>),
    Or(Vec<Expression>),
    Implies(Box<Expression>, Box<Expression>),
    Compare(Comparison, Box<Expression>, Box<Expression>),
}
