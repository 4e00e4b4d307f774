// SPDX-License-Identifier: Apache-2.0
//! Limits of single priorities, in packets: BMv2's queue rates and depths.

use std::num::NonZeroU64;

use crate::exact_time::{ExactTime, NANOS_PER_SECOND};
use crate::link::Nanos;

/// The limit of a priority's queue in packets, unless it is set: BMv2's.
pub const DEFAULT_CLASS_DEPTH: u64 = 64;

/// The limits of one priority.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClassLimit {
    /// Maximum number of waiting packets.
    pub(crate) depth: u64,
    /// Packets per second.
    rate: Option<NonZeroU64>,
    /// The earliest start of the next packet.
    pub(crate) ready_at: ExactTime,
}

impl Default for ClassLimit {
    fn default() -> Self {
        Self {
            depth: DEFAULT_CLASS_DEPTH,
            rate: None,
            ready_at: ExactTime::default(),
        }
    }
}

impl ClassLimit {
    /// Sets the rate in packets per second; the time that the last packet has taken remains.
    pub(crate) fn set_rate(&mut self, rate: Option<NonZeroU64>) {
        self.rate = rate;
        // The fraction of a nanosecond counts in units of the old rate.
        self.ready_at = ExactTime::whole(if rate.is_some() {
            self.ready_at.nanos
        } else {
            0
        });
    }

    /// Records the start of a packet.
    pub(crate) fn on_start(&mut self, at: Nanos) {
        let Some(rate) = self.rate else {
            return;
        };
        let rate = rate.get();
        let begun = if self.ready_at.nanos == at {
            self.ready_at
        } else {
            ExactTime::whole(at)
        };
        let part = NANOS_PER_SECOND % rate + begun.part;
        self.ready_at = ExactTime {
            nanos: begun
                .nanos
                .saturating_add(NANOS_PER_SECOND / rate + part / rate),
            part: part % rate,
        };
    }
}
