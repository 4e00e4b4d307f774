// SPDX-License-Identifier: Apache-2.0
//! Direct counters and meters.

use softswitch_pipeline as pipe;
use softswitch_thrift::interface::{CounterValue, DirectResources, MeterRate, TableError};

use super::{Services, error, rates, tables};
use crate::p4rt::entity::Context;

type Result<T> = std::result::Result<T, TableError>;

/// Returns the state of an entry.
fn entry_of(cx: &Context<'_>, table: pipe::TableId, handle: i32) -> Result<pipe::EntryState> {
    let entry = cx.pipeline.entry_of_handle(table, handle.cast_unsigned());
    entry.map_err(error::table)
}

/// Encodes a counter's value. As in BMv2, values of 2^63 and above appear negative.
pub fn encode_counter(value: pipe::CounterValue) -> CounterValue {
    CounterValue {
        bytes: value.bytes.cast_signed(),
        packets: value.packets.cast_signed(),
    }
}

/// Decodes a counter's value.
pub fn decode_counter(value: &CounterValue) -> pipe::CounterValue {
    pipe::CounterValue {
        packets: value.packets.cast_unsigned(),
        bytes: value.bytes.cast_unsigned(),
    }
}

impl Services {
    /// Runs a function on a table that has what it needs, or returns `missing`.
    fn on_direct<R>(
        &self,
        table: &str,
        has: impl FnOnce(&pipe::TableInfo) -> bool,
        missing: TableError,
        f: impl FnOnce(&mut Context<'_>, pipe::TableId) -> Result<R>,
    ) -> Result<R> {
        self.on_tables(|cx, info| {
            let (id, table) = tables::find(info, table)?;
            if !has(table) {
                return Err(missing);
            }
            f(cx, id)
        })
    }

    fn on_counters<R>(
        &self,
        table: &str,
        f: impl FnOnce(&mut Context<'_>, pipe::TableId) -> Result<R>,
    ) -> Result<R> {
        self.on_direct(table, |t| t.direct_counter, TableError::CountersDisabled, f)
    }

    fn on_meters<R>(
        &self,
        table: &str,
        f: impl FnOnce(&mut Context<'_>, pipe::TableId) -> Result<R>,
    ) -> Result<R> {
        self.on_direct(
            table,
            |t| t.direct_meter.is_some(),
            TableError::MetersDisabled,
            f,
        )
    }
}

impl DirectResources for Services {
    fn bm_mt_read_counter(&self, _: i32, table: String, handle: i32) -> Result<CounterValue> {
        self.on_counters(&table, |cx, id| {
            let counter = entry_of(cx, id, handle)?.counter;
            Ok(encode_counter(counter.unwrap_or_default()))
        })
    }

    fn bm_mt_reset_counters(&self, _: i32, table: String) -> Result<()> {
        self.on_counters(&table, |cx, id| {
            let zero = pipe::CounterValue::default();
            for state in cx.pipeline.entries(id).map_err(error::table)? {
                let key = Some(&state.entry.key);
                let set = cx.pipeline.set_direct_counter(id, key, zero);
                set.map_err(error::table)?;
            }
            let set = cx.pipeline.set_direct_counter(id, None, zero);
            set.map_err(error::table)
        })
    }

    fn bm_mt_write_counter(
        &self,
        _: i32,
        table: String,
        handle: i32,
        value: CounterValue,
    ) -> Result<()> {
        self.on_counters(&table, |cx, id| {
            let key = entry_of(cx, id, handle)?.entry.key;
            let value = decode_counter(&value);
            let set = cx.pipeline.set_direct_counter(id, Some(&key), value);
            set.map_err(error::table)
        })
    }

    fn bm_mt_set_meter_rates(
        &self,
        _: i32,
        table: String,
        handle: i32,
        rates: Vec<MeterRate>,
    ) -> Result<()> {
        self.on_meters(&table, |cx, id| {
            let key = entry_of(cx, id, handle)?.entry.key;
            let config = rates::decode(&rates).map_err(|_| TableError::Error)?;
            let set = cx.pipeline.set_direct_meter(id, Some(&key), Some(config));
            set.map_err(error::table)
        })
    }

    fn bm_mt_get_meter_rates(&self, _: i32, table: String, handle: i32) -> Result<Vec<MeterRate>> {
        self.on_meters(&table, |cx, id| {
            Ok(rates::encode(entry_of(cx, id, handle)?.meter))
        })
    }
}
