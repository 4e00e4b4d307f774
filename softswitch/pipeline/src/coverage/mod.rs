// SPDX-License-Identifier: Apache-2.0
//! Coverage: which parts of a P4 program packets have reached.
//!
//! [`Pipeline::set_coverage`](crate::Pipeline::set_coverage) turns counting on. The interpreter then runs all packets.
//! [`Pipeline::coverage`](crate::Pipeline::coverage) returns the counts by position in the program. Parts without a position,
//! such as parser states in the JSON of p4c, are left out.

mod counts;

pub(crate) use counts::Counts;

use crate::info::Info;
use crate::program::Compiled;
use crate::program::control::ControlNode;
use crate::program::op::Op;
use crate::program::parser::ACCEPT;
use crate::program::source::SourceLocation;
use counts::{ActionCounts, StateCounts, TableCounts};

/// Counts of a program's parts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Actions and parser states that the program declares.
    pub functions: Vec<Function>,
    /// Statements, transitions of the parser, tables, and table entries of the program.
    pub statements: Vec<Statement>,
    /// Conditions, `select` expressions and tables, with their outcomes.
    pub branches: Vec<Branch>,
}

/// An action or a parser state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Name of the action or state.
    pub name: String,
    /// The position of its declaration.
    pub source: SourceLocation,
    /// Number of calls.
    pub count: u64,
}

/// A statement, or another part that packets reach as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// The position in the program.
    pub source: SourceLocation,
    /// Number of executions.
    pub count: u64,
}

/// A choice of the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Branch {
    /// The position in the program.
    pub source: SourceLocation,
    /// The outcomes and their counts: `true` and `false`; the next state of each case, of which several may be equal; or
    /// `hit`, `miss` and the actions.
    pub outcomes: Vec<(String, u64)>,
}

impl Coverage {
    pub(crate) fn new(c: &Compiled, counts: &Counts) -> Self {
        let mut coverage = Self::default();
        coverage.parser(c, counts);
        coverage.controls(c, counts);
        for (number, counts) in counts.actions.iter().enumerate() {
            coverage.action(c, number, counts);
        }
        coverage
    }

    fn function(&mut self, name: &str, source: Option<&SourceLocation>, count: u64) {
        let last = name.rsplit('.').next().unwrap_or(name);
        // The compiler makes further actions and states of statements.
        if let Some(source) = source.filter(|source| source.text.contains(last)) {
            self.functions.push(Function {
                name: name.to_owned(),
                source: source.clone(),
                count,
            });
        }
    }

    fn statement(&mut self, source: Option<&SourceLocation>, count: u64) {
        if let Some(source) = source {
            self.statements.push(Statement {
                source: source.clone(),
                count,
            });
        }
    }

    fn branch(&mut self, source: Option<&SourceLocation>, outcomes: Vec<(String, u64)>) {
        if let Some(source) = source {
            self.branches.push(Branch {
                source: source.clone(),
                outcomes,
            });
        }
    }

    fn parser(&mut self, c: &Compiled, counts: &Counts) {
        for (number, counts) in counts.states.iter().enumerate() {
            let state = &c.parser.states[number];
            let Some(source) = c.source.states.get(number) else {
                continue;
            };
            self.function(&state.name, source.declaration.as_ref(), counts.entered);
            self.statement(source.declaration.as_ref(), counts.entered);
            for (lines, count) in source.steps.iter().zip(&counts.steps) {
                for line in lines {
                    self.statement(line.as_ref(), *count);
                }
            }
            for (line, count) in source.transitions.iter().zip(&counts.transitions) {
                self.statement(line.as_ref(), *count);
            }
            if !state.cases.is_empty() {
                let outcomes = transitions(c, number, counts);
                self.branch(source.declaration.as_ref(), outcomes);
            }
        }
    }

    fn controls(&mut self, c: &Compiled, counts: &Counts) {
        let mut is_done = vec![false; c.tables.len()];
        for (node, (_, source)) in c.source.nodes.iter().enumerate() {
            match &c.nodes[node] {
                ControlNode::Table(table) => {
                    // A table that is applied several times has one position, that of its declaration.
                    if !std::mem::replace(&mut is_done[*table as usize], true) {
                        let counts = &counts.tables[*table as usize];
                        self.table(&c.info, *table as usize, source.as_ref(), counts);
                        let entries = &c.source.entries[*table as usize];
                        for (line, count) in entries.iter().zip(&counts.entries) {
                            self.statement(line.as_ref(), *count);
                        }
                    }
                }
                ControlNode::Condition { .. } => {
                    let [no, yes] = counts.conditions[node];
                    self.statement(source.as_ref(), no + yes);
                    let outcomes = vec![("true".to_owned(), yes), ("false".to_owned(), no)];
                    self.branch(source.as_ref(), outcomes);
                }
                ControlNode::Call { .. } => {}
            }
        }
    }

    fn table(
        &mut self,
        info: &Info,
        table: usize,
        source: Option<&SourceLocation>,
        counts: &TableCounts,
    ) {
        self.statement(source, counts.hits + counts.misses);
        let info = &info.tables[table];
        let mut outcomes = Vec::new();
        if !info.key.is_empty() {
            outcomes.push(("hit".to_owned(), counts.hits));
            outcomes.push(("miss".to_owned(), counts.misses));
        }
        let actions = info.actions.iter().zip(&counts.actions);
        outcomes.extend(actions.map(|((name, _), count)| (format!("action {name}"), *count)));
        self.branch(source, outcomes);
    }

    fn action(&mut self, c: &Compiled, number: usize, counts: &ActionCounts) {
        let source = c.source.actions[number].as_ref();
        self.function(&c.info.actions[number].name, source, counts.calls);
        self.statement(source, counts.calls);
        let Some(lines) = c.source.primitives.get(number) else {
            return;
        };
        for (step, line) in lines.iter().enumerate().take(counts.steps.len()) {
            let count = counts.steps[step];
            self.statement(line.as_ref(), count);
            if let Op::JumpUnless(..) = c.actions[number].ops[step] {
                let no = counts.jumps[step];
                let outcomes = vec![("true".to_owned(), count - no), ("false".to_owned(), no)];
                self.branch(line.as_ref(), outcomes);
            }
        }
    }
}

/// Returns the next states of a parser state's cases.
fn transitions(c: &Compiled, number: usize, counts: &StateCounts) -> Vec<(String, u64)> {
    let state = &c.parser.states[number];
    let cases = counts.transitions.iter().enumerate();
    let outcomes = cases.map(|(case, count)| {
        let name = match state.next(case) {
            ACCEPT => "=> accept".to_owned(),
            next => format!("=> {}", c.parser.states[next as usize].name),
        };
        (name, *count)
    });
    outcomes.collect()
}
