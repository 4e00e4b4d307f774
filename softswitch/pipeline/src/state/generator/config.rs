// SPDX-License-Identifier: Apache-2.0
//! The settings of packet generators.

use crate::Nanos;

/// Bytes of the longest pattern, and of the data that a Tofino 2 puts in front of a generated packet.
pub const GENERATOR_CONTEXT_BYTES: usize = 16;

/// Bytes of a packet generator's buffer.
pub const GENERATOR_BUFFER_BYTES: usize = 1 << 14;

/// Bits that the first bytes of a packet must have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GeneratorPattern {
    /// The bits.
    pub value: [u8; GENERATOR_CONTEXT_BYTES],
    /// 1 for each bit that matters.
    pub mask: [u8; GENERATOR_CONTEXT_BYTES],
}

impl GeneratorPattern {
    /// Returns true if the first bytes of a packet match. Missing bytes are zero.
    pub(crate) fn matches(&self, bytes: &[u8]) -> bool {
        let bytes = bytes.iter().copied().chain(std::iter::repeat(0));
        let bits = self.value.iter().zip(&self.mask).zip(bytes);
        bits.into_iter()
            .all(|((value, mask), byte)| (value ^ byte) & mask == 0)
    }
}

/// The event that starts an application.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum GeneratorTrigger {
    /// None.
    #[default]
    Never,
    /// The end of this time, once.
    Once(Nanos),
    /// The end of this time, again and again.
    Periodic(Nanos),
    /// A port that goes down; on Tofino 2 one that this mask contains.
    PortDown {
        /// The number of the mask.
        mask: u32,
    },
    /// A recirculated packet that begins with a pattern.
    Recirculation(GeneratorPattern),
    /// A packet whose deparser calls `Pktgen.emit` with a header that begins with a pattern.
    Deparser(GeneratorPattern),
}

impl GeneratorTrigger {
    /// Returns the time of the timer.
    pub(super) fn delay(self) -> Option<Nanos> {
        match self {
            Self::Once(delay) | Self::Periodic(delay) => Some(delay),
            _ => None,
        }
    }
}

/// An application of a packet generator: the packets that it makes after each trigger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GeneratorApp {
    /// It reacts to its trigger.
    pub is_enabled: bool,
    /// The trigger.
    pub trigger: GeneratorTrigger,
    /// The position of the packet in the buffer.
    pub offset: u32,
    /// Length of the packet in bytes, without the header that the generator adds.
    pub length: u32,
    /// Number of batches.
    pub batches: u32,
    /// Number of packets of a batch.
    pub packets: u32,
    /// Time between batches.
    pub batch_gap: Nanos,
    /// Time between the packets of a batch.
    pub packet_gap: Nanos,
    /// The ingress port of the packets, within the pipe.
    pub source_port: u32,
    /// The ingress port increases with each packet of a batch.
    pub increments_source_port: bool,
    /// The ingress port that 0 follows.
    pub last_source_port: u32,
    /// The port within the pipe that must be enabled for packets; `None` for any.
    pub channel: Option<u32>,
}

impl Default for GeneratorApp {
    fn default() -> Self {
        Self {
            is_enabled: false,
            trigger: GeneratorTrigger::Never,
            offset: 0,
            length: 0,
            batches: 1,
            packets: 1,
            batch_gap: 0,
            packet_gap: 0,
            source_port: 0,
            increments_source_port: false,
            last_source_port: u32::MAX,
            channel: None,
        }
    }
}

/// Counters of an application.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GeneratorCounts {
    /// Triggers.
    pub triggers: u64,
    /// Batches that began.
    pub batches: u64,
    /// Packets.
    pub packets: u64,
}

impl std::ops::Add for GeneratorCounts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            triggers: self.triggers + other.triggers,
            batches: self.batches + other.batches,
            packets: self.packets + other.packets,
        }
    }
}

/// The use of a port by packet generators.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GeneratorPort {
    /// Generated packets may use the port.
    pub generates: bool,
    /// Recirculated packets that arrive at the port are compared with patterns.
    pub matches_patterns: bool,
}
