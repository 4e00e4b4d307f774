// SPDX-License-Identifier: Apache-2.0
//! The actions of TNA that read and write a cell of a register.
//!
//! The abstract method `apply` is inlined between reads and writes of the cell.

use std::rc::Rc;

use super::frame::{Frame, FrameRef};
use super::tna_externs::Call;
use super::tna_registers::Cell;
use super::value::Val;
use super::{Lower, Place, fold};
use crate::ast::{BinOp, Block, DeclKind, Expr, NodeId, Param, StmtKind};
use crate::ir::{Arg, Ex, Object, ObjectArg, ObjectKind, RegisterAction, Scalar, St, StKind};
use crate::types::Type;

/// The abstract method of an action, with the environment of its instance.
pub(super) struct Apply<'a> {
    value: &'a Param,
    pub(super) outputs: &'a [Param],
    body: &'a Block,
    frame: FrameRef,
}

impl<'a> Lower<'a> {
    /// Lowers a method of `RegisterAction` and its variants; `None` if the method is unknown.
    pub(super) fn register_action(&mut self, call: &Call<'a, '_>) -> Option<Val> {
        match call.method() {
            "execute" => {
                self.allowed_in(call, &[Place::Control, Place::Action]);
                Some(self.execute_action(call))
            }
            "sweep" => Some(self.sweep(call)),
            "predicate" => Some(self.predicate(call)),
            method => {
                if let Some(value) = self.extreme(call) {
                    return Some(value);
                }
                if let Some(value) = self.queue_action(call) {
                    return Some(value);
                }
                self.diags.unsupported_hint(
                    call.e.span,
                    format!("this target does not support {method} of a register action"),
                    "use execute(index), with the index in a register of its own",
                );
                let ty = self.type_of(call.e.id);
                Some(self.default_value(&ty))
            }
        }
    }

    fn execute_action(&mut self, call: &Call<'a, '_>) -> Val {
        let result_type = self.type_of(call.e.id);
        let nothing = self.default_value(&result_type);
        let (Some(register), Some(apply)) = (
            self.register_of(call.object),
            self.action_method(call.object, "apply"),
        ) else {
            return nothing;
        };
        let is_direct = self.ir.objects[register].kind == ObjectKind::DirectRegister;
        let index = match is_direct {
            true => {
                self.note_direct_call(call.e, register);
                None
            }
            false => Some(self.cell_index(call)),
        };
        let arrays = self.ir.objects[register].cells.clone();
        let cell = Cell { arrays, index };
        let results = self.access(register, |s| s.run_action(call.object, &apply, Some(&cell)));
        self.tofino.has_special_units |= apply.outputs.iter().any(|p| self.is_enum(p.ty.id));
        self.note_register_action(call.object, &results);
        // The index precedes the other results.
        self.assign_results(call, &results, usize::from(!is_direct));
        results.into_iter().next().unwrap_or(nothing)
    }

    /// Notes which action the access just lowered executes.
    pub(super) fn note_register_action(&mut self, object: usize, results: &[Val]) {
        let has_special_units = std::mem::take(&mut self.tofino.has_special_units);
        let outputs = results.iter().flat_map(|v| self.leaves(v)).collect();
        if let Some(StKind::Access { action, .. }) = self.out.last_mut().map(|s| &mut s.kind) {
            *action = Some(RegisterAction {
                object,
                outputs,
                has_special_units,
            });
        }
    }

    /// Returns true for an enumeration whose values the compiler chooses.
    fn is_enum(&self, ty: NodeId) -> bool {
        let Type::Named(id, _) = self.type_of(ty) else {
            return false;
        };
        let decl = self.t.defs.get_decl(id);
        matches!(decl.map(|d| &d.kind), Some(DeclKind::Enum { .. }))
    }

    /// Assigns all results but the first, which is that of the call, to the arguments from `first` on.
    pub(super) fn assign_results(&mut self, call: &Call<'a, '_>, results: &[Val], first: usize) {
        for (i, result) in results.iter().skip(1).enumerate() {
            if let Some(target) = self.arg(call.info, call.args, first + i) {
                let target = self.eval(target);
                self.assign(&target, result.clone());
            }
        }
    }

    pub(super) fn register_of(&self, action: usize) -> Option<usize> {
        match self.ir.objects[action].args.first() {
            Some(ObjectArg::Object(register)) => Some(*register),
            _ => None,
        }
    }

    /// Returns a method that an action implements.
    pub(super) fn action_method(&self, action: usize, method: &str) -> Option<Apply<'a>> {
        let implementation = self.implementations.get(&action)?;
        implementation.methods.iter().find_map(|m| match &m.kind {
            DeclKind::Function {
                sig,
                body: Some(body),
            } if &*m.name.name == method => {
                let (value, outputs) = sig.params.split_first()?;
                Some(Apply {
                    value,
                    outputs,
                    body,
                    frame: implementation.frame.clone(),
                })
            }
            _ => None,
        })
    }

    fn cell_index(&mut self, call: &Call<'a, '_>) -> Ex {
        if self.arg(call.info, call.args, 0).is_none() {
            self.diags.unsupported_hint(
                call.e.span,
                "this target needs the index of the cell",
                "pass it as the first argument of execute",
            );
        }
        let index = self.input(call.info, call.args, 0);
        self.snapshot(index)
    }

    /// Inlines the body between accesses to the cell, and returns its outputs. Without a cell, the value is zero.
    pub(super) fn run_action(
        &mut self,
        action: usize,
        apply: &Apply<'a>,
        cell: Option<&Cell>,
    ) -> Vec<Val> {
        let Object { name, span, .. } = &self.ir.objects[action];
        let (name, declared) = (name.clone(), *span);
        let frame = Rc::new(Frame::child(&apply.frame));
        let outer = std::mem::replace(&mut self.frame, frame.clone());
        let ty = self.type_of(apply.value.ty.id);
        let value = self.allocate(&ty, &format!("{name}.value"));
        frame.set(apply.value.id, value.clone());
        match cell {
            Some(cell) => self.read_cell(cell, &value, declared),
            None => {
                let zero = self.default_value(&ty);
                self.assign(&value, zero);
            }
        }
        let results = self.output_storage(&name, apply);
        for (p, v) in apply.outputs.iter().zip(&results) {
            frame.set(p.id, v.clone());
        }
        let stmts = self.collect(|s| s.body_with_return(apply.body, None));
        self.frame = outer;
        let leaves = self.leaves(&value);
        let changed: Vec<bool> = leaves.iter().map(|leaf| writes(&stmts, leaf)).collect();
        self.out.extend(stmts);
        let Some(cell) = cell else {
            return results;
        };
        for ((array, leaf), changed) in cell.arrays.iter().zip(leaves).zip(changed) {
            if changed {
                self.write_array(array, &cell.index, leaf);
            }
        }
        results
    }

    /// Allocates the outputs of an action, which are zero unless its body sets them.
    fn output_storage(&mut self, name: &str, apply: &Apply<'a>) -> Vec<Val> {
        let mut results = Vec::new();
        for p in apply.outputs {
            let ty = self.type_of(p.ty.id);
            let place = self.allocate(&ty, &format!("{name}.{}", p.name.name));
            if !self.sets(apply.body, p.id) {
                let zero = self.default_value(&ty);
                self.assign(&place, zero);
            }
            results.push(place);
        }
        results
    }

    /// Returns true if each run of the body sets the parameter before anything else uses it.
    fn sets(&self, body: &Block, param: NodeId) -> bool {
        let is_param = |e: &Expr| self.t.names.get(&e.id) == Some(&param);
        let uses = |e: &Expr| {
            let mut found = false;
            e.visit(&mut |x| found |= is_param(x));
            found
        };
        for s in &body.stmts {
            let StmtKind::Assign { lhs, op, rhs } = &s.kind else {
                return false;
            };
            if uses(lhs) || uses(rhs) {
                return is_param(lhs) && op.is_none() && !uses(rhs);
            }
        }
        false
    }

    /// Returns the number with one bit set, whose position consists of the conditions, the first in the lowest bit.
    fn predicate(&mut self, call: &Call<'a, '_>) -> Val {
        self.tofino.has_special_units = true;
        let ty = self.type_of(call.e.id);
        let scalar = self.scalar_of(&ty).unwrap_or(Scalar::Bit(32));
        if call.args.is_empty() {
            self.diags.unsupported_hint(
                call.e.span,
                "this target needs the conditions of predicate()",
                "pass the comparisons as arguments: predicate(value < limit)",
            );
        }
        let mut position = Ex::bit(0, 8);
        for i in 0..call.info.args.len() {
            let Some(e) = self.arg(call.info, call.args, i) else {
                continue;
            };
            let condition = self.scalar(e);
            let weight = fold::cond(condition, Ex::bit(1u32 << i, 8), Ex::bit(0, 8));
            position = fold::binary(BinOp::BitOr, position, weight);
        }
        let one = fold::constant(&1.into(), scalar);
        Val::Scalar(fold::binary(BinOp::Shl, one, position))
    }
}

/// Returns true if the statements may write the field.
fn writes(stmts: &[St], field: &Ex) -> bool {
    stmts.iter().any(|s| match &s.kind {
        StKind::Assign(Ex::Slice { base, .. }, _) => **base == *field,
        StKind::Assign(target, _) => target == field,
        StKind::Primitive { args, .. } => {
            args.iter().any(|a| matches!(a, Arg::Ex(e) if e == field))
        }
        kind => kind.blocks().into_iter().any(|block| writes(block, field)),
    })
}
