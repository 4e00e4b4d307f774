// SPDX-License-Identifier: Apache-2.0
//! State of the externs.

use num_bigint::BigUint;
use parking_lot::Mutex;
use softswitch_random::Rng;

use super::Register;
use super::filter::Filter;
use super::meter::{Color, Meter};
use super::serial::Serial;
use super::shared::Shared;
use crate::Nanos;
use crate::coverage::Counts;
use crate::digest::Digest;
use crate::entry::CounterValue;
use crate::info::MeterUnit;
use crate::options::Options;
use crate::packet::Packet;
use crate::paths::Step;
use crate::program::Compiled;
use crate::program::calculation::{BitBuffer, Calculation};
use crate::program::hash::{HashParameters, HashState};
use crate::program::layout::Layout;
use crate::program::locks::LockSet;
use crate::trace::Recorder;

/// State that actions change and that persists between packets.
#[derive(Debug)]
pub(crate) struct Externs {
    pub(crate) registers: Shared<Vec<Register>>,
    /// By slot of the entry; cells beyond the end have the initial value.
    pub(crate) direct_registers: Vec<Register>,
    pub(crate) counters: Vec<Vec<CounterValue>>,
    /// In a lane, the counters of each table's records; empty elsewhere, because tables then have their counters.
    pub(crate) entry_counters: Vec<Vec<CounterValue>>,
    pub(crate) meters: Shared<Vec<(MeterUnit, Vec<Mutex<Meter>>)>>,
    /// By slot of the entry if the filter is direct; cells beyond the end are not configured.
    pub(crate) filters: Vec<Vec<Filter>>,
    /// The Internet checksums' sums.
    pub(crate) sums: Vec<u16>,
    pub(crate) rng: Rng,
    pub(crate) digests: Vec<Digest>,
    pub(crate) log: Vec<String>,
    pub(crate) keep_log: bool,
    /// The recorder, while tracing is on.
    pub(crate) trace: Option<Box<Recorder>>,
    /// The counts, while coverage is on.
    pub(crate) coverage: Option<Box<Counts>>,
    /// The steps of the current control flow, while they are recorded.
    pub(crate) path: Option<Vec<Step>>,
    /// Number of calls of round-robin hashes.
    pub(crate) round_robin: u64,
    /// Parameters of the named calculations and of the hashes with own polynomials.
    pub(crate) hash_parameters: Shared<Vec<HashParameters>>,
    /// In a lane, its locks of registers.
    pub(crate) serial: Option<Serial>,
    pub(crate) scratch: BitBuffer,
    pub(crate) drop_port: u32,
    /// Maximum number of loop iterations of a packet.
    pub(crate) max_iterations: u32,
}

impl Externs {
    pub(super) fn new(c: &Compiled, options: &Options) -> Self {
        let info = &c.info;
        let registers = info.registers.iter();
        let registers = registers.map(|r| Register::new(r.width, r.size, &r.initial));
        let meter = |size| std::iter::repeat_with(Mutex::default).take(size).collect();
        let meters = info.meters.iter().map(|i| (i.unit, meter(i.size)));
        Self {
            registers: Shared::new(registers.collect()),
            direct_registers: info
                .direct_registers
                .iter()
                .map(|r| Register::new(r.width, 0, &r.initial))
                .collect(),
            counters: info
                .counters
                .iter()
                .map(|i| vec![CounterValue::default(); i.size])
                .collect(),
            meters: Shared::new(meters.collect()),
            filters: info
                .filters
                .iter()
                .map(|f| vec![Filter::default(); f.size])
                .collect(),
            hash_parameters: Shared::new(c.hash_parameters.clone()),
            ..Self::without_arrays(c, options)
        }
    }

    /// Creates the state of the externs without arrays.
    pub(super) fn without_arrays(c: &Compiled, options: &Options) -> Self {
        Self {
            registers: Shared::new(Vec::new()),
            direct_registers: Vec::new(),
            counters: Vec::new(),
            entry_counters: Vec::new(),
            meters: Shared::new(Vec::new()),
            filters: Vec::new(),
            sums: vec![0; c.sums as usize],
            rng: Rng::new(options.seed),
            digests: Vec::new(),
            log: Vec::new(),
            keep_log: options.keep_log,
            trace: None,
            coverage: None,
            path: None,
            round_robin: 0,
            hash_parameters: Shared::new(Vec::new()),
            serial: None,
            scratch: BitBuffer::default(),
            drop_port: options.drop_port,
            max_iterations: options.max_iterations,
        }
    }

    /// Returns whether only the interpreter can run packets, because it records their steps.
    pub(crate) fn is_observed(&self) -> bool {
        self.trace.is_some() || self.coverage.is_some()
    }

    /// Takes the locks of an action in a lane.
    #[inline]
    pub(crate) fn take_locks(&mut self, locks: LockSet) {
        if locks != 0
            && let Some(serial) = &mut self.serial
        {
            serial.take(locks);
        }
    }

    /// Releases locks in a lane.
    #[inline]
    pub(crate) fn release_locks(&mut self, locks: LockSet) {
        if let Some(serial) = &mut self.serial {
            serial.release(locks);
        }
    }

    /// Writes the low bits of `v` to a register; nothing beyond the end.
    #[inline]
    pub(crate) fn set_register(&mut self, register: u32, index: usize, v: u64) {
        let r = &self.registers[register as usize];
        if r.is_narrow() {
            r.set64(index, v);
        } else {
            self.registers.write()[register as usize].set_big(index, v.into());
        }
    }

    /// Writes `v`, which must fit the width, to a register; nothing beyond the end.
    pub(crate) fn set_big_register(&mut self, register: u32, index: usize, v: BigUint) {
        let r = &self.registers[register as usize];
        if r.is_narrow() {
            r.set64(index, v.iter_u64_digits().next().unwrap_or(0));
        } else {
            self.registers.write()[register as usize].set_big(index, v);
        }
    }

    /// Meters a packet of `bytes` bytes with colour `before`; `None` beyond the end.
    pub(crate) fn execute_meter(
        &mut self,
        meter: u32,
        index: usize,
        bytes: u32,
        now: Nanos,
        before: Color,
    ) -> Option<Color> {
        let execute =
            |unit: MeterUnit, m: &mut Meter| m.execute(unit.amount(bytes), bytes, now, before);
        match self.meters.get_mut() {
            Some(meters) => {
                let (unit, cells) = &mut meters[meter as usize];
                Some(execute(*unit, cells.get_mut(index)?.get_mut()))
            }
            None => {
                let (unit, cells) = &self.meters[meter as usize];
                Some(execute(*unit, &mut cells.get(index)?.lock()))
            }
        }
    }

    /// Returns the input of a calculation over a packet.
    pub(crate) fn input(&mut self, c: &Calculation, layout: &Layout, pkt: &Packet) -> &[u8] {
        c.collect(layout, &pkt.mem, pkt.payload(), &mut self.scratch);
        &self.scratch.bytes
    }

    /// The hash of a calculation over a packet.
    pub(crate) fn hash(&mut self, c: &Calculation, layout: &Layout, pkt: &Packet) -> u64 {
        if c.summable {
            return c.sum(layout, &pkt.mem, pkt.payload());
        }
        c.collect(layout, &pkt.mem, pkt.payload(), &mut self.scratch);
        let mut state = HashState {
            rng: &mut self.rng,
            calls: &mut self.round_robin,
            parameters: &self.hash_parameters,
        };
        c.compute(&self.scratch.bytes, &mut state)
    }
}
