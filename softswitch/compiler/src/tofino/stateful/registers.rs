// SPDX-License-Identifier: Apache-2.0
//! Registers: the types of their cells, and what all actions on one register share.

use super::chip::{Chip, MAX_ACTIONS, MAX_PACKET_OPERANDS};
use super::operands::name;
use super::{Fault, Run};
use crate::ir::{Ex, Lowered};

/// Reports a register that the chip cannot have, or whose actions together need too much.
pub(super) fn check(program: &Lowered, register: usize, runs: &[Run], chip: &Chip) -> Vec<Fault> {
    let faults = [
        cells(program, register, chip),
        actions(program, register, runs),
        packets(program, register, runs),
    ];
    faults.into_iter().flatten().collect()
}

fn short(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

/// Reports cells that do not consist of one or two words of an ALU.
fn cells(program: &Lowered, register: usize, chip: &Chip) -> Option<Fault> {
    let object = &program.objects[register];
    let widths: Vec<u32> = object.cells.iter().map(|cells| cells.ty.width()).collect();
    let fits = match *widths {
        [1] => true,
        [width] => is_word(width, chip.cell_width),
        [a, b] => a == b && is_word(a, chip.pair_width),
        _ => false,
    };
    (!fits).then(|| Fault {
        span: object.span,
        message: format!(
            "register '{}' has cells of {}, and the ALU of a register works on one word of 1, 8, 16, 32{} bits, or on two of the same width up to {}",
            short(&object.name),
            sizes(&widths),
            match chip.cell_width {
                64 => " or 64",
                _ => ", 64 or 128",
            },
            chip.pair_width
        ),
        hint: "use the next larger width, or split the register",
    })
}

fn is_word(width: u32, widest: u32) -> bool {
    (8..=widest).contains(&width) && width.is_power_of_two()
}

/// Describes the widths of the fields of a cell.
fn sizes(widths: &[u32]) -> String {
    let widths: Vec<String> = widths.iter().map(u32::to_string).collect();
    format!("{} bits", widths.join(" + "))
}

/// Reports more actions than an ALU stores.
fn actions(program: &Lowered, register: usize, runs: &[Run]) -> Option<Fault> {
    let excess = runs.get(MAX_ACTIONS)?;
    Some(Fault {
        span: excess.span,
        message: format!(
            "{} register actions access register '{}', and its ALU stores {MAX_ACTIONS}",
            runs.len(),
            short(&program.objects[register].name)
        ),
        hint: "let one action do the work of two, with a packet operand that distinguishes the cases",
    })
}

/// Reports more packet operands than an ALU has inputs. All actions on a register share the inputs.
fn packets(program: &Lowered, register: usize, runs: &[Run]) -> Option<Fault> {
    let mut known: Vec<Ex> = Vec::new();
    for run in runs {
        let Some(trace) = &run.trace else { continue };
        let read = trace
            .comparisons
            .compared()
            .chain(trace.assignments.iter().map(|a| &a.value));
        read.for_each(|e| trace.operands.packets(e, &mut known));
        if known.len() > MAX_PACKET_OPERANDS {
            let names: Vec<String> = known.iter().map(name).collect();
            return Some(Fault {
                span: run.span,
                message: format!(
                    "the actions on register '{}' read {} packet operands ({}), and its ALU has inputs for {MAX_PACKET_OPERANDS}",
                    short(&program.objects[register].name),
                    known.len(),
                    names.join(", ")
                ),
                hint: "choose between operands before the action, and pass the chosen one in metadata",
            });
        }
    }
    None
}
