// SPDX-License-Identifier: Apache-2.0
//! New values of words, and computed outputs: which operations an ALU has, and how many of them one action can use.

use super::Fault;
use super::chip::{Chip, OPERATION_WIDTH, VALUE_UNITS};
use super::operands::{Kind, Operands, extreme, is_zero};
use super::trace::{Assignment, Target, Trace};
use super::when::When;
use crate::ast::{BinOp, UnOp};
use crate::diag::Span;
use crate::ir::Ex;

/// Reports values that no ALU computes, and more values than it has units for.
pub(super) fn check(action: &str, trace: &Trace, chip: &Chip) -> Vec<Fault> {
    let mut faults = Vec::new();
    for assignment in &trace.assignments {
        faults.extend(value(assignment, &trace.operands, chip));
    }
    faults.extend(bits(trace));
    let outputs = (0..trace.outputs).map(Target::Output);
    let words = (0..trace.operands.words.len()).map(Target::Word);
    for target in words.chain(outputs) {
        faults.extend(repeated(action, trace, target));
    }
    for word in 0..trace.operands.words.len() {
        faults.extend(crowded(action, trace, word));
    }
    faults
}

/// Reports a value that is more than one operation of an ALU.
fn value(assignment: &Assignment, operands: &Operands, chip: &Chip) -> Option<Fault> {
    let is_word = matches!(assignment.target, Target::Word(_));
    let parts = match alternatives(&assignment.value, operands) {
        Some([a, b]) if is_word => vec![a, b],
        _ => vec![&assignment.value],
    };
    let is_output_of_division = chip.divides && !is_word;
    let mut problems = parts
        .into_iter()
        .filter_map(|part| operation(part, operands, is_output_of_division));
    let (message, hint) = problems.next()?;
    Some(Fault {
        span: assignment.span,
        message: message.to_owned(),
        hint,
    })
}

type Problem = (&'static str, &'static str);

const NESTED: Problem = (
    "a register action computes one operation in each assignment, or two whose results are combined by |",
    "compute the rest before the action, or use what the register returns in a later stage",
);
const RESULT_SLICE: Problem = (
    "a register action cannot slice the result of an operation",
    "slice the operands, or what the register returns",
);
const SHIFT: Problem = (
    "the ALU of a register does not shift, multiply or concatenate",
    "use a MathUnit, or compute this from what the register returns",
);
const DIVISION: Problem = (
    "the ALU of a register does not divide",
    "use a MathUnit, or compute this from what the register returns",
);
const TWO_WORDS: Problem = (
    "an operation in a register action reads at most one word of the register",
    "combine the words after the action: return them on Tofino 2, or use two registers",
);
const TWO_PACKETS: Problem = (
    "an operation in a register action reads at most one packet operand",
    "combine the operands before the action, and pass the result in metadata",
);
const WIDE: Problem = (
    "the ALU of a register computes at most 32 bits; it can only copy more",
    "split the value into two words of 32 bits",
);

/// Returns why an ALU cannot compute a value.
fn operation(e: &Ex, operands: &Operands, may_divide: bool) -> Option<Problem> {
    if operands.kind(e) != Kind::Operation {
        return None;
    }
    if let Some((a, b)) = extreme(e) {
        return binary(a, b, operands);
    }
    match e {
        Ex::Cast(inner, ty) if ty.width() >= inner.ty().width() => {
            operation(inner, operands, may_divide)
        }
        Ex::Cast(..) | Ex::Slice { .. } => Some(RESULT_SLICE),
        Ex::Unary(UnOp::BitNot, inner, _) => operation(inner, operands, may_divide),
        Ex::Unary(_, inner, _) => (operands.kind(inner) == Kind::Operation).then_some(NESTED),
        Ex::Binary(op, a, b, ty) => match op {
            BinOp::Div | BinOp::Mod if may_divide => None,
            BinOp::Div | BinOp::Mod => Some(DIVISION),
            BinOp::Shl | BinOp::Shr | BinOp::Mul | BinOp::Concat => {
                operands.uses_register(e).then_some(SHIFT)
            }
            op if is_wide(*op, ty.width()) => Some(WIDE),
            BinOp::BitAnd | BinOp::BitOr | BinOp::BitXor => {
                binary(uninverted(a), uninverted(b), operands)
            }
            _ => binary(a, b, operands),
        },
        _ => None,
    }
}

/// Returns true for operations on more bits than an ALU has. Some that change only the low bits work nevertheless.
fn is_wide(op: BinOp, width: u32) -> bool {
    let is_tolerated = matches!(op, BinOp::Add | BinOp::Sub | BinOp::BitOr | BinOp::BitXor);
    width > OPERATION_WIDTH && !is_tolerated
}

fn binary(a: &Ex, b: &Ex, operands: &Operands) -> Option<Problem> {
    let kinds = [operands.kind(a), operands.kind(b)];
    let is_word = |kind: &Kind| matches!(kind, Kind::Word(_) | Kind::WordSlice);
    if kinds.contains(&Kind::Operation) {
        Some(NESTED)
    } else if kinds.iter().all(is_word) {
        Some(TWO_WORDS)
    } else if kinds == [Kind::Packet; 2] {
        Some(TWO_PACKETS)
    } else {
        None
    }
}

/// Returns the operand whose complement an operation uses, or the operand.
fn uninverted(e: &Ex) -> &Ex {
    match e {
        Ex::Unary(UnOp::BitNot, inner, _) => inner,
        e => e,
    }
}

/// Returns both sides of `|` if one of them is an operation: each is then a value of its own.
fn alternatives<'e>(e: &'e Ex, operands: &Operands) -> Option<[&'e Ex; 2]> {
    match e {
        Ex::Binary(BinOp::BitOr, a, b, _) => {
            let is_operation = |e: &Ex| operands.kind(uninverted(e)) == Kind::Operation;
            (is_operation(a) || is_operation(b)).then_some([a, b])
        }
        _ => None,
    }
}

/// Reports what a register of bits cannot do.
fn bits(trace: &Trace) -> Option<Fault> {
    let [word] = &*trace.operands.words else {
        return None;
    };
    if word.ty().width() != 1 {
        return None;
    }
    let computed = trace.assignments.iter().find(|assignment| {
        let kind = trace.operands.kind(uninverted(&assignment.value));
        match assignment.target {
            Target::Word(_) => kind != Kind::Constant && assignment.value != *word,
            Target::Output(_) => kind == Kind::Operation,
        }
    });
    let span = trace
        .comparisons
        .first()
        .or(computed.map(|assignment| assignment.span))?;
    Some(Fault {
        span,
        message: "a register of single bits only reads, sets and clears them, without conditions"
            .to_owned(),
        hint: "use a RegisterAction for each case, and choose the action outside; or use a register of bit<8>",
    })
}

/// Reports a target that two statements may set for the same packet.
fn repeated(action: &str, trace: &Trace, target: Target) -> Option<Fault> {
    let mut earlier: Vec<(When, Span)> = Vec::new();
    for assignment in trace.assignments.iter().filter(|a| a.target == target) {
        let when = assignment.when;
        if !assignment.reads_target {
            // No unit computes a value that another assignment replaces in any case.
            earlier.retain(|(before, span)| *span == assignment.span || !when.covers(*before));
        }
        let overlaps = |before: When| before == when || [before, when].contains(&When::ALWAYS);
        if earlier
            .iter()
            .any(|(before, span)| *span != assignment.span && overlaps(*before))
        {
            return Some(Fault {
                span: assignment.span,
                message: format!(
                    "register action '{action}' may set {} twice",
                    name(trace, target)
                ),
                hint: "assign it once in each case, with if and else; a packet's operations on a word run at the same time",
            });
        }
        let is_initial_zero = is_zero(&assignment.value) && when == When::ALWAYS;
        if !(is_initial_zero && earlier.is_empty()) {
            earlier.push((when, assignment.span));
        }
    }
    None
}

/// Reports more different values of a word than there are units.
fn crowded(action: &str, trace: &Trace, word: usize) -> Option<Fault> {
    let mut values: Vec<&Ex> = Vec::new();
    let written = trace.assignments.iter();
    for assignment in written.filter(|a| a.target == Target::Word(word)) {
        let parts = match alternatives(&assignment.value, &trace.operands) {
            Some([a, b]) => vec![a, b],
            None => vec![&assignment.value],
        };
        for part in parts {
            if !values.contains(&part) && trace.operands.word(part) != Some(word) {
                values.push(part);
            }
        }
        if values.len() > VALUE_UNITS {
            return Some(Fault {
                span: assignment.span,
                message: format!(
                    "register action '{action}' computes more than {VALUE_UNITS} different values for {}",
                    name(trace, Target::Word(word))
                ),
                hint: "choose between values before the action, and pass the chosen one in metadata",
            });
        }
    }
    None
}

/// Returns the name of a word or an output in messages.
pub(super) fn name(trace: &Trace, target: Target) -> String {
    match target {
        Target::Word(_) if trace.operands.words.len() == 1 => "the register's value".to_owned(),
        Target::Word(i) => format!("the register's word '{}'", trace.operands.names[i]),
        Target::Output(_) if trace.outputs == 1 => "its output".to_owned(),
        Target::Output(i) => format!("its output {}", i + 1),
    }
}
