// SPDX-License-Identifier: Apache-2.0
//! Handles of entries outside match-action tables. With a key of one number, the handle follows from the number; otherwise
//! it is the position of the entry in its table.

use super::{Access, Query, Row};
use crate::bfrt::data::Filter;
use crate::bfrt::key::Key;
use crate::bfrt::schema::{Table, Type};
use crate::p4rt::error::{P4Error, P4Result};

/// The handle of the key 0, and of the first entry.
const FIRST: u32 = 1;

fn missing(table: &Table) -> P4Error {
    P4Error::not_found(format!("table {}: the entry does not exist", table.name))
}

/// Returns true for a table whose keys are one number.
fn has_number(table: &Table) -> bool {
    let [field] = &table.key[..] else {
        return false;
    };
    field.match_type == "Exact" && matches!(field.ty, Type::Bits(_))
}

fn query<'a>(table: &'a Table, key: Option<Key>, filter: Filter) -> Query<'a> {
    Query {
        table,
        key,
        handle: None,
        is_default: false,
        from_hw: false,
        filter,
    }
}

/// Returns the handle of the entry with a key.
///
/// # Errors
/// NOT_FOUND if no entry has the key.
pub fn of_key(access: &mut Access<'_, '_>, table: &Table, key: &Key) -> P4Result<u32> {
    let entry = query(table, Some(key.clone()), Filter::default());
    let found = access.read(&entry)?.into_iter().find_map(|row| row.key);
    if has_number(table) {
        return key.u32(table, 0).map(|number| number.saturating_add(FIRST));
    }
    let all = access.read(&query(table, None, Filter::default()))?;
    let at = all.iter().position(|row| row.key == found);
    let at = at.and_then(|at| u32::try_from(at).ok());
    at.map(|at| at + FIRST).ok_or_else(|| missing(table))
}

/// Reads the entry with a handle.
///
/// # Errors
/// NOT_FOUND if no entry has the handle.
pub fn read(access: &mut Access<'_, '_>, given: &Query<'_>) -> P4Result<Vec<Row>> {
    let table = given.table;
    let number = given.handle.and_then(|handle| handle.checked_sub(FIRST));
    let number = number.ok_or_else(|| missing(table))?;
    let filter = given.filter.clone();
    if has_number(table) {
        let key = Key::exact([number.into()]);
        return access.read(&query(table, Some(key), filter));
    }
    let row = access.read(&query(table, None, filter))?;
    let row = row.into_iter().nth(number as usize);
    row.map(|row| vec![row]).ok_or_else(|| missing(table))
}
