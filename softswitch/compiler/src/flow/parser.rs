// SPDX-License-Identifier: Apache-2.0
//! Analyses parsers: their states, until the state information reaches a fixed point.

use std::collections::HashMap;

use super::Flow;
use super::state::State;
use crate::ast::{self, ExprKind, ParserDecl, Transition};

impl<'a> Flow<'_, 'a> {
    /// Analyses all states; afterwards the current state is the one at the parser's end.
    pub(super) fn parser(&mut self, p: &'a ParserDecl) {
        self.locals(&p.locals);
        let states: HashMap<&str, &'a ast::State> =
            p.states.iter().map(|s| (&*s.name.name, s)).collect();
        let mut known: HashMap<&str, State> =
            HashMap::from([("start", std::mem::take(&mut self.state))]);
        let mut todo = vec!["start"];
        self.silent = true;
        while let Some(name) = todo.pop() {
            let (Some(s), Some(before)) = (states.get(name), known.get(name)) else {
                continue;
            };
            self.state = before.clone();
            if !self.step(1 + self.state.size()) {
                return;
            }
            self.parser_state(s);
            for target in targets(s) {
                let news = match known.get_mut(target) {
                    Some(before) => before.join(&self.state),
                    None => {
                        known.insert(target, self.state.clone());
                        true
                    }
                };
                if news && !todo.contains(&target) {
                    todo.push(target);
                }
            }
        }
        self.silent = false;
        for s in &p.states {
            if let Some(before) = known.get(&*s.name.name) {
                self.state = before.clone();
                self.parser_state(s);
            }
        }
        self.state = State::dead();
        for end in ["accept", "reject"]
            .iter()
            .filter_map(|name| known.get(name))
        {
            self.state.join(end);
        }
    }

    fn parser_state(&mut self, s: &'a ast::State) {
        self.stmts(&s.body);
        if let Transition::Select { keys, .. } = &s.transition {
            keys.iter().for_each(|k| self.read(k));
        }
    }
}

/// Returns the successors of a state. A select without a match and a missing transition lead to `reject`.
fn targets(s: &ast::State) -> Vec<&str> {
    match &s.transition {
        Transition::Missing => vec!["reject"],
        Transition::Direct(target) => vec![&target.name],
        Transition::Select { cases, .. } => {
            let always = |c: &ast::SelectCase| {
                matches!(c.keyset.kind, ExprKind::Default | ExprKind::DontCare)
            };
            let end = (!cases.iter().any(always)).then_some("reject");
            cases.iter().map(|c| &*c.target.name).chain(end).collect()
        }
    }
}
