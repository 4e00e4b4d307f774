// SPDX-License-Identifier: Apache-2.0
//! Parameters of low-pass filters and of random early detection.

use softswitch_pipeline::{DropCurve, FilterConfig};

use super::data::{Data, FieldValue};
use super::schema::Table;
use crate::p4rt::error::{P4Error, P4Result};

/// The thresholds of random early detection without a configuration.
const NO_THRESHOLD: u32 = 0xff00_0000;

/// The type of a filter whose level is the sum of its inputs.
const RATE: &str = "RATE";

fn float(table: &Table, data: &Data, name: &str) -> Option<f32> {
    match data.get(table, name)? {
        FieldValue::Float(value) => Some(*value),
        _ => None,
    }
}

/// Decodes the configuration of a filter; `None` if the data does not have one.
///
/// # Errors
/// INVALID_ARGUMENT if it is not complete.
pub fn decode(table: &Table, data: &Data) -> P4Result<Option<FilterConfig>> {
    let is_given = |f: &&super::schema::DataField| {
        (f.name.starts_with("$LPF_SPEC") || f.name.starts_with("$WRED_SPEC"))
            && data.values.contains_key(&f.id)
    };
    if !table.data.iter().any(|f| is_given(&f)) {
        return Ok(None);
    }
    let config = match table.field_id("$LPF_SPEC_TYPE") {
        Some(_) => lpf(table, data),
        None => wred(table, data),
    };
    let incomplete = || P4Error::invalid(format!("table {}: missing data field", table.name));
    config.map(Some).ok_or_else(incomplete)
}

fn lpf(table: &Table, data: &Data) -> Option<FilterConfig> {
    let FieldValue::Text(kind) = data.get(table, "$LPF_SPEC_TYPE")? else {
        return None;
    };
    Some(FilterConfig {
        is_rate: kind == RATE,
        gain_time: float(table, data, "$LPF_SPEC_GAIN_TIME_CONSTANT_NS")?,
        decay_time: float(table, data, "$LPF_SPEC_DECAY_TIME_CONSTANT_NS")?,
        scale_down: data.u32(table, "$LPF_SPEC_OUT_SCALE_DOWN_FACTOR")?,
        drop_curve: None,
    })
}

fn wred(table: &Table, data: &Data) -> Option<FilterConfig> {
    let time = float(table, data, "$WRED_SPEC_TIME_CONSTANT_NS")?;
    Some(FilterConfig {
        is_rate: false,
        gain_time: time,
        decay_time: time,
        scale_down: 0,
        drop_curve: Some(DropCurve {
            min: data.number(table, "$WRED_SPEC_MIN_THRESH_CELLS")?,
            max: data.number(table, "$WRED_SPEC_MAX_THRESH_CELLS")?,
            max_probability: float(table, data, "$WRED_SPEC_MAX_PROBABILITY")?,
        }),
    })
}

/// Adds the configuration of a filter to the data of an entry.
pub fn encode(table: &Table, data: &mut Data, config: Option<FilterConfig>) {
    let config = config.unwrap_or(FilterConfig {
        is_rate: false,
        gain_time: 0.0,
        decay_time: 0.0,
        scale_down: 0,
        drop_curve: None,
    });
    let kind = if config.is_rate { RATE } else { "SAMPLE" };
    data.set(table, "$LPF_SPEC_TYPE", kind);
    data.set(
        table,
        "$LPF_SPEC_GAIN_TIME_CONSTANT_NS",
        FieldValue::Float(config.gain_time),
    );
    data.set(
        table,
        "$LPF_SPEC_DECAY_TIME_CONSTANT_NS",
        FieldValue::Float(config.decay_time),
    );
    data.set(table, "$LPF_SPEC_OUT_SCALE_DOWN_FACTOR", config.scale_down);
    let curve = config.drop_curve;
    let threshold = |n: Option<u64>| {
        let n = n.map(|n| u32::try_from(n).unwrap_or(u32::MAX));
        n.unwrap_or(NO_THRESHOLD)
    };
    let probability = curve.map_or(0.0, |c| c.max_probability);
    data.set(
        table,
        "$WRED_SPEC_TIME_CONSTANT_NS",
        FieldValue::Float(config.gain_time),
    );
    data.set(
        table,
        "$WRED_SPEC_MIN_THRESH_CELLS",
        threshold(curve.map(|c| c.min)),
    );
    data.set(
        table,
        "$WRED_SPEC_MAX_THRESH_CELLS",
        threshold(curve.map(|c| c.max)),
    );
    let probability = FieldValue::Float(probability);
    data.set(table, "$WRED_SPEC_MAX_PROBABILITY", probability);
}
