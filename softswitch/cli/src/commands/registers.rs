// SPDX-License-Identifier: Apache-2.0
//! Commands for registers.

use num_bigint::BigUint;
use serde_json::json;

use crate::error::{Error, Result};
use crate::output::Answer;
use crate::proto::p4::config::v1::{
    p4_bitstring_like_type_spec::TypeSpec as Bits, p4_data_type_spec::TypeSpec,
};
use crate::proto::p4::v1::{
    Index, P4Data, RegisterEntry, entity::Entity, p4_data::Data, update::Type as Update,
};
use crate::schema::{Kind, name};
use crate::session::Session;
use crate::value;

/// Returns the id, the full name and the width of a register's cells.
fn find(session: &Session, register: &str) -> Result<(u32, String, u32)> {
    let id = session.schema.id(Kind::Register, register)?;
    let definition = session.schema.register(id);
    let full = definition.map_or("", |r| name(&r.preamble));
    let spec = definition.and_then(|r| r.type_spec.as_ref()?.type_spec.as_ref());
    let width = match spec {
        Some(TypeSpec::Bitstring(bits)) => match &bits.type_spec {
            Some(Bits::Bit(bit)) => bit.bitwidth,
            Some(Bits::Int(int)) => int.bitwidth,
            _ => 0,
        },
        _ => 0,
    };
    match u32::try_from(width) {
        Ok(width) if width > 0 => Ok((id, full.into(), width)),
        _ => Err(Error::new(format!(
            "the cells of {full} are not integers: use Thrift (simple_switch_CLI)"
        ))),
    }
}

fn cell(register_id: u32, index: Option<i64>, data: Option<Vec<u8>>) -> Entity {
    Entity::RegisterEntry(RegisterEntry {
        register_id,
        index: index.map(|index| Index { index }),
        data: data.map(|bytes| P4Data {
            data: Some(Data::Bitstring(bytes)),
        }),
    })
}

/// Reads cells: one, or all without `index`.
fn cells(session: &mut Session, register: u32, index: Option<i64>) -> Result<Vec<(i64, BigUint)>> {
    let entities = session.client.read(cell(register, index, None))?;
    let cells = entities.into_iter().filter_map(|entity| {
        let Entity::RegisterEntry(entry) = entity else {
            return None;
        };
        match entry.data?.data? {
            Data::Bitstring(bytes) => Some((entry.index?.index, BigUint::from_bytes_be(&bytes))),
            _ => None,
        }
    });
    Ok(cells.collect())
}

pub fn read(session: &mut Session, args: &[&str]) -> Result<Answer> {
    let (register, index) = match args {
        [register] => (register, None),
        [register, index] => (register, Some(value::number::<i64>(index, "index")?)),
        _ => return Err(Error::Usage),
    };
    let (id, full, _) = find(session, register)?;
    let cells = cells(session, id, index)?;
    let values: Vec<String> = cells.iter().map(|(_, value)| value.to_string()).collect();
    let values = values.join(", ");
    let text = match index {
        Some(index) => format!("{full}[{index}]= {values}"),
        None => format!("{full}= {values}"),
    };
    let data = cells
        .iter()
        .map(|(index, value)| json!({"index": index, "value": number(value)}));
    Ok(Answer::new(
        text,
        json!({"register": full, "cells": data.collect::<Vec<_>>()}),
    ))
}

/// Returns a number that JSON can hold, or its digits.
fn number(value: &BigUint) -> serde_json::Value {
    match u64::try_from(value) {
        Ok(value) => json!(value),
        Err(_) => json!(value.to_string()),
    }
}

pub fn write(session: &mut Session, args: &[&str]) -> Result<Answer> {
    let [register, index, value] = args else {
        return Err(Error::Usage);
    };
    let (id, _, width) = find(session, register)?;
    let index = value::number(index, "index")?;
    let value = value::parse(value, width)?;
    session
        .client
        .write(Update::Modify, cell(id, Some(index), Some(value)))?;
    Ok(Answer::default())
}

pub fn reset(session: &mut Session, args: &[&str]) -> Result<Answer> {
    let [register] = args else {
        return Err(Error::Usage);
    };
    let (id, ..) = find(session, register)?;
    let cells = cells(session, id, None)?;
    let used = cells
        .into_iter()
        .filter(|(_, value)| *value != BigUint::ZERO);
    let zeros = used.map(|(index, _)| cell(id, Some(index), Some(vec![0])));
    session.client.write_all(Update::Modify, zeros.collect())?;
    Ok(Answer::default())
}
