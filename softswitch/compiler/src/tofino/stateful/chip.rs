// SPDX-License-Identifier: Apache-2.0
//! Units and widths of the registers' ALUs on each chip.

use crate::ir::Architecture;

/// Limits of a chip.
pub(super) struct Chip {
    pub name: &'static str,
    /// Number of comparison units.
    pub comparisons: usize,
    /// Width in bits of a register's largest cell.
    pub cell_width: u32,
    /// Width in bits of each word of a register with two.
    pub pair_width: u32,
    /// True if the outputs can be quotients and remainders.
    pub divides: bool,
}

impl Chip {
    /// Returns the limits of an architecture's chip; `None` if it is not Tofino.
    pub fn of(architecture: Architecture) -> Option<Self> {
        match architecture {
            Architecture::Tna => Some(Self {
                name: "Tofino 1",
                comparisons: 2,
                cell_width: 64,
                pair_width: 32,
                divides: false,
            }),
            Architecture::T2na => Some(Self {
                name: "Tofino 2",
                comparisons: 4,
                cell_width: 128,
                pair_width: 64,
                divides: true,
            }),
            _ => None,
        }
    }
}

/// Number of register actions that can access one register.
pub(super) const MAX_ACTIONS: usize = 4;

/// Number of inputs from the packet that a register's ALU has for all its actions.
pub(super) const MAX_PACKET_OPERANDS: usize = 2;

/// Number of units that compute new values of a word, or of the output.
pub(super) const VALUE_UNITS: usize = 2;

/// Width in bits of the operands of arithmetic.
pub(super) const OPERATION_WIDTH: u32 = 32;
