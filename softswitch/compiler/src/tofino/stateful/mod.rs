// SPDX-License-Identifier: Apache-2.0
//! The rules of the ALUs of registers: what one register action can compute.
//!
//! Such an ALU reads a cell of one or two words and up to two packet operands. Comparison units decide which of its
//! operations run. Each word has two units for new values, and only one of their operations may run at a time.
//! The rules follow the open compiler for Tofino (p4c, backends/tofino: bf-p4c/mau/stateful_alu.cpp,
//! bf-p4c/mau/tofino/input_xbar.cpp and bf-asm/salu_inst.cpp). Where it accepts more than these rules can follow, they
//! accept the program.

mod chip;
mod conditions;
mod operands;
mod outputs;
mod registers;
mod trace;
mod values;
mod when;

use std::collections::{BTreeMap, HashSet};

use crate::diag::{Diagnostics, Span};
use crate::ir::{Lowered, RegisterAction, St, StKind};
use chip::Chip;
use trace::Trace;

/// A part of a program that breaks a rule.
struct Fault {
    span: Span,
    message: String,
    hint: &'static str,
}

/// A register action, at the first place that executes it.
struct Run<'p> {
    /// Position of the declaration.
    span: Span,
    /// Name in the program, without those of the blocks around.
    name: &'p str,
    /// The computations of the action; `None` if the rules cannot follow it.
    trace: Option<Trace>,
}

/// Reports register actions that no ALU can run.
pub(super) fn check(program: &Lowered, diags: &Diagnostics) {
    let Some(chip) = Chip::of(program.architecture) else {
        return;
    };
    for (register, runs) in runs(program) {
        let mut faults = registers::check(program, register, &runs, &chip);
        for run in &runs {
            if let Some(trace) = &run.trace {
                faults.extend(conditions::check(run.name, &trace.comparisons, &chip));
                faults.extend(values::check(run.name, trace, &chip));
                faults.extend(outputs::check(run.name, trace, &chip));
            }
        }
        faults.extend(outputs::constants(&runs, &chip));
        for fault in faults {
            diags.error_hint(fault.span, fault.message, fault.hint);
        }
    }
}

/// Returns the executed actions of each register.
fn runs<'p>(program: &'p Lowered) -> BTreeMap<usize, Vec<Run<'p>>> {
    let mut runs = BTreeMap::<usize, Vec<Run>>::new();
    let mut known = HashSet::new();
    let mut add = |register: usize, action: &'p RegisterAction, body: &'p [St]| {
        if !known.insert(action.object) {
            return;
        }
        let object = &program.objects[action.object];
        runs.entry(register).or_default().push(Run {
            span: object.span,
            name: object.name.rsplit('.').next().unwrap_or(&object.name),
            trace: trace::trace(&program.objects[register], action, body),
        });
    };
    let controls = program.pipelines.iter().map(|block| &block.body);
    let actions = program.actions.iter().map(|action| &action.body);
    for block in controls.chain(actions) {
        each_access(block, &mut add);
    }
    runs
}

/// Calls `f` with the register, the action and the statements of each register action that statements execute.
fn each_access<'p>(block: &'p [St], f: &mut dyn FnMut(usize, &'p RegisterAction, &'p [St])) {
    for st in block {
        match &st.kind {
            StKind::Access {
                register,
                action: Some(action),
                body,
            } => f(*register, action, body),
            kind => kind.blocks().into_iter().for_each(|b| each_access(b, f)),
        }
    }
}
