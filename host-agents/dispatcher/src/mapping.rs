//! Which sites are best for the clients of a deployment: services that are at the same sites share one.

use std::num::NonZeroU8;
use std::sync::Arc;

use foldhash::HashMap;

/// What one deployment chooses, by region. Regions are numbered from 0 without large gaps, and few sites are chosen, so this is an
/// array: a row of `width` sites for each region, best first, and zeros behind the last.
#[derive(Clone, Debug, Default)]
struct Choices {
    rows: Vec<Option<NonZeroU8>>,
    width: usize,
    /// Rows that have a site.
    used: usize,
}

impl Choices {
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

    /// Whether there was anything.
    fn remove(&mut self, region: u16) -> bool {
        let was = self.get(region).is_some();
        if was {
            let start = usize::from(region) * self.width;
            self.rows[start..start + self.width].fill(None);
            self.used -= 1;
        }
        was
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

/// The sites of every (deployment, region). Copies share the deployments that neither has changed.
#[derive(Clone, Debug, Default)]
pub struct Mapping(HashMap<u16, Arc<Choices>>);

impl Mapping {
    /// Sets the sites, of which there is one at least, of a deployment in a region.
    pub fn set(&mut self, deployment: u16, region: u16, sites: &[NonZeroU8]) {
        Arc::make_mut(self.0.entry(deployment).or_default()).set(region, sites);
    }

    /// Whether there were sites to remove.
    pub fn remove(&mut self, deployment: u16, region: u16) -> bool {
        let Some(choices) = self.0.get_mut(&deployment) else {
            return false;
        };
        let choices = Arc::make_mut(choices);
        let was = choices.remove(region);
        if choices.used == 0 {
            self.0.remove(&deployment);
        }
        was
    }

    /// The sites of a deployment for clients of `region`, or else for those of no region; best first.
    #[inline]
    pub fn find(&self, deployment: u16, region: u16) -> impl Iterator<Item = NonZeroU8> {
        let choices = self.0.get(&deployment);
        let row = choices.and_then(|choices| choices.get(region).or_else(|| choices.get(0)));
        row.into_iter().flatten().map_while(|site| *site)
    }

    /// Deployments that have sites.
    pub fn deployments(&self) -> impl ExactSizeIterator<Item = u16> {
        self.0.keys().copied()
    }

    /// Number of (deployment, region) that have sites.
    pub fn len(&self) -> usize {
        self.0.values().map(|choices| choices.used).sum()
    }

    /// Whether there is none.
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
    fn rows_grow_and_go() {
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
        // The copy is as it was.
        assert_eq!(found(&before, 7, 5), sites(&[2]));
        assert_eq!(found(&before, 8, 0), sites(&[9]));
        assert_eq!(before.len(), 4);
    }
}
