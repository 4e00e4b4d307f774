// SPDX-License-Identifier: Apache-2.0
//! Conditions under which a register action does something.

/// A condition, as a table of its truth for each combination of the comparisons' outcomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct When(u64);

/// Number of comparisons that the tables distinguish. No chip has more.
const DISTINGUISHED: usize = 6;

impl When {
    pub const ALWAYS: Self = Self(u64::MAX);
    pub const NEVER: Self = Self(0);

    /// Returns the condition that a comparison is.
    pub fn comparison(number: usize) -> Self {
        let number = number % DISTINGUISHED;
        Self((0..u64::BITS).fold(0, |table, i| table | u64::from(i >> number & 1) << i))
    }

    pub fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub fn not(self) -> Self {
        Self(!self.0)
    }

    /// Returns true if this condition holds whenever the other one does.
    pub fn covers(self, other: Self) -> bool {
        other.0 & !self.0 == 0
    }
}
