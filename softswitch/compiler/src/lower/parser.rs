// SPDX-License-Identifier: Apache-2.0
//! Parsers: from states with statements to states of the target, which have straight-line
//! operations and one select each.

use std::collections::HashMap;

use super::value::Val;
use super::{Lower, Place};
use crate::annotation::name_annotation;
use crate::ast::{DeclKind, Expr, State, Transition};
use crate::diag::{Span, Warning};
use crate::ir::{Ex, KeySet, Label, ParserState, Scalar, St, StKind, StateCase, Target};

/// The end of a state: keys and cases.
struct Exit {
    keys: Vec<Ex>,
    cases: Vec<StateCase>,
}

impl<'a> Lower<'a> {
    fn new_state(&mut self, name: String) -> usize {
        self.ir.states.push(ParserState {
            name,
            ops: Vec::new(),
            keys: Vec::new(),
            cases: Vec::new(),
            span: self.span,
        });
        self.ir.states.len() - 1
    }

    pub(super) fn unique_state(&self, base: &str) -> String {
        let mut name = base.to_string();
        let mut n = 0;
        while self.ir.states[self.first_state..]
            .iter()
            .any(|s| s.name == name)
        {
            name = format!("{base}_{n}");
            n += 1;
        }
        name
    }

    /// Lowers all states of a parser instance; `accept` is where it goes on. Returns its start.
    pub(super) fn parser_states(&mut self, block: usize, prefix: &str, accept: Target) -> usize {
        let DeclKind::Parser(p) = &self.blocks[block].decl.kind else {
            return 0;
        };
        let mut index: HashMap<&str, usize> = HashMap::new();
        for s in &p.states {
            let local = name_annotation(&s.annos).unwrap_or_else(|| s.name.name.to_string());
            let name = match local.strip_prefix('.') {
                Some(absolute) => absolute.to_string(),
                None if prefix.is_empty() => local,
                None => format!("{prefix}.{local}"),
            };
            let name = self.unique_state(&name);
            self.span = s.name.span;
            index.insert(&s.name.name, self.new_state(name));
        }
        let Some(&start) = index.get("start") else {
            return 0;
        };
        let outer = std::mem::replace(&mut self.place, Place::Parser);
        let frame = self.blocks[block].frame.clone();
        self.in_frame(frame, |s| {
            for state in &p.states {
                let mut exit = Exit {
                    keys: Vec::new(),
                    cases: Vec::new(),
                };
                let stmts = s.collect(|s| {
                    if &*state.name.name == "start" && !returns_to_start(p) {
                        s.start_locals(&p.locals);
                    }
                    s.stmts(&state.body);
                    exit = s.transition(state, &index, accept);
                });
                let at = index[&*state.name.name];
                s.fill_state(at, stmts, exit);
            }
        });
        let entry = if returns_to_start(p) {
            // A loop through `start` must not run the initialisers again.
            let name = self.unique_state(&if prefix.is_empty() {
                "begin".into()
            } else {
                format!("{prefix}.begin")
            });
            let begin = self.new_state(name);
            let frame = self.blocks[block].frame.clone();
            let stmts = self.in_frame(frame, |s| s.collect(|s| s.start_locals(&p.locals)));
            if stmts.is_empty() {
                self.ir.states.pop();
                start
            } else {
                self.fill_state(begin, stmts, direct(Target::State(start), self.span));
                begin
            }
        } else {
            start
        };
        self.place = outer;
        entry
    }

    /// A parser applied inside a state.
    pub(super) fn apply_parser(&mut self, block: usize) {
        let name = self.blocks[block].name.clone();
        let resume_name = self.unique_state(&format!("{name}.return"));
        let resume = self.new_state(resume_name);
        let start = self.parser_states(block, &name, Target::State(resume));
        self.emit(StKind::RunStates { start, resume });
    }

    fn transition(
        &mut self,
        state: &'a State,
        index: &HashMap<&str, usize>,
        accept: Target,
    ) -> Exit {
        self.rejects(&state.transition);
        let target = |name: &str| match name {
            "accept" => accept,
            "reject" => Target::Reject,
            other => index
                .get(other)
                .map_or(Target::Reject, |i| Target::State(*i)),
        };
        match &state.transition {
            Transition::Missing => direct(Target::Reject, self.span),
            Transition::Direct(t) => direct(target(&t.name), t.span),
            Transition::Select { keys, cases, span } => {
                self.span = *span;
                let values = self.eval_in_order(&keys.iter().collect::<Vec<_>>());
                let mut parts = Vec::new();
                for v in values {
                    self.key_parts(v, &mut parts);
                }
                // Everything known at compile time: the transition is known too.
                let mut out = Vec::new();
                for case in cases {
                    let sets = self.case_sets(&case.keyset, &parts);
                    out.push(StateCase {
                        sets,
                        target: target(&case.target.name),
                        span: case.keyset.span.to(case.target.span),
                    });
                }
                let keys: Vec<Ex> = parts.into_iter().map(|k| self.select_key(k)).collect();
                if keys.is_empty() {
                    return match cases.first() {
                        Some(case) => direct(target(&case.target.name), case.target.span),
                        None => direct(Target::Reject, *span),
                    };
                }
                // Other architectures accept packets without a matching case.
                if self.ir.architecture.is_tofino() {
                    out.push(StateCase {
                        sets: vec![KeySet::Any; keys.len()],
                        target: Target::Reject,
                        span: *span,
                    });
                }
                Exit { keys, cases: out }
            }
        }
    }

    /// The target has no such end of a parser: the packet goes on to the ingress as if it were accepted.
    fn rejects(&self, transition: &Transition) {
        if self.ir.architecture.is_tofino() {
            return;
        }
        let targets = match transition {
            Transition::Missing => Vec::new(),
            Transition::Direct(target) => vec![target],
            Transition::Select { cases, .. } => cases.iter().map(|c| &c.target).collect(),
        };
        for target in targets.iter().filter(|t| &*t.name == "reject") {
            self.diags.warn_hint(
                Warning::Unsupported,
                target.span,
                "the target does not support transitions to 'reject': the packet is accepted",
                "call verify(false, error.NoMatch) before, and drop packets with a parser_error",
            );
        }
    }

    fn key_parts(&mut self, v: Val, out: &mut Vec<Ex>) {
        match v {
            Val::Tuple(items) => items.into_iter().for_each(|v| self.key_parts(v, out)),
            Val::Struct(f) => f.into_iter().for_each(|(_, v)| self.key_parts(v, out)),
            v => {
                let e = self.scalar_from(v);
                out.push(e);
            }
        }
    }

    fn case_sets(&mut self, keyset: &'a Expr, keys: &[Ex]) -> Vec<KeySet> {
        let items = Self::keyset_items(keyset, keys.len());
        if items.len() == keys.len() {
            return items
                .iter()
                .zip(keys)
                .map(|(e, k)| self.keyset(e, k.ty()))
                .collect();
        }
        // One value set for all keys.
        match items.first().map(|e| self.eval(e)) {
            Some(Val::ValueSet(i)) => vec![KeySet::Set(self.ir.value_sets[i].name.clone())],
            _ => {
                self.error(
                    keyset.span,
                    "the number of values differs from the number of keys",
                );
                Vec::new()
            }
        }
    }

    fn select_key(&mut self, e: Ex) -> Ex {
        match e {
            Ex::Field { .. }
            | Ex::FieldOf {
                header: crate::ir::HeaderRef::Last(_) | crate::ir::HeaderRef::UnionLast { .. },
                ..
            } => e,
            e => self.as_key(e),
        }
    }

    /// Lets a state lead to another one.
    fn leads(&mut self, from: usize, to: usize, span: Span) {
        self.ir.states[from].cases = direct(Target::State(to), span).cases;
    }

    /// Puts statements into a state, opening further states where the target cannot do them in one.
    fn fill_state(&mut self, state: usize, stmts: Vec<St>, exit: Exit) {
        let mut labels = HashMap::new();
        if let Some(end) = self.fill(state, stmts, &mut labels) {
            let s = &mut self.ir.states[end];
            s.keys = exit.keys;
            s.cases = exit.cases;
        }
    }

    /// Returns the state that is open at the end, if the end can be reached.
    fn fill(
        &mut self,
        state: usize,
        stmts: Vec<St>,
        labels: &mut HashMap<Label, usize>,
    ) -> Option<usize> {
        let base = self.ir.states[state].name.clone();
        let mut at = state;
        for s in stmts {
            self.span = s.span;
            match s.kind {
                StKind::If(cond, yes, no) => {
                    let flag = self.scalar_variable("cond", Scalar::Bit(1));
                    let value = super::fold::cast(cond, Scalar::Bit(1));
                    self.ir.states[at].ops.push(St {
                        kind: StKind::Assign(flag.clone(), value),
                        span: s.span,
                    });
                    let names: Vec<String> = ["true", "false", "join"]
                        .iter()
                        .map(|n| format!("{base}_{n}"))
                        .collect();
                    let mut fresh = Vec::new();
                    for n in names {
                        let n = self.unique_state(&n);
                        fresh.push(self.new_state(n));
                    }
                    self.ir.states[at].keys = vec![flag];
                    self.ir.states[at].cases = alternatives([fresh[0], fresh[1]], s.span);
                    for (i, part) in [yes, no].into_iter().enumerate() {
                        if let Some(end) = self.fill(fresh[i], part, labels) {
                            self.leads(end, fresh[2], s.span);
                        }
                    }
                    at = fresh[2];
                }
                StKind::Labelled(label, body) => {
                    let n = self.unique_state(&format!("{base}_after"));
                    let after = self.new_state(n);
                    labels.insert(label, after);
                    if let Some(end) = self.fill(at, body, labels) {
                        self.leads(end, after, s.span);
                    }
                    at = after;
                }
                StKind::Leave(label) => {
                    if let Some(to) = labels.get(&label) {
                        self.leads(at, *to, s.span);
                    }
                    return None;
                }
                StKind::Loop { head, cond, body } => {
                    let names: Vec<String> = ["loop", "round", "done"]
                        .iter()
                        .map(|n| format!("{base}_{n}"))
                        .collect();
                    let mut fresh = Vec::new();
                    for n in names {
                        let n = self.unique_state(&n);
                        fresh.push(self.new_state(n));
                    }
                    self.leads(at, fresh[0], s.span);
                    if let Some(end) = self.fill(fresh[0], head, labels) {
                        let flag = self.scalar_variable("cond", Scalar::Bit(1));
                        let value = super::fold::cast(cond, Scalar::Bit(1));
                        self.ir.states[end].ops.push(St {
                            kind: StKind::Assign(flag.clone(), value),
                            span: s.span,
                        });
                        self.ir.states[end].keys = vec![flag];
                        self.ir.states[end].cases = alternatives([fresh[1], fresh[2]], s.span);
                    }
                    if let Some(end) = self.fill(fresh[1], body, labels) {
                        self.leads(end, fresh[0], s.span);
                    }
                    at = fresh[2];
                }
                StKind::RunStates { start, resume } => {
                    self.leads(at, start, s.span);
                    at = resume;
                }
                kind => self.ir.states[at].ops.push(St { kind, span: s.span }),
            }
        }
        Some(at)
    }
}

fn direct(target: Target, span: Span) -> Exit {
    let sets = Vec::new();
    Exit {
        keys: Vec::new(),
        cases: vec![StateCase { sets, target, span }],
    }
}

/// Returns the transitions of a key of one bit to the states for 1 and for 0.
fn alternatives([one, zero]: [usize; 2], span: Span) -> Vec<StateCase> {
    let case = |set, state| StateCase {
        sets: vec![set],
        target: Target::State(state),
        span,
    };
    vec![case(KeySet::Value(1.into()), one), case(KeySet::Any, zero)]
}

/// Whether some state goes back to `start`.
fn returns_to_start(p: &crate::ast::ParserDecl) -> bool {
    p.states.iter().any(|s| match &s.transition {
        Transition::Direct(t) => &*t.name == "start",
        Transition::Select { cases, .. } => cases.iter().any(|c| &*c.target.name == "start"),
        Transition::Missing => false,
    })
}
