// SPDX-License-Identifier: Apache-2.0
//! BMv2's error codes for the pipeline's errors.

use softswitch_pipeline::StateError;
use softswitch_thrift::interface::{
    CounterError, MeterError, MulticastError, RegisterError, TableError,
};

/// Returns the code for an operation on a table.
pub fn table(error: StateError) -> TableError {
    tracing::debug!("thrift: {error}");
    match error {
        StateError::NoSuchObject { .. } => TableError::InvalidTableName,
        StateError::Full { .. } => TableError::TableFull,
        StateError::AlreadyExists { .. } => TableError::DuplicateEntry,
        StateError::NotFound { .. } => TableError::InvalidHandle,
        StateError::Expired { .. } => TableError::ExpiredHandle,
        StateError::Constant { what, .. } => match what {
            "entries" => TableError::ImmutableTableEntries,
            _ => TableError::DefaultEntryIsConst,
        },
        StateError::BadKey { .. } => TableError::BadMatchKey,
        StateError::BadAction { .. } | StateError::TooWide { .. } => TableError::BadActionData,
        _ => TableError::Error,
    }
}

/// Returns the code for an operation on a member; `in_use` is the code for one that is in use.
pub fn profile(error: StateError, missing: TableError, in_use: TableError) -> TableError {
    match error {
        StateError::NotFound { .. } => missing,
        StateError::InUse { .. } => in_use,
        other => table(other),
    }
}

/// Returns the code for an operation on a counter.
pub fn counter(error: StateError) -> CounterError {
    match error {
        StateError::IndexOutOfRange { .. } => CounterError::InvalidIndex,
        _ => CounterError::Error,
    }
}

/// Returns the code for an operation on a meter.
pub fn meter(error: StateError) -> MeterError {
    match error {
        StateError::IndexOutOfRange { .. } => MeterError::InvalidIndex,
        _ => MeterError::Error,
    }
}

/// Returns the code for an operation on a register.
pub fn register(error: StateError) -> RegisterError {
    match error {
        StateError::IndexOutOfRange { .. } => RegisterError::InvalidIndex,
        _ => RegisterError::Error,
    }
}

/// Returns the code for an operation on a multicast group.
pub fn multicast(error: StateError) -> MulticastError {
    tracing::debug!("thrift: {error}");
    MulticastError::Error
}
