// SPDX-License-Identifier: Apache-2.0
//! Analyses calls, and tables with their actions.

use super::Flow;
use super::layout::Place;
use super::state::{State, Validity};
use crate::ast::{Arg, Block, Decl, DeclKind, Direction, Expr, ExprKind, Ident, NodeId, Param};
use crate::diag::Warning;
use crate::lower::MAX_INLINE_DEPTH;
use crate::types::{Callee, Def};

/// The parameters with their arguments.
type Given<'a> = Vec<(&'a Param, Option<&'a Expr>)>;

/// A callee's parameters and statements.
struct Body<'a> {
    /// The name of an action; the out parameters of other callees are checked in their own analysis.
    checked: Option<&'a Ident>,
    locals: &'a [Decl],
    block: &'a Block,
}

impl<'a> Flow<'_, 'a> {
    pub(super) fn call(&mut self, e: &'a Expr, callee: &'a Expr, args: &'a [Arg]) {
        let Some(info) = self.typed.calls.get(&e.id) else {
            return;
        };
        let params: &'a [Param] = match info.callee {
            Callee::Builtin => return self.builtin(callee),
            Callee::TableApply(id) => return self.table(id),
            Callee::Constructor => return,
            Callee::Function(id) | Callee::Action(id) | Callee::Method(id) | Callee::Apply(id) => {
                self.params_of(id)
            }
        };
        let args = |i: usize| {
            info.args
                .get(i)
                .copied()
                .flatten()
                .and_then(|k| args.get(k))
        };
        let given: Given = params
            .iter()
            .enumerate()
            .map(|(i, p)| (p, args(i).map(|a| &a.expr)))
            .collect();
        self.inputs(&given);
        match self.body_of(&info.callee) {
            Some(body) => self.run(body, &given),
            None => self.outputs(&given),
        }
    }

    /// Returns the part of a callee that is analysed at the call.
    fn body_of(&self, callee: &Callee) -> Option<Body<'a>> {
        let (Callee::Function(id) | Callee::Action(id) | Callee::Apply(id)) = callee else {
            return None;
        };
        let d = self.typed.defs.get_decl(*id)?;
        let (checked, locals, block): (_, &[Decl], _) = match &d.kind {
            DeclKind::Action { body, .. } => (Some(&d.name), &[], body),
            DeclKind::Function {
                body: Some(body), ..
            } => (None, &[], body),
            DeclKind::Control(c) if !c.is_type => (None, &c.locals, &c.body),
            _ => return None,
        };
        Some(Body {
            checked,
            locals,
            block,
        })
    }

    fn params_of(&self, id: NodeId) -> &'a [Param] {
        match self.typed.defs.get(id) {
            Some(Def::Method(_, m)) => &m.sig.params,
            Some(Def::Decl(d)) => match &d.kind {
                DeclKind::Function { sig, .. } => &sig.params,
                DeclKind::Action { params, .. } => params,
                DeclKind::Parser(p) => &p.params,
                DeclKind::Control(c) => &c.params,
                _ => &[],
            },
            _ => &[],
        }
    }

    fn inputs(&mut self, given: &Given<'a>) {
        for (p, arg) in given {
            if let Some(arg) = arg.filter(|_| p.dir != Direction::Out) {
                self.read(arg);
            }
        }
    }

    /// Marks all outputs of a parser or extern as initialized and valid.
    fn outputs(&mut self, given: &Given<'a>) {
        for arg in results(given) {
            self.walk_target(arg);
            self.set_header(arg, Validity::Yes);
            self.write(arg);
        }
    }

    /// Marks the expression as initialized.
    pub(super) fn write(&mut self, e: &'a Expr) {
        for place in self.places(e) {
            self.step(place.layout.values);
            self.state.mark(&place, false);
        }
    }

    fn builtin(&mut self, callee: &'a Expr) {
        let ExprKind::Member(base, name) = &callee.kind else {
            return;
        };
        match &*name.name {
            "isValid" | "setValid" | "setInvalid" | "push_front" | "pop_front" => {
                self.walk_path(base)
            }
            _ => return,
        }
        match &*name.name {
            "isValid" => self.places(base).iter().for_each(|p| self.state.ask(p)),
            "setValid" => self.set_header(base, Validity::Yes),
            "setInvalid" => self.set_header(base, Validity::No),
            _ => {
                self.set_header(base, Validity::Yes);
                self.write(base);
            }
        }
    }

    /// Analyses a body with its arguments, and copies the outputs back.
    fn run(&mut self, body: Body<'a>, given: &Given<'a>) {
        if self.depth == MAX_INLINE_DEPTH {
            self.steps = 0;
        }
        for (p, arg) in given {
            let Some(place) = self.param(p) else { continue };
            if !self.step(place.slots()) {
                return;
            }
            self.state.mark(&place, p.dir == Direction::Out);
            match arg {
                _ if p.dir == Direction::Out => self.state.set_all(&place, Validity::No),
                Some(arg) => self.take(&place, arg),
                // The control plane sets it.
                None => self.state.set_all(&place, Validity::Yes),
            }
        }
        let outer = std::mem::replace(&mut self.returns, State::dead());
        self.depth += 1;
        self.locals(body.locals);
        self.stmts(&body.block.stmts);
        self.depth -= 1;
        let returns = std::mem::replace(&mut self.returns, outer);
        self.state.join(&returns);
        for (p, arg) in given.iter().filter(|(p, _)| is_result(p)) {
            if let Some(name) = body.checked {
                self.leave(name, p);
            }
            let (Some(arg), Some(from)) = (arg, self.param(p)) else {
                continue;
            };
            if body.checked.is_some() {
                self.result(p, &from);
            }
            self.walk_target(arg);
            self.give_back(arg, &from);
            self.write(arg);
        }
    }

    /// Warns of uninitialized fields of headers that an action returns.
    fn result(&mut self, p: &Param, from: &Place) {
        let mut outside = false;
        from.outside_headers(&mut |slot| outside |= self.state.is_unset(slot));
        if !outside && self.state.has_unset(from) {
            let message = format!(
                "'{}' may be returned with uninitialized fields",
                p.name.name
            );
            let hint = "set all of it on every path to the end";
            self.warn(Warning::UninitializedUse, p.name.span, message, hint);
        }
    }

    /// Copies the validity of a parameter's headers to its argument.
    fn give_back(&mut self, arg: &'a Expr, from: &Place) {
        let one_of = self.is_one_of(arg);
        for place in self.places(arg) {
            for i in 0..place.layout.headers {
                let valid = self.state.validity(from.header + i);
                // The target is unknown, so the possible ones keep their state.
                if !one_of || valid == Validity::Yes {
                    self.state.set_validity(place.header + i, valid);
                }
            }
        }
    }

    fn table(&mut self, id: NodeId) {
        let Some(DeclKind::Table(t)) = self.typed.defs.get_decl(id).map(|d| &d.kind) else {
            return;
        };
        let before = self.copy();
        t.keys.iter().flatten().for_each(|k| self.read(&k.expr));
        let ready = self.copy();
        // Without a default action, a miss does not change anything.
        let mut after = if t.default_action.is_none() {
            ready.clone()
        } else {
            State::dead()
        };
        for a in t.actions.iter().flatten() {
            if !self.step(1 + ready.size()) {
                return;
            }
            self.state = ready.clone();
            self.listed_action(&a.expr);
            after.join(&self.state);
        }
        after.keep_valid(&ready);
        after.ask_as(&before);
        self.state = after;
    }

    /// Analyses an action of a table's list: a name, or a call that binds its first arguments.
    fn listed_action(&mut self, e: &'a Expr) {
        if let ExprKind::Call { callee, args, .. } = &e.kind {
            return self.call(e, callee, args);
        }
        let Some(id) = self.typed.names.get(&e.id) else {
            return;
        };
        let given: Given = self.params_of(*id).iter().map(|p| (p, None)).collect();
        if let Some(body) = self.body_of(&Callee::Action(*id)) {
            self.run(body, &given);
        }
    }
}

fn is_result(p: &Param) -> bool {
    matches!(p.dir, Direction::Out | Direction::InOut)
}

fn results<'a>(given: &Given<'a>) -> Vec<&'a Expr> {
    given
        .iter()
        .filter(|(p, _)| is_result(p))
        .filter_map(|(_, arg)| *arg)
        .collect()
}
