// SPDX-License-Identifier: Apache-2.0
//! Methods of T2NA that reach all cells of a register. The chip needs some time for them, and this target none.

use super::tna_externs::Call;
use super::tna_queues::POSITION;
use super::tna_registers::Cell;
use super::value::Val;
use super::{Lower, Place, fold};
use crate::ast::BinOp;
use crate::ir::{Ex, ObjectKind, StKind};

impl<'a> Lower<'a> {
    /// Lowers `sweep` of a register action, which runs the action on every cell.
    pub(super) fn sweep(&mut self, call: &Call<'a, '_>) -> Val {
        self.allowed_in(call, &[Place::Control, Place::Action]);
        let (Some(register), Some(apply)) = (
            self.register_of(call.object),
            self.action_method(call.object, "apply"),
        ) else {
            return Val::Unit;
        };
        self.access(register, |s| {
            s.each_cell(register, |s, cell| {
                s.run_action(call.object, &apply, Some(cell));
            });
        });
        self.tofino.has_special_units = true;
        self.note_register_action(call.object, &[]);
        Val::Unit
    }

    /// Lowers `clear` of a register, which writes every cell.
    pub(super) fn clear(&mut self, call: &Call<'a, '_>) {
        self.allowed_in(call, &[Place::Control, Place::Action]);
        if self.ir.objects[call.object].kind != ObjectKind::Register {
            self.diags.unsupported_hint(
                call.e.span,
                "this target does not clear the registers of a table's entries",
                "clear them in the control plane, or use a Register with an index of the entry",
            );
            return;
        }
        let Some(value) = call.argument("value") else {
            return;
        };
        let value = self.eval(value);
        let leaves = self.leaves(&value);
        if !leaves.iter().all(Ex::is_const) {
            self.diags.error_hint(
                call.e.span,
                "the value of clear must be known at compile time",
                "the chip stores it with the register: use sweep of an action for other values",
            );
        }
        self.access(call.object, |s| {
            s.each_cell(call.object, |s, cell| {
                for (array, leaf) in cell.arrays.iter().zip(leaves) {
                    s.write_array(array, &cell.index, leaf);
                }
            });
        });
    }

    /// Runs statements for each cell of a register in a loop.
    fn each_cell(&mut self, register: usize, f: impl FnOnce(&mut Self, &Cell)) {
        let arrays = self.ir.objects[register].cells.clone();
        let index = self.stored(fold::constant(&0.into(), POSITION));
        let number = |n: u32| fold::constant(&n.into(), POSITION);
        let size = number(self.register_size(register));
        let cond = fold::binary(BinOp::Lt, index.clone(), size);
        let body = self.collect(|s| {
            let cell = Cell {
                arrays,
                index: Some(index.clone()),
            };
            f(s, &cell);
            let next = fold::binary(BinOp::Add, index.clone(), number(1));
            s.emit(StKind::Assign(index, next));
        });
        self.emit(StKind::Loop {
            head: Vec::new(),
            cond,
            body,
        });
    }
}
