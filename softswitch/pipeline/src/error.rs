// SPDX-License-Identifier: Apache-2.0
//! Errors of loading a program and of control-plane operations.

use crate::value::Value;

/// Why a BMv2 JSON program was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {message}")]
pub struct LoadError {
    /// Where in the JSON: `pipelines[0].tables[3].key[1]`; `.` is the whole document.
    pub path: String,
    /// The fault, and the expectation.
    pub message: String,
}

/// Why a control-plane operation was refused. A refused operation has changed nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// The index or name denotes no object of this kind in the program.
    #[error("no {kind} with {id}")]
    NoSuchObject {
        /// `"table"`, `"action profile"`, ...
        kind: &'static str,
        /// The name or index asked for.
        id: String,
    },
    /// The table, profile or group is at its declared size.
    #[error("{what} is full: its size is {size}")]
    Full {
        /// The object.
        what: String,
        /// Its size in entries, or members.
        size: usize,
    },
    /// An object with this key already exists.
    #[error("{what} already exists")]
    AlreadyExists {
        /// The object.
        what: String,
    },
    /// There is no object with this key.
    #[error("{what} does not exist")]
    NotFound {
        /// The object.
        what: String,
    },
    /// The handle denotes an entry that was deleted; another entry has its slot.
    #[error("{what} was deleted")]
    Expired {
        /// The object.
        what: String,
    },
    /// The operation would break a reference, such as deleting a member that a group uses.
    #[error("{what} is still in use by {by}")]
    InUse {
        /// The object.
        what: String,
        /// The objects that refer to it.
        by: String,
    },
    /// The entries or the default entry were declared constant in the program.
    #[error("table {table}: {what} is constant")]
    Constant {
        /// The table.
        table: String,
        /// `"entries"` or `"default action"`.
        what: &'static str,
    },
    /// A match key does not have the shape that the table declares.
    #[error("table {table}, match field {field}: {reason}")]
    BadKey {
        /// The table.
        table: String,
        /// The match field's name, or its number.
        field: String,
        /// The fault.
        reason: String,
    },
    /// An action that the table does not list, or arguments that do not fit it.
    #[error("table {table}: {reason}")]
    BadAction {
        /// The table or action profile.
        table: String,
        /// The fault.
        reason: String,
    },
    /// A value needs more bits than its field, parameter or register cell has.
    #[error("{what}: value {value} does not fit {width} bits")]
    TooWide {
        /// The field, parameter or register.
        what: String,
        /// The value given.
        value: Value,
        /// The width declared.
        width: u32,
    },
    /// An index beyond the end of a counter, meter or register array.
    #[error("{what}: index {index} is out of range, size is {size}")]
    IndexOutOfRange {
        /// The array.
        what: String,
        /// The index asked for.
        index: usize,
        /// The size declared.
        size: usize,
    },
    /// The arguments contradict each other or the object's type.
    #[error("{what}: {reason}")]
    Invalid {
        /// The object.
        what: String,
        /// The fault.
        reason: String,
    },
}
