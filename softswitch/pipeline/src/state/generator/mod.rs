// SPDX-License-Identifier: Apache-2.0
//! The packet generator of a pipe of Tofino.
//!
//! Its applications wait for their triggers. A trigger starts a burst: batches of packets from the buffer, each behind a
//! header with its number.

mod application;
mod config;

use std::collections::{BTreeMap, BTreeSet};

use application::{Application, Cause, DuePacket};
pub use config::{
    GENERATOR_BUFFER_BYTES, GENERATOR_CONTEXT_BYTES, GeneratorApp, GeneratorCounts,
    GeneratorPattern, GeneratorPort, GeneratorTrigger,
};

use crate::Nanos;
use crate::program::tna::{Chip, LOCAL_PORT_BITS};

/// A generated packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Generated {
    /// The ingress port.
    pub(crate) port: u32,
    pub(crate) frame: Vec<u8>,
}

/// The packet generator of a pipe.
#[derive(Debug, Clone, Default)]
pub(crate) struct Generator {
    /// The buffer; zeros follow.
    buffer: Vec<u8>,
    apps: BTreeMap<u32, Application>,
    ports: BTreeMap<u32, GeneratorPort>,
    /// Ports whose next failure is a trigger.
    armed_ports: BTreeSet<u32>,
    /// Sets of ports within the pipe, by number; a missing one has all ports.
    masks: BTreeMap<u32, u128>,
}

/// Returns the port within its pipe.
fn local(port: u32) -> u32 {
    port & ((1 << LOCAL_PORT_BITS) - 1)
}

impl Generator {
    /// Returns an application.
    pub(crate) fn app(&self, number: u32) -> (GeneratorApp, GeneratorCounts) {
        let app = self.apps.get(&number);
        app.map(|app| (app.config, app.counts)).unwrap_or_default()
    }

    /// Changes an application.
    pub(crate) fn set_app(&mut self, number: u32, config: GeneratorApp) {
        self.apps.entry(number).or_default().configure(config);
    }

    /// Changes the counters of an application.
    pub(crate) fn set_counts(&mut self, number: u32, counts: GeneratorCounts) {
        self.apps.entry(number).or_default().counts = counts;
    }

    /// Returns the settings of a port.
    pub(crate) fn port(&self, port: u32) -> GeneratorPort {
        self.ports.get(&port).copied().unwrap_or_default()
    }

    /// Changes the settings of a port.
    pub(crate) fn set_port(&mut self, port: u32, settings: GeneratorPort) {
        self.ports.insert(port, settings);
    }

    /// Lets the next failure of a port be a trigger.
    pub(crate) fn arm_port(&mut self, port: u32) {
        self.armed_ports.insert(port);
    }

    /// Returns a set of ports.
    pub(crate) fn mask(&self, number: u32) -> u128 {
        self.masks.get(&number).copied().unwrap_or(u128::MAX)
    }

    /// Changes a set of ports.
    pub(crate) fn set_mask(&mut self, number: u32, ports: u128) {
        self.masks.insert(number, ports);
    }

    /// Returns bytes of the buffer.
    pub(crate) fn read(&self, offset: usize, length: usize) -> Vec<u8> {
        let stored = self.buffer.iter().copied().chain(std::iter::repeat(0));
        stored.skip(offset).take(length).collect()
    }

    /// Writes bytes, which end within the buffer.
    pub(crate) fn write(&mut self, offset: usize, bytes: &[u8]) {
        let end = offset + bytes.len();
        if self.buffer.len() < end {
            self.buffer.resize(end, 0);
        }
        self.buffer[offset..end].copy_from_slice(bytes);
    }

    /// Returns true if an enabled application may use its port.
    fn is_active(&self, config: &GeneratorApp) -> bool {
        let is_usable = |(port, settings): (&u32, &GeneratorPort)| {
            settings.generates && config.channel.is_none_or(|channel| channel == local(*port))
        };
        config.is_enabled && self.ports.iter().any(is_usable)
    }

    /// Returns the time at which an application changes its state; not later than now if a packet is due.
    pub(crate) fn next_event(&self) -> Option<Nanos> {
        let active = self.apps.values().filter(|app| self.is_active(&app.config));
        active.filter_map(Application::next_event).min()
    }

    /// Returns the next packet if one is due.
    pub(crate) fn next_packet(&mut self, now: Nanos, pipe: u32, chip: Chip) -> Option<Generated> {
        let mut numbers: Vec<u32> = self.apps.keys().copied().collect();
        numbers.retain(|number| self.is_active(&self.apps[number].config));
        let (number, due) = numbers.into_iter().find_map(|number| {
            let due = self.apps.get_mut(&number)?.take(now)?;
            Some((number, due))
        })?;
        let config = &self.apps[&number].config;
        let increment = match config.increments_source_port {
            true => due.packet,
            false => 0,
        };
        let ports = u64::from(config.last_source_port.min(local(u32::MAX))) + 1;
        let port = (u64::from(config.source_port) + u64::from(increment)) % ports;
        Some(Generated {
            port: pipe << LOCAL_PORT_BITS | port as u32,
            frame: self.frame(&due, (pipe, number), chip),
        })
    }

    /// Returns the bytes of a packet: the header with its number, the data of its trigger, and bytes of the buffer.
    fn frame(&self, due: &DuePacket, (pipe, app): (u32, u32), chip: Chip) -> Vec<u8> {
        let (offset, length) = (due.source.0 as usize, due.source.1 as usize);
        let pipe = pipe << chip.generator_app_bits();
        let mut frame = Vec::with_capacity(6 + GENERATOR_CONTEXT_BYTES + length);
        frame.push((pipe | app) as u8);
        match due.cause {
            Cause::Timer | Cause::Context(_) => {
                frame.push(0);
                frame.extend((due.batch as u16).to_be_bytes());
            }
            Cause::PortDown(port) => frame.extend(&port.to_be_bytes()[1..]),
            Cause::Key(key) => frame.extend(key),
        }
        frame.extend((due.packet as u16).to_be_bytes());
        if let Cause::Context(context) = due.cause {
            frame.extend(context);
        }
        frame.extend(self.read(offset, length));
        frame
    }

    /// Notes that a port of the pipe went down.
    pub(crate) fn port_down(&mut self, port: u32) {
        if !self.armed_ports.remove(&port) {
            return;
        }
        let masks = &self.masks;
        let contains = |mask: &u32| {
            masks
                .get(mask)
                .is_none_or(|ports| ports >> local(port) & 1 == 1)
        };
        let is_trigger =
            |trigger| matches!(trigger, GeneratorTrigger::PortDown { mask } if contains(&mask));
        // The time is that of the next packet.
        trigger(&mut self.apps, is_trigger, Cause::PortDown(port), None, 0);
    }

    /// Compares a recirculated packet with the patterns of applications.
    pub(crate) fn recirculated(&mut self, port: u32, frame: &[u8], now: Nanos, chip: Chip) {
        if !self.port(port).matches_patterns {
            return;
        }
        let cause = match chip {
            Chip::Tofino1 => Cause::Key(first_bytes(frame.get(1..).unwrap_or(&[]))),
            Chip::Tofino2 => Cause::Context(first_bytes(frame)),
        };
        let is_trigger = |trigger| matches!(trigger, GeneratorTrigger::Recirculation(pattern) if pattern.matches(frame));
        trigger(&mut self.apps, is_trigger, cause, None, now);
    }

    /// Lets a header of a deparser start applications, whose packets are at a place of the buffer.
    pub(crate) fn deparsed(&mut self, header: &[u8], source: (u32, u32), now: Nanos) {
        let is_trigger = |trigger| matches!(trigger, GeneratorTrigger::Deparser(pattern) if pattern.matches(header));
        let cause = Cause::Context(first_bytes(header));
        trigger(&mut self.apps, is_trigger, cause, Some(source), now);
    }
}

/// Starts the enabled applications with a trigger. Their packets are at `source`, or at the place of their settings.
fn trigger(
    apps: &mut BTreeMap<u32, Application>,
    is_trigger: impl Fn(GeneratorTrigger) -> bool,
    cause: Cause,
    source: Option<(u32, u32)>,
    due: Nanos,
) {
    for app in apps.values_mut() {
        if app.config.is_enabled && is_trigger(app.config.trigger) {
            let source = source.unwrap_or(app.source());
            app.trigger(cause, source, due);
        }
    }
}

/// Returns the first bytes, with zeros for missing ones.
fn first_bytes<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut first = [0; N];
    let length = bytes.len().min(N);
    first[..length].copy_from_slice(&bytes[..length]);
    first
}
