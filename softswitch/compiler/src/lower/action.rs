// SPDX-License-Identifier: Apache-2.0
//! Lowers actions of tables.

use std::collections::HashSet;
use std::rc::Rc;

use super::bind::Binding;
use super::frame::{Frame, FrameRef};
use super::value::Val;
use super::{Lower, Place, UsedAction, fold};
use crate::annotation::name_annotation;
use crate::ast::{Decl, DeclKind, Direction, Expr, ExprKind, NodeId};
use crate::ir::{Action, Ex, Scalar};
use crate::types::{CallInfo, Type};

impl<'a> Lower<'a> {
    /// Returns the frame of an action's body: the frame of the control that declares it.
    pub(super) fn action_frame(&self, id: NodeId) -> FrameRef {
        let mut frame = self.frame.clone();
        if let Some(b) = frame.block {
            let owner = &self.blocks[b];
            if let DeclKind::Control(c) = &owner.decl.kind
                && c.locals.iter().any(|l| l.id == id)
            {
                return owner.frame.clone();
            }
        }
        while let Some(p) = &frame.parent {
            frame = p.clone();
        }
        frame
    }

    /// Returns the storage that an action and its callees access other than by parameters.
    pub(super) fn action_places(&self, id: NodeId) -> HashSet<String> {
        let mut places = HashSet::new();
        let mut seen = vec![id];
        let mut next = 0;
        while let Some(&id) = seen.get(next) {
            next += 1;
            let Some(DeclKind::Action { params, body }) = self.t.defs.get_decl(id).map(|d| &d.kind)
            else {
                continue;
            };
            let frame = self.action_frame(id);
            let mut visit = |e: &Expr| {
                let Some(&named) = self.t.names.get(&e.id) else {
                    return;
                };
                if params.iter().any(|p| p.id == named) {
                    return;
                }
                if matches!(
                    self.t.defs.get_decl(named).map(|d| &d.kind),
                    Some(DeclKind::Action { .. })
                ) {
                    if !seen.contains(&named) {
                        seen.push(named);
                    }
                } else if let Some(v) = frame.find(named) {
                    places.extend(super::assign::places(&v));
                }
            };
            crate::ast::visit_exprs(&body.stmts, &mut visit);
        }
        places
    }

    /// Records that the action is in use.
    pub(super) fn note_action(&mut self, d: &Decl, owner: &FrameRef, in_table: bool) {
        let name = self.action_name(d, owner);
        let block = self.frame.block;
        match self
            .used_actions
            .iter_mut()
            .find(|u| u.block == block && u.id == d.id && u.name == name)
        {
            Some(u) => u.in_table |= in_table,
            None => self.used_actions.push(UsedAction {
                block,
                id: d.id,
                name,
                in_table,
            }),
        }
    }

    /// Returns the action's name for the control plane.
    fn action_name(&self, d: &Decl, frame: &FrameRef) -> String {
        let local = name_annotation(&d.annos).unwrap_or_else(|| d.name.name.to_string());
        match local.strip_prefix('.') {
            Some(absolute) => absolute.to_string(),
            None if frame.prefix.is_empty() => local,
            None => format!("{}.{local}", frame.prefix),
        }
    }

    /// Returns the action that `e` (a name, or a call that binds arguments) denotes in a table.
    pub(super) fn table_action(&mut self, e: &'a Expr) -> Option<(usize, NodeId)> {
        let (name, args, info): (&Expr, &'a [crate::ast::Arg], Option<&'a CallInfo>) = match &e.kind
        {
            ExprKind::Call { callee, args, .. } => (callee, args, self.t.calls.get(&e.id)),
            _ => (e, &[], None),
        };
        let id = *self.t.names.get(&name.id)?;
        let d = self.t.defs.get_decl(id)?;
        let DeclKind::Action { params, body } = &d.kind else {
            return None;
        };
        let owner = self.action_frame(id);
        let full = self.action_name(d, &owner);
        self.note_action(d, &owner, true);
        let bound_text = args
            .iter()
            .map(|a| self.sources.snippet(a.expr.span))
            .collect::<Vec<_>>()
            .join(",");
        let key = (format!("{:?}/{full}", owner.block), id, bound_text);
        if let Some(i) = self.action_ids.get(&key) {
            return Some((*i, id));
        }
        // Reserve the index first: actions are in order of first use.
        let index = self.ir.actions.len();
        self.ir.actions.push(Action {
            name: full,
            params: Vec::new(),
            body: Vec::new(),
            decl: d,
        });
        self.action_ids.insert(key, index);

        let outer_place = std::mem::replace(&mut self.place, Place::Action);
        let outer_action = self.table_action.replace(index);
        let outer_pending = std::mem::take(&mut self.pending);
        let end = self.label();
        let by_flag = Self::has_pending(&outer_pending);
        let goal = by_flag.then(|| (self.exit_flag(), end));
        let outer_goal = std::mem::replace(&mut self.exit_goal, goal);
        let mut runtime = Vec::new();
        let none = CallInfo {
            callee: crate::types::Callee::Action(id),
            targs: Vec::new(),
            args: vec![None; params.len()],
        };
        let info = info.cloned().unwrap_or(none);
        let stmts = self.collect(|s| {
            let directed: Vec<_> = params.iter().filter(|p| p.dir != Direction::None).collect();
            let (values, copies) = if directed.is_empty() {
                (Vec::new(), Vec::new())
            } else {
                let n = directed.len();
                let info = CallInfo {
                    args: info.args[..n.min(info.args.len())].to_vec(),
                    ..info.clone()
                };
                let seen = s.action_places(id);
                s.bind(&params[..n], &info, args, &Binding::Open(seen), "")
            };
            let frame = Rc::new(Frame::child(&owner));
            for (p, v) in params.iter().zip(values) {
                frame.set(p.id, v);
            }
            for p in params.iter().filter(|p| p.dir == Direction::None) {
                let ty = s.type_of(p.ty.id);
                let is_flag = ty == Type::Bool && s.ir.architecture.is_tofino();
                if matches!(ty, Type::Bool | Type::Error | Type::Varbit(_)) && !is_flag {
                    let message = format!(
                        "parameter '{}' of an action in a table must be a number",
                        p.name.name
                    );
                    let hint = "tables of this target support numbers only: use a bit<>";
                    s.diags.unsupported_hint(p.span, message, hint);
                }
                let Some(scalar) = s.scalar_of(&ty) else {
                    s.diags.error_hint(
                        p.span,
                        format!(
                            "parameter '{}' of an action must have a scalar type",
                            p.name.name
                        ),
                        "pass its fields one by one",
                    );
                    continue;
                };
                let value = match is_flag {
                    true => fold::cast(Ex::Param(runtime.len(), Scalar::Bit(1)), Scalar::Bool),
                    false => Ex::Param(runtime.len(), scalar),
                };
                frame.set(p.id, Val::Scalar(value));
                let name = name_annotation(&p.annos).unwrap_or_else(|| p.name.name.to_string());
                runtime.push((name, scalar));
            }
            s.with_copies(copies, |s| {
                s.in_frame(frame, |s| s.body_with_return(body, None))
            });
        });
        self.pending = outer_pending;
        self.exit_goal = outer_goal;
        self.place = outer_place;
        self.table_action = outer_action;
        let stmts = if super::stmt::leaves(&stmts, end) {
            self.flagged_actions.insert(index);
            self.collect(|s| s.emit_labelled(end, stmts))
        } else {
            stmts
        };
        self.ir.actions[index].body = stmts;
        self.ir.actions[index].params = runtime;
        Some((index, id))
    }
}
