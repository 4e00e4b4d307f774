//! Round-trip times to clients' prefixes, until the controller takes them: from handshakes at the replicas, and from probes.

use std::collections::BTreeMap;
use std::num::NonZeroU8;

use serde::{Deserialize, Serialize};

use crate::regions::Prefix;

/// The mean of `count` round trips.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// Whose.
    pub prefix: Prefix,
    /// Mean, in microseconds.
    pub rtt_us: u64,
    /// How many.
    pub count: u64,
}

/// The same, of a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct OfSite {
    #[serde(flatten)]
    measured: Measured,
    site: NonZeroU8,
}

/// What was measured since it was last taken: a mean for each prefix.
#[derive(Debug, Default)]
pub struct Measurements {
    by_prefix: BTreeMap<Prefix, (u128, u64)>,
    /// What found no room.
    pub dropped: u64,
}

impl Measurements {
    /// Most prefixes: nobody may ever take them.
    pub const CAPACITY: usize = 100_000;

    /// Adds a mean; of a new prefix only while there is room.
    pub fn add(&mut self, measured: Measured) {
        let full = self.by_prefix.len() >= Self::CAPACITY;
        if measured.count == 0 {
            return;
        }
        if full && !self.by_prefix.contains_key(&measured.prefix) {
            self.dropped += 1;
            return;
        }
        let (sum, count) = self.by_prefix.entry(measured.prefix).or_default();
        *sum = sum.saturating_add(u128::from(measured.rtt_us) * u128::from(measured.count));
        *count = count.saturating_add(measured.count);
    }

    /// Takes all of them out, as those of `site`.
    pub fn take(&mut self, site: NonZeroU8) -> Vec<OfSite> {
        let taken = std::mem::take(&mut self.by_prefix).into_iter();
        let mean = |(prefix, (sum, count)): (Prefix, (u128, u64))| OfSite {
            measured: Measured {
                prefix,
                rtt_us: (sum / u128::from(count)) as u64,
                count,
            },
            site,
        };
        taken.map(mean).collect()
    }
}
