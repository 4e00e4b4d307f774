// SPDX-License-Identifier: Apache-2.0
//! State of the externs.

use softswitch_random::Rng;

use super::Register;
use super::filter::Filter;
use super::meter::Meter;
use crate::coverage::Counts;
use crate::digest::Digest;
use crate::entry::CounterValue;
use crate::info::MeterUnit;
use crate::options::Options;
use crate::packet::Packet;
use crate::program::Compiled;
use crate::program::calculation::{BitBuffer, Calculation};
use crate::program::hash::{HashParameters, HashState};
use crate::program::layout::Layout;
use crate::trace::Recorder;

/// State that actions change and that persists between packets.
#[derive(Debug)]
pub(crate) struct Externs {
    pub(crate) registers: Vec<Register>,
    /// By slot of the entry; cells beyond the end have the initial value.
    pub(crate) direct_registers: Vec<Register>,
    pub(crate) counters: Vec<Vec<CounterValue>>,
    pub(crate) meters: Vec<(MeterUnit, Vec<Meter>)>,
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
    /// Number of calls of round-robin hashes.
    pub(crate) round_robin: u64,
    /// Parameters of the named calculations and of the hashes with own polynomials.
    pub(crate) hash_parameters: Vec<HashParameters>,
    pub(crate) scratch: BitBuffer,
    pub(crate) drop_port: u32,
    /// Maximum number of loop iterations of a packet.
    pub(crate) max_iterations: u32,
}

impl Externs {
    pub(super) fn new(c: &Compiled, options: &Options) -> Self {
        let info = &c.info;
        let meter = |size| vec![Meter::default(); size];
        Self {
            registers: info
                .registers
                .iter()
                .map(|r| Register::new(r.width, r.size, &r.initial))
                .collect(),
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
            meters: info
                .meters
                .iter()
                .map(|i| (i.unit, meter(i.size)))
                .collect(),
            filters: info
                .filters
                .iter()
                .map(|f| vec![Filter::default(); f.size])
                .collect(),
            sums: vec![0; c.sums as usize],
            rng: Rng::new(options.seed),
            digests: Vec::new(),
            log: Vec::new(),
            keep_log: options.keep_log,
            trace: None,
            coverage: None,
            round_robin: 0,
            hash_parameters: c.hash_parameters.clone(),
            scratch: BitBuffer::default(),
            drop_port: options.drop_port,
            max_iterations: options.max_iterations,
        }
    }

    /// Returns whether only the interpreter can run packets, because it records their steps.
    pub(crate) fn is_observed(&self) -> bool {
        self.trace.is_some() || self.coverage.is_some()
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
