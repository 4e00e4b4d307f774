// SPDX-License-Identifier: Apache-2.0
//! Times without rounding.

use crate::link::Nanos;

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// A time in nanoseconds with a fraction, `part / rate`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct ExactTime {
    pub(crate) nanos: Nanos,
    pub(crate) part: u64,
}

impl ExactTime {
    pub(crate) fn whole(nanos: Nanos) -> Self {
        Self { nanos, part: 0 }
    }

    /// Returns the time `8 * (bytes + overhead) / rate` seconds later, without rounding.
    pub(crate) fn after_sending(self, bytes: u32, overhead: u32, rate: u64) -> Self {
        self.after((u64::from(bytes) + u64::from(overhead)) * 8, rate)
    }

    /// Returns the time `count / rate` seconds later, without rounding.
    pub(crate) fn after(self, count: u64, rate: u64) -> Self {
        let total = u128::from(count) * u128::from(NANOS_PER_SECOND) + u128::from(self.part);
        let nanos = u64::try_from(total / u128::from(rate)).unwrap_or(u64::MAX);
        Self {
            nanos: self.nanos.saturating_add(nanos),
            // Less than `rate`, so it fits.
            part: (total % u128::from(rate)) as u64,
        }
    }
}
