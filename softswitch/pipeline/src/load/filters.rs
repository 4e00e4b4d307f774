// SPDX-License-Identifier: Apache-2.0
//! Loads the filters and math units of TNA.

use num_traits::ToPrimitive;

use super::attributes::{attribute, cells, to_u64};
use super::cursor::Cursor;
use crate::error::LoadError;
use crate::info::{FilterInfo, Info, TableId};
use crate::program::math_unit::MathUnit;
use crate::program::op::FilterOutput;

type Result<T> = std::result::Result<T, LoadError>;

/// The types of the extern objects whose cells belong to table entries.
const DIRECT: [&str; 2] = ["DirectLpf", "DirectWred"];

/// A filter: its number, and the kind of its output.
#[derive(Debug, Clone, Copy)]
pub(super) struct Filter {
    pub(super) number: u32,
    pub(super) output: FilterOutput,
    pub(super) is_direct: bool,
}

/// Loads an object of a type that ends with `Lpf` or `Wred`.
pub(super) fn filter(json: &Cursor, kind: &str, info: &mut Info) -> Result<Filter> {
    let is_direct = DIRECT.contains(&kind);
    let output = match kind.ends_with("Wred") {
        false => FilterOutput::Level,
        true => FilterOutput::Drop {
            drop: to_u64(&attribute(json, "drop_value")?)?,
            keep: to_u64(&attribute(json, "no_drop_value")?)?,
        },
    };
    info.filters.push(FilterInfo {
        name: json.get("name").str()?.to_owned(),
        size: match is_direct {
            true => 0,
            false => cells(json, "n_cells")?,
        },
        // `bind` sets it when the tables are known.
        table: is_direct.then_some(TableId(0)),
        is_wred: matches!(output, FilterOutput::Drop { .. }),
    });
    Ok(Filter {
        number: info.filters.len() as u32 - 1,
        output,
        is_direct,
    })
}

/// Returns true if a table has direct filters.
pub(super) fn has_direct(root: &Cursor, table: &str) -> Result<bool> {
    for json in root.get("extern_instances").items()? {
        if is_direct(&json)? && attribute(&json, "binding")?.json == table {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Sets the tables of the direct filters.
pub(super) fn bind(root: &Cursor, info: &mut Info) -> Result<()> {
    for json in root.get("extern_instances").items()? {
        if !is_direct(&json)? {
            continue;
        }
        let binding = attribute(&json, "binding")?;
        let table = binding.str()?;
        let table = info
            .table(table)
            .ok_or_else(|| binding.error(format!("no table {table}")))?;
        let name = json.get("name").str()?;
        for filter in info.filters.iter_mut().filter(|f| f.name == name) {
            filter.table = Some(table);
        }
    }
    Ok(())
}

fn is_direct(json: &Cursor) -> Result<bool> {
    Ok(DIRECT.contains(&json.get("type").str()?))
}

/// Loads a math unit.
pub(super) fn math_unit(json: &Cursor) -> Result<MathUnit> {
    let number = |name: &str| {
        let value = attribute(json, name)?;
        let number = value.hex()?.to_i32();
        number
            .filter(|n| n.abs() < 64)
            .ok_or_else(|| value.error("the number is too large"))
    };
    let mut table = [0; 16];
    let values = attribute(json, "table")?;
    let items: [Cursor; 16] = values.tuple()?;
    for (value, item) in table.iter_mut().zip(items) {
        let number = item.hex()?.to_u8();
        *value = number.ok_or_else(|| item.error("does not fit 8 bits"))?;
    }
    Ok(MathUnit {
        is_inverted: number("invert")? != 0,
        shift: number("shift")?,
        scale: number("scale")?,
        table,
    })
}
