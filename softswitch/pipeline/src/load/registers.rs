// SPDX-License-Identifier: Apache-2.0
//! Loads register arrays, and the direct registers of tables.

use std::collections::HashMap;

use super::cells;
use super::cursor::Cursor;
use crate::error::LoadError;
use crate::info::{DirectRegisterInfo, Info, RegisterInfo, TableId};
use crate::value::Value;

type Result<T> = std::result::Result<T, LoadError>;

/// Index and width by name.
pub(crate) type RegisterNames = HashMap<String, (u32, u32)>;

/// Loads all registers, and returns the names of the arrays and of the direct ones.
pub(super) fn load(root: &Cursor, info: &mut Info) -> Result<(RegisterNames, RegisterNames)> {
    let (mut arrays, mut direct) = (RegisterNames::new(), RegisterNames::new());
    for r in root.get("register_arrays").items()? {
        let name = r.get("name").str()?.to_owned();
        let width = r.get("bitwidth").u32()?;
        let initial = initial(&r, width)?;
        if is_direct(&r)? {
            direct.insert(name.clone(), (info.direct_registers.len() as u32, width));
            info.direct_registers.push(DirectRegisterInfo {
                name,
                // `bind` sets it when the tables are known.
                table: TableId(0),
                width,
                initial,
            });
            continue;
        }
        arrays.insert(name.clone(), (info.registers.len() as u32, width));
        info.registers.push(RegisterInfo {
            name,
            size: cells(&r)?,
            width,
            initial,
        });
    }
    Ok((arrays, direct))
}

/// Sets the tables of the direct registers.
pub(super) fn bind(root: &Cursor, info: &mut Info) -> Result<()> {
    let mut number = 0;
    for r in root.get("register_arrays").items()? {
        if is_direct(&r)? {
            let binding = r.get("binding");
            let table = binding.str()?;
            let table = info
                .table(table)
                .ok_or_else(|| binding.error(format!("no table {table}")))?;
            info.direct_registers[number].table = table;
            number += 1;
        }
    }
    Ok(())
}

/// Returns true if a table has direct registers.
pub(super) fn has_direct(root: &Cursor, table: &str) -> Result<bool> {
    for r in root.get("register_arrays").items()? {
        if is_direct(&r)? && r.get("binding").json == table {
            return Ok(true);
        }
    }
    Ok(false)
}

fn is_direct(register: &Cursor) -> Result<bool> {
    register.get("is_direct").bool_or(false)
}

fn initial(register: &Cursor, width: u32) -> Result<Value> {
    let json = register.get("initial_value");
    if json.is_null() {
        return Ok(Value::from(0u32));
    }
    let value = Value::from_be_bytes(&json.hex_bytes()?);
    match value.bits() <= width {
        true => Ok(value),
        false => Err(json.error(format!("does not fit {width} bits"))),
    }
}
