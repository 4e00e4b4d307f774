//! Direct resources that are written with their entry (specification, section "Direct Resources").

use softswitch_pipeline::{CounterValue, MeterConfig};

use crate::p4rt::entity::{counter, meter};
use crate::p4rt::error::{P4Error, P4Result};
use crate::p4rt::schema::Table;
use crate::proto::p4::v1::TableEntry;

/// Direct resources given with an entry.
pub struct Direct {
    /// None leaves the counter as it is.
    pub counter: Option<CounterValue>,
    /// The table has a direct meter.
    pub has_meter: bool,
    /// None makes every packet green.
    pub meter: Option<MeterConfig>,
}

impl Direct {
    pub fn decode(table: &Table, entry: &TableEntry) -> P4Result<Self> {
        let lacks =
            |what: &str| P4Error::invalid(format!("table {} has no direct {what}", table.name));
        if entry.counter_data.is_some() && !table.direct_counter {
            return Err(lacks("counter"));
        }
        if entry.meter_counter_data.is_some() {
            return Err(meter::no_color_counters());
        }
        let meter = match (&entry.meter_config, table.direct_meter) {
            (None, _) => None,
            (Some(_), None) => return Err(lacks("meter")),
            (Some(config), Some(kind)) => Some(meter::decode(config, kind)?),
        };
        let counter = entry.counter_data.as_ref();
        Ok(Self {
            counter: counter.map(counter::decode).transpose()?,
            has_meter: table.direct_meter.is_some(),
            meter,
        })
    }
}
