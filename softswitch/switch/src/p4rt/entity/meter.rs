// SPDX-License-Identifier: Apache-2.0
//! Indirect meters, and meter configurations.

use softswitch_pipeline::MeterConfig as Config;

use super::{Op, View, cells, only_modify, selected, unknown, wrap};
use crate::p4rt::error::{P4Error, P4Result};
use crate::p4rt::schema::Schema;
use crate::proto::p4::config::v1::meter_spec::Type as MeterType;
use crate::proto::p4::v1::{Entity, MeterConfig, MeterEntry, entity::Entity as Kind, update::Type};

pub fn no_color_counters() -> P4Error {
    P4Error::unimplemented("meters do not count packets per colour")
}

/// Decodes the configuration of a meter of the given kind (RFC 2698, or with one rate).
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
        MeterType::SingleRateThreeColor if config.eburst != 0 => {
            return Err(P4Error::unimplemented(
                "meter: excess bursts (RFC 2697) are not supported: eburst must be 0",
            ));
        }
        _ => {}
    }
    let decoded = Config {
        cir: rate("cir", config.cir)?,
        cburst: rate("cburst", config.cburst)?,
        pir: rate("pir", config.pir)?,
        pburst: rate("pburst", config.pburst)?,
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
        eburst: 0,
    }
}

pub fn write(schema: &Schema, action: Type, entry: &MeterEntry) -> P4Result<Op> {
    only_modify("meters", action)?;
    let meter = schema.meters.get(entry.meter_id);
    let meter = meter.ok_or_else(|| unknown("meter", entry.meter_id))?;
    if entry.counter_data.is_some() {
        return Err(no_color_counters());
    }
    let cells = cells(entry.index.as_ref(), meter.size, &meter.name)?;
    let config = entry.config.as_ref();
    let config = config.map(|c| decode(c, meter.kind)).transpose()?;
    let target = meter.target;
    Ok(Box::new(move |cx| {
        for index in cells {
            let before = cx.before(|p, _| p.meter_state(target, index));
            cx.pipeline.set_meter(target, index, config)?;
            if let Some(Ok(before)) = before {
                cx.undo(move |cx| Ok(cx.pipeline.restore_meter(target, index, before)?));
            }
        }
        Ok(())
    }))
}

pub fn read(view: View<'_>, request: &MeterEntry, out: &mut Vec<Entity>) -> P4Result<()> {
    if request.counter_data.is_some() {
        return Err(no_color_counters());
    }
    for (meter_id, meter) in selected(&view.schema.meters, "meter", request.meter_id)? {
        let index = request.index.filter(|_| request.meter_id != 0);
        let cells = cells(index.as_ref(), meter.size, &meter.name)?;
        let configs = view.look_at_cells(cells, |p, i| p.meter(meter.target, i))?;
        out.extend(configs.into_iter().map(|(index, config)| {
            wrap(Kind::MeterEntry(MeterEntry {
                meter_id,
                index: Some(index),
                config: config.map(encode),
                counter_data: None,
            }))
        }));
    }
    Ok(())
}
