// SPDX-License-Identifier: Apache-2.0
//! Registers of TNA.
//!
//! The target's registers hold numbers, so a register of structs is an array for each field.

use super::tna_externs::Call;
use super::value::Val;
use super::{Lower, Place};
use crate::ast::NodeId;
use crate::diag::Span;
use crate::ir::{Arg, Ex, ObjectArg, ObjectKind, RegisterCells, StKind};
use crate::types::{Def, Type};
use num_traits::ToPrimitive;

/// A cell of a register, in all of its arrays.
pub(super) struct Cell {
    pub arrays: Vec<RegisterCells>,
    /// `None` for the cell of the table's entry that matched.
    pub index: Option<Ex>,
}

impl<'a> Lower<'a> {
    /// Returns the arrays for a register of TNA; none for other objects.
    pub(super) fn register_cells(
        &mut self,
        kind: ObjectKind,
        name: &str,
        targs: &[Type],
        initial: Option<Val>,
        span: Span,
    ) -> Vec<RegisterCells> {
        use ObjectKind as K;
        let is_register = matches!(kind, K::Register | K::DirectRegister | K::RegisterParam);
        let Some(ty) = targs.first() else {
            return Vec::new();
        };
        if !is_register || !self.ir.architecture.is_tofino() {
            return Vec::new();
        }
        let mut fields = Vec::new();
        match self.scalar_of(ty) {
            Some(scalar) => fields.push((name.to_owned(), scalar)),
            None => self.flat_fields(ty, name, &mut fields),
        }
        if fields.is_empty() {
            self.diags.unsupported_hint(
                span,
                format!("a register cannot hold {}", ty.show(&self.t.defs)),
                "use bit<W>, int<W>, bool or a struct of them",
            );
        }
        let initial = initial.map_or_else(Vec::new, |v| self.leaves(&v));
        let number = |i: usize| match initial.get(i) {
            Some(Ex::Const(n, _)) => n.clone(),
            _ => 0.into(),
        };
        let cell = |(i, (name, ty))| RegisterCells {
            name,
            ty,
            initial: number(i),
        };
        fields.into_iter().enumerate().map(cell).collect()
    }

    /// Returns true for the method that reads a register which only the control plane writes.
    pub(super) fn is_parameter_read(&self, method: NodeId) -> bool {
        let method = self.t.defs.get(method);
        matches!(method, Some(Def::Method(owner, _)) if &*owner.name.name == "RegisterParam")
    }

    /// Lowers `read` and `write` of a register; `None` if there is no such method.
    pub(super) fn register_method(&mut self, call: &Call<'a, '_>) -> Option<Val> {
        self.allowed_in(call, &[Place::Control, Place::Action]);
        let object = &self.ir.objects[call.object];
        let (kind, arrays) = (object.kind, object.cells.clone());
        let mut position = 0;
        let index = match kind {
            ObjectKind::DirectRegister => {
                self.note_direct_call(call.e, call.object);
                None
            }
            ObjectKind::RegisterParam => Some(Ex::bit(0, 32)),
            _ => {
                position = 1;
                Some(self.input(call.info, call.args, 0))
            }
        };
        let cell = Cell { arrays, index };
        match call.method() {
            "read" => {
                let ty = self.type_of(call.e.id);
                let value = self.allocate(&ty, "tmp");
                let place = call.e.span;
                self.access(call.object, |s| s.read_cell(&cell, &value, place));
                Some(value)
            }
            "write" => {
                let value = self.arg(call.info, call.args, position)?;
                let value = self.eval(value);
                let leaves = self.leaves(&value);
                self.access(call.object, |s| {
                    for (array, leaf) in cell.arrays.iter().zip(leaves) {
                        s.write_array(array, &cell.index, leaf);
                    }
                });
                Some(Val::Unit)
            }
            _ => None,
        }
    }

    /// Returns the number of cells of a register, which its constructor has.
    pub(super) fn register_size(&self, register: usize) -> u32 {
        match self.ir.objects[register].args.first() {
            Some(ObjectArg::Int(n)) => n.to_u32().unwrap_or(u32::MAX),
            _ => 0,
        }
    }

    /// Lowers with `f` what a packet does at once with a cell of a register.
    pub(super) fn access<T>(&mut self, register: usize, f: impl FnOnce(&mut Self) -> T) -> T {
        let mut result = None;
        let body = self.collect(|s| result = Some(f(s)));
        // Parameters are constants of an ALU, which any number of actions can read.
        if self.ir.objects[register].kind == ObjectKind::RegisterParam {
            self.out.extend(body);
        } else {
            self.emit(StKind::Access {
                register,
                action: None,
                body,
            });
        }
        result.expect("f was called")
    }

    /// Reads a cell into storage of the register's type.
    pub(super) fn read_cell(&mut self, cell: &Cell, value: &Val, span: Span) {
        let leaves = self.leaves(value);
        let fits = leaves.len() == cell.arrays.len()
            && leaves
                .iter()
                .zip(&cell.arrays)
                .all(|(leaf, array)| leaf.ty().width() == array.ty.width());
        if !fits {
            self.diags.error_hint(
                span,
                "the type of the value differs from that of the register's cells",
                "use the register's type as the first type argument",
            );
            return;
        }
        for (array, leaf) in cell.arrays.iter().zip(leaves) {
            let array = Arg::Named("register_array", array.name.clone());
            match &cell.index {
                Some(index) => {
                    let parameters = vec![Arg::Ex(leaf), array, Arg::Ex(index.clone())];
                    self.primitive("register_read", parameters);
                }
                None => self.primitive("_DirectRegister_read", vec![Arg::Ex(leaf), array]),
            }
        }
    }

    pub(super) fn write_array(&mut self, array: &RegisterCells, index: &Option<Ex>, value: Ex) {
        let array = Arg::Named("register_array", array.name.clone());
        match index {
            Some(index) => {
                let parameters = vec![array, Arg::Ex(index.clone()), Arg::Ex(value)];
                self.primitive("register_write", parameters);
            }
            None => self.primitive("_DirectRegister_write", vec![array, Arg::Ex(value)]),
        }
    }
}
