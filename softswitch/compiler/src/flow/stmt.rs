// SPDX-License-Identifier: Apache-2.0
//! Analyses statements and declarations.

use super::Flow;
use super::state::{State, Validity};
use crate::ast::{Decl, DeclKind, Expr, Stmt, StmtKind, SwitchCase};
use crate::types::Const;
use crate::types::Type;

/// The states at the `break` and `continue` statements of a loop.
pub(super) struct Loop {
    breaks: State,
    continues: State,
}

impl<'a> Flow<'_, 'a> {
    pub(super) fn stmts(&mut self, stmts: &'a [Stmt]) {
        stmts.iter().for_each(|s| self.stmt(s));
    }

    fn stmt(&mut self, s: &'a Stmt) {
        if self.state.dead || !self.step(1) {
            return;
        }
        match &s.kind {
            StmtKind::Empty => {}
            StmtKind::Block(b) => self.stmts(&b.stmts),
            StmtKind::Decl(d) => self.declare(d),
            StmtKind::Assign { lhs, op, rhs } => {
                if op.is_some() {
                    self.read(lhs);
                }
                self.walk_target(lhs);
                self.read(rhs);
                self.assign(lhs, rhs);
                self.write(lhs);
            }
            StmtKind::Call(e) => self.read(e),
            StmtKind::If {
                cond,
                then,
                otherwise,
            } => self.branch(cond, then, otherwise.as_deref()),
            StmtKind::Return(value) => {
                value.iter().for_each(|e| self.read(e));
                let end = self.end();
                self.returns.join(&end);
            }
            StmtKind::Exit => {
                let end = self.end();
                self.exits.join(&end);
            }
            StmtKind::Break => {
                let end = self.end();
                if let Some(l) = self.loops.last_mut() {
                    l.breaks.join(&end);
                }
            }
            StmtKind::Continue => {
                let end = self.end();
                if let Some(l) = self.loops.last_mut() {
                    l.continues.join(&end);
                }
            }
            StmtKind::Switch { subject, cases } => self.switch(subject, cases),
            StmtKind::For {
                init,
                cond,
                update,
                body,
            } => {
                self.stmts(init);
                self.rounds(&mut |flow| {
                    flow.read(cond);
                    let end = flow.copy();
                    flow.stmt(body);
                    flow.go_on();
                    flow.stmts(update);
                    end
                });
            }
            StmtKind::ForIn { var, over, body } => {
                self.read(over);
                self.rounds(&mut |flow| {
                    let end = flow.copy();
                    flow.declare(var);
                    if let Some(Some(place)) = flow.places.get(&var.id).cloned() {
                        flow.state.mark(&place, false);
                        flow.state.set_all(&place, Validity::Yes);
                    }
                    flow.stmt(body);
                    flow.go_on();
                    end
                });
            }
        }
    }

    /// Marks the following statements as unreachable; returns the state at this one.
    fn end(&mut self) -> State {
        self.step(self.state.size());
        std::mem::replace(&mut self.state, State::dead())
    }

    pub(super) fn declare(&mut self, d: &'a Decl) {
        let DeclKind::Var { ty, init } = &d.kind else {
            return;
        };
        // Unused declarations are omitted from the program, including their initial values.
        let init = init.as_ref().filter(|_| self.named.contains(&d.id));
        init.iter().for_each(|e| self.read(e));
        let ty = self.typed.type_of(ty.id);
        let Some(place) = self.place(d.id, &ty) else {
            return;
        };
        if !self.step(place.slots()) {
            return;
        }
        self.state.mark(&place, init.is_none());
        match init {
            Some(e) => self.take(&place, e),
            None => self.state.set_all(&place, Validity::No),
        }
    }

    fn branch(&mut self, cond: &'a Expr, then: &'a Stmt, otherwise: Option<&'a Stmt>) {
        match self.typed.constants.get(&cond.id) {
            Some(Const::Bool(true)) => return self.stmt(then),
            Some(Const::Bool(false)) => return otherwise.into_iter().for_each(|s| self.stmt(s)),
            _ => {}
        }
        let before = self.copy();
        self.read(cond);
        let decided = self.copy();
        self.stmt(then);
        let one = std::mem::replace(&mut self.state, decided);
        otherwise.into_iter().for_each(|s| self.stmt(s));
        self.state.join(&one);
        self.state.ask_as(&before);
    }

    fn switch(&mut self, subject: &'a Expr, cases: &'a [SwitchCase]) {
        let before = self.copy();
        self.read(subject);
        let decided = self.copy();
        let mut after = if self.is_complete(subject, cases) {
            State::dead()
        } else {
            decided.clone()
        };
        for body in cases.iter().filter_map(|c| c.body.as_ref()) {
            if !self.step(1 + decided.size()) {
                return;
            }
            self.state = decided.clone();
            self.stmts(&body.stmts);
            after.join(&self.state);
        }
        after.ask_as(&before);
        self.state = after;
    }

    /// Returns true if a case always applies: there is a default case, or one for each action of the table.
    fn is_complete(&self, subject: &Expr, cases: &[SwitchCase]) -> bool {
        let actions = match self.typed.type_of(subject.id) {
            Type::ActionRun(table) => match self.typed.defs.get_decl(table).map(|d| &d.kind) {
                Some(DeclKind::Table(t)) if t.default_action.is_some() => {
                    t.actions.as_ref().map(Vec::len)
                }
                _ => None,
            },
            _ => None,
        };
        cases.iter().any(|c| c.label.is_none()) || actions == Some(cases.len())
    }

    /// Analyses a loop up to the fixed point, and once more to report warnings. `round` returns the state if the loop ends
    /// before the iteration.
    fn rounds(&mut self, round: &mut dyn FnMut(&mut Self) -> State) {
        let outer = std::mem::replace(&mut self.silent, true);
        let mut start = self.copy();
        loop {
            self.round(round);
            if !start.join(&self.state) || self.steps == 0 {
                break;
            }
            self.state = start.clone();
        }
        self.silent = outer;
        self.state = start;
        self.state = self.round(round);
    }

    /// Analyses one iteration; returns the state after the loop.
    fn round(&mut self, round: &mut dyn FnMut(&mut Self) -> State) -> State {
        self.loops.push(Loop {
            breaks: State::dead(),
            continues: State::dead(),
        });
        let mut end = round(self);
        if let Some(l) = self.loops.pop() {
            end.join(&l.breaks);
        }
        end
    }

    /// Analyses the continuation of an iteration's `continue` statements.
    fn go_on(&mut self) {
        if let Some(l) = self.loops.last_mut() {
            let continues = std::mem::replace(&mut l.continues, State::dead());
            self.state.join(&continues);
        }
    }
}
