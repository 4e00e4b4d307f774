// SPDX-License-Identifier: Apache-2.0
//! Indirect meters, and meter configurations.

use softswitch_pipeline::{ColorCounters, MeterConfig as Config};

use super::{Op, View, cells, counter, only_modify, selected, unknown, wrap};
use crate::p4rt::error::{P4Error, P4Result};
use crate::p4rt::schema::Schema;
use crate::proto::p4::config::v1::meter_spec::Type as MeterType;
use crate::proto::p4::v1::{
    CounterData, Entity, MeterConfig, MeterCounterData, MeterEntry, entity::Entity as Kind,
    update::Type,
};

/// Returns true if a write resets the counters of the colours. They cannot be set to other values.
pub fn decode_reset(counters: Option<&MeterCounterData>) -> P4Result<bool> {
    let Some(given) = counters else {
        return Ok(false);
    };
    let counters = [given.green, given.yellow, given.red];
    if counters
        .into_iter()
        .flatten()
        .any(|c| c != CounterData::default())
    {
        return Err(P4Error::invalid(
            "meter: the counters of colours can only be reset: leave all their values 0",
        ));
    }
    Ok(true)
}

pub fn encode_counters(counters: ColorCounters) -> MeterCounterData {
    let encode = |value| Some(counter::encode(value));
    MeterCounterData {
        green: encode(counters.green),
        yellow: encode(counters.yellow),
        red: encode(counters.red),
    }
}

/// Decodes the configuration of a meter of the given kind (RFC 2698, or RFC 2697 with one rate).
pub fn decode(config: &MeterConfig, kind: MeterType) -> P4Result<Config> {
    let rate = |name: &str, n: i64| {
        u64::try_from(n).map_err(|_| P4Error::invalid(format!("meter: {name} {n} is negative")))
    };
    let one_rate = config.pir == config.cir && config.pburst == config.cburst;
    match kind {
        MeterType::TwoRateThreeColor if config.eburst != 0 => {
            return Err(P4Error::invalid(
                "meter: eburst is for single-rate meters, but this one has two rates",
            ));
        }
        MeterType::SingleRateThreeColor | MeterType::SingleRateTwoColor if !one_rate => {
            return Err(P4Error::invalid(
                "meter: this meter has a single rate: pir and pburst must equal cir and cburst",
            ));
        }
        MeterType::SingleRateTwoColor if config.eburst != 0 => {
            return Err(P4Error::invalid(
                "meter: eburst is for meters with three colours, but this one has two",
            ));
        }
        _ => {}
    }
    let decoded = Config {
        cir: rate("cir", config.cir)?,
        cburst: rate("cburst", config.cburst)?,
        pir: rate("pir", config.pir)?,
        pburst: rate("pburst", config.pburst)?,
        eburst: rate("eburst", config.eburst)?,
    };
    if decoded.pir < decoded.cir {
        return Err(P4Error::invalid(format!(
            "meter: the peak rate {} is below the committed rate {}",
            decoded.pir, decoded.cir
        )));
    }
    Ok(decoded)
}

pub fn encode(config: Config) -> MeterConfig {
    let n = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    MeterConfig {
        cir: n(config.cir),
        cburst: n(config.cburst),
        pir: n(config.pir),
        pburst: n(config.pburst),
        eburst: n(config.eburst),
    }
}

pub fn write(schema: &Schema, action: Type, entry: &MeterEntry) -> P4Result<Op> {
    only_modify("meters", action)?;
    let meter = schema.meters.get(entry.meter_id);
    let meter = meter.ok_or_else(|| unknown("meter", entry.meter_id))?;
    let resets = decode_reset(entry.counter_data.as_ref())?;
    let cells = cells(entry.index.as_ref(), meter.size, &meter.name)?;
    let config = entry.config.as_ref();
    let config = config.map(|c| decode(c, meter.kind)).transpose()?;
    let target = meter.target;
    Ok(Box::new(move |cx| {
        for index in cells {
            let before = cx.before(|p, _| p.meter_state(target, index));
            cx.pipeline.set_meter(target, index, config)?;
            if resets {
                cx.pipeline.reset_meter_counters(target, index)?;
            }
            if let Some(Ok(before)) = before {
                cx.undo(move |cx| Ok(cx.pipeline.restore_meter(target, index, before)?));
            }
        }
        Ok(())
    }))
}

pub fn read(view: View<'_>, request: &MeterEntry, out: &mut Vec<Entity>) -> P4Result<()> {
    let counts = request.counter_data.is_some();
    for (meter_id, meter) in selected(&view.schema.meters, "meter", request.meter_id)? {
        let index = request.index.filter(|_| request.meter_id != 0);
        let cells = cells(index.as_ref(), meter.size, &meter.name)?;
        let values = view.look_at_cells(cells, |p, i| {
            let counters = p.meter_counters(meter.target, i)?;
            Ok((p.meter(meter.target, i)?, counters))
        })?;
        out.extend(values.into_iter().map(|(index, (config, counters))| {
            wrap(Kind::MeterEntry(MeterEntry {
                meter_id,
                index: Some(index),
                config: config.map(encode),
                counter_data: counts.then(|| encode_counters(counters)),
            }))
        }));
    }
    Ok(())
}
