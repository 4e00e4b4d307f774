// SPDX-License-Identifier: Apache-2.0
//! Rates and bursts of meters. Clients count kilobits or packets, and the pipeline bytes or packets.

use softswitch_pipeline::MeterConfig;

use super::data::Data;
use super::schema::Table;
use crate::p4rt::error::{P4Error, P4Result};

/// Bytes of a kilobit.
const BYTES_PER_KILOBIT: u64 = 125;

/// The names of the fields in one unit, and what the pipeline counts for each.
struct Unit {
    cir: &'static str,
    pir: &'static str,
    cbs: &'static str,
    pbs: &'static str,
    factor: u64,
}

const UNITS: [Unit; 2] = [
    Unit {
        cir: "$METER_SPEC_CIR_KBPS",
        pir: "$METER_SPEC_PIR_KBPS",
        cbs: "$METER_SPEC_CBS_KBITS",
        pbs: "$METER_SPEC_PBS_KBITS",
        factor: BYTES_PER_KILOBIT,
    },
    Unit {
        cir: "$METER_SPEC_CIR_PPS",
        pir: "$METER_SPEC_PIR_PPS",
        cbs: "$METER_SPEC_CBS_PKTS",
        pbs: "$METER_SPEC_PBS_PKTS",
        factor: 1,
    },
];

/// Returns the unit of the meter of a table, if it has one.
fn unit(table: &Table) -> Option<&'static Unit> {
    UNITS.iter().find(|unit| table.field_id(unit.cir).is_some())
}

/// Decodes the configuration of a meter: `None` if the data does not have one. The inner `None` makes all packets green,
/// as the largest rate does. Absent values stay as in the present configuration.
///
/// # Errors
/// INVALID_ARGUMENT if the peak rate is below the committed rate.
pub fn decode(
    table: &Table,
    data: &Data,
    present: Option<MeterConfig>,
) -> P4Result<Option<Option<MeterConfig>>> {
    let Some(unit) = unit(table) else {
        return Ok(None);
    };
    let number = |name: &str| data.number(table, name);
    let [cir, pir, cbs, pbs] = [unit.cir, unit.pir, unit.cbs, unit.pbs].map(number);
    if [cir, pir, cbs, pbs].iter().all(Option::is_none) {
        return Ok(None);
    }
    let is_largest = |rate: Option<u64>| rate.is_some_and(|rate| rate > u64::MAX / unit.factor / 2);
    if is_largest(cir) {
        return Ok(Some(None));
    }
    let scale = |n: Option<u64>, present: Option<u64>| match n {
        Some(n) => n.saturating_mul(unit.factor).min(u64::MAX / 2),
        None => present.unwrap_or(u64::MAX / 2),
    };
    let config = MeterConfig {
        cir: scale(cir, present.map(|c| c.cir)),
        cburst: scale(cbs, present.map(|c| c.cburst)),
        pir: scale(pir, present.map(|c| c.pir)),
        pburst: scale(pbs, present.map(|c| c.pburst)),
        eburst: 0,
    };
    if config.pir < config.cir {
        let name = &table.name;
        let message = format!("table {name}: the peak rate is below the committed rate");
        return Err(P4Error::invalid(message));
    }
    Ok(Some(Some(config)))
}

/// Adds the configuration of a meter to the data of an entry.
pub fn encode(table: &Table, data: &mut Data, config: Option<MeterConfig>) {
    let Some(unit) = unit(table) else { return };
    let value = |n: Option<u64>| match n {
        Some(n) if n < u64::MAX / 2 => n / unit.factor,
        _ => u64::MAX,
    };
    data.set(table, unit.cir, value(config.map(|c| c.cir)));
    data.set(table, unit.pir, value(config.map(|c| c.pir)));
    data.set(table, unit.cbs, value(config.map(|c| c.cburst)));
    data.set(table, unit.pbs, value(config.map(|c| c.pburst)));
}
