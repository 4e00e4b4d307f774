// SPDX-License-Identifier: Apache-2.0
//! Round-trip times to client prefixes, from handshakes at the replicas and from probes, until the controller fetches them.

use std::collections::BTreeMap;
use std::num::NonZeroU8;

use serde::{Deserialize, Serialize};

use crate::regions::Prefix;

/// Mean round-trip time of a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RttMean {
    /// Prefix of the clients.
    pub prefix: Prefix,
    /// Mean round-trip time in microseconds.
    pub rtt_us: u64,
    /// Number of samples.
    pub count: u64,
}

/// Mean round-trip time between a prefix and a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SiteRtt {
    #[serde(flatten)]
    rtt: RttMean,
    site: NonZeroU8,
}

/// Round-trip times since the last fetch, as one mean for each prefix.
#[derive(Debug, Default)]
pub struct Measurements {
    by_prefix: BTreeMap<Prefix, (u128, u64)>,
    /// Number of samples that exceeded the capacity.
    pub dropped: u64,
}

impl Measurements {
    /// Maximum number of prefixes, in case the controller never fetches them.
    pub const CAPACITY: usize = 100_000;

    /// Adds a mean. New prefixes beyond the capacity are dropped and counted.
    pub fn add(&mut self, rtt: RttMean) {
        let is_full = self.by_prefix.len() >= Self::CAPACITY;
        if rtt.count == 0 {
            return;
        }
        if is_full && !self.by_prefix.contains_key(&rtt.prefix) {
            self.dropped += 1;
            return;
        }
        let (sum, count) = self.by_prefix.entry(rtt.prefix).or_default();
        *sum = sum.saturating_add(u128::from(rtt.rtt_us) * u128::from(rtt.count));
        *count = count.saturating_add(rtt.count);
    }

    /// Returns the measurements of `site` and clears them.
    pub fn take(&mut self, site: NonZeroU8) -> Vec<SiteRtt> {
        let taken = std::mem::take(&mut self.by_prefix).into_iter();
        let mean = |(prefix, (sum, count)): (Prefix, (u128, u64))| SiteRtt {
            rtt: RttMean {
                prefix,
                rtt_us: (sum / u128::from(count)) as u64,
                count,
            },
            site,
        };
        taken.map(mean).collect()
    }
}
