// SPDX-License-Identifier: Apache-2.0
//! The metadata of ports, which ingress parsers of TNA receive in front of packets.

use softswitch_pipeline::Value;

use super::{Access, Query, Row, Update, stored};
use crate::bfrt::data::{Data, FieldValue};
use crate::bfrt::schema::{Table, Type as FieldType};
use crate::p4rt::error::{P4Error, P4Result};
use crate::proto::bfrt::update::Type;

/// Returns the bytes of an entry: its fields in order, then zeros.
fn bytes(table: &Table, data: &Data) -> Vec<u8> {
    let mut bits = Vec::new();
    for field in &table.data {
        let (value, width) = match (data.values.get(&field.id), &field.ty) {
            (Some(FieldValue::Number(value)), FieldType::Bits(width)) => (value.clone(), *width),
            (Some(FieldValue::Bool(value)), _) => (Value::from(u32::from(*value)), 1),
            (_, FieldType::Bits(width)) => (Value::from(0u32), *width),
            _ => (Value::from(0u32), 1),
        };
        let length = width.div_ceil(8) as usize;
        let padded = value.to_padded(length).unwrap_or_else(|| vec![0; length]);
        let unused = length * 8 - width as usize;
        let all = (0..length * 8).map(|at| padded[at / 8] >> (7 - at % 8) & 1);
        bits.extend(all.skip(unused));
    }
    let octets = bits.chunks(8);
    octets
        .map(|bits| (bits.iter().enumerate()).fold(0, |byte, (at, bit)| byte | bit << (7 - at)))
        .collect()
}

/// Makes a change of the entries, and then of the pipeline.
pub fn write(access: &mut Access<'_, '_>, update: &Update<'_>) -> P4Result<()> {
    let ports = match &update.key {
        Some(key) => vec![key.u32(update.table, 0)?],
        None => ports(access, update.table),
    };
    if update.operation == Type::ModifyInc {
        return Err(update.unsupported());
    }
    let usage = access
        .state
        .entries(update.table.id)
        .map_or(0, |e| e.len() as u64);
    if update.operation == Type::Insert && usage >= update.table.size {
        let (name, size) = (&update.table.name, update.table.size);
        let message = format!("table {name} is full: its size is {size}");
        return Err(P4Error::resource_exhausted(message));
    }
    stored::write(access.state, update)?;
    for port in ports {
        let data = access.state.entry(update.table.id, &[port.into()]);
        let after = data.map_or(vec![], |data| bytes(update.table, data));
        let before = access.cx.pipeline.port_metadata(port).to_vec();
        access.cx.pipeline.set_port_metadata(port, &after)?;
        access
            .cx
            .undo(move |cx| Ok(cx.pipeline.set_port_metadata(port, &before)?));
    }
    Ok(())
}

/// Returns the ports with metadata.
fn ports(access: &Access<'_, '_>, table: &Table) -> Vec<u32> {
    let entries = access.state.entries(table.id);
    let keys = entries.into_iter().flat_map(|entries| entries.keys());
    keys.filter_map(|key| u32::try_from(*key.first()?).ok())
        .collect()
}

pub fn read(access: &Access<'_, '_>, query: &Query<'_>) -> P4Result<Vec<Row>> {
    stored::read(access.state, query)
}
