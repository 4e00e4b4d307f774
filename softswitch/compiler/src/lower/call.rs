// SPDX-License-Identifier: Apache-2.0
//! Lowers calls.

use super::bind::Binding;
use super::frame::Frame;
use super::value::Val;
use super::{Lower, MAX_INLINE_DEPTH, Return};
use crate::ast::{Arg, Block, DeclKind, Expr, ExprKind, NodeId, StmtKind};
use crate::ir::{Ex, StKind};
use crate::types::{CallInfo, Callee, Type};
use num_traits::ToPrimitive;
use std::rc::Rc;

impl<'a> Lower<'a> {
    pub(super) fn call(&mut self, e: &'a Expr, callee: &'a Expr, args: &'a [Arg]) -> Val {
        let Some(info) = self.t.calls.get(&e.id) else {
            return Val::Unit;
        };
        if self.depth > MAX_INLINE_DEPTH {
            self.error(e.span, "calls are nested too deeply: check for recursion");
            return Val::Unit;
        }
        if !self.grow() {
            return Val::Unit;
        }
        self.depth += 1;
        let outer = self.span;
        let v = match &info.callee {
            Callee::Builtin => self.builtin(e, callee, args),
            Callee::Function(id) => self.function(e, *id, info, args),
            Callee::Action(id) => {
                self.inline_action(*id, info, args);
                Val::Unit
            }
            Callee::Method(id) => self.extern_method(e, callee, *id, info, args),
            Callee::Apply(id) => self.apply_block(e, callee, *id, info, args),
            Callee::TableApply(_) => {
                self.apply_table(callee, crate::ir::Then::Nothing);
                Val::Unit
            }
            Callee::Constructor => self.construct(e, info, args),
        };
        self.span = outer;
        self.depth -= 1;
        v
    }

    fn builtin(&mut self, e: &'a Expr, callee: &'a Expr, args: &'a [Arg]) -> Val {
        let ExprKind::Member(base, name) = &callee.kind else {
            return Val::Unit;
        };
        match &*name.name {
            "isValid" => {
                let v = self.eval(base);
                Val::Scalar(self.validity(&v))
            }
            "setValid" | "setInvalid" => {
                if let Val::Header(h) = self.eval(base) {
                    let at = h.at.by_index();
                    self.emit(StKind::SetValid(at, &*name.name == "setValid"));
                }
                Val::Unit
            }
            "push_front" | "pop_front" => {
                let stack = match self.eval(base) {
                    Val::Stack(s) => s.name,
                    Val::UnionStack(s) => s.name,
                    _ => return Val::Unit,
                };
                let count = args
                    .first()
                    .and_then(|a| self.number(&a.expr))
                    .and_then(|n| n.to_u32());
                match count {
                    Some(count) => self.emit(StKind::Shift {
                        stack,
                        count,
                        push: &*name.name == "push_front",
                    }),
                    None => self.error(
                        e.span,
                        "the count must be a small number known at compile time",
                    ),
                }
                Val::Unit
            }
            size => {
                let ty = match self.t.type_of(base.id) {
                    Type::Meta(t) => self.subst(&t),
                    t => self.subst(&t),
                };
                let bits = self.size_in_bits(&ty, size.starts_with("max"));
                Val::Int(
                    if size.ends_with("Bytes") {
                        bits.div_ceil(8)
                    } else {
                        bits
                    }
                    .into(),
                )
            }
        }
    }

    fn function(&mut self, e: &'a Expr, id: NodeId, info: &'a CallInfo, args: &'a [Arg]) -> Val {
        let Some(d) = self.t.defs.get_decl(id) else {
            return Val::Unit;
        };
        let DeclKind::Function { sig, body } = &d.kind else {
            return Val::Unit;
        };
        let Some(body) = body else {
            return self.extern_function(e, d, info, args);
        };
        let (values, copies) = self.bind(&sig.params, info, args, &Binding::Closed, &d.name.name);
        // Functions see global declarations only.
        let mut root = self.frame.clone();
        while let Some(p) = &root.parent {
            root = p.clone();
        }
        let frame = Rc::new(Frame::child(&root));
        for (p, t) in &info.targs {
            let t = self.subst(t);
            frame.types.borrow_mut().insert(*p, t);
        }
        for (p, v) in sig.params.iter().zip(values) {
            frame.set(p.id, v);
        }
        let mut ret = None;
        self.with_copies(copies, |s| {
            s.in_frame(frame, |s| {
                let ty = s.type_of(sig.ret.id);
                ret =
                    (ty != Type::Void).then(|| s.allocate(&ty, &format!("{}.retval", d.name.name)));
                s.body_with_return(body, ret.clone());
            });
        });
        ret.unwrap_or(Val::Unit)
    }

    /// Lowers a body whose `return` ends only the body.
    pub(super) fn body_with_return(&mut self, body: &'a Block, value: Option<Val>) {
        let label = self.label();
        self.returns.push(Return { label, value, body });
        let loops = std::mem::take(&mut self.loops);
        let stmts = self.collect(|s| s.stmts(&body.stmts));
        self.loops = loops;
        self.returns.pop();
        self.emit_labelled(label, stmts);
    }

    /// Lowers an action that is called like a function.
    fn inline_action(&mut self, id: NodeId, info: &'a CallInfo, args: &'a [Arg]) {
        let Some(d) = self.t.defs.get_decl(id) else {
            return;
        };
        let DeclKind::Action { params, body } = &d.kind else {
            return;
        };
        let seen = self.action_places(id);
        let (values, copies) = self.bind(params, info, args, &Binding::Open(seen), &d.name.name);
        let owner = self.action_frame(id);
        // An action called only by other actions is not visible to the control plane.
        if !self.in_action() && self.inlined_actions == 0 {
            self.note_action(d, &owner, false);
        }
        let frame = Rc::new(Frame::child(&owner));
        for (p, v) in params.iter().zip(values) {
            frame.set(p.id, v);
        }
        self.inlined_actions += 1;
        self.with_copies(copies, |s| {
            s.in_frame(frame, |s| s.body_with_return(body, None))
        });
        self.inlined_actions -= 1;
    }

    /// Lowers `instance.apply(...)` or `Type.apply(...)` of a control or parser.
    fn apply_block(
        &mut self,
        e: &'a Expr,
        callee: &'a Expr,
        decl: NodeId,
        info: &'a CallInfo,
        args: &'a [Arg],
    ) -> Val {
        let ExprKind::Member(base, _) = &callee.kind else {
            return Val::Unit;
        };
        let (block, shared) = match self.eval(base) {
            Val::Block(b) => (b, self.is_shared(base)),
            // Applied by the name of its type: a separate instance.
            _ => match self.anonymous_block(e, decl, info) {
                Some(b) => {
                    self.type_applied.push((self.frame.block, b));
                    (b, false)
                }
                None => return Val::Unit,
            },
        };
        let d = self.blocks[block].decl;
        self.blocks[block].applied = true;
        let mode = if shared {
            Binding::Shared
        } else {
            Binding::Closed
        };
        let params = match &d.kind {
            DeclKind::Control(c) => &c.params,
            DeclKind::Parser(p) => &p.params,
            _ => return Val::Unit,
        };
        let name = self.blocks[block].name.clone();
        let (values, copies) = match (shared, self.blocks[block].bound.clone()) {
            (true, Some(own)) => self.rebind(params, info, args, own),
            _ => self.bind(params, info, args, &mode, &name),
        };
        if shared {
            self.blocks[block].bound = Some(values.clone());
        }
        let frame = self.blocks[block].frame.clone();
        for (p, v) in params.iter().zip(values) {
            frame.set(p.id, v);
        }
        self.with_copies(copies, |s| match &d.kind {
            DeclKind::Control(c) => s.in_frame(frame, |s| {
                s.start_locals(&c.locals);
                s.body_with_return(&c.body, None);
            }),
            DeclKind::Parser(_) => s.apply_parser(block),
            _ => {}
        });
        Val::Unit
    }

    /// Lowers a further call of an instance whose parameters have their own storage.
    fn rebind(
        &mut self,
        params: &'a [crate::ast::Param],
        info: &'a CallInfo,
        args: &'a [Arg],
        own: Vec<Val>,
    ) -> (Vec<Val>, Vec<super::bind::CopyOut>) {
        let (values, copies) = self.bind(params, info, args, &Binding::Shared, "arg");
        // The copies made by `bind` use fresh storage; move them to the instance's.
        let mut outs = Vec::new();
        for ((p, v), o) in params.iter().zip(&values).zip(&own) {
            if p.dir == crate::ast::Direction::Out {
                self.invalidate(o);
            } else if v != o {
                self.assign(o, v.clone());
            }
        }
        for c in copies {
            let k = values.iter().position(|v| *v == *c.from()).unwrap_or(0);
            outs.push(c.with_source(own[k].clone()));
        }
        (own, outs)
    }

    /// Returns true if the instance is applied in several places with different arguments.
    fn is_shared(&mut self, base: &'a Expr) -> bool {
        let Some(&id) = self.t.names.get(&base.id) else {
            return false;
        };
        let Some(block) = self.frame.block else {
            return false;
        };
        let mut sites = Vec::new();
        match &self.blocks[block].decl.kind {
            DeclKind::Control(c) => {
                for s in &c.body.stmts {
                    self.apply_sites(s, id, &mut sites);
                }
            }
            DeclKind::Parser(p) => {
                for s in p.states.iter().flat_map(|s| &s.body) {
                    self.apply_sites(s, id, &mut sites);
                }
            }
            _ => {}
        }
        sites.windows(2).any(|w| w[0] != w[1])
    }

    /// Returns the argument texts of all calls `instance.apply(...)` below `s`.
    fn apply_sites(&self, s: &'a crate::ast::Stmt, instance: NodeId, out: &mut Vec<String>) {
        let one =
            |s: &'a crate::ast::Stmt, out: &mut Vec<String>| self.apply_sites(s, instance, out);
        match &s.kind {
            StmtKind::Block(b) => b.stmts.iter().for_each(|s| one(s, out)),
            StmtKind::If {
                then, otherwise, ..
            } => {
                one(then, out);
                if let Some(o) = otherwise {
                    one(o, out);
                }
            }
            StmtKind::Switch { cases, .. } => {
                cases
                    .iter()
                    .filter_map(|c| c.body.as_ref())
                    .for_each(|b| b.stmts.iter().for_each(|s| one(s, out)));
            }
            StmtKind::For { body, .. } | StmtKind::ForIn { body, .. } => {
                // In an unrolled loop, equal argument texts may denote different storage.
                let before = out.len();
                one(body, out);
                if out.len() > before {
                    out.push(String::from("(loop)"));
                }
            }
            StmtKind::Call(Expr {
                kind: ExprKind::Call { callee, args, .. },
                ..
            }) => {
                if let ExprKind::Member(base, _) = &callee.kind
                    && self.t.names.get(&base.id) == Some(&instance)
                {
                    let text = args
                        .iter()
                        .map(|a| self.sources.snippet(a.expr.span))
                        .collect::<Vec<_>>()
                        .join(",");
                    out.push(text);
                }
            }
            _ => {}
        }
    }

    pub(super) fn emit_labelled(&mut self, label: crate::ir::Label, mut stmts: Vec<crate::ir::St>) {
        super::stmt::drop_tail_leave(&mut stmts, label);
        if super::stmt::leaves(&stmts, label) {
            self.emit(StKind::Labelled(label, stmts));
        } else {
            self.out.append(&mut stmts);
        }
    }

    /// Returns a Boolean for the table's hit, or the number of the action that ran.
    pub(super) fn apply_member(&mut self, base: &'a Expr, name: &str) -> Val {
        let ExprKind::Call { callee, .. } = &base.kind else {
            return Val::Unit;
        };
        let tmp = self.temp(crate::ir::Scalar::Bool);
        let set = |s: &mut Self, v: bool| {
            let tmp = tmp.clone();
            s.collect(|s| s.emit(StKind::Assign(tmp, Ex::bool(v))))
        };
        let hit_value = name == "hit";
        let (hit, miss) = (set(self, hit_value), set(self, !hit_value));
        self.apply_table(callee, crate::ir::Then::HitMiss(hit, miss));
        Val::Scalar(tmp)
    }
}
