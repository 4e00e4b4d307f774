// SPDX-License-Identifier: Apache-2.0
//! Direct resources in writes of table entries (specification, section "Direct Resources").

use softswitch_pipeline::{
    CounterValue, EntryKey, MeterConfig, MeterState, Pipeline, StateError, TableId,
};

use crate::p4rt::entity::{counter, meter};
use crate::p4rt::error::{P4Error, P4Result};
use crate::p4rt::schema::Table;
use crate::proto::p4::v1::TableEntry;

/// The direct resources in a write of an entry.
pub struct Direct {
    /// `None` leaves the counter unchanged.
    counter: Option<CounterValue>,
    /// `None` makes every packet green. Only tables with a direct meter have one.
    meter: Option<Option<MeterConfig>>,
    /// The counters of the meter's colours are reset.
    resets_colors: bool,
}

impl Direct {
    pub fn decode(table: &Table, entry: &TableEntry) -> P4Result<Self> {
        let lacks = |what: &str| {
            P4Error::invalid(format!(
                "table {} does not have a direct {what}",
                table.name
            ))
        };
        if entry.counter_data.is_some() && !table.direct_counter {
            return Err(lacks("counter"));
        }
        if entry.meter_counter_data.is_some() && table.direct_meter.is_none() {
            return Err(lacks("meter"));
        }
        let meter = match (&entry.meter_config, table.direct_meter) {
            (Some(_), None) => return Err(lacks("meter")),
            (config, Some(kind)) => {
                let config = config.as_ref();
                Some(config.map(|c| meter::decode(c, kind)).transpose()?)
            }
            (None, None) => None,
        };
        let counter = entry.counter_data.as_ref();
        Ok(Self {
            counter: counter.map(counter::decode).transpose()?,
            meter,
            resets_colors: meter::decode_reset(entry.meter_counter_data.as_ref())?,
        })
    }

    /// Returns the resources for a reset of the default entry, which sets a counter to 0 unless it is given.
    pub fn of_reset(self, table: &Table) -> Self {
        let zero = table.direct_counter.then(CounterValue::default);
        Self {
            counter: self.counter.or(zero),
            ..self
        }
    }

    /// Sets the resources of an entry; without a key, of the default entry.
    pub fn set(
        self,
        p: &mut Pipeline,
        table: TableId,
        key: Option<&EntryKey>,
    ) -> Result<(), StateError> {
        set_counter(p, table, key, self.counter)?;
        if let Some(meter) = self.meter {
            p.set_direct_meter(table, key, meter)?;
        }
        if self.resets_colors {
            p.reset_direct_meter_counters(table, key)?;
        }
        Ok(())
    }
}

fn set_counter(
    p: &mut Pipeline,
    table: TableId,
    key: Option<&EntryKey>,
    counter: Option<CounterValue>,
) -> Result<(), StateError> {
    counter.map_or(Ok(()), |c| p.set_direct_counter(table, key, c))
}

/// The previous state of an entry's direct resources.
pub struct Before {
    counter: Option<CounterValue>,
    meter: Option<MeterState>,
}

impl Before {
    pub fn look(p: &Pipeline, table: TableId, key: Option<&EntryKey>) -> Result<Self, StateError> {
        Ok(Self {
            counter: p.direct_counter(table, key)?,
            meter: p.direct_meter_state(table, key)?,
        })
    }

    pub fn restore(
        self,
        p: &mut Pipeline,
        table: TableId,
        key: Option<&EntryKey>,
    ) -> Result<(), StateError> {
        set_counter(p, table, key, self.counter)?;
        if let Some(meter) = self.meter {
            p.restore_direct_meter(table, key, meter)?;
        }
        Ok(())
    }
}
