// SPDX-License-Identifier: Apache-2.0
//! The bursts of an application of a packet generator.

use std::collections::VecDeque;

use super::config::{GENERATOR_CONTEXT_BYTES, GeneratorApp, GeneratorCounts, GeneratorTrigger};
use crate::Nanos;

/// Maximum number of triggers of an application that wait; further ones are ignored.
const MAX_BURSTS: usize = 1024;

/// The event that started a burst, as the headers of its packets describe it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    Timer,
    PortDown(u32),
    /// The bytes 1 to 3 of a packet.
    Key([u8; 3]),
    /// The first bytes of a packet, or a header of the deparser.
    Context([u8; GENERATOR_CONTEXT_BYTES]),
}

/// The packets that one trigger causes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Burst {
    cause: Cause,
    /// Position and length in the buffer.
    source: (u32, u32),
    /// Time of the next packet.
    due: Nanos,
    batch: u32,
    packet: u32,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Timer {
    #[default]
    Stopped,
    /// Counts from the next time that the generator learns.
    Starting,
    Due(Nanos),
}

/// A packet that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DuePacket {
    pub(super) cause: Cause,
    pub(super) source: (u32, u32),
    pub(super) batch: u32,
    pub(super) packet: u32,
}

/// An application with its state.
#[derive(Debug, Clone, Default)]
pub(super) struct Application {
    pub(super) config: GeneratorApp,
    pub(super) counts: GeneratorCounts,
    timer: Timer,
    bursts: VecDeque<Burst>,
}

impl Application {
    /// Changes the settings. A changed application starts anew.
    pub(super) fn configure(&mut self, config: GeneratorApp) {
        if config == self.config {
            return;
        }
        self.config = config;
        self.bursts.clear();
        let has_timer = config.is_enabled && config.trigger.delay().is_some();
        self.timer = match has_timer {
            true => Timer::Starting,
            false => Timer::Stopped,
        };
    }

    /// Starts a burst of packets with the bytes at a place of the buffer.
    pub(super) fn trigger(&mut self, cause: Cause, source: (u32, u32), due: Nanos) {
        if self.bursts.len() >= MAX_BURSTS {
            return;
        }
        self.counts.triggers += 1;
        self.bursts.push_back(Burst {
            cause,
            source,
            due,
            batch: 0,
            packet: 0,
        });
    }

    /// Returns the place of the packet in the buffer.
    pub(super) fn source(&self) -> (u32, u32) {
        (self.config.offset, self.config.length)
    }

    /// Returns the time of the next packet, or of the end of the timer.
    pub(super) fn next_event(&self) -> Option<Nanos> {
        match (self.bursts.front(), self.timer) {
            (Some(burst), _) => Some(burst.due),
            (None, Timer::Stopped) => None,
            (None, Timer::Starting) => Some(0),
            (None, Timer::Due(at)) => Some(at),
        }
    }

    /// Returns the next packet if it is due, and counts it.
    pub(super) fn take(&mut self, now: Nanos) -> Option<DuePacket> {
        if self.bursts.is_empty() {
            self.advance_timer(now);
        }
        let burst = self.bursts.front_mut().filter(|burst| burst.due <= now)?;
        let packet = DuePacket {
            cause: burst.cause,
            source: burst.source,
            batch: burst.batch,
            packet: burst.packet,
        };
        self.counts.packets += 1;
        if burst.packet == 0 {
            self.counts.batches += 1;
        }
        burst.packet += 1;
        burst.due += self.config.packet_gap;
        if burst.packet >= self.config.packets {
            burst.due = burst.due - self.config.packet_gap + self.config.batch_gap;
            (burst.batch, burst.packet) = (burst.batch + 1, 0);
            if burst.batch >= self.config.batches {
                self.bursts.pop_front();
            }
        }
        Some(packet)
    }

    /// Starts the timer, or a burst if it has expired. Periods that end during a burst have no effect.
    fn advance_timer(&mut self, now: Nanos) {
        let Some(delay) = self.config.trigger.delay() else {
            return;
        };
        if self.timer == Timer::Starting {
            self.timer = Timer::Due(now + delay);
        }
        if let Timer::Due(at) = self.timer
            && at <= now
        {
            self.trigger(Cause::Timer, self.source(), now);
            self.timer = match self.config.trigger {
                GeneratorTrigger::Periodic(period) => Timer::Due((at + period).max(now)),
                _ => Timer::Stopped,
            };
        }
    }
}
