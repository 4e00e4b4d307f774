// SPDX-License-Identifier: Apache-2.0
//! Decoded updates and reads, and their results.

use crate::bfrt::data::{Data, Filter};
use crate::bfrt::key::Key;
use crate::bfrt::schema::Table;
use crate::dataplane::{PortControl, PortView};
use crate::p4rt::error::{P4Error, P4Result};
use crate::proto::bfrt::update::Type;

/// A decoded update of a table.
#[derive(Debug)]
pub struct Update<'a> {
    /// The table.
    pub table: &'a Table,
    /// The kind of change.
    pub operation: Type,
    /// The entry; `None` for all entries, or for the default entry.
    pub key: Option<Key>,
    /// The new data.
    pub data: Data,
    /// It applies to the default entry.
    pub is_default: bool,
    /// The elements of lists are removed, not added.
    pub removes: bool,
    /// A modification resets counters that it does not contain.
    pub resets_counters: bool,
}

impl Update<'_> {
    /// Returns the key.
    ///
    /// # Errors
    /// INVALID_ARGUMENT without one.
    pub fn key(&self) -> P4Result<&Key> {
        let key = self.key.as_ref();
        key.ok_or_else(|| self.invalid("missing key"))
    }

    /// Returns an INVALID_ARGUMENT with the table.
    pub fn invalid(&self, reason: &str) -> P4Error {
        P4Error::invalid(format!("table {}: {reason}", self.table.name))
    }

    /// Returns the error of an operation that the table does not have.
    pub fn unsupported(&self) -> P4Error {
        let (name, operation) = (&self.table.name, self.operation.as_str_name());
        P4Error::unimplemented(format!("table {name}: {operation} is not supported"))
    }
}

/// A decoded read of a table.
#[derive(Debug)]
pub struct Query<'a> {
    /// The table.
    pub table: &'a Table,
    /// The entry; `None` for all entries, or for the default entry.
    pub key: Option<Key>,
    /// The handle of the entry, instead of its key.
    pub handle: Option<u32>,
    /// It applies to the default entry.
    pub is_default: bool,
    /// Counters are read from the pipeline, and not as they were at the last synchronization.
    pub from_hw: bool,
    /// The fields.
    pub filter: Filter,
}

/// An entry.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The key; `None` for the default entry.
    pub key: Option<Key>,
    /// The data.
    pub data: Data,
}

/// The device's ports.
pub struct Ports {
    /// The attached ports.
    pub control: PortControl,
    /// The counters of the ports that were attached at the start.
    pub views: Vec<PortView>,
}

/// The result of an update.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Done {
    /// It was made.
    Made,
    /// An entry to insert existed and was modified.
    Modified,
}
