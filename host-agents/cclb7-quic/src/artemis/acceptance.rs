// SPDX-License-Identifier: Apache-2.0
//! Acceptance of new connections: a replica stops at a load of `overload`, and resumes once the load has fallen by a quarter. The
//! hysteresis avoids a change with each response.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use frontage_quic::meter::Loads;

/// Share of `overload` at which the replica accepts again.
const RESUME_SHARE: f64 = 0.75;

#[derive(Debug)]
pub(super) struct Acceptance {
    loads: Arc<Loads>,
    capacity: f64,
    overload: f64,
    is_overloaded: AtomicBool,
}

impl Acceptance {
    pub(super) fn new(loads: Arc<Loads>, capacity: NonZeroU32, overload: f64) -> Self {
        let capacity = capacity.get().into();
        let is_overloaded = AtomicBool::new(false);
        Self {
            loads,
            capacity,
            overload,
            is_overloaded,
        }
    }

    /// Return the active responses as a share of the capacity, at most 1.
    pub(super) fn load(&self) -> f64 {
        (self.loads.n_af() as f64 / self.capacity).min(1.)
    }

    /// Return whether the replica accepts new connections.
    pub(super) fn is_accepting(&self) -> bool {
        let load = self.load();
        // Concurrent calls get the same result, or one that is slightly out of date.
        let is_overloaded = if self.is_overloaded.load(Relaxed) {
            load > RESUME_SHARE * self.overload
        } else {
            load >= self.overload
        };
        self.is_overloaded.store(is_overloaded, Relaxed);
        !is_overloaded
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use frontage_quic::meter::Response;

    #[test]
    fn acceptance_has_hysteresis() {
        let loads = Arc::new(Loads::new(0));
        let acceptance = Acceptance::new(loads.clone(), NonZeroU32::new(10).unwrap(), 0.8);
        let begin = || Response::new(loads.clone(), None);
        let mut active: Vec<_> = (0..7).map(|_| begin()).collect();
        assert!(acceptance.is_accepting());
        active.push(begin());
        assert!(!acceptance.is_accepting());
        active.truncate(7);
        assert!(!acceptance.is_accepting());
        active.truncate(6);
        assert!(acceptance.is_accepting());
        active.extend((0..9).map(|_| begin()));
        assert_eq!((acceptance.load(), acceptance.is_accepting()), (1., false));
    }
}
