// SPDX-License-Identifier: Apache-2.0
//! Indirect counters and meters, and registers.

use std::ops::Range;

use softswitch_pipeline::{CounterId, MeterId, RegisterId, RegisterInfo, Value};
use softswitch_thrift::interface::{
    CounterError, CounterValue, Counters, MeterError, MeterRate, Meters, RegisterError, Registers,
};

use super::direct::{decode_counter, encode_counter};
use super::{Services, error, handle, rates};
use crate::p4rt::entity::Context;

impl Services {
    /// Runs a function on a counter, with its number of cells.
    fn on_counter<R>(
        &self,
        name: &str,
        f: impl FnOnce(&mut Context<'_>, CounterId, usize) -> Result<R, CounterError>,
    ) -> Result<R, CounterError> {
        let unknown = CounterError::InvalidCounterName;
        self.with_state(unknown, |cx, program| {
            let id = program.info().counter(name).ok_or(unknown)?;
            f(cx, id, program.info().counters[id.index()].size)
        })
    }

    /// Runs a function on a meter, with its number of cells.
    fn on_meter<R>(
        &self,
        name: &str,
        f: impl FnOnce(&mut Context<'_>, MeterId, usize) -> Result<R, MeterError>,
    ) -> Result<R, MeterError> {
        let unknown = MeterError::InvalidMeterName;
        self.with_state(unknown, |cx, program| {
            let id = program.info().meter(name).ok_or(unknown)?;
            f(cx, id, program.info().meters[id.index()].size)
        })
    }

    /// Runs a function on a register.
    fn on_register<R>(
        &self,
        name: &str,
        f: impl FnOnce(&mut Context<'_>, RegisterId, &RegisterInfo) -> Result<R, RegisterError>,
    ) -> Result<R, RegisterError> {
        let unknown = RegisterError::InvalidRegisterName;
        self.with_state(unknown, |cx, program| {
            let id = program.info().register(name).ok_or(unknown)?;
            f(cx, id, &program.info().registers[id.index()])
        })
    }

    /// Writes the same value to cells of a register.
    fn write_cells(
        &self,
        name: &str,
        cells: Range<usize>,
        value: i64,
    ) -> Result<(), RegisterError> {
        self.on_register(name, |cx, id, info| {
            if cells.end > info.size || cells.start > cells.end {
                return Err(RegisterError::InvalidIndex);
            }
            let value = truncated(value, info.width);
            for index in cells {
                let set = cx.pipeline.set_register(id, index, &value);
                set.map_err(error::register)?;
            }
            Ok(())
        })
    }
}

impl Counters for Services {
    fn bm_counter_read(
        &self,
        _: i32,
        name: String,
        index: i32,
    ) -> Result<CounterValue, CounterError> {
        self.on_counter(&name, |cx, id, _| {
            let value = cx.pipeline.counter(id, handle::index(index));
            value.map(encode_counter).map_err(error::counter)
        })
    }

    fn bm_counter_reset_all(&self, _: i32, name: String) -> Result<(), CounterError> {
        self.on_counter(&name, |cx, id, size| {
            let mut cells = 0..size;
            cells
                .try_for_each(|i| cx.pipeline.set_counter(id, i, Default::default()))
                .map_err(error::counter)
        })
    }

    fn bm_counter_write(
        &self,
        _: i32,
        name: String,
        index: i32,
        value: CounterValue,
    ) -> Result<(), CounterError> {
        self.on_counter(&name, |cx, id, _| {
            let (index, value) = (handle::index(index), decode_counter(&value));
            cx.pipeline
                .set_counter(id, index, value)
                .map_err(error::counter)
        })
    }
}

impl Meters for Services {
    fn bm_meter_array_set_rates(
        &self,
        _: i32,
        name: String,
        rates: Vec<MeterRate>,
    ) -> Result<(), MeterError> {
        self.on_meter(&name, |cx, id, size| {
            let config = Some(rates::decode(&rates)?);
            let mut cells = 0..size;
            cells
                .try_for_each(|i| cx.pipeline.set_meter(id, i, config))
                .map_err(error::meter)
        })
    }

    fn bm_meter_set_rates(
        &self,
        _: i32,
        name: String,
        index: i32,
        rates: Vec<MeterRate>,
    ) -> Result<(), MeterError> {
        self.on_meter(&name, |cx, id, size| {
            let index = handle::index(index);
            if index >= size {
                return Err(MeterError::InvalidIndex);
            }
            let config = Some(rates::decode(&rates)?);
            cx.pipeline
                .set_meter(id, index, config)
                .map_err(error::meter)
        })
    }

    fn bm_meter_get_rates(
        &self,
        _: i32,
        name: String,
        index: i32,
    ) -> Result<Vec<MeterRate>, MeterError> {
        self.on_meter(&name, |cx, id, _| {
            let config = cx.pipeline.meter(id, handle::index(index));
            config.map(rates::encode).map_err(error::meter)
        })
    }
}

/// Returns the low bits of a number in two's complement, as BMv2's registers keep them.
fn truncated(value: i64, width: u32) -> Value {
    let len = width.div_ceil(8) as usize;
    let sign = if value < 0 { 0xff } else { 0 };
    let mut bytes = vec![sign; len.saturating_sub(8)];
    let low = value.to_be_bytes();
    bytes.extend(&low[8_usize.saturating_sub(len)..]);
    if let (Some(first), rest @ 1..) = (bytes.first_mut(), width % 8) {
        *first &= (1 << rest) - 1;
    }
    Value::from_be_bytes(&bytes)
}

/// Encodes a cell; as in BMv2, a larger number becomes the largest one.
fn encode_cell(value: &Value) -> i64 {
    let number = value.to_u64().and_then(|n| i64::try_from(n).ok());
    number.unwrap_or(i64::MAX)
}

impl Registers for Services {
    fn bm_register_read(&self, _: i32, name: String, index: i32) -> Result<i64, RegisterError> {
        self.on_register(&name, |cx, id, _| {
            let value = cx.pipeline.register(id, handle::index(index));
            value.map(|v| encode_cell(&v)).map_err(error::register)
        })
    }

    fn bm_register_read_all(&self, _: i32, name: String) -> Result<Vec<i64>, RegisterError> {
        self.on_register(&name, |cx, id, info| {
            let cells = (0..info.size).map(|index| {
                let value = cx.pipeline.register(id, index);
                value.map(|v| encode_cell(&v)).map_err(error::register)
            });
            cells.collect()
        })
    }

    fn bm_register_write(
        &self,
        _: i32,
        name: String,
        index: i32,
        value: i64,
    ) -> Result<(), RegisterError> {
        let index = handle::index(index);
        self.write_cells(&name, index..index.saturating_add(1), value)
    }

    fn bm_register_write_range(
        &self,
        _: i32,
        name: String,
        start: i32,
        end: i32,
        value: i64,
    ) -> Result<(), RegisterError> {
        self.write_cells(&name, handle::index(start)..handle::index(end), value)
    }

    fn bm_register_reset(&self, _: i32, name: String) -> Result<(), RegisterError> {
        self.on_register(&name, |cx, id, _| {
            cx.pipeline.reset_register(id).map_err(error::register)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_keep_the_low_bits() {
        let number = |value, width| truncated(value, width).to_u128().unwrap();
        assert_eq!(number(0x1ff, 8), 0xff);
        assert_eq!(number(-1, 9), 0x1ff);
        assert_eq!(number(-1, 64), u128::from(u64::MAX));
        assert_eq!(number(-2, 72), (1 << 72) - 2);
        assert_eq!(number(5, 128), 5);
        assert_eq!(encode_cell(&truncated(-1, 64)), i64::MAX);
        assert_eq!(encode_cell(&truncated(7, 128)), 7);
    }
}
