//! Whether a replica wants new connections: not from a load of `overload` on, and again once that has fallen by a quarter, so that it does not
//! come and go with each response.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use frontage_quic::meter::Loads;

/// Share of `overload` at which it comes back.
const RETURN: f64 = 0.75;

#[derive(Debug)]
pub(super) struct Acceptance {
    loads: Arc<Loads>,
    capacity: f64,
    overload: f64,
    out: AtomicBool,
}

impl Acceptance {
    pub(super) fn new(loads: Arc<Loads>, capacity: NonZeroU32, overload: f64) -> Self {
        let capacity = capacity.get().into();
        let out = AtomicBool::new(false);
        Self {
            loads,
            capacity,
            overload,
            out,
        }
    }

    /// Responses under way, as a share of the capacity; at most 1.
    pub(super) fn load(&self) -> f64 {
        (self.loads.n_af() as f64 / self.capacity).min(1.)
    }

    /// Whether it wants them now.
    pub(super) fn now(&self) -> bool {
        let load = self.load();
        // Two that ask at once come to the same answer, or to one that is a moment old.
        let out = if self.out.load(Relaxed) {
            load > RETURN * self.overload
        } else {
            load >= self.overload
        };
        self.out.store(out, Relaxed);
        !out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use frontage_quic::meter::Response;

    #[test]
    fn it_goes_at_once_and_comes_back_late() {
        let loads = Arc::new(Loads::new(0));
        let acceptance = Acceptance::new(loads.clone(), NonZeroU32::new(10).unwrap(), 0.8);
        let begin = || Response::new(loads.clone(), None);
        let mut active: Vec<_> = (0..7).map(|_| begin()).collect();
        assert!(acceptance.now());
        active.push(begin());
        assert!(!acceptance.now());
        active.truncate(7);
        assert!(!acceptance.now());
        active.truncate(6);
        assert!(acceptance.now());
        active.extend((0..9).map(|_| begin()));
        assert_eq!((acceptance.load(), acceptance.now()), (1., false));
    }
}
