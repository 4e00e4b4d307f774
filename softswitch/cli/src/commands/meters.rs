// SPDX-License-Identifier: Apache-2.0
//! Commands for meters.
//!
//! BMv2 has rates per microsecond, and P4Runtime has rates per second.

use serde_json::json;

use crate::error::{Error, Result};
use crate::output::Answer;
use crate::proto::p4::v1::{
    DirectMeterEntry, Index, MeterConfig, MeterEntry, entity::Entity, update::Type as Update,
};
use crate::schema::Kind;
use crate::session::Session;
use crate::value;

const MICROSECONDS_PER_SECOND: f64 = 1e6;

/// Returns the cell of a meter, with a configuration to write.
fn cell(
    session: &mut Session,
    meter: &str,
    index: &str,
    config: Option<MeterConfig>,
) -> Result<Entity> {
    let id = session.schema.id(Kind::Meter, meter)?;
    let Some(direct) = session.schema.direct_meter(id) else {
        return Ok(Entity::MeterEntry(MeterEntry {
            meter_id: id,
            index: Some(Index {
                index: value::number(index, "index")?,
            }),
            config,
            counter_data: None,
        }));
    };
    let table = direct.direct_table_id;
    let (_, key) = session.key_in(table, index)?;
    Ok(Entity::DirectMeterEntry(DirectMeterEntry {
        table_entry: Some(key),
        config,
        counter_data: None,
    }))
}

/// Reads the committed rate and the peak rate, each with its burst.
fn parse_rates(rates: &[&str]) -> Result<MeterConfig> {
    let [committed, peak] = rates else {
        return Err(Error::new(format!(
            "{} rates: meters of P4Runtime have two; use <rate>:<burst> <rate>:<burst>",
            rates.len()
        )));
    };
    let (cir, cburst) = parse_rate(committed)?;
    let (pir, pburst) = parse_rate(peak)?;
    Ok(MeterConfig {
        cir,
        cburst,
        pir,
        pburst,
        ..Default::default()
    })
}

/// Reads a rate per microsecond and a burst; returns the rate per second.
fn parse_rate(text: &str) -> Result<(i64, i64)> {
    let invalid = || {
        Error::new(format!(
            "invalid rate {text:?}: use <rate>:<burst>, for example 0.001:10"
        ))
    };
    let (rate, burst) = text.split_once(':').ok_or_else(invalid)?;
    let rate: f64 = rate.parse().map_err(|_| invalid())?;
    let burst: i64 = burst.parse().map_err(|_| invalid())?;
    let per_second = (rate * MICROSECONDS_PER_SECOND).round();
    let is_valid = (0.0..9e18).contains(&per_second) && burst >= 0;
    match is_valid {
        true => Ok((per_second as i64, burst)),
        false => Err(invalid()),
    }
}

pub fn set(session: &mut Session, args: &[&str]) -> Result<Answer> {
    let [meter, index, rates @ ..] = args else {
        return Err(Error::Usage);
    };
    let config = parse_rates(rates)?;
    let cell = cell(session, meter, index, Some(config))?;
    session.client.write(Update::Modify, cell)?;
    Ok(Answer::default())
}

pub fn set_all(session: &mut Session, args: &[&str]) -> Result<Answer> {
    let [meter, rates @ ..] = args else {
        return Err(Error::Usage);
    };
    let meter_id = session.schema.id(Kind::Meter, meter)?;
    let Some(definition) = session.schema.meter(meter_id) else {
        return Err(Error::new(format!(
            "{meter} is the meter of a table's entries: use meter_set_rates for each entry"
        )));
    };
    let size = definition.size;
    let config = Some(parse_rates(rates)?);
    let cells = (0..size).map(|index| {
        Entity::MeterEntry(MeterEntry {
            meter_id,
            index: Some(Index { index }),
            config,
            counter_data: None,
        })
    });
    session.client.write_all(Update::Modify, cells.collect())?;
    Ok(Answer::default())
}

pub fn get(session: &mut Session, args: &[&str]) -> Result<Answer> {
    let [meter, index] = args else {
        return Err(Error::Usage);
    };
    let cell = cell(session, meter, index, None)?;
    let config = match session.client.read(cell)?.into_iter().next() {
        Some(Entity::MeterEntry(entry)) => entry.config,
        Some(Entity::DirectMeterEntry(entry)) => entry.config,
        _ => {
            return Err(Error::new(format!(
                "{meter} has no cell {index}: use a lower index"
            )));
        }
    };
    let Some(config) = config else {
        return Ok(Answer::new(
            "no rates are set: all packets are green",
            json!({"meter": meter, "index": index, "rates": []}),
        ));
    };
    let rates = [(config.cir, config.cburst), (config.pir, config.pburst)];
    let rates = rates.map(|(rate, burst)| (rate as f64 / MICROSECONDS_PER_SECOND, burst));
    let lines = (0..).zip(rates);
    let lines = lines
        .map(|(i, (rate, burst))| format!("{i}: info rate = {rate:?}, burst size = {burst}\n"));
    let data = rates.map(|(rate, burst)| json!({"units_per_microsecond": rate, "burst": burst}));
    Ok(Answer::new(
        lines.collect::<String>(),
        json!({"meter": meter, "index": index, "rates": data}),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_become_rates_per_second() {
        assert_eq!(parse_rate("0.001:10"), Ok((1000, 10)));
        assert_eq!(parse_rate("1:0"), Ok((1_000_000, 0)));
        for text in [
            "1", "x:1", "1:x", "-1:1", "1:-1", "NaN:1", "inf:1", "1e13:1", "",
        ] {
            assert!(parse_rate(text).is_err(), "{text:?}");
        }
    }
}
