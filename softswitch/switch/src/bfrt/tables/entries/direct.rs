// SPDX-License-Identifier: Apache-2.0
//! Direct counters, meters, registers and filters of entries.

use softswitch_pipeline::{
    CounterValue, DirectRegisterId, EntryKey, FilterCell, FilterConfig, FilterId, MeterConfig,
    Pipeline, StateError, Value,
};

use crate::bfrt::chip::Chip;
use crate::bfrt::data::{Data, FieldValue};
use crate::bfrt::link::MatchTable;
use crate::bfrt::schema::{Table, Type};
use crate::bfrt::tables::Update;
use crate::bfrt::{filters, rates};
use crate::p4rt::error::P4Result;
use crate::proto::bfrt::update::Type as UpdateType;

/// The direct resources in an update.
pub struct Direct {
    /// `None` leaves the counter unchanged.
    counter: Option<CounterValue>,
    /// `None` leaves the meter unchanged.
    meter: Option<Option<MeterConfig>>,
    registers: Vec<(DirectRegisterId, Value)>,
    filter: Option<(FilterId, FilterConfig)>,
}

/// Returns the counter in the data of an entry.
pub fn decode_counter(table: &Table, data: &Data) -> Option<CounterValue> {
    let packets = data.number(table, "$COUNTER_SPEC_PKTS");
    let bytes = data.number(table, "$COUNTER_SPEC_BYTES");
    (packets.is_some() || bytes.is_some()).then(|| CounterValue {
        packets: packets.unwrap_or(0),
        bytes: bytes.unwrap_or(0),
    })
}

/// Adds a counter to the data of an entry.
pub fn encode_counter(table: &Table, data: &mut Data, counter: CounterValue) {
    data.set(table, "$COUNTER_SPEC_PKTS", counter.packets);
    data.set(table, "$COUNTER_SPEC_BYTES", counter.bytes);
}

/// Returns the value of a register's field.
pub fn decode_register(field: &FieldValue) -> Option<Value> {
    match field {
        FieldValue::Number(value) => Some(value.clone()),
        FieldValue::Bool(value) => Some(Value::from(u32::from(*value))),
        _ => None,
    }
}

/// Returns a register's field; registers of truth values have one bit.
pub fn encode_register(table: &Table, id: u32, value: Value) -> FieldValue {
    match table.field(None, id).map(|field| &field.ty) {
        Some(Type::Bool) => FieldValue::Bool(value.bits() != 0),
        _ => FieldValue::Number(value),
    }
}

impl Direct {
    /// Decodes the direct resources of an entry, whose meter has this configuration.
    pub fn decode(
        update: &Update<'_>,
        target: &MatchTable,
        meter: Option<MeterConfig>,
        chip: Chip,
    ) -> P4Result<Self> {
        let (table, data) = (update.table, &update.data);
        let has_counter = table
            .data
            .iter()
            .any(|f| f.name.starts_with("$COUNTER_SPEC"));
        let is_new = update.operation == UpdateType::Insert;
        let zero = (has_counter && (update.resets_counters || is_new)).then(CounterValue::default);
        let registers = target.registers.iter().filter_map(|(field, register)| {
            let value = data.values.get(field).and_then(decode_register)?;
            Some((*register, value))
        });
        let filter = filters::decode(table, data)?;
        Ok(Self {
            counter: decode_counter(table, data).or(zero),
            meter: rates::decode(table, data, meter, chip)?,
            registers: registers.collect(),
            filter: target.filter.zip(filter),
        })
    }

    /// Returns true if the counter changes.
    pub fn sets_counter(&self) -> bool {
        self.counter.is_some()
    }

    /// Sets the resources of an entry; without a key, of the default entry, which has neither registers nor filters.
    pub fn set(
        self,
        pipeline: &mut Pipeline,
        target: &MatchTable,
        key: Option<&EntryKey>,
    ) -> Result<(), StateError> {
        if let Some(counter) = self.counter {
            pipeline.set_direct_counter(target.id, key, counter)?;
        }
        if let Some(meter) = self.meter {
            pipeline.set_direct_meter(target.id, key, meter)?;
        }
        let Some(key) = key else {
            return Ok(());
        };
        for (register, value) in &self.registers {
            pipeline.set_direct_register(*register, key, value)?;
        }
        match self.filter {
            Some((id, config)) => pipeline.set_filter(id, FilterCell::Entry(key), Some(config)),
            None => Ok(()),
        }
    }
}

/// Adds the counter and the meter to the data of an entry.
pub fn encode(
    table: &Table,
    data: &mut Data,
    counter: CounterValue,
    (meter, chip): (Option<MeterConfig>, Chip),
) {
    encode_counter(table, data, counter);
    rates::encode(table, data, meter, chip);
}

/// Adds the registers and the filter to the data of an entry.
pub fn encode_state(
    pipeline: &Pipeline,
    (table, target): (&Table, &MatchTable),
    data: &mut Data,
    key: &EntryKey,
) -> Result<(), StateError> {
    for (field, register) in &target.registers {
        let value = pipeline.direct_register(*register, key)?;
        data.values
            .insert(*field, encode_register(table, *field, value));
    }
    if let Some(id) = target.filter {
        let config = pipeline.filter(id, FilterCell::Entry(key))?;
        filters::encode(table, data, config);
    }
    Ok(())
}
