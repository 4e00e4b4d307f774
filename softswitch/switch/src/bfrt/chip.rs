// SPDX-License-Identifier: Apache-2.0
//! The chips whose properties clients see.

/// Bytes of a kilobit.
const BYTES_PER_KILOBIT: u64 = 125;

/// The chip of a program's architecture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chip {
    /// Tofino.
    Tofino,
    /// Tofino 2.
    Tofino2,
    /// No chip: programs for v1model and PSA.
    Other,
}

impl Chip {
    /// Returns the chip of an architecture.
    pub fn of(architecture: &str) -> Self {
        match architecture {
            "tna" => Self::Tofino,
            "t2na" => Self::Tofino2,
            _ => Self::Other,
        }
    }

    /// Returns the name of the chip's family, which precedes the names of its tables.
    pub fn family(self) -> &'static str {
        match self {
            Self::Tofino => "tf1",
            Self::Tofino2 => "tf2",
            Self::Other => "softswitch",
        }
    }

    /// Returns the largest rate of meters: of those that count bytes in kilobits per second, otherwise in packets per second.
    pub fn max_rate(self, counts_bytes: bool) -> u64 {
        let kilobits = match self {
            Self::Tofino => 5_195_848_221,
            Self::Tofino2 => 4_087_999_890,
            Self::Other => return u64::MAX,
        };
        match counts_bytes {
            true => kilobits,
            false => kilobits * BYTES_PER_KILOBIT,
        }
    }

    /// Returns the largest burst of meters, in kilobits or packets.
    pub fn max_burst(self, counts_bytes: bool) -> u64 {
        let kilobits = match self {
            Self::Tofino | Self::Tofino2 => 4_380_866_642,
            Self::Other => return u64::MAX,
        };
        match counts_bytes {
            true => kilobits,
            false => kilobits * BYTES_PER_KILOBIT,
        }
    }
}
