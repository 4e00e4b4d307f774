// SPDX-License-Identifier: Apache-2.0
//! The mapping: the best sites for the clients of each deployment. Services at the same sites share a deployment.

use std::num::NonZeroU8;
use std::sync::Arc;

use foldhash::HashMap;

/// The sites of one deployment by region.
///
/// Region numbers start at 0 without large gaps, and each has few sites. So this is an array with a row of `width` sites for each
/// region, best first, padded with `None`.
#[derive(Clone, Debug, Default)]
struct RegionSites {
    rows: Vec<Option<NonZeroU8>>,
    width: usize,
    /// Number of rows with a site.
    used: usize,
}

impl RegionSites {
    fn get(&self, region: u16) -> Option<&[Option<NonZeroU8>]> {
        let start = usize::from(region) * self.width;
        let row = self.rows.get(start..start + self.width)?;
        row.first()?.is_some().then_some(row)
    }

    fn set(&mut self, region: u16, sites: &[NonZeroU8]) {
        if sites.len() > self.width {
            self.widen(sites.len());
        }
        self.used += usize::from(self.get(region).is_none());
        let start = usize::from(region) * self.width;
        let end = start + self.width;
        if self.rows.len() < end {
            self.rows.resize(end, None);
        }
        for (n, slot) in self.rows[start..end].iter_mut().enumerate() {
            *slot = sites.get(n).copied();
        }
    }

    /// Clears a row; returns true if it had a site.
    fn remove(&mut self, region: u16) -> bool {
        let had_sites = self.get(region).is_some();
        if had_sites {
            let start = usize::from(region) * self.width;
            self.rows[start..start + self.width].fill(None);
            self.used -= 1;
        }
        had_sites
    }

    fn widen(&mut self, width: usize) {
        let mut rows = Vec::new();
        for row in self.rows.chunks(self.width.max(1)) {
            rows.extend_from_slice(row);
            rows.resize(rows.len() + width - row.len(), None);
        }
        (self.rows, self.width) = (rows, width);
    }
}

/// The sites for each deployment and region. Copies share the arrays of unchanged deployments.
#[derive(Clone, Debug, Default)]
pub struct Mapping(HashMap<u16, Arc<RegionSites>>);

impl Mapping {
    /// Sets the sites of a deployment for a region. `sites` must not be empty.
    pub fn set(&mut self, deployment: u16, region: u16, sites: &[NonZeroU8]) {
        Arc::make_mut(self.0.entry(deployment).or_default()).set(region, sites);
    }

    /// Removes the sites of a deployment for a region; returns true if there were any.
    pub fn remove(&mut self, deployment: u16, region: u16) -> bool {
        let Some(regions) = self.0.get_mut(&deployment) else {
            return false;
        };
        let regions = Arc::make_mut(regions);
        let had_sites = regions.remove(region);
        if regions.used == 0 {
            self.0.remove(&deployment);
        }
        had_sites
    }

    /// Returns the sites of a deployment for clients of `region`, or else the default ones of region 0, best first.
    #[inline]
    pub fn find(&self, deployment: u16, region: u16) -> impl Iterator<Item = NonZeroU8> {
        let regions = self.0.get(&deployment);
        let row = regions.and_then(|regions| regions.get(region).or_else(|| regions.get(0)));
        row.into_iter().flatten().map_while(|site| *site)
    }

    /// Returns the deployments that have sites.
    pub fn deployments(&self) -> impl ExactSizeIterator<Item = u16> {
        self.0.keys().copied()
    }

    /// Returns the number of pairs of deployment and region that have sites.
    pub fn len(&self) -> usize {
        self.0.values().map(|regions| regions.used).sum()
    }

    /// Returns true if the mapping is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sites(ids: &[u8]) -> Vec<NonZeroU8> {
        ids.iter().filter_map(|id| NonZeroU8::new(*id)).collect()
    }

    #[test]
    fn sites_can_be_set_replaced_and_removed() {
        let mut mapping = Mapping::default();
        let found = |mapping: &Mapping, deployment, region| -> Vec<NonZeroU8> {
            mapping.find(deployment, region).collect()
        };
        mapping.set(7, 5, &sites(&[2]));
        assert_eq!(found(&mapping, 7, 5), sites(&[2]));
        assert_eq!(found(&mapping, 7, 6), sites(&[]));
        mapping.set(7, 0, &sites(&[1, 3, 2]));
        mapping.set(7, u16::MAX, &sites(&[3, 1]));
        mapping.set(8, 0, &sites(&[9]));
        let before = mapping.clone();
        mapping.set(7, 5, &sites(&[4, 1]));
        assert_eq!(mapping.len(), 4);
        assert_eq!(mapping.deployments().len(), 2);
        assert_eq!(found(&mapping, 7, 5), sites(&[4, 1]));
        assert_eq!(found(&mapping, 7, 6), sites(&[1, 3, 2]));
        assert_eq!(found(&mapping, 7, u16::MAX), sites(&[3, 1]));
        assert!(mapping.remove(7, 5));
        assert!(!mapping.remove(7, 5));
        assert!(!mapping.remove(9, 0));
        assert_eq!(found(&mapping, 7, 5), sites(&[1, 3, 2]));
        assert!(mapping.remove(8, 0));
        assert_eq!(found(&mapping, 8, 0), sites(&[]));
        assert_eq!((mapping.len(), mapping.deployments().len()), (2, 1));
        // The earlier copy is unchanged.
        assert_eq!(found(&before, 7, 5), sites(&[2]));
        assert_eq!(found(&before, 8, 0), sites(&[9]));
        assert_eq!(before.len(), 4);
    }
}
