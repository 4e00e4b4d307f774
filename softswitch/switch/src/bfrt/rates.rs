// SPDX-License-Identifier: Apache-2.0
//! Rates and bursts of meters. Clients count kilobits or packets, and the pipeline bytes or packets.

use softswitch_pipeline::MeterConfig;

use super::chip::Chip;
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
    counts_bytes: bool,
}

impl Unit {
    /// Returns what the pipeline counts for one kilobit or packet.
    fn factor(&self) -> u64 {
        match self.counts_bytes {
            true => BYTES_PER_KILOBIT,
            false => 1,
        }
    }
}

const UNITS: [Unit; 2] = [
    Unit {
        cir: "$METER_SPEC_CIR_KBPS",
        pir: "$METER_SPEC_PIR_KBPS",
        cbs: "$METER_SPEC_CBS_KBITS",
        pbs: "$METER_SPEC_PBS_KBITS",
        counts_bytes: true,
    },
    Unit {
        cir: "$METER_SPEC_CIR_PPS",
        pir: "$METER_SPEC_PIR_PPS",
        cbs: "$METER_SPEC_CBS_PKTS",
        pbs: "$METER_SPEC_PBS_PKTS",
        counts_bytes: false,
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
    chip: Chip,
) -> P4Result<Option<Option<MeterConfig>>> {
    let Some(unit) = unit(table) else {
        return Ok(None);
    };
    let number = |name: &str| data.number(table, name);
    let [cir, pir, cbs, pbs] = [unit.cir, unit.pir, unit.cbs, unit.pbs].map(number);
    if [cir, pir, cbs, pbs].iter().all(Option::is_none) {
        return Ok(None);
    }
    let factor = unit.factor();
    let largest = chip.max_rate(unit.counts_bytes).min(u64::MAX / factor / 2);
    if cir.is_some_and(|rate| rate >= largest) {
        return Ok(Some(None));
    }
    let scale = |n: Option<u64>, present: Option<u64>| match n {
        Some(n) => n.saturating_mul(factor).min(u64::MAX / 2),
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

/// Adds the configuration of a meter to the data of an entry. A meter without one has the chip's largest rates and bursts.
pub fn encode(table: &Table, data: &mut Data, config: Option<MeterConfig>, chip: Chip) {
    let Some(unit) = unit(table) else { return };
    let largest = [
        chip.max_rate(unit.counts_bytes),
        chip.max_burst(unit.counts_bytes),
    ];
    let value = |n: Option<u64>, largest: u64| match n {
        Some(n) if n < u64::MAX / 2 => (n / unit.factor()).min(largest),
        _ => largest,
    };
    let [rate, burst] = largest;
    data.set(table, unit.cir, value(config.map(|c| c.cir), rate));
    data.set(table, unit.pir, value(config.map(|c| c.pir), rate));
    data.set(table, unit.cbs, value(config.map(|c| c.cburst), burst));
    data.set(table, unit.pbs, value(config.map(|c| c.pburst), burst));
}
