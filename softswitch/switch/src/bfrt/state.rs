// SPDX-License-Identifier: Apache-2.0
//! The state outside the pipeline.

use std::collections::BTreeMap;

use super::data::Data;
use crate::proto::bfrt::table_attribute::Attribute;

/// The entries of a table, by the numbers of their keys.
pub type Entries = BTreeMap<Vec<u64>, Data>;

/// Entries and attributes of tables, by the tables' ids.
#[derive(Debug, Clone, Default)]
pub struct State {
    /// The entries of tables that the pipeline does not store.
    pub entries: BTreeMap<u32, Entries>,
    /// The attributes of tables, by their kind.
    pub attributes: BTreeMap<(u32, &'static str), Attribute>,
}
