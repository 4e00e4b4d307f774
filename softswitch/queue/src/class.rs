// SPDX-License-Identifier: Apache-2.0
//! Limits of single priorities, in packets: BMv2's queue rates and depths.

use std::num::NonZeroU64;

use crate::exact_time::ExactTime;
use crate::link::Nanos;

/// The limit in packets of a priority whose rate alone is limited: BMv2's.
pub const DEFAULT_CLASS_DEPTH: u64 = 64;

/// The limits of one priority.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ClassLimit {
    /// Maximum number of waiting packets, if it is set.
    depth: Option<u64>,
    /// Packets per second.
    rate: Option<NonZeroU64>,
    /// The earliest start of the next packet.
    pub(crate) ready_at: ExactTime,
}

impl ClassLimit {
    /// Sets the maximum number of waiting packets.
    pub(crate) fn set_depth(&mut self, packets: u64) {
        self.depth = Some(packets);
    }

    /// Returns the maximum number of waiting packets; without limits, only the port's queue limits them.
    pub(crate) fn depth(&self) -> u64 {
        let default = match self.rate {
            Some(_) => DEFAULT_CLASS_DEPTH,
            None => u64::MAX,
        };
        self.depth.unwrap_or(default)
    }

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
        let begun = if self.ready_at.nanos == at {
            self.ready_at
        } else {
            ExactTime::whole(at)
        };
        self.ready_at = begun.after(1, rate.get());
    }
}
