// SPDX-License-Identifier: Apache-2.0
//! Attributes of extern objects.

use super::MAX_CELLS;
use super::cursor::Cursor;
use crate::error::LoadError;

type Result<T> = std::result::Result<T, LoadError>;

/// Returns a number of up to 64 bits; a polynomial may have one more, which does not count.
pub(super) fn to_u64(value: &Cursor) -> Result<u64> {
    let digits = value.hex()?.magnitude().iter_u64_digits().next();
    Ok(digits.unwrap_or(0))
}

/// Returns the value of an attribute.
pub(super) fn attribute<'a>(json: &Cursor<'a>, name: &str) -> Result<Cursor<'a>> {
    for attribute in json.get("attribute_values").items()? {
        if attribute.get("name").str()? == name {
            return Ok(attribute.get("value"));
        }
    }
    Err(json
        .get("attribute_values")
        .error(format!("the attribute {name} is missing")))
}

/// Returns an attribute that is a number of cells.
pub(super) fn cells(json: &Cursor, name: &str) -> Result<usize> {
    let value = attribute(json, name)?;
    let cells = num_traits::ToPrimitive::to_usize(&value.hex()?);
    cells
        .filter(|&n| n <= MAX_CELLS)
        .ok_or_else(|| value.error(format!("the array is too large: at most {MAX_CELLS} cells")))
}
