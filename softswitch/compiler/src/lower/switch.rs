// SPDX-License-Identifier: Apache-2.0
//! `switch`, on a value and on the action that a table ran.

use super::value::Val;
use super::{Lower, fold};
use crate::ast::{Block, Expr, ExprKind, SwitchCase};
use crate::ir::{Ex, StKind, Then};
use crate::types::Type;

impl<'a> Lower<'a> {
    pub(super) fn switch(&mut self, subject: &'a Expr, cases: &'a [SwitchCase]) {
        if let Type::ActionRun(table) = self.t.type_of(subject.id) {
            self.switch_on_action(subject, table, cases);
            return;
        }
        let (value, ran) = self.condition(subject);
        let value = if cases.len() > 1 {
            self.snapshot(value)
        } else {
            value
        };
        let groups = group_cases(cases);
        let shows_all = ran || self.is_bound_here(subject);
        self.switch_chain(&value, &groups, shows_all);
    }

    /// Compares the value with one group of cases after the other. `shows_all`: the control plane sees cases that can
    /// never match, too.
    fn switch_chain(&mut self, value: &Ex, groups: &[Group<'a>], shows_all: bool) {
        let Some(((labels, body), rest)) = groups.split_first() else {
            return;
        };
        let body = |s: &mut Self| {
            if let Some(b) = body {
                s.stmts(&b.stmts);
            }
        };
        if labels.iter().any(|c| c.label.is_none()) {
            // `default` is the last group, and takes whatever got here.
            body(self);
            return;
        }
        let mut cond = Ex::bool(false);
        for label in labels.iter().filter_map(|c| c.label.as_ref()) {
            let l = self.eval(label);
            let same = self.equal(&Val::Scalar(value.clone()), &l);
            cond = fold::or(cond, same);
        }
        match cond.as_bool() {
            Some(true) => {
                if shows_all {
                    self.unreached(|s| s.switch_chain(value, rest, true));
                }
                body(self);
            }
            Some(false) => {
                if shows_all {
                    self.unreached(body);
                }
                self.switch_chain(value, rest, shows_all);
            }
            None => {
                let yes = self.collect(body);
                let no = self.collect(|s| s.switch_chain(value, rest, shows_all));
                self.emit(StKind::If(cond, yes, no));
            }
        }
    }

    fn switch_on_action(
        &mut self,
        subject: &'a Expr,
        table: crate::ast::NodeId,
        cases: &'a [SwitchCase],
    ) {
        let ExprKind::Member(call, _) = &subject.kind else {
            return;
        };
        let ExprKind::Call { callee, .. } = &call.kind else {
            return;
        };
        let listed = self.listed_actions(table);
        let mut out = Vec::new();
        let mut default = Vec::new();
        for (labels, body) in group_cases(cases) {
            let body = self.collect(|s| {
                if let Some(b) = body {
                    s.stmts(&b.stmts);
                }
            });
            if labels.iter().any(|c| c.label.is_none()) {
                default = body;
                continue;
            }
            let indices = labels
                .iter()
                .filter_map(|c| c.label.as_ref())
                .filter_map(|l| self.t.names.get(&l.id))
                .filter_map(|id| listed.iter().position(|a| a == id))
                .collect();
            out.push((indices, body));
        }
        self.apply_table(
            callee,
            Then::Switch {
                cases: out,
                default,
            },
        );
    }
}

/// Labels with the block that they share.
type Group<'a> = (Vec<&'a SwitchCase>, Option<&'a Block>);

/// Cases that fall through share the next block.
fn group_cases(cases: &[SwitchCase]) -> Vec<Group<'_>> {
    let mut groups = Vec::new();
    let mut labels = Vec::new();
    for c in cases {
        labels.push(c);
        if c.body.is_some() {
            groups.push((std::mem::take(&mut labels), c.body.as_ref()));
        }
    }
    if !labels.is_empty() {
        groups.push((labels, None));
    }
    groups
}
