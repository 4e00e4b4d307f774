// SPDX-License-Identifier: Apache-2.0
//! Registers of T2NA as logs, queues and stacks: the chip keeps the positions, which are registers with one cell here.

use super::tna_actions::Apply;
use super::tna_externs::Call;
use super::tna_registers::Cell;
use super::value::Val;
use super::{Lower, Place, fold};
use crate::ast::BinOp;
use crate::ir::{Arg, Ex, Object, ObjectKind, RegisterCells, Scalar, StKind};

/// Width of positions.
pub(super) const POSITION: Scalar = Scalar::Bit(32);

/// A method that chooses the cell by itself.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    Log,
    Enqueue,
    Dequeue,
    Push,
    Pop,
}

impl Order {
    fn of(method: &str) -> Option<Self> {
        Some(match method {
            "execute_log" => Self::Log,
            "enqueue" => Self::Enqueue,
            "dequeue" => Self::Dequeue,
            "push" => Self::Push,
            "pop" => Self::Pop,
            _ => return None,
        })
    }

    /// Returns the method that runs instead if the register is full or empty.
    fn alternative(self) -> &'static str {
        match self {
            Self::Enqueue | Self::Push => "overflow",
            _ => "underflow",
        }
    }
}

/// The positions of a register.
struct Positions {
    /// The next cell of a log, or the first of a queue.
    first: RegisterCells,
    /// Number of cells in use.
    count: RegisterCells,
    size: u32,
}

impl<'a> Lower<'a> {
    /// Lowers a method of a register action that chooses the cell; `None` for other methods.
    pub(super) fn queue_action(&mut self, call: &Call<'a, '_>) -> Option<Val> {
        let order = Order::of(call.method())?;
        self.allowed_in(call, &[Place::Control, Place::Action]);
        let result_type = self.type_of(call.e.id);
        let nothing = self.default_value(&result_type);
        let (Some(register), Some(apply)) = (
            self.register_of(call.object),
            self.action_method(call.object, "apply"),
        ) else {
            return Some(nothing);
        };
        let alternative = self.action_method(call.object, order.alternative());
        let positions = self.positions(register);
        let bodies = (&apply, alternative.as_ref());
        let results = self.access(register, |s| {
            s.run_in_order((call.object, register), order, bodies, &positions)
        });
        self.tofino.has_special_units = true;
        self.note_register_action(call.object, &results);
        self.assign_results(call, &results, 0);
        Some(results.into_iter().next().unwrap_or(nothing))
    }

    /// Returns the positions of a register, which its first such method creates.
    fn positions(&mut self, register: usize) -> Positions {
        let size = self.register_size(register);
        let Object { name, span, .. } = &self.ir.objects[register];
        let cells = |suffix: &str| RegisterCells {
            name: format!("{name}.${suffix}"),
            ty: POSITION,
            initial: 0.into(),
        };
        let (first, count, span) = (cells("first"), cells("count"), *span);
        let mut known = self.ir.objects.iter().flat_map(|object| &object.cells);
        if !known.any(|cells| cells.name == first.name) {
            self.ir.objects.push(Object {
                kind: ObjectKind::RegisterParam,
                extern_name: "RegisterParam".into(),
                // The control plane does not see it.
                name: String::new(),
                args: Vec::new(),
                params: Vec::new(),
                targs: Vec::new(),
                annos: &[],
                span,
                meter_target: None,
                cells: vec![first.clone(), count.clone()],
            });
        }
        Positions { first, count, size }
    }

    /// Runs an action on the cell that its method chooses, or its alternative, and returns the results.
    fn run_in_order(
        &mut self,
        (action, register): (usize, usize),
        order: Order,
        (apply, alternative): (&Apply<'a>, Option<&Apply<'a>>),
        positions: &Positions,
    ) -> Vec<Val> {
        let Positions { first, count, size } = positions;
        let (at, used) = (self.position(first), self.position(count));
        let results = self.action_results(action, apply);
        let arrays = self.ir.objects[register].cells.clone();
        let cell = |index: Ex| Cell {
            arrays: arrays.clone(),
            index: Some(index),
        };
        let number = |n: u32| Ex::bit(n, 32);
        let add = |a: Ex, b: Ex| fold::binary(BinOp::Add, a, b);
        let wrap = |e: Ex| {
            let is_beyond = fold::binary(BinOp::Ge, e.clone(), number(*size));
            let wrapped = fold::binary(BinOp::Sub, e.clone(), number(*size));
            fold::cond(is_beyond, wrapped, e)
        };
        let less = fold::binary(BinOp::Sub, used.clone(), number(1));
        let more = add(used.clone(), number(1));
        let next = wrap(add(at.clone(), number(1)));
        let (index, changed) = match order {
            Order::Log => (at, vec![(first, next)]),
            Order::Push => (used.clone(), vec![(count, more)]),
            Order::Pop => (less.clone(), vec![(count, less)]),
            Order::Enqueue => (wrap(add(at, used.clone())), vec![(count, more)]),
            Order::Dequeue => (at, vec![(count, less), (first, next)]),
        };
        let body = self.collect(|s| {
            let index = s.snapshot(index);
            s.run_into(action, apply, Some(&cell(index)), &results);
            for (cells, value) in changed {
                s.write_array(cells, &Some(number(0)), value);
            }
        });
        let is_refused = match order {
            Order::Log => {
                self.out.extend(body);
                return results;
            }
            Order::Push | Order::Enqueue => fold::binary(BinOp::Ge, used, number(*size)),
            Order::Pop | Order::Dequeue => fold::binary(BinOp::Eq, used, number(0)),
        };
        let refusal = self.collect(|s| {
            if let Some(alternative) = alternative {
                s.run_into(action, alternative, None, &results);
            }
        });
        self.emit(StKind::If(is_refused, refusal, body));
        results
    }

    /// Reads a position.
    fn position(&mut self, cells: &RegisterCells) -> Ex {
        let value = self.temp(POSITION);
        let array = Arg::Named("register_array", cells.name.clone());
        let parameters = vec![Arg::Ex(value.clone()), array, Arg::Ex(Ex::bit(0, 32))];
        self.primitive("register_read", parameters);
        value
    }

    /// Allocates the results of an action, which are zero.
    fn action_results(&mut self, action: usize, apply: &Apply<'a>) -> Vec<Val> {
        let name = self.ir.objects[action].name.clone();
        let types: Vec<_> = apply
            .outputs
            .iter()
            .map(|p| self.type_of(p.ty.id))
            .collect();
        let zero = |(at, ty)| {
            let place = self.allocate(&ty, &format!("{name}.result{at}"));
            let value = self.default_value(&ty);
            self.assign(&place, value);
            place
        };
        types.into_iter().enumerate().map(zero).collect()
    }

    /// Runs a method of an action, and assigns its outputs to results.
    fn run_into(&mut self, action: usize, apply: &Apply<'a>, cell: Option<&Cell>, results: &[Val]) {
        let outputs = self.run_action(action, apply, cell);
        for (result, output) in results.iter().zip(outputs) {
            self.assign(result, output);
        }
    }
}
