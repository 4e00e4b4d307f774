// SPDX-License-Identifier: Apache-2.0
//! Outputs of register actions: what one output can return.

use num_bigint::BigInt;
use num_traits::One;

use super::chip::{Chip, VALUE_UNITS};
use super::operands::{Kind, is_zero};
use super::trace::{Assignment, Target, Trace};
use super::values::name;
use super::when::When;
use super::{Fault, Run};
use crate::ir::Ex;

/// Where an output may come from.
#[derive(Clone, Debug, PartialEq)]
enum Source {
    Word(usize),
    Packet(Ex),
    /// The conditions, at the position of a constant's bit.
    Condition(BigInt),
    /// A value unit that no word uses.
    Unit,
}

/// Reports outputs that an ALU cannot return.
pub(super) fn check(action: &str, trace: &Trace, chip: &Chip) -> Vec<Fault> {
    if !follows(trace) {
        return Vec::new();
    }
    let mut faults = Vec::new();
    for output in 0..trace.outputs {
        faults.extend(match has_free_unit(trace, chip) {
            true => too_many_values(action, trace, output),
            false => incompatible(action, trace, output),
        });
    }
    if faults.is_empty() && !has_free_unit(trace, chip) {
        faults.extend(conditions(action, trace, chip));
    }
    faults
}

/// Returns true if these rules can follow all values: what a unit returns may reach outputs in other ways.
fn follows(trace: &Trace) -> bool {
    let kinds = trace
        .assignments
        .iter()
        .map(|a| trace.operands.kind(&a.value));
    kinds
        .into_iter()
        .all(|kind| !matches!(kind, Kind::Math | Kind::Parameter))
}

/// Returns true if words leave a value unit to outputs.
fn has_free_unit(trace: &Trace, chip: &Chip) -> bool {
    match &*trace.operands.words {
        [word] => word.ty().width() <= chip.cell_width / 2,
        _ => false,
    }
}

/// Returns the assignments of an output, without those of zero, which an output returns by itself.
fn assigned(trace: &Trace, output: usize) -> impl Iterator<Item = &Assignment> {
    let target = Target::Output(output);
    let all = trace.assignments.iter();
    all.filter(move |a| a.target == target && !is_zero(&a.value) && a.when != When::NEVER)
}

/// Returns the sources that have the value of an assignment.
fn sources(trace: &Trace, assignment: &Assignment) -> Vec<Source> {
    let mut sources: Vec<Source> = assignment
        .changed_word
        .map(Source::Word)
        .into_iter()
        .collect();
    for written in &trace.assignments {
        if let Target::Word(word) = written.target
            && written.value == assignment.value
            && written.when.covers(assignment.when)
        {
            sources.push(Source::Word(word));
        }
    }
    sources.push(
        match (trace.operands.kind(&assignment.value), &assignment.value) {
            (Kind::Word(word), _) => Source::Word(word),
            (Kind::Packet | Kind::WordSlice, value) => Source::Packet(value.clone()),
            (Kind::Constant, Ex::Const(value, _)) => Source::Condition(value.clone()),
            _ => Source::Unit,
        },
    );
    sources
}

/// Reports an output of a register without a free unit that is computed, or that has several sources.
fn incompatible(action: &str, trace: &Trace, output: usize) -> Option<Fault> {
    let name = name(trace, Target::Output(output));
    let mut common: Option<Vec<Source>> = None;
    for assignment in assigned(trace, output) {
        let sources = sources(trace, assignment);
        if let Some(fault) = uncopied(action, &name, assignment, &sources) {
            return Some(fault);
        }
        let both = match common {
            None => sources,
            Some(common) => common.into_iter().filter(|s| sources.contains(s)).collect(),
        };
        if both.is_empty() {
            return Some(Fault {
                span: assignment.span,
                message: format!(
                    "register action '{action}' returns different values in {name}, and a register of this width has one source for each output"
                ),
                hint: "always return the same word, packet operand or constant, or zero; choose in a later stage",
            });
        }
        common = Some(both);
    }
    None
}

/// Reports an output that can only be computed.
fn uncopied(
    action: &str,
    name: &str,
    assignment: &Assignment,
    sources: &[Source],
) -> Option<Fault> {
    let (what, hint) = match sources {
        [Source::Unit] => (
            "a computed value",
            "write the value to the register and return the word, or compute it from what the register returns",
        ),
        [Source::Condition(value)] if (value & (value - BigInt::one())) != BigInt::ZERO => (
            "a constant with more than one bit set",
            "return a power of two or zero, and translate it in a later stage",
        ),
        _ => return None,
    };
    Some(Fault {
        span: assignment.span,
        message: format!(
            "register action '{action}' returns {what} in {name}, and a register of this width has no unit for it"
        ),
        hint,
    })
}

/// Reports two outputs that return constants under different conditions: conditions have one way out.
fn conditions(action: &str, trace: &Trace, chip: &Chip) -> Option<Fault> {
    if trace.comparisons.count() > chip.comparisons {
        return None;
    }
    let mut first: Option<When> = None;
    for output in 0..trace.outputs {
        let constants = assigned(trace, output)
            .filter(|a| matches!(*sources(trace, a), [Source::Condition(_)]));
        let mut last = None;
        let mut when = When::NEVER;
        for assignment in constants {
            when = when.or(assignment.when);
            last = Some(assignment);
        }
        let Some(last) = last else { continue };
        if first.is_some_and(|first| first != when) {
            return Some(Fault {
                span: last.span,
                message: format!(
                    "register action '{action}' returns constants in several outputs under different conditions, and conditions have one way out of an ALU"
                ),
                hint: "return all conditions with predicate(), or use a register for each",
            });
        }
        first = Some(when);
    }
    None
}

/// Reports actions on one register that return different constants: conditions leave its ALU at one position.
pub(super) fn constants(runs: &[Run], chip: &Chip) -> Option<Fault> {
    let mut first: Option<BigInt> = None;
    let traces = runs.iter().filter_map(|run| run.trace.as_ref());
    for trace in traces.filter(|trace| !has_free_unit(trace, chip) && follows(trace)) {
        for assignment in (0..trace.outputs).flat_map(|output| assigned(trace, output)) {
            let [Source::Condition(value)] = &*sources(trace, assignment) else {
                continue;
            };
            let first = first.get_or_insert_with(|| value.clone());
            if first != value {
                return Some(Fault {
                    span: assignment.span,
                    message: format!(
                        "an action on a register of this width returns the constant {first}, so no action on it can return {value}"
                    ),
                    hint: "return the same constant or zero in all actions on a register, and translate it in a later stage",
                });
            }
        }
    }
    None
}

/// Reports more values of an output than the free unit has.
fn too_many_values(action: &str, trace: &Trace, output: usize) -> Option<Fault> {
    let mut values: Vec<(Vec<Source>, &Ex)> = Vec::new();
    for assignment in assigned(trace, output) {
        let sources = sources(trace, assignment);
        let is_known = |(known, value): &(Vec<Source>, &Ex)| {
            let shares = known
                .iter()
                .any(|s| *s != Source::Unit && sources.contains(s));
            shares || **value == assignment.value
        };
        if !values.iter().any(is_known) {
            values.push((sources, &assignment.value));
        }
        if values.len() > VALUE_UNITS {
            return Some(Fault {
                span: assignment.span,
                message: format!(
                    "register action '{action}' returns more than {VALUE_UNITS} different values in {}",
                    name(trace, Target::Output(output))
                ),
                hint: "return one value or zero, and choose the rest in a later stage",
            });
        }
    }
    None
}
