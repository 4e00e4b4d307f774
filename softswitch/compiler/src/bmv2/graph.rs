// SPDX-License-Identifier: Apache-2.0
//! Emits control flow: the target runs a graph whose nodes are tables and conditions. Other statements
//! become actions of tables without a key.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::Emitter;
use crate::ast::{BinOp, UnOp};
use crate::diag::Span;
use crate::ir::{Ex, Label, SCALARS, Scalar, St, StKind, Then};

/// Name of a node; `None` ends the pipeline.
type Next = Option<String>;

/// The successor of a table, by outcome.
#[derive(Clone, PartialEq)]
pub(super) enum After {
    Always(Next),
    HitMiss(Next, Next),
    /// For each action of the table.
    Actions(Vec<Next>),
}

#[derive(Default)]
struct Graph {
    tables: Vec<Value>,
    conditionals: Vec<Value>,
    labels: HashMap<Label, Next>,
    /// Number of places at which each table is applied.
    sites: HashMap<usize, usize>,
    /// Outcomes at the sites of tables that are applied several times.
    after: HashMap<usize, Vec<(usize, After)>>,
    /// Tables that already have a node.
    placed: HashMap<usize, After>,
}

impl Emitter<'_> {
    pub(super) fn pipeline(&mut self, id: usize) -> Value {
        let pipeline = &self.ir.pipelines[id];
        let mut g = Graph::default();
        count_sites(&pipeline.body, &mut g.sites);
        let init = self.sequence(&mut g, &pipeline.body, None);
        let several: Vec<usize> = {
            let mut v: Vec<usize> = g.after.keys().copied().collect();
            v.sort_unstable();
            v
        };
        for t in several {
            self.place_shared(&mut g, t);
        }
        self.place_unreached(&mut g, id);
        let mut tables = std::mem::take(&mut g.tables);
        tables.reverse();
        let mut conditionals = std::mem::take(&mut g.conditionals);
        conditionals.reverse();
        for (list, next) in [
            (&mut tables, &mut self.next_table),
            (&mut conditionals, &mut self.next_conditional),
        ] {
            for t in list.iter_mut() {
                t["id"] = json!(*next);
                *next += 1;
            }
        }
        let profiles = self.action_profiles(&g.placed);
        json!({
            "name": pipeline.name,
            "id": id,
            "source_info": self.source(pipeline.span),
            "init_table": init,
            "tables": tables,
            "action_profiles": profiles,
            "conditionals": conditionals,
        })
    }

    /// Builds the nodes for `stmts`, from the last to the first; returns the first one's name.
    fn sequence(&mut self, g: &mut Graph, stmts: &[St], next: Next) -> Next {
        let mut next = next;
        let mut end = stmts.len();
        while end > 0 {
            let s = &stmts[end - 1];
            if is_simple(s) {
                let mut start = end - 1;
                while start > 0 && is_simple(&stmts[start - 1]) {
                    start -= 1;
                }
                next = Some(self.hidden_table(g, &stmts[start..end], next));
                end = start;
                continue;
            }
            end -= 1;
            next = self.node(g, s, next);
        }
        next
    }

    fn node(&mut self, g: &mut Graph, s: &St, next: Next) -> Next {
        match &s.kind {
            StKind::Exit => None,
            StKind::Leave(l) => g.labels.get(l).cloned().flatten(),
            StKind::Labelled(l, inner) => {
                g.labels.insert(*l, next.clone());
                self.sequence(g, inner, next)
            }
            StKind::If(cond, yes, no) => {
                let yes = self.sequence(g, yes, next.clone());
                let no = self.sequence(g, no, next);
                Some(self.conditional(g, cond, yes, no, s.span))
            }
            StKind::Apply { table, then } => {
                let after = match then {
                    Then::Nothing => After::Always(next),
                    Then::HitMiss(hit, miss) => {
                        let hit = self.sequence(g, hit, next.clone());
                        let miss = self.sequence(g, miss, next);
                        After::HitMiss(hit, miss)
                    }
                    Then::Switch { cases, default } => {
                        let default = self.sequence(g, default, next.clone());
                        let mut by_action = vec![default; self.ir.tables[*table].actions.len()];
                        for (actions, body) in cases {
                            let to = self.sequence(g, body, next.clone());
                            for a in actions {
                                by_action[*a] = to.clone();
                            }
                        }
                        After::Actions(by_action)
                    }
                };
                self.apply(g, *table, after, s.span)
            }
            StKind::Loop { .. } => {
                self.diags.unsupported_hint(
                    s.span,
                    "a loop whose number of iterations is known only at run time cannot apply tables or return here on this target",
                    "use a constant number of iterations",
                );
                next
            }
            _ => {
                self.diags
                    .unsupported(s.span, "this cannot be used in a control on this target");
                next
            }
        }
    }

    fn apply(&mut self, g: &mut Graph, table: usize, after: After, span: Span) -> Next {
        let name = self.ir.tables[table].name.clone();
        if g.sites.get(&table).copied().unwrap_or(0) <= 1 {
            let v = self.table_node(table, &after);
            g.tables.push(v);
            g.placed.insert(table, after);
            return Some(name);
        }
        // Applied in several places: a variable stores the current one.
        let list = g.after.entry(table).or_default();
        if let Some((_, known)) = list.first()
            && list.len() == 1
            && *known == after
        {
            return Some(self.remember_site(g, table, 0, span));
        }
        let site = list.len();
        list.push((site, after));
        Some(self.remember_site(g, table, site, span))
    }

    fn site_variable(&mut self, table: usize) -> Ex {
        let field = format!("{}.site", self.ir.tables[table].name);
        if !self.extra_scalars.iter().any(|(n, _)| *n == field) {
            self.extra_scalars.push((field.clone(), 16));
        }
        Ex::Field {
            header: SCALARS.into(),
            field,
            ty: Scalar::Bit(16),
        }
    }

    fn remember_site(&mut self, g: &mut Graph, table: usize, site: usize, span: Span) -> String {
        let var = self.site_variable(table);
        let set = St {
            kind: StKind::Assign(var, Ex::bit(site, 16)),
            span,
        };
        let name = self.ir.tables[table].name.clone();
        self.hidden_table(g, &[set], Some(name))
    }

    /// Emits the node of a table that is applied in several places: its successor depends on the place.
    fn place_shared(&mut self, g: &mut Graph, table: usize) {
        let sites = g.after.get(&table).cloned().unwrap_or_default();
        let all_same = sites.windows(2).all(|w| w[0].1 == w[1].1);
        let after = if all_same {
            sites
                .first()
                .map_or(After::Always(None), |(_, a)| a.clone())
        } else if sites.iter().any(|(_, a)| matches!(a, After::HitMiss(..))) {
            if sites.iter().any(|(_, a)| matches!(a, After::Actions(_))) {
                self.diags.unsupported_hint(
                    self.ir.tables[table].decl.name.span,
                    "this table is used with both its hit and its action_run, which this target cannot distinguish",
                    "use the same one in all places",
                );
            }
            let pick = |hit: bool| -> Vec<(usize, Next)> {
                sites
                    .iter()
                    .map(|(site, a)| {
                        let to = match a {
                            After::HitMiss(h, m) => {
                                if hit {
                                    h.clone()
                                } else {
                                    m.clone()
                                }
                            }
                            After::Always(n) => n.clone(),
                            After::Actions(_) => None,
                        };
                        (*site, to)
                    })
                    .collect()
            };
            let hit = self.dispatch(g, table, &pick(true));
            let miss = self.dispatch(g, table, &pick(false));
            After::HitMiss(hit, miss)
        } else {
            let n = self.ir.tables[table].actions.len();
            let mut outcomes = Vec::new();
            for i in 0..n {
                let ways: Vec<(usize, Next)> = sites
                    .iter()
                    .map(|(site, a)| {
                        let to = match a {
                            After::Actions(list) => list[i].clone(),
                            After::Always(next) => next.clone(),
                            After::HitMiss(..) => None,
                        };
                        (*site, to)
                    })
                    .collect();
                outcomes.push(self.dispatch(g, table, &ways));
            }
            After::Actions(outcomes)
        };
        let v = self.table_node(table, &after);
        g.tables.push(v);
        g.placed.insert(table, after);
    }

    /// Emits nodes for tables that never run, as the control plane may write their entries.
    fn place_unreached(&mut self, g: &mut Graph, pipeline: usize) {
        let tables = self.ir.tables.iter().enumerate();
        let unreached: Vec<usize> = tables
            .filter(|(i, t)| t.pipeline == pipeline && !g.placed.contains_key(i))
            .map(|(i, _)| i)
            .collect();
        for table in unreached {
            let after = After::Always(None);
            let v = self.table_node(table, &after);
            g.tables.push(v);
            g.placed.insert(table, after);
        }
    }

    fn dispatch(&mut self, g: &mut Graph, table: usize, ways: &[(usize, Next)]) -> Next {
        let ((site, to), rest) = ways.split_first()?;
        if rest.iter().all(|(_, other)| other == to) {
            return to.clone();
        }
        let otherwise = self.dispatch(g, table, rest);
        let var = self.site_variable(table);
        let here = Ex::Binary(
            BinOp::Eq,
            Box::new(var),
            Box::new(Ex::bit(*site, 16)),
            Scalar::Bool,
        );
        let span = self.ir.tables[table].decl.name.span;
        Some(self.conditional(g, &here, to.clone(), otherwise, span))
    }

    fn conditional(&mut self, g: &mut Graph, cond: &Ex, yes: Next, no: Next, span: Span) -> String {
        // `!x` is `x` with exchanged branches.
        if let Ex::Unary(UnOp::Not, inner, _) = cond {
            return self.conditional(g, inner, no, yes, span);
        }
        let name = self.fresh_name("node");
        g.conditionals.push(json!({
            "name": name,
            "id": 0,
            "source_info": self.source(span),
            "expression": self.boolean(cond),
            "true_next": yes,
            "false_next": no,
        }));
        name
    }

    /// Emits a table without a key that runs the statements.
    fn hidden_table(&mut self, g: &mut Graph, stmts: &[St], next: Next) -> String {
        let span = stmts.first().map(|s| s.span).unwrap_or_default();
        let line = self.sources.line_col(span).line;
        let action = self.fresh_name(&format!("act_l{line}"));
        let name = self.fresh_name(&format!("tbl_act_l{line}"));
        let id = self.actions.len();
        let body = self.action(&action, id, &[], stmts, span);
        self.actions.push(body);
        g.tables.push(json!({
            "name": name,
            "id": 0,
            "source_info": self.source(span),
            "key": [],
            "match_type": "exact",
            "type": "simple",
            "max_size": 1024,
            "with_counters": false,
            "support_timeout": false,
            "direct_meters": null,
            "action_ids": [id],
            "actions": [action],
            "base_default_next": next,
            "next_tables": {action.clone(): next},
            "default_entry": {"action_id": id, "action_const": true, "action_data": [], "action_entry_const": true},
        }));
        name
    }
}

/// Returns true if the statement can be part of an action. Loops must be, with all jumps out of them.
fn is_simple(s: &St) -> bool {
    match &s.kind {
        StKind::Exit | StKind::Leave(_) | StKind::If(..) | StKind::Apply { .. } => false,
        StKind::Labelled(..) => has_loop(s) && closed(s, &mut Vec::new()),
        StKind::Loop { .. } => closed(s, &mut Vec::new()),
        _ => true,
    }
}

fn has_loop(s: &St) -> bool {
    match &s.kind {
        StKind::Loop { .. } => true,
        StKind::Labelled(_, inner) => inner.iter().any(has_loop),
        StKind::If(_, a, b) => a.iter().chain(b).any(has_loop),
        _ => false,
    }
}

/// Returns true if it does not apply tables and jumps only to its own labels.
fn closed(s: &St, labels: &mut Vec<Label>) -> bool {
    match &s.kind {
        StKind::Apply { .. } => false,
        StKind::Leave(l) => labels.contains(l),
        StKind::If(_, a, b) => a.iter().chain(b).all(|s| closed(s, labels)),
        StKind::Loop { head, body, .. } => head.iter().chain(body).all(|s| closed(s, labels)),
        StKind::Labelled(l, inner) => {
            labels.push(*l);
            let all = inner.iter().all(|s| closed(s, labels));
            labels.pop();
            all
        }
        _ => true,
    }
}

fn count_sites(stmts: &[St], sites: &mut HashMap<usize, usize>) {
    for s in stmts {
        if let StKind::Apply { table, .. } = &s.kind {
            *sites.entry(*table).or_insert(0) += 1;
        }
        for block in s.kind.blocks() {
            count_sites(block, sites);
        }
    }
}
