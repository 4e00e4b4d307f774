// SPDX-License-Identifier: Apache-2.0
//! The entries of tables whose keys are one number.

use crate::bfrt::data::Data;
use crate::bfrt::schema::{Schema, Table};
use crate::bfrt::state::{Entries, State};

/// The entries of one kind of table.
pub struct View<'a> {
    /// The table.
    pub table: &'a Table,
    entries: Option<&'a Entries>,
}

impl<'a> View<'a> {
    /// Returns the entries of the table of a kind.
    pub fn of(schema: &'a Schema, state: &'a State, kind: &str) -> Option<Self> {
        let table = schema.tables.values().find(|t| t.kind == kind)?;
        let entries = state.entries(table.id);
        Some(Self { table, entries })
    }

    /// Returns the entry with a number.
    pub fn get(&self, id: u32) -> Option<&'a Data> {
        self.entries?.get(&vec![u64::from(id)])
    }

    /// Returns all entries by their number.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &'a Data)> + use<'a> {
        let entries = self.entries.into_iter().flatten();
        entries.filter_map(|(key, data)| {
            let id = key.first().and_then(|id| u32::try_from(*id).ok())?;
            Some((id, data))
        })
    }

    /// Returns the numbers in a field of an entry; none if it is absent.
    pub fn numbers(&self, data: &'a Data, name: &str) -> &'a [u32] {
        data.numbers(self.table, name).unwrap_or_default()
    }
}
