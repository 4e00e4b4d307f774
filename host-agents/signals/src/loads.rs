//! N_AF and N_FF of a server.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The loads of a server: what its [`Response`](crate::Response)s count in.
#[derive(Debug)]
pub struct Loads {
    look_ahead: u64,
    n_af: AtomicU64,
    n_ff: AtomicU64,
}

impl Loads {
    /// No load; a response counts in N_FF while more than `look_ahead` bytes remain.
    pub fn new(look_ahead: u64) -> Self {
        Self {
            look_ahead,
            n_af: AtomicU64::new(0),
            n_ff: AtomicU64::new(0),
        }
    }

    /// Responses begun and not yet sent whole.
    #[inline]
    pub fn n_af(&self) -> u64 {
        self.n_af.load(Relaxed)
    }

    /// Those of them with more than the look-ahead left, as far as it is known what they need.
    #[inline]
    pub fn n_ff(&self) -> u64 {
        self.n_ff.load(Relaxed)
    }

    /// Whether a response with so much left counts in N_FF.
    #[inline]
    pub(crate) fn is_far(&self, remaining: u64) -> bool {
        remaining > self.look_ahead
    }

    /// A response begins.
    pub(crate) fn enter(&self) {
        self.n_af.fetch_add(1, Relaxed);
    }

    /// A response ends, which counted in N_FF if it was `far`.
    pub(crate) fn leave(&self, far: bool) {
        if far {
            self.turn(false);
        }
        self.n_af.fetch_sub(1, Relaxed);
    }

    /// A response begins to count in N_FF, or ceases to.
    pub(crate) fn turn(&self, far: bool) {
        if far {
            self.n_ff.fetch_add(1, Relaxed);
        } else {
            self.n_ff.fetch_sub(1, Relaxed);
        }
    }
}
