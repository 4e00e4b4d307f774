// SPDX-License-Identifier: Apache-2.0
//! References between entries (`@refers_to`), and the counts of the values that they name.

mod counts;

use std::collections::HashMap;

use softswitch_pipeline::TableId;

pub use counts::{Counts, Dangling, Facts, Values};

/// The references of a program.
#[derive(Debug, Default)]
pub struct References {
    /// The sets of fields that references name.
    pub slots: Vec<Slot>,
    /// The references of a table's match fields.
    pub of_tables: HashMap<TableId, Vec<Reference>>,
    /// The references of an action's parameters, by P4Info id.
    pub of_actions: HashMap<u32, Vec<Reference>>,
}

/// A set of values that references name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Slot {
    /// The ids of multicast groups.
    MulticastGroups,
    /// Fields of a table's key.
    Fields {
        /// P4Info id of the table.
        table: u32,
        /// Indices of the fields, in ascending order.
        fields: Vec<usize>,
    },
}

/// Values that refer together to one slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// The number of the slot.
    pub slot: usize,
    /// Indices of the match fields or parameters, in the order of the slot's fields.
    pub from: Vec<usize>,
}

impl References {
    /// Returns true if the program has no references.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }
}

#[cfg(test)]
mod tests;
