// SPDX-License-Identifier: Apache-2.0
//! The packet generators of Tofino.

mod application;

use softswitch_pipeline::{Pipeline, Value};

use super::{Access, Query, Row, Update, loopback};
use crate::bfrt::data::{Data, FieldValue};
use crate::bfrt::key::Key;
use crate::bfrt::link::GeneratorTable;
use crate::bfrt::schema::Table;
use crate::p4rt::error::{P4Error, P4Result};
use crate::proto::bfrt::update::Type;

/// Makes a change of a table. Entries exist from the start, so insertions modify them.
pub fn write(
    access: &mut Access<'_, '_>,
    update: &Update<'_>,
    kind: GeneratorTable,
) -> P4Result<()> {
    let before = access.cx.pipeline.generator_snapshot();
    let result = match (kind, update.operation) {
        (GeneratorTable::Applications, _) => application::write(access, update),
        (_, Type::Insert | Type::Modify) => modify(access, update, kind),
        _ => Err(update.unsupported()),
    };
    match result {
        Ok(()) => access.cx.undo(move |cx| {
            cx.pipeline.restore_generators(before);
            Ok(())
        }),
        Err(_) => access.cx.pipeline.restore_generators(before),
    }
    // The data plane must learn the time of the next packet.
    access.ports.control.wake();
    result
}

fn modify(access: &mut Access<'_, '_>, update: &Update<'_>, kind: GeneratorTable) -> P4Result<()> {
    let pipeline = &mut *access.cx.pipeline;
    let (table, key, data) = (update.table, update.key()?, &update.data);
    let number = key.u32(table, 0)?;
    match kind {
        GeneratorTable::Buffer => {
            let bytes = data.numbers(table, "buffer").unwrap_or_default();
            let size = key.u32(table, 1)?;
            if bytes.len() != size as usize {
                let given = bytes.len();
                let reason = format!("buffer has {given} bytes, pkt_buffer_size is {size}");
                return Err(update.invalid(&reason));
            }
            let bytes: Vec<u8> = bytes.iter().map(|byte| *byte as u8).collect();
            pipeline.write_generator_buffer(number, &bytes)?;
        }
        GeneratorTable::Masks => {
            if let Some(FieldValue::Number(mask)) = data.get(table, "mask") {
                pipeline.set_generator_mask(number, mask.to_u128().unwrap_or(0));
            }
        }
        _ => {
            let mut port = pipeline.generator_port(number);
            let set = |name: &str, to: &mut bool| {
                *to = data.bool(table, name).unwrap_or(*to);
            };
            set("pktgen_enable", &mut port.generates);
            set("pattern_matching_enable", &mut port.matches_patterns);
            pipeline.set_generator_port(number, port);
            if data.bool(table, "clear_port_down_enable") == Some(true) {
                pipeline.arm_generator_port(number);
            }
            if let Some(is_loopback) = data.bool(table, "recirculation_enable") {
                loopback::set(access, number, is_loopback);
            }
        }
    }
    Ok(())
}

/// Reads entries. Only applications can be read without a key.
pub fn read(
    access: &mut Access<'_, '_>,
    query: &Query<'_>,
    kind: GeneratorTable,
) -> P4Result<Vec<Row>> {
    if kind == GeneratorTable::Applications {
        return application::read(access, query);
    }
    let Some(key) = &query.key else {
        return Ok(vec![]);
    };
    let data = entry(access.cx.pipeline, query.table, key, kind)?;
    Ok(vec![Row {
        key: Some(key.clone()),
        data,
    }])
}

fn entry(pipeline: &Pipeline, table: &Table, key: &Key, kind: GeneratorTable) -> P4Result<Data> {
    let mut data = Data::default();
    let number = key.u32(table, 0)?;
    match kind {
        GeneratorTable::Buffer => {
            let bytes = pipeline.generator_buffer(number, key.u32(table, 1)?)?;
            let bytes = bytes.into_iter().map(u32::from).collect();
            data.set(table, "buffer", FieldValue::Numbers(bytes));
        }
        GeneratorTable::Masks => {
            let mask = pipeline.generator_mask(number);
            let mask = Value::from_be_bytes(&(mask & PORTS_OF_PIPE).to_be_bytes());
            data.set(table, "mask", FieldValue::Number(mask));
        }
        _ => {
            let port = pipeline.generator_port(number);
            data.set(table, "recirculation_enable", pipeline.is_loopback(number));
            data.set(table, "pktgen_enable", port.generates);
            data.set(table, "pattern_matching_enable", port.matches_patterns);
            data.set(table, "clear_port_down_enable", false);
        }
    }
    Ok(data)
}

/// The ports that a mask can contain.
const PORTS_OF_PIPE: u128 = (1 << 72) - 1;

fn not_found(table: &Table) -> P4Error {
    let message = format!("table {}: the entry does not exist", table.name);
    P4Error::not_found(message)
}
