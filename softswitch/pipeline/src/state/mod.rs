// SPDX-License-Identifier: Apache-2.0
//! The state of a program, which persists between packets: table entries, action profiles, externs, value sets, and the
//! configuration of packet replication.

pub(crate) mod externs;
pub(crate) mod filter;
pub(crate) mod generator;
pub(crate) mod lane;
pub(crate) mod meter;
pub(crate) mod multicast;
pub(crate) mod pipes;
pub(crate) mod pre;
mod register;
pub(crate) mod serial;
pub(crate) mod shared;
pub(crate) mod table;
mod value_set;
pub(crate) mod view;

use std::collections::{BTreeMap, BTreeSet};

use crate::entry::EntryAction;
use crate::options::Options;
use crate::packet::{CountedCell, Packet};
use crate::program::Compiled;
use crate::program::call::pack;
pub(crate) use externs::Externs;
use generator::Generator;
use multicast::Multicast;
use pre::Pre;
pub(crate) use register::Register;
use shared::Shared;
use table::{Profile, Table, Target};
pub(crate) use value_set::SetMember;
use view::Views;

/// The state of a program.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) tables: Shared<Vec<Table>>,
    pub(crate) profiles: Shared<Vec<Profile>>,
    pub(crate) externs: Externs,
    pub(crate) value_sets: Shared<Vec<Vec<SetMember>>>,
    pub(crate) pre: Shared<Pre>,
    pub(crate) multicast: Multicast,
    pub(crate) ports_down: BTreeSet<u32>,
    /// Ports whose packets enter ingress again, besides those that always recirculate.
    pub(crate) loopback_ports: BTreeSet<u32>,
    /// The bytes that programs for TNA receive in front of packets from a port.
    pub(crate) port_metadata: BTreeMap<u32, Vec<u8>>,
    /// The packet generator of the pipe, for programs for TNA.
    pub(crate) generator: Generator,
    pub(crate) views: Views,
    /// Maximum number of parser states per packet.
    pub(crate) max_parser_states: u32,
    /// The current lookup key.
    pub(crate) key: Vec<u64>,
}

impl State {
    /// Creates the program's initial state, with const entries and default actions.
    pub(crate) fn new(c: &Compiled, options: &Options) -> Self {
        let mut externs = Externs::new(c, options);
        let profiles = c.info.profiles.iter();
        let profiles = profiles.map(|p| Profile::new(&p.name, p.size));
        Self {
            tables: Shared::new(tables(c)),
            profiles: Shared::new(profiles.collect()),
            views: Views::new(&mut externs),
            externs,
            value_sets: Shared::new(vec![Vec::new(); c.info.value_sets.len()]),
            pre: Shared::new(Pre::default()),
            multicast: Multicast::default(),
            ports_down: BTreeSet::new(),
            loopback_ports: BTreeSet::new(),
            port_metadata: BTreeMap::new(),
            generator: Generator::default(),
            max_parser_states: options.max_parser_states,
            key: Vec::new(),
        }
    }
}

impl State {
    /// Corrects the bytes that counters counted for a packet, of which `leaving` bytes leave.
    pub(crate) fn correct_counts(&mut self, pkt: &mut Packet, leaving: Option<u32>) {
        let counted = u64::from(pkt.ingress_len);
        for (cell, less) in pkt.count_corrections.drain(..) {
            let counter = match cell {
                CountedCell::Array(counter, index) => {
                    let cells = &mut self.externs.counters[counter as usize];
                    usize::try_from(index)
                        .ok()
                        .and_then(|index| cells.get_mut(index))
                }
                CountedCell::Entry(table, slot) => {
                    self.tables.write()[table as usize].counter_mut(slot)
                }
            };
            let less = match (less, leaving) {
                (Some(bytes), _) => bytes,
                (None, Some(leaving)) => counted.wrapping_sub(leaving.into()),
                (None, None) => 0,
            };
            if let Some(counter) = counter {
                counter.bytes = counter.bytes.wrapping_sub(less);
            }
        }
    }
}

/// Builds the tables with the entries that the program defines.
fn tables(c: &Compiled) -> Vec<Table> {
    let mut tables = Vec::with_capacity(c.tables.len());
    for (info, fixed) in c.info.tables.iter().zip(&c.tables) {
        let options = table::Options {
            size: info.size,
            counters: info.direct_counter,
            meters: info.direct_meter.is_some(),
            idle: info.idle_timeout,
        };
        let mut table = Table::new(&info.name, fixed.shape.clone(), options);
        table.set_default(fixed.default.clone().map(Target::Call).as_ref());
        for e in &fixed.entries {
            let EntryAction::Direct(call) = &e.action else {
                continue;
            };
            let call = pack(&c.info, &info.name, |_| true, call);
            // The loader refused entries that do not fit or repeat a key.
            if let (Ok(call), Ok(criteria)) = (call, table.check_insert(&e.key, 0)) {
                table.insert(&criteria, Target::Call(call), 0, 0);
            }
        }
        tables.push(table);
    }
    tables
}
