// SPDX-License-Identifier: Apache-2.0
//! Accesses to registers. A register is memory of one stage, and a packet passes each stage of a gress once: it can access
//! a register once, and only in one gress.

use std::collections::{HashMap, HashSet};

use crate::diag::{Diagnostics, SourceMap, Span};
use crate::ir::{Label, Lowered, St, StKind, Then};

/// The accesses that a packet may have made on its way to a place of the program, by the register's object.
type Made = HashMap<usize, Span>;

/// Reports registers that a packet may access twice, or that both gresses access.
pub(super) fn check(program: &Lowered, diags: &Diagnostics, sources: &SourceMap) {
    let mut owners: HashMap<usize, (usize, Span)> = HashMap::new();
    let mut reported = HashSet::new();
    let name = |register: usize| &*program.objects[register].name;
    for (number, block) in program.pipelines.iter().enumerate() {
        let gress = stages(program, number);
        let mut paths = Paths {
            program,
            leaving: HashMap::new(),
            all: HashMap::new(),
            twice: Vec::new(),
        };
        paths.block(&block.body, Some(Made::new()));
        for (register, first, second) in paths.twice {
            if reported.insert((register, second)) {
                twice(diags, sources, name(register), first, second);
            }
        }
        for (register, span) in paths.all {
            let (owner, first) = *owners.entry(register).or_insert((gress, span));
            if owner != gress {
                shared(diags, sources, name(register), first, span);
            }
        }
    }
}

/// Returns the gress whose stages a control runs in. The ghost thread runs in those of ingress.
fn stages(program: &Lowered, number: usize) -> usize {
    let name = &program.pipelines[number].name;
    let ingress = name
        .strip_suffix("ghost")
        .map(|prefix| format!("{prefix}ingress"));
    let mut blocks = program.pipelines.iter();
    let ingress = ingress.and_then(|ingress| blocks.position(|block| block.name == ingress));
    ingress.unwrap_or(number)
}

fn twice(diags: &Diagnostics, sources: &SourceMap, name: &str, first: Span, second: Span) {
    let line = sources.line_col(first).line;
    diags.error_hint(
        second,
        format!(
            "a packet can access register '{name}' only once, and may have done so already in line {line}"
        ),
        "a register is memory of one stage: do everything in one RegisterAction, let only one branch access it, or use a second register",
    );
}

fn shared(diags: &Diagnostics, sources: &SourceMap, name: &str, first: Span, second: Span) {
    let line = sources.line_col(first).line;
    diags.error_hint(
        second,
        format!("ingress and egress cannot share register '{name}', which ingress accesses in line {line}"),
        "use a register for each gress, and carry the value to egress in a header (bridged metadata)",
    );
}

/// Follows all paths through a control.
struct Paths<'p, 'a> {
    program: &'p Lowered<'a>,
    /// The accesses on the paths that leave a labelled block.
    leaving: HashMap<Label, Made>,
    /// The first access to each register.
    all: HashMap<usize, Span>,
    /// Registers that a path accesses twice, with both places.
    twice: Vec<(usize, Span, Span)>,
}

impl Paths<'_, '_> {
    /// Follows a list of statements; `None` if the end cannot be reached.
    fn block(&mut self, block: &[St], made: Option<Made>) -> Option<Made> {
        block
            .iter()
            .try_fold(made?, |made, st| self.statement(st, made))
    }

    fn statement(&mut self, st: &St, mut made: Made) -> Option<Made> {
        match &st.kind {
            StKind::Access { register, .. } => {
                self.access(*register, st.span, &mut made);
                Some(made)
            }
            StKind::If(_, yes, no) => {
                let yes = self.block(yes, Some(made.clone()));
                let no = self.block(no, Some(made));
                either(yes, no)
            }
            StKind::Apply { table, then } => self.table(*table, then, made),
            StKind::Labelled(label, inner) => {
                let end = self.block(inner, Some(made));
                either(end, self.leaving.remove(label))
            }
            StKind::Leave(label) => {
                let all = either(Some(made), self.leaving.remove(label));
                self.leaving.extend(all.map(|made| (*label, made)));
                None
            }
            StKind::Exit => None,
            StKind::Loop { head, body, .. } => {
                let made = self.block(head, Some(made))?;
                let again = self.block(body, Some(made.clone()));
                let again = self.block(head, again);
                either(Some(made), again)
            }
            _ => Some(made),
        }
    }

    fn table(&mut self, table: usize, then: &Then, made: Made) -> Option<Made> {
        let actions = &self.program.tables[table].actions;
        let ends: Vec<Option<Made>> = actions
            .iter()
            .map(|a| self.block(&self.program.actions[a.action].body, Some(made.clone())))
            .collect();
        let all = |ends: &[Option<Made>]| ends.iter().cloned().fold(None, either);
        match then {
            Then::Nothing => all(&ends),
            Then::HitMiss(hit, miss) => {
                let hit = self.block(hit, all(&ends));
                let miss = self.block(miss, all(&ends));
                either(hit, miss)
            }
            Then::Switch { cases, default } => {
                let mut rest: Vec<usize> = (0..ends.len()).collect();
                let mut end = None;
                for (chosen, body) in cases {
                    rest.retain(|i| !chosen.contains(i));
                    let before = chosen.iter().map(|&i| ends[i].clone()).fold(None, either);
                    end = either(end, self.block(body, before));
                }
                let before = rest.iter().map(|&i| ends[i].clone()).fold(None, either);
                either(end, self.block(default, before))
            }
        }
    }

    fn access(&mut self, register: usize, span: Span, made: &mut Made) {
        self.all.entry(register).or_insert(span);
        match made.get(&register) {
            Some(first) => self.twice.push((register, *first, span)),
            None => {
                made.insert(register, span);
            }
        }
    }
}

/// Returns what a packet may have done on one path or another.
fn either(a: Option<Made>, b: Option<Made>) -> Option<Made> {
    match (a, b) {
        (Some(mut a), Some(b)) => {
            for (register, span) in b {
                a.entry(register).or_insert(span);
            }
            Some(a)
        }
        (a, b) => a.or(b),
    }
}
