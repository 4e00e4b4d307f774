// SPDX-License-Identifier: Apache-2.0
//! Parser value sets.

use crate::program::criteria::Criteria;
use crate::program::key::KeyShape;

/// A member of a value set.
#[derive(Debug, Clone)]
pub(crate) struct SetMember {
    pub(crate) shape: KeyShape,
    pub(crate) criteria: Criteria,
}

impl SetMember {
    pub(crate) fn matches(&self, key: &[u64]) -> bool {
        let masked = key.iter().zip(&self.criteria.masks).map(|(k, m)| k & m);
        masked.eq(self.criteria.values.iter().copied())
            && self.shape.in_ranges(key, &self.criteria.ranges)
    }
}
