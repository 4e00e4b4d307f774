// SPDX-License-Identifier: Apache-2.0
//! Referential integrity: `@refers_to(TABLE, FIELD)` on match fields and action parameters, and
//! `@refers_to(builtin::multicast_group_table, multicast_group_id)`, as in the programs of PINS.
//!
//! Each value that refers to a table must be in one of its entries. Fields or parameters that refer to several fields of one
//! table refer to one entry. A write is applied, compared with the counts of values, and undone if it leaves a reference
//! without its entry.

mod facts;
mod update;

pub use update::{apply, check_all};
