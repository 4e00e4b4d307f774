// SPDX-License-Identifier: Apache-2.0
//! Restrictions of table entries and actions: `@entry_restriction` and `@action_restriction` in the language of
//! p4-constraints (<https://github.com/p4lang/p4-constraints>, `docs/language-specification.md`).
//!
//! A restriction is parsed and type-checked when a pipeline config is set. Writes evaluate it.

mod check;
mod evaluate;
mod parser;
mod syntax;
mod token;

use num_bigint::BigInt;

pub use evaluate::Environment;

/// A name that a restriction may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variable<'a> {
    /// The name of a key or parameter.
    pub name: &'a str,
    /// Its type; `None` for a type without numbers.
    pub r#type: Option<Type>,
}

/// The type of an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// `bool`.
    Bool,
    /// `int`: any integer.
    Int,
    /// `bit<W>`.
    Bits(u32),
    /// A key with this match kind.
    Key(Kind, u32),
}

/// The match kind of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// One value.
    Exact,
    /// Value and mask.
    Ternary,
    /// Value and mask, which is all ones or 0.
    Optional,
    /// Value and prefix length.
    Lpm,
    /// Lowest and highest value.
    Range,
}

/// A number that belongs to an entry or an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// The entry's priority.
    Priority,
    /// A part of the key or parameter with this index.
    Variable(usize, Part),
}

/// A part of a key. Parameters have a value only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// `::value`.
    Value,
    /// `::mask`.
    Mask,
    /// `::prefix_length`.
    PrefixLength,
    /// `::low`.
    Low,
    /// `::high`.
    High,
}

/// A condition without names.
#[derive(Debug, Clone, PartialEq)]
enum Condition {
    Constant(bool),
    Not(Box<Self>),
    All(Vec<Self>),
    Any(Vec<Self>),
    Implies(Box<Self>, Box<Self>),
    Equal(Box<Self>, Box<Self>),
    Compare(Comparison, Number, Number),
}

/// A comparison operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Equal,
    NotEqual,
    Less,
    AtMost,
    Greater,
    AtLeast,
}

/// A number in a condition.
#[derive(Debug, Clone, PartialEq)]
enum Number {
    Constant(BigInt),
    Input(Input),
    Negate(Box<Self>),
    /// Modulo 2^W.
    Wrap(Box<Self>, u32),
}

/// A restriction: clauses that must all hold.
#[derive(Debug, Clone, PartialEq)]
pub struct Restriction {
    clauses: Vec<Clause>,
}

#[derive(Debug, Clone, PartialEq)]
struct Clause {
    text: String,
    condition: Condition,
}

/// A clause that does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation<'a> {
    /// The clause in the program.
    pub clause: &'a str,
    /// The inputs of the clause, each once.
    pub inputs: Vec<Input>,
}

impl Restriction {
    /// Parses and checks a restriction. `has_priority` is true for entries and false for actions.
    ///
    /// # Errors
    /// Line, column and fault of malformed text, as `LINE:COLUMN: FAULT`.
    pub fn new(text: &str, variables: &[Variable<'_>], has_priority: bool) -> Result<Self, String> {
        let clauses = parser::parse(text).and_then(|clauses| {
            let clauses = clauses.iter().map(|expression| {
                Ok(Clause {
                    text: clause_text(text, expression),
                    condition: check::check(expression, variables, has_priority)?,
                })
            });
            clauses.collect::<Result<_, _>>()
        });
        clauses
            .map(|clauses| Self { clauses })
            .map_err(|fault| fault.at(text))
    }

    /// Returns the first clause that does not hold.
    pub fn violation(&self, environment: &impl Environment) -> Option<Violation<'_>> {
        let broken = |clause: &&Clause| !evaluate::holds(&clause.condition, environment);
        let clause = self.clauses.iter().find(broken)?;
        let mut inputs = Vec::new();
        evaluate::inputs(&clause.condition, &mut inputs);
        Some(Violation {
            clause: &clause.text,
            inputs,
        })
    }
}

/// Returns the text of a clause in one line.
fn clause_text(text: &str, expression: &syntax::Expression) -> String {
    let words = token::without_comments(&text[expression.begin..expression.end]);
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A fault at a byte of the text.
#[derive(Debug)]
struct Fault {
    offset: usize,
    reason: String,
}

impl Fault {
    fn new(offset: usize, reason: impl Into<String>) -> Self {
        Self {
            offset,
            reason: reason.into(),
        }
    }

    /// Returns the fault with its line and column, which begin with 1.
    fn at(&self, text: &str) -> String {
        let before = &text[..self.offset];
        let line = before.matches('\n').count() + 1;
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let column = before[start..].chars().count() + 1;
        format!("{line}:{column}: {}", self.reason)
    }
}

#[cfg(test)]
mod tests;
